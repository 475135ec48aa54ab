"""Which of vLLM's two model runners runs, what its profile run holds of sampling, and of graphs.

The older runner (vllm/v1/worker/gpu_model_runner.py, _dummy_sampler_run) samples with every
parameter set: the constant `logits_bytes` of the release. The newer one (vllm/v1/worker/gpu)
skips the sampler's work and holds the logits alone; since 0.33 a second pass does that work too.
Before 0.29 it makes no estimate of CUDA graphs, so that the budget keeps nothing for them.
Read in the sources of 0.8.5, 0.10.2 and of every minor release from 0.12 to 0.33.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kvplan.engines.base import Version
from kvplan.engines.runtime import Range
from kvplan.engines.vllm.by_model import attention_of
from kvplan.engines.vllm.speculative import Speculative
from kvplan.models.spec import ModelSpec

# Since when it runs what, and for which classes besides. Source: vllm/config/vllm.py
# use_v2_model_runner, _is_default_v2_model_runner_model, DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES.
_LISTED: Mapping[Version, frozenset[str]] = {
    (0, 22): frozenset({"Qwen3ForCausalLM"}),
    (0, 23): frozenset({"LlamaForCausalLM", "MistralForCausalLM", "Qwen3ForCausalLM"}),
    (0, 24): frozenset(
        {
            *("Qwen3ForCausalLM", "DeepseekV2ForCausalLM", "Qwen2MoeForCausalLM"),
            *("GraniteMoeForCausalLM", "LlamaForCausalLM", "MistralForCausalLM"),
        }
    ),
    (0, 25): frozenset({"DeepseekV2ForCausalLM", "Qwen2MoeForCausalLM", "GraniteMoeForCausalLM"}),
    (0, 26): frozenset(
        {
            *("DeepseekV2ForCausalLM", "GraniteMoeForCausalLM", "InklingForCausalLM"),
            *("InklingForConditionalGeneration", "LongcatFlashNgramForCausalLM"),
            "Qwen2MoeForCausalLM",
        }
    ),
    (0, 27): frozenset(
        {
            *("DeepseekV2ForCausalLM", "GraniteMoeForCausalLM", "InklingForCausalLM"),
            *("InklingForConditionalGeneration", "LongcatFlashNgramForCausalLM"),
            *("KimiK3ForConditionalGeneration", "Qwen2MoeForCausalLM"),
        }
    ),
    (0, 28): frozenset(
        {
            *("DeepseekV2ForCausalLM", "GraniteMoeForCausalLM", "InklingForCausalLM"),
            *("InklingForConditionalGeneration", "LongcatFlashNgramForCausalLM"),
            *("KimiK3ForConditionalGeneration", "Qwen2MoeForCausalLM", "DeepseekV4ForCausalLM"),
        }
    ),
}
_FIRST = (0, 22)
# From here on experts and packed weights of listed classes too; then every dense decoder; then all.
_LISTED_ALIKE = (0, 24)
_DENSE = (0, 25)
_LISTED_HYBRIDS = (0, 27)
_EVERYTHING = (0, 29)
# Ways of drafting that it had until 0.31; 0.32 has all but a few.
_DRAFTS = frozenset({"eagle", "eagle3", "mtp", "dflash", "dspark"})
_ALL_DRAFTS = (0, 32)
_NO_DRAFTS = frozenset({"suffix", "medusa", "mlp_speculator", "custom_class"})
# Since then the profile run makes a second pass with every parameter of sampling set.
_SECOND_PASS = (0, 33)
# Since then it estimates graphs: vllm/v1/worker/gpu/model_runner.py profile_cudagraph_memory. On
# Intel's devices neither does: vllm/v1/worker/gpu_worker.py determine_available_memory.
_GRAPHS_ESTIMATED = (0, 29)
_FLOAT32 = 4
# That pass: logits in float32; under FlashInfer, which vLLM takes on NVIDIA's devices, their masked
# copy and probabilities as well. Sources: vllm/v1/worker/gpu/sample/sampler.py
# apply_sampling_params, flashinfer/sampling.py top_k_top_p_sampling_from_logits (0.33.0).
_FLASHINFER = Range(3 * _FLOAT32, _FLOAT32, 3 * _FLOAT32)
_NATIVE = Range(_FLOAT32, _FLOAT32, 3 * _FLOAT32)
# Before 0.17 the older runner sorted all logits, but under FlashInfer's sampler held 2 + 4 + 4 + 4
# bytes: until 0.11 wherever that was installed, afterwards where VLLM_USE_FLASHINFER_SAMPLER asks
# for it. No flag tells. Source: vllm/v1/sample/ops/topk_topp_sampler.py of 0.8.5, 0.12, 0.16.
_UNSORTED_BYTES = 14.0
_SORTS = ((0, 8), (0, 16))


@dataclass(frozen=True, slots=True)
class Sampling:
    """What one request and entry of the vocabulary take.

    Attributes:
        formula: Bytes, over the inputs.
        inputs: Those that are known.
        varied: Those that are ranges.
    """

    formula: str
    inputs: Mapping[str, int | float]
    varied: Mapping[str, Range]


def other_bytes(version: Version, vendor: str, *, v0: bool) -> float | None:
    """What `logits_bytes` is if the sampler runs that no flag tells of; None where there is one."""
    first, last = _SORTS
    told = v0 or vendor not in ("nvidia", "custom") or not first <= version[:2] <= last
    return None if told else _UNSORTED_BYTES


def newer_runner(model: ModelSpec, version: Version, drafts: Speculative | None) -> bool:
    """Whether the newer model runner is the default for the model."""
    minor = version[:2]
    if minor < _FIRST or _undrafted(minor, drafts):
        return False
    if minor >= _EVERYTHING:
        return True
    return _is_default(model, minor, listed=model.architecture in _LISTED[minor])


def _is_default(model: ModelSpec, minor: Version, *, listed: bool) -> bool:
    """Whether a release that has it for some models has it for this one."""
    if minor < _LISTED_ALIKE:
        return listed and not model.experts and model.quantization is None
    if minor < _DENSE:
        return listed
    match attention_of(model):
        case "attention_free":
            return False
        case "hybrid":
            return listed and minor >= _LISTED_HYBRIDS
    return listed or not model.experts


def estimates_graphs(
    model: ModelSpec, version: Version, drafts: Speculative | None, *, vendor: str
) -> bool:
    """Whether a release that subtracts an estimate of graphs makes one."""
    newer = newer_runner(model, version, drafts)
    return vendor != "intel" and (version[:2] >= _GRAPHS_ESTIMATED or not newer)


def _undrafted(minor: Version, drafts: Speculative | None) -> bool:
    """Whether it can't draft as asked, so that the older one runs."""
    if drafts is None or drafts.method is None:
        return False
    if minor >= _ALL_DRAFTS:
        return drafts.method in _NO_DRAFTS
    return drafts.method not in _DRAFTS


def sampling_of(*, newer: bool, version: Version, vendor: str, tp: int, older: Range) -> Sampling:
    """Bytes of one request and entry of the vocabulary.

    Args:
        newer: Whether the newer runner samples.
        version: The release.
        vendor: Of the device.
        tp: Ranks that each have their part of the logits before they are gathered.
        older: The constant of the older runner.
    """
    if not newer:
        return Sampling("logits_bytes", {}, {"logits_bytes": older})
    if version[:2] >= _SECOND_PASS:
        flashinfer = vendor in ("nvidia", "custom")
        return Sampling(
            "(element_bytes + float32_bytes)",
            {},
            {"float32_bytes": _FLASHINFER if flashinfer else _NATIVE},
        )
    if tp == 1:
        return Sampling("element_bytes", {}, {})
    # The rank's own part, what is gathered, and its copy in order. Source: vllm/distributed/
    # device_communicators/base_device_communicator.py all_gather (0.33.0).
    return Sampling("element_bytes * (2 + 1 / ranks)", {"ranks": tp}, {})
