"""What every quantization scheme does: give some of the weights another number format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.blocks import Weights
from kvplan.architectures.quantization.modules import Modules
from kvplan.models.formats import NumberFormat
from kvplan.models.weights import Weight

_LINEAR = ("attention", "mlp", "experts", "shared_experts")
_ENDS = ("embedding", "lm_head")
# Parts of a sparse indexer: vLLM v0.33.0 vllm/models/deepseek_v32/attention.py wk_weights_proj
# and vllm/models/deepseek_v4/compressor.py. Mamba's step sizes:
# vllm/model_executor/layers/mamba/mamba_mixer.py.
_KEPT_PLAIN = (
    ".indexer.wk.",
    ".indexer.weights_proj.",
    ".compressor.",
    ".x_proj.",
    ".dt_proj.",
)
# What a multi-token prediction module has beside an ordinary layer is kept plain.
_MTP_LAYER = (
    "self_attn.",
    "mlp.experts.",
    "mlp.shared_experts.",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)


class Quantized(BaseModel):
    """A scheme, read and applied.

    Attributes:
        name: Shown to people, None for a checkpoint that is not quantized.
        weights: The inventory with formats.
        kv_scheme: Cache format that the checkpoint prescribes, or None.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    name: str | None = None
    weights: tuple[Weight, ...]
    kv_scheme: str | None = None


def quantizable(weight: Weight) -> bool:
    """Whether it is a linear layer of the decoder, which is what all schemes go for.

    Embeddings, norms, biases, routers and the one-row gate of a shared expert stay as they are:
    vLLM v0.33.0 builds them without a quantization config (vllm/model_executor/models/).
    """
    if weight.format is not None or len(weight.shape) < 2 or weight.shape[0] == 1:
        return False
    if any(part in weight.name for part in _KEPT_PLAIN):
        return False
    if weight.component == "mtp":
        return weight.name.startswith(_MTP_LAYER)
    if weight.component == "recurrent":
        # Convolutions have a third dimension, decays are no linear layers.
        return len(weight.shape) == 2 and ".weight" in weight.name
    return weight.component in _LINEAR


def quantizable_ends(weight: Weight) -> bool:
    """Whether it is a linear layer, the token embedding or the head: some schemes take all."""
    end = weight.component in _ENDS and len(weight.shape) > 1 and weight.format is None
    return end or quantizable(weight)


def quantizable_head(weight: Weight) -> bool:
    """Whether it is a linear layer of the decoder or the head."""
    return quantizable(weight) or (weight.component == "lm_head" and quantizable_ends(weight))


def with_format(
    weights: Weights, number_format: NumberFormat, chosen: Callable[[str], bool]
) -> Weights:
    """The inventory with ``number_format`` on the linear layers that are chosen.

    Args:
        weights: The inventory.
        number_format: What the chosen ones are stored in.
        chosen: Whether a module (``layers.3.self_attn.q_proj``) is; asked layer by layer.
    """
    return with_formats(weights, lambda module: number_format if chosen(module) else None)


def with_formats(
    weights: Weights,
    format_of: Callable[[str], NumberFormat | None],
    eligible: Callable[[Weight], bool] = quantizable,
) -> Weights:
    """The inventory with a format for each module.

    A weight that has one in some layers and another in others becomes several entries.

    Args:
        weights: The inventory.
        format_of: The format of a module (``layers.3.self_attn.q_proj``, ``lm_head``), or None.
        eligible: Which weights are asked for at all.
    """
    result: Weights = ()
    for weight in weights:
        result += _formatted(weight, format_of) if eligible(weight) else (weight,)
    return result


def _formatted(weight: Weight, format_of: Callable[[str], NumberFormat | None]) -> Weights:
    module = module_of(weight)
    if weight.place != "layers":
        return (weight.model_copy(update={"format": format_of(module)}),)
    layers: dict[NumberFormat | None, list[int]] = {}
    for layer in weight.layers:
        layers.setdefault(format_of(f"layers.{layer}.{module}"), []).append(layer)
    return tuple(
        weight.model_copy(update={"layers": tuple(which), "format": number_format})
        for number_format, which in layers.items()
    )


def by_name(
    stated: Iterable[tuple[str, NumberFormat | None]],
    otherwise: Callable[[str], NumberFormat | None],
) -> Callable[[str], NumberFormat | None]:
    """Chooses a format by names and patterns: full names first, then patterns in order.

    Args:
        stated: Names or patterns as `Modules` reads them, each with its format.
        otherwise: Decides for modules that none of them covers.
    """
    named: dict[NumberFormat | None, list[str]] = {}
    patterns: list[tuple[Modules, NumberFormat | None]] = []
    for name, number_format in stated:
        if name.startswith("re:") or "*" in name:
            patterns.append((Modules((name,)), number_format))
        else:
            named.setdefault(number_format, []).append(name)
    exact = [(Modules(names), number_format) for number_format, names in named.items()]

    def format_of(module: str) -> NumberFormat | None:
        for modules, number_format in (*exact, *patterns):
            if modules.cover(module):
                return number_format
        return otherwise(module)

    return format_of


def without(ignored: Modules) -> Callable[[str], bool]:
    """Chooses everything but the ignored modules."""
    return lambda module: not ignored.cover(module)


def module_of(weight: Weight) -> str:
    """The module's name within a layer; routed experts stand for all by their first.

    >>> from kvplan.architectures.blocks import experts
    >>> module_of(experts(8, 4, count=2, active=1, layers=(0,))[0])
    'mlp.experts.0.gate_proj'
    """
    module = weight.name.partition(".weight")[0]
    return module.replace(".experts.", ".experts.0.") if weight.copies > 1 else module
