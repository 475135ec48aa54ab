"""The profile run's peak as ledger lines: sampler or layer, buffers of experts, towers, compiling.

vLLM runs its largest batch once before it sizes the cache; what torch holds at the peak beyond
weights is subtracted. Two phases compete: a layer's step, and sampling with the logits of
max_num_seqs requests. Buffers that the engine keeps (routed tokens of experts) come on top.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kvplan.engines.base import Version
from kvplan.engines.runtime import Range
from kvplan.engines.vllm import adapters, towers
from kvplan.engines.vllm.calibration import RuntimeBand
from kvplan.engines.vllm.runner import Sampling, newer_runner, sampling_of
from kvplan.engines.vllm.settings import Settings
from kvplan.ledger import Draft, Section
from kvplan.models.formats import DTYPE_BYTES, Dtype
from kvplan.models.spec import ModelSpec
from kvplan.models.step import layer_step
from kvplan.models.weights import RankLayout
from kvplan.units import GIB

_PROFILE = "vLLM profile run: max_num_batched_tokens tokens, max_num_seqs sampled requests"
_EXPERTS = (
    "vLLM 0.33.0, vllm/model_executor/layers/fused_moe: two buffers of the tokens routed to experts"
)
# Since 0.14 they are taken from a workspace that outlives the layer (vllm/v1/worker/workspace.py,
# fused_moe/modular_kernel.py, unquantized_fused_moe_method.py); before, a layer gave them back.
# Intel's kernels ask for none (fused_moe/experts/xpu_moe.py). Kernels for packed experts may
# differ, hence the range.
_KEPT_SINCE = (0, 14)
_KEPT, _GIVEN_BACK = Range(1, 0, 1), Range(0, 0, 1)
_LATENT_BLOCK = 64
_MOST_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class Run:
    """The profile run of one rank.

    Attributes:
        layout: The rank's part; only the last stage samples.
        dtype: The type it runs in.
        context: max_model_len.
        compiles: Whether graphs are compiled.
        v0: The engine before V1.
        version: The release.
        vendor: Of the device.
    """

    model: ModelSpec
    settings: Settings
    layout: RankLayout
    dtype: Dtype
    context: int
    compiles: bool
    v0: bool
    version: Version
    vendor: str = "nvidia"


def activation_lines(run: Run, band: RuntimeBand) -> tuple[Draft, ...]:
    """The lines of one rank with the band's constants."""
    lines = (
        _peak(run, band),
        *_experts(run, band.source),
        *_towers(run, band),
        *_compiling(band, compiles=run.compiles),
    )
    return tuple(line for line in lines if line.high is None or line.value(line.high))


def _peak(run: Run, band: RuntimeBand) -> Draft:
    """The larger of the two phases."""
    model, settings = run.model, run.settings
    step, inputs, varied = _layer_step(run, band)
    varied["fixed_gib"] = band.fixed_gib
    inputs["gib"] = GIB
    if run.layout.last:
        inputs |= {
            "requests": min(settings.max_num_seqs, settings.max_num_batched_tokens),
            "vocab": model.vocab_size,
            "hidden": model.hidden_size,
        }
        logits = _logits(run, band)
        inputs |= logits.inputs
        varied |= {**logits.varied, "hidden_bytes": band.hidden_bytes}
        sampling = f"requests * vocab * {logits.formula} + tokens * hidden * hidden_bytes"
        step = f"max({step}, {sampling})"
    if any(cache.kind == "latent" for cache in model.caches):
        varied["latent_gib"] = band.latent_gib
        step = f"{step} + latent_gib * gib"
    return fitted(
        "activation_peak",
        "budget",
        f"ceil({step} + fixed_gib * gib)",
        inputs,
        varied=varied,
        source=f"{_PROFILE}; {band.source}",
    )


def _logits(run: Run, band: RuntimeBand) -> Sampling:
    return sampling_of(
        newer=newer_runner(run.model, run.version, run.settings.speculative),
        version=run.version,
        vendor=run.vendor,
        tp=run.layout.tp,
        older=band.logits_bytes,
    )


def _layer_step(
    run: Run, band: RuntimeBand
) -> tuple[str, dict[str, int | float], dict[str, Range]]:
    """Formula, inputs and constants of a layer's step."""
    step = layer_step(run.model, run.layout)
    inputs: dict[str, int | float] = {
        "tokens": run.settings.max_num_batched_tokens,
        "step_elements": step.alive,
        "element_bytes": DTYPE_BYTES[run.dtype],
    }
    varied = {"step_share": band.step_share}
    elements = "tokens * step_elements"
    if step.kept:
        # What does not stay beside both phases is held in the step alone.
        inputs |= {"buffer_elements": step.kept, "experts_share": _kept(run).value}
        elements = "tokens * (step_elements + buffer_elements * (1 - experts_share))"
    if step.latent_row and not run.v0:
        inputs |= {
            "latent_elements": step.latent_alive,
            "context_rows": _context_rows(run),
            "row_elements": step.latent_row,
        }
        room = "tokens * latent_elements + context_rows * row_elements"
        elements = f"max({elements}, {room})"
    return f"{elements} * element_bytes * step_share" + _applying(run, inputs), inputs, varied


def _applying(run: Run, inputs: dict[str, int | float]) -> str:
    """What applying adapters adds to the step; its input joins the others."""
    size = adapters.step_bytes(run.settings)
    if not size:
        return ""
    inputs["adapter_bytes"] = size
    return " + tokens * adapter_bytes"


def _context_rows(run: Run) -> int:
    """Tokens of context whose keys and values MLA's profile run makes room for.

    Source: vLLM 0.33.0, vllm/model_executor/layers/attention/mla_attention.py,
    determine_chunked_prefill_workspace_size.
    """
    by_requests = 4 * run.settings.max_num_seqs * (run.settings.block_size or _LATENT_BLOCK)
    return min(max(8 * run.context, by_requests), _MOST_ROWS)


def _kept(run: Run) -> Range:
    """The share of the experts' buffers that stays beside both phases."""
    kept = run.version[:2] >= _KEPT_SINCE and run.vendor != "intel"
    return _KEPT if kept else _GIVEN_BACK


def _experts(run: Run, source: str) -> Iterator[Draft]:
    kept = layer_step(run.model, run.layout).kept
    if kept:
        yield fitted(
            "expert_buffers",
            "budget",
            "ceil(tokens * buffer_elements * element_bytes * experts_share)",
            {
                "tokens": run.settings.max_num_batched_tokens,
                "buffer_elements": kept,
                "element_bytes": DTYPE_BYTES[run.dtype],
            },
            varied={"experts_share": _kept(run)},
            source=f"{_EXPERTS}; {source}",
        )


def _towers(run: Run, band: RuntimeBand) -> Iterator[Draft]:
    if towers.profiled(run.model, run.settings.limit_mm_per_prompt, run.version):
        yield gib_line("multimodal_profile", "budget", band.multimodal_gib, band.source)


def _compiling(band: RuntimeBand, *, compiles: bool) -> Iterator[Draft]:
    if compiles and band.compile_gib.high:
        source = f"{band.source}; nothing with a warm compile cache"
        yield gib_line("compilation", "budget", band.compile_gib, source)


def fitted(
    name: str,
    section: Section,
    formula: str,
    inputs: Mapping[str, int | float],
    *,
    varied: Mapping[str, Range],
    source: str,
) -> Draft:
    """A line whose constants are ranges."""
    return Draft(
        name,
        section,
        formula,
        {**inputs, **{key: constant.value for key, constant in varied.items()}},
        source=source,
        confidence="calibrated",
        low={key: constant.low for key, constant in varied.items()},
        high={key: constant.high for key, constant in varied.items()},
    )


def gib_line(name: str, section: Section, constant: Range, source: str) -> Draft:
    """A line that is one fitted figure."""
    key = f"{name}_gib"
    return fitted(
        name, section, f"ceil({key} * gib)", {"gib": GIB}, varied={key: constant}, source=source
    )
