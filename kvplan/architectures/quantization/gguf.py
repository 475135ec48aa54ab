"""The same model as a GGUF file of a given file type: what ``gguf:Q4_K_M`` asks for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kvplan.architectures.blocks import Weights
from kvplan.architectures.quantization.gguf_mix import GgufTensor, plan_types
from kvplan.architectures.quantization.gguf_names import (
    architecture_of,
    as_converted,
    is_large,
    shared_by,
    tensor_name,
)
from kvplan.architectures.quantization.gguf_rules import ALIASES, BASES, NEEDS_IMATRIX, Traits
from kvplan.errors import UnknownNameError, nearest
from kvplan.models.ggml_types import GGML_FORMATS
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import Weight

PREFIX = "gguf:"
FILE_TYPES = (*BASES, *ALIASES)


def find_file_type(name: str) -> str:
    """The file type of that name, in any case.

    Raises:
        UnknownNameError: there is none.
    """
    wanted = name.upper()
    wanted = ALIASES.get(wanted, wanted)
    if wanted not in BASES:
        raise UnknownNameError(
            f"{name[:40]!r} is not a file type of GGUF.",
            hint=nearest(name, FILE_TYPES) or f"Known are {', '.join(FILE_TYPES)}.",
        )
    return wanted


def as_gguf(spec: ModelSpec, file_type: str, *, imatrix: bool | None = None) -> ModelSpec:
    """The model as llama.cpp's converter and its ``llama-quantize`` store it.

    Args:
        spec: A model that is not quantized.
        file_type: One of `gguf_rules.BASES`.
        imatrix: Whether an importance matrix is used; None: where the file type needs one.

    Raises:
        NotModelledError: a family whose conversion is not known here.
    """
    model = Traits(
        architecture=architecture_of(spec),
        layers=1 + max(_last_layers(spec)),
        shared_by=shared_by(spec),
        experts=spec.experts,
        large=is_large(spec),
        imatrix=file_type in NEEDS_IMATRIX if imatrix is None else imatrix,
    )
    converted = as_converted(spec)
    names = {id(weight): tuple(_names(weight)) for weight in converted}
    tensors = [
        GgufTensor(name, _shape(weight))
        for weight in converted
        if weight.place != "tower"
        for name in names[id(weight)]
    ]
    types = plan_types(tensors, model, file_type)
    weights: Weights = ()
    for weight in converted:
        weights += _typed(weight, names[id(weight)], types)
    return spec.model_copy(update={"weights": weights, "quantization": f"{PREFIX}{file_type}"})


def _last_layers(spec: ModelSpec) -> Iterator[int]:
    yield len(spec.layers) - 1
    for weight in as_converted(spec):
        yield from weight.layers[-1:]


def _names(weight: Weight) -> Iterator[str]:
    """One name a layer, or the one name of a matrix outside the layers."""
    if weight.place == "tower":
        return
    name = tensor_name(weight)
    if weight.place != "layers":
        yield name
    for layer in weight.layers:
        yield f"blk.{layer}.{name}"


def _shape(weight: Weight) -> tuple[int, ...]:
    # Experts of a layer are one tensor with a third dimension.
    stacked = weight.component == "experts" or weight.name.startswith(("attn_k_b.", "attn_v_b."))
    return (max(weight.copies, 2), *weight.shape) if stacked else weight.shape


def _typed(weight: Weight, names: tuple[str, ...], types: dict[str, str]) -> Weights:
    """The weight with its format; several entries where layers differ."""
    if weight.place == "tower":
        return (weight,)
    if weight.place != "layers":
        return (_stored(weight, types.get(names[0], "f32"), weight.layers),)
    layers: defaultdict[str, list[int]] = defaultdict(list)
    for layer, name in zip(weight.layers, names, strict=True):
        layers[types.get(name, "f32")].append(layer)
    return tuple(_stored(weight, kind, tuple(which)) for kind, which in layers.items())


def _stored(weight: Weight, kind: str, layers: tuple[int, ...]) -> Weight:
    return weight.model_copy(update={"layers": layers, "format": GGML_FORMATS[kind]})
