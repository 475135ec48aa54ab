"""What every quantization scheme does: give some of the weights another number format."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.blocks import Weights
from kvplan.architectures.quantization.modules import Modules
from kvplan.models.formats import NumberFormat
from kvplan.models.weights import Weight

_LINEAR = ("attention", "mlp", "experts", "shared_experts")
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

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str | None = None
    weights: tuple[Weight, ...]
    kv_scheme: str | None = None


def quantizable(weight: Weight) -> bool:
    """Whether it is a linear layer of the decoder, which is what all schemes go for.

    Embeddings, norms, biases, routers and the one-row gate of a shared expert stay as they are:
    vLLM v0.33.0 builds them without a quantization config (vllm/model_executor/models/).
    """
    if len(weight.shape) < 2 or weight.shape[0] == 1:
        return False
    if weight.component == "mtp":
        return weight.name.startswith(_MTP_LAYER)
    return weight.component in _LINEAR


def with_format(
    weights: Weights, number_format: NumberFormat, chosen: Callable[[str], bool]
) -> Weights:
    """The inventory with ``number_format`` on the linear layers that are chosen.

    A weight that is chosen in some layers only becomes two entries.

    Args:
        weights: The inventory.
        number_format: What the chosen ones are stored in.
        chosen: Whether a module (``layers.3.self_attn.q_proj``) is; asked layer by layer.
    """
    result: list[Weight] = []
    for weight in weights:
        if not quantizable(weight):
            result.append(weight)
            continue
        module = module_of(weight)
        taken = tuple(layer for layer in weight.layers if chosen(f"layers.{layer}.{module}"))
        left = tuple(sorted(set(weight.layers) - set(taken)))
        if taken:
            result.append(weight.model_copy(update={"layers": taken, "format": number_format}))
        if left:
            result.append(weight.model_copy(update={"layers": left}))
    return tuple(result)


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
