"""LoRA: the buffers that vLLM keeps for adapters, what applying them takes, and graphs with them.

Every linear layer of the language model holds room for ``max_loras`` adapters of ``max_lora_rank``:
for a matrix of (out, in) on the rank, rank × in and out × rank. Towers hold none. Sources: vLLM
0.33.0, vllm/lora/layers (create_lora_weights), vllm/lora/utils.py get_supported_lora_modules.
"""

from __future__ import annotations

from collections.abc import Iterator

from kvplan.engines.base import Version
from kvplan.engines.runtime import Range
from kvplan.engines.vllm.settings import Settings
from kvplan.ledger import Draft
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout, Weight, instances_on

NAME = "weights.lora"
_SOURCE = "vLLM 0.33.0, vllm/lora/layers: room for max_loras adapters in every linear layer"
_LINEAR = ("attention", "mlp", "shared_experts", "router", "recurrent")
# Experts take adapters since then: vllm-project/vllm pull request 21229; released with 0.11.2
# (huggingface/trl#4584).
_EXPERTS_SINCE = (0, 11, 2)
# Graphs are captured with adapters and without since then: vllm/config/compilation.py of 0.11.2,
# cudagraph_specialize_lora; 0.11.0 has it not.
_TWICE_SINCE = (0, 11, 2)
# Classes whose `embedding_modules` name the embedding and the head, which then have room too, whole
# on every rank. Source: vLLM 0.33.0, vllm/model_executor/models, by class and inheritance.
_BOTH = frozenset(
    {
        *("ApertusForCausalLM", "DeciLMForCausalLM", "Ernie4_5ForCausalLM", "Exaone4ForCausalLM"),
        *("ExaoneMoEForCausalLM", "ExaoneMoeForCausalLM", "FalconH1ForCausalLM"),
        *("GraniteForCausalLM", "GraniteMoeForCausalLM", "GraniteMoeHybridForCausalLM"),
        *("GraniteMoeSWAForCausalLM", "GraniteMoeSharedForCausalLM", "GraniteSWAForCausalLM"),
        *("HyperCLOVAXForCausalLM", "IQuestCoderForCausalLM", "InternLM3ForCausalLM"),
        *("JambaForCausalLM", "K2HorizonForCausalLM", "LLaMAForCausalLM", "Lfm2ForCausalLM"),
        *("Lfm2MoeForCausalLM", "Llama4ForCausalLM", "LlamaForCausalLM", "MiniCPM3ForCausalLM"),
        *("MiniCPMForCausalLM", "MixtralForCausalLM", "NemotronForCausalLM"),
        *("NemotronHForCausalLM", "NemotronHPuzzleForCausalLM", "Param2MoEForCausalLM"),
        *("Phi3ForCausalLM", "PhiMoEForCausalLM", "Qwen3ForCausalLM", "Qwen3MoeForCausalLM"),
        *("Qwen3_5ForCausalLM", "Qwen3_5MoeForCausalLM", "SolarForCausalLM"),
        *("TeleChat2ForCausalLM", "TeleChat3ForCausalLM", "TeleFLMForCausalLM"),
    }
)
_EMBEDDING_ALONE = frozenset({"Cohere2ForCausalLM", "CohereForCausalLM"})
_HEAD_ALONE = frozenset({"ExaoneForCausalLM"})
# The widest fusion, of query, key and value, has a product with each adapter's first half at once.
_SLICES = 3
_FLOAT32 = 4


def weight_line(
    model: ModelSpec, layout: RankLayout, settings: Settings, at: Version, *, element_bytes: int
) -> Iterator[Draft]:
    """The adapters' buffers on one rank, as vLLM counts them among the weights."""
    if not settings.enable_lora:
        return
    share = _vocabulary_share(model)
    yield Draft(
        NAME,
        "budget",
        "max_loras * max_lora_rank * (rows_and_columns + vocabulary_share * vocabulary_rows)"
        " * element_bytes",
        {
            "max_loras": settings.max_loras or 1,
            "max_lora_rank": settings.max_lora_rank or 1,
            "rows_and_columns": _rows_and_columns(model, layout, at),
            "vocabulary_rows": _vocabulary_rows(model, layout),
            "vocabulary_share": int(share.value),
            "element_bytes": element_bytes,
        },
        source=_SOURCE,
        confidence="derived",
        low={"vocabulary_share": int(share.low)},
        high={"vocabulary_share": int(share.high)},
    )


def step_bytes(settings: Settings) -> int:
    """Bytes a token that applying adapters holds while a layer is computed.

    Source: vLLM 0.33.0, vllm/lora/punica_wrapper/punica_gpu.py add_lora_linear: a product of
    float32 a slice. What routed experts' adapters hold besides is not modelled.
    """
    return _SLICES * (settings.max_lora_rank or 1) * _FLOAT32 if settings.enable_lora else 0


def graph_cases(settings: Settings, at: Version) -> int:
    """How often each graph is captured: with adapters and without."""
    return 2 if settings.enable_lora and at >= _TWICE_SINCE else 1


def _rows_and_columns(model: ModelSpec, layout: RankLayout, at: Version) -> int:
    """Of all matrices of linear layers on the rank."""
    components = (*_LINEAR, "experts") if at >= _EXPERTS_SINCE else _LINEAR
    return sum(
        sum(_shape(weight, layout)) * instances_on(weight, layout, tied=model.tied_embeddings)
        for weight in model.weights
        if weight.component in components and _is_matrix(weight)
    )


def _shape(weight: Weight, layout: RankLayout) -> tuple[int, int]:
    tp = layout.tp_of(weight.component)
    return weight.rank_shape(tp=tp, vocab_multiple=layout.vocab_multiple)


def _is_matrix(weight: Weight) -> bool:
    return len(weight.shape) > 1 and weight.name.endswith(".weight")


def _vocabulary_rows(model: ModelSpec, layout: RankLayout) -> int:
    """Rows and columns of the vocabulary's matrices that may have room, whole on every rank."""
    first = layout.first and model.architecture not in _HEAD_ALONE
    last = layout.last and model.architecture not in _EMBEDDING_ALONE
    return (model.vocab_size + model.hidden_size) * (first + last)


def _vocabulary_share(model: ModelSpec) -> Range:
    """Whether they have: of a model with towers the class of its language model is not known."""
    if model.architecture in _BOTH | _EMBEDDING_ALONE | _HEAD_ALONE:
        return Range(1, 1, 1)
    towers = any(weight.component in ("vision", "audio") for weight in model.weights)
    return Range(0, 0, int(towers))
