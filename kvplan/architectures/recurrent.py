"""What all layers with a recurrent state have in common: convolutions, states, layer lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kvplan.architectures.blocks import Weights, vector
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.architectures.shapes import DecoderShape
from kvplan.errors import NotModelledError
from kvplan.models.caches import FullCache, RecurrentCache, StateTensor
from kvplan.models.formats import Dtype
from kvplan.models.weights import Sharding, Weight

MAX_TAPS = 1024

_DTYPES: dict[str, Dtype] = {
    "float32": "float32",
    "float16": "float16",
    "bfloat16": "bfloat16",
}


def read_taps(fields: Fields, name: str, *, default: int | None = None) -> int:
    """The width of a causal convolution; one tap would keep no state."""
    return fields.integer(name, default=default, least=2, most=MAX_TAPS)


def read_state_dtype(fields: Fields, name: str, *, default: Dtype | None = None) -> Dtype | None:
    """The type a configuration prescribes for its state, or None: the engine's choice.

    Raises:
        InputError: a type that no state is kept in.
    """
    stated = fields.optional_text(name)
    if stated is None:
        if default is not None and not fields.states(name):
            fields.fill(name, default)
            return default
        return None
    dtype = _DTYPES.get(stated.removeprefix("torch."))
    if dtype is None:
        raise fields.error(name, stated, f"one of {', '.join(_DTYPES)}")
    return dtype


def conv_state(channels: int, taps: int) -> StateTensor:
    """The inputs that a convolution of ``taps`` taps still needs: one fewer than its taps."""
    return StateTensor(name="conv", shape=(channels, taps - 1))


def convolution(
    name: str,
    channels: int,
    taps: int,
    *,
    layers: tuple[int, ...],
    bias: bool,
    sharding: Sharding = "column",
    heads: int = 1,
    part: str = "",
) -> Weights:
    """A depthwise convolution over time: (channels, 1, taps)."""
    if not layers:
        return ()
    kernel = Weight(
        name=f"{name}.weight{part}",
        component="recurrent",
        shape=(channels, 1, taps),
        layers=layers,
        sharding=sharding,
        heads=heads,
    )
    if not bias:
        return (kernel,)
    changes = {"name": f"{name}.bias{part}", "shape": (channels,)}
    return kernel, kernel.model_copy(update=changes)


def per_channel(names: Sequence[str], size: int, layers: tuple[int, ...]) -> Weights:
    """Vectors with one element a channel or head, split as those are."""
    weights: Weights = ()
    for name in names:
        weights += vector(name, size, component="recurrent", layers=layers, sharding="column")
    return weights


def placed(weights: Weights, layers: tuple[int, ...]) -> Weights:
    """The same weights in some of the layers only."""
    if not layers:
        return ()
    return tuple(weight.model_copy(update={"layers": layers}) for weight in weights)


def full_cache(shape: DecoderShape) -> FullCache:
    """The cache of an ordinary attention layer beside the recurrent ones."""
    return FullCache(kv_heads=shape.kv_heads, head_dim=shape.head_dim, head_dim_v=shape.head_dim)


def only(state: StateTensor, *more: StateTensor) -> RecurrentCache:
    """A cache of these states."""
    return RecurrentCache(states=(state, *more))


def where(kinds: Sequence[str], kind: str) -> tuple[int, ...]:
    """The numbers of the layers of one kind.

    >>> where(("mamba", "attention", "mamba"), "mamba")
    (0, 2)
    """
    return tuple(layer for layer, found in enumerate(kinds) if found == kind)


def read_kinds(
    fields: Fields, name: str, layers: int | None, spellings: Mapping[str, str]
) -> tuple[str, ...] | None:
    """A list of layer kinds, or None if the file has none.

    Args:
        fields: The configuration.
        name: The field.
        layers: How many there have to be; None: as many as are listed.
        spellings: What a file may write, and what it is called here.

    Raises:
        InputError: more or fewer kinds than layers, or none at all.
        NotModelledError: a kind that the family does not have.
    """
    stated = fields.texts(name, most=MAX_LAYERS)
    if stated is None:
        return None
    if not stated or (layers is not None and len(stated) != layers):
        raise fields.conflict(f"`{name}` lists {len(stated)} layers of {layers or 'none'}.")
    for kind in stated:
        if kind not in spellings:
            raise NotModelledError(
                f"Layers of type {kind[:40]!r} are not modelled for this family.",
                hint=f"Known are {', '.join(spellings)}.",
            )
    return tuple(spellings[kind] for kind in stated)
