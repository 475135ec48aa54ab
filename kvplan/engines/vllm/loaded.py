"""What a loaded model holds in vLLM beside the tensors of its files.

Each effect was seen in start-up logs (``validation/weights.py``) and read in vLLM 0.33.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from kvplan.engines.base import Version
from kvplan.ledger import Draft
from kvplan.models.formats import ceil_div, round_up
from kvplan.models.identity import ById
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout, Weight

_ROTARY = (
    "vLLM 0.33.0, vllm/model_executor/layers/rotary_embedding: one table of cosines and sines"
    " for each distinct description"
)
_ABSORBED = (
    "vLLM 0.33.0, vllm/model_executor/layers/attention/mla_attention.py"
    " process_weights_after_loading: W_UK_T and W_UV beside a quantized kv_b_proj"
)
_PADDED = (
    "vLLM 0.33.0, vllm/model_executor/layers/fused_moe/oracle/mxfp4.py"
    " mxfp4_round_up_hidden_size_and_intermediate_size: Marlin and TensorRT-LLM kernels"
)
_KEPT = (
    "vllm-project/vllm pull request 46549 (June 2026): until then Triton's kernels kept the scales"
    " of the files beside the ones they read"
)
_ABSORBING = ".kv_b_proj."
_HIDDEN, _INTERMEDIATE = 256, 128
# Hopper's kernels take the sizes as they are; its releases before 0.11 had none but Marlin's.
_UNPADDED_MAJOR, _UNPADDED_SINCE = 9, (0, 11)
# The pull request was merged within days of 0.24; 0.25 has it for certain.
_FREED_SINCE = (0, 25)
_MATRIX = 2
# Three matrices an expert; 32 elements are 16 bytes and a scale.
_EXPERT = "3 * experts_on_layers * (padded_hidden * padded_width - hidden * width) * 17 / 32"
_SCALES = "3 * experts_on_layers * hidden * width / 32"


def loaded_lines(
    model: ModelSpec, *, element_bytes: int, layout: RankLayout, sm: tuple[int, int], at: Version
) -> tuple[Draft, ...]:
    """The lines of one rank.

    Args:
        model: What is loaded.
        element_bytes: Bytes of an element in the type it runs in.
        layout: The rank's part.
        sm: The device's compute capability.
        at: The release.
    """
    unpadded = sm[0] == _UNPADDED_MAJOR and at >= _UNPADDED_SINCE
    kept = unpadded and at < _FREED_SINCE
    return _lines(ById(model), element_bytes, layout, unpadded, kept)


@lru_cache(maxsize=1024)
def _lines(
    model: ById[ModelSpec],
    element_bytes: int,
    layout: RankLayout,
    unpadded: bool,  # noqa: FBT001 - a key of the cache, never called by hand
    kept: bool,  # noqa: FBT001 - same
) -> tuple[Draft, ...]:
    lines = (
        *_rotary(model.value, element_bytes),
        *_absorbed(model.value, element_bytes, layout),
        *(() if unpadded else _padding(model.value, layout)),
        *(_kept_scales(model.value, layout) if kept else ()),
    )
    return tuple(line for line in lines if line.value())


def _rotary(model: ModelSpec, element_bytes: int) -> Iterator[Draft]:
    elements = sum(table.rows * table.width for table in model.rotary)
    if elements:
        yield Draft(
            "weights.rotary",
            "budget",
            "elements * element_bytes",
            {"elements": elements, "element_bytes": element_bytes},
            source=_ROTARY,
            confidence="derived",
        )


def _absorbed(model: ModelSpec, element_bytes: int, layout: RankLayout) -> Iterator[Draft]:
    """Of an unquantized matrix the two parts are views and take nothing."""
    start, stop = layout.layers
    elements = sum(
        ceil_div(weight.parameters // weight.instances, layout.tp)
        * sum(start <= layer < stop for layer in weight.layers)
        for weight in model.weights
        if _is_absorbed(weight)
    )
    if elements and any(cache.kind == "latent" for cache in model.caches):
        yield Draft(
            "weights.absorbed",
            "budget",
            "elements * element_bytes",
            {"elements": elements, "element_bytes": element_bytes},
            source=_ABSORBED,
            confidence="derived",
        )


def _is_absorbed(weight: Weight) -> bool:
    return (
        _ABSORBING in weight.name
        and weight.place == "layers"
        and weight.component == "attention"
        and weight.format is not None
    )


def _padding(model: ModelSpec, layout: RankLayout) -> Iterator[Draft]:
    for sizes in _experts(model, layout):
        yield Draft(
            "weights.expert_padding",
            "budget",
            f"ceil({_EXPERT})",
            {
                **sizes,
                "padded_hidden": round_up(sizes["hidden"], _HIDDEN),
                "padded_width": round_up(sizes["width"], _INTERMEDIATE),
            },
            source=_PADDED,
            confidence="derived",
        )


def _kept_scales(model: ModelSpec, layout: RankLayout) -> Iterator[Draft]:
    for sizes in _experts(model, layout):
        yield Draft(
            "weights.kept_scales",
            "budget",
            f"ceil({_SCALES})",
            sizes,
            source=_KEPT,
            confidence="derived",
        )


def _experts(model: ModelSpec, layout: RankLayout) -> Iterator[dict[str, int]]:
    """Sizes of a rank's experts in MXFP4, once for each group of layers."""
    start, stop = layout.layers
    for weight in filter(_is_packed_down, model.weights):
        layers = sum(start <= layer < stop for layer in weight.layers)
        yield {
            "experts_on_layers": ceil_div(weight.copies, layout.ep) * layers,
            "hidden": weight.shape[0],
            "width": ceil_div(weight.shape[1], layout.tp_of("experts")),
        }


def _is_packed_down(weight: Weight) -> bool:
    """One a sparse layer: back to the hidden width."""
    return (
        weight.component == "experts"
        and weight.sharding == "row"
        and len(weight.shape) == _MATRIX
        and weight.format is not None
        and weight.format.name == "mxfp4"
    )
