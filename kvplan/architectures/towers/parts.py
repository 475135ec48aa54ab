"""What towers are built from: matrices, normalizations, tables, and stacks of equal layers.

A tower is never cut into pipeline stages, so its layers are copies of one. Sharding is vLLM's,
which splits attention and feed-forward of a tower like a decoder's and keeps the rest whole
(v0.33.0 vllm/model_executor/models/clip.py, siglip.py, qwen2_vl.py, whisper.py).
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.blocks import Weights, linear, norm, vector
from kvplan.architectures.fields import MAX_LAYERS, Fields
from kvplan.models.weights import Component, Sharding

MAX_IMAGE = 65_536
MAX_CHANNELS = 4096
_SEPARATE = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")


class TowerSizes(BaseModel):
    """Sizes of a stack of layers.

    Attributes:
        hidden: Width of the residual stream.
        width: Of the feed-forward.
        depth: Layers.
        queries: Rows of the query projection; 0: as many as the hidden size.
        keys: Rows of the key and of the value projection; 0: as many as there are queries.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    hidden: int
    width: int
    depth: int
    queries: int = 0
    keys: int = 0


class LayerForm(BaseModel):
    """How the layers of a class are built: names and biases.

    Attributes:
        qkv: The projections of queries, keys and values; one name if they are one matrix.
        out: The output projection.
        ups, down: Feed-forward; two names of ``ups`` are gate and up.
        norms: The normalizations.
        qkv_bias, key_bias, out_bias, mlp_bias, norm_bias: Who has one.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    qkv: tuple[str, ...] = _SEPARATE
    out: str = "self_attn.out_proj"
    ups: tuple[str, ...] = ("mlp.fc1",)
    down: str = "mlp.fc2"
    norms: tuple[str, ...] = ("layer_norm1", "layer_norm2")
    qkv_bias: bool = True
    key_bias: bool = True
    out_bias: bool = True
    mlp_bias: bool = True
    norm_bias: bool = True


CLIP_FORM = LayerForm()


def tower_linear(
    name: str,
    shape: tuple[int, int],
    sharding: Sharding = "replicated",
    *,
    bias: bool = False,
    component: Component = "vision",
) -> Weights:
    """One matrix of a tower or of its projector."""
    return linear(name, shape, component=component, sharding=sharding, place="tower", bias=bias)


def tower_table(name: str, shape: tuple[int, int], *, component: Component = "vision") -> Weights:
    """A matrix that is a parameter of its own, not a module's: its name is all there is."""
    (matrix,) = tower_linear(name, shape, component=component)
    return (matrix.model_copy(update={"name": name}),)


def tower_norm(
    name: str, size: int, *, bias: bool = False, component: Component = "vision"
) -> Weights:
    """One normalization of a tower or of its projector."""
    return norm(name, size, component=component, place="tower", bias=bias)


def tower_vector(name: str, size: int, *, component: Component = "vision") -> Weights:
    """A lone vector."""
    return vector(name, size, component=component, place="tower")


def repeated(weights: Weights, count: int) -> Weights:
    """The same weights ``count`` times over; nothing if that is 0."""
    if count == 0:
        return ()
    changes = {"copies": count, "active_copies": count}
    return tuple(weight.model_copy(update=changes) for weight in weights)


def layers(
    sizes: TowerSizes,
    form: LayerForm = CLIP_FORM,
    *,
    extra: Weights = (),
    component: Component = "vision",
) -> Weights:
    """All layers of a stack; ``extra`` is what each has beside the ordinary parts."""
    one = _attention(sizes, form, component) + _feed_forward(sizes, form, component)
    for name in form.norms:
        one += tower_norm(name, sizes.hidden, bias=form.norm_bias, component=component)
    return repeated(one + extra, sizes.depth)


def read_sizes(
    fields: Fields,
    *,
    hidden: int,
    width: int,
    depth: int,
    names: tuple[str, str, str] = ("hidden_size", "intermediate_size", "num_hidden_layers"),
) -> TowerSizes:
    """Reads the three sizes under ``names``; the other arguments are the class defaults."""
    return TowerSizes(
        hidden=fields.integer(names[0], default=hidden),
        width=fields.integer(names[1], default=width),
        depth=fields.integer(names[2], default=depth, most=MAX_LAYERS),
    )


def read_pixels(
    fields: Fields, *, patch: int, channels: str = "num_channels", frames: int = 1
) -> int:
    """Numbers that make up one patch: channels × frames × height × width."""
    side = fields.integer("patch_size", default=patch, most=MAX_IMAGE)
    return fields.integer(channels, default=3, most=MAX_CHANNELS) * frames * side * side


def read_patches(fields: Fields, *, image: int, patch: int) -> int:
    """Patches of the largest image."""
    side = fields.integer("image_size", default=image, most=MAX_IMAGE)
    return (side // fields.integer("patch_size", default=patch, most=side)) ** 2


def _attention(sizes: TowerSizes, form: LayerForm, component: Component) -> Weights:
    queries = sizes.queries or sizes.hidden
    keys = sizes.keys or queries
    rows = [queries + 2 * keys] if len(form.qkv) == 1 else [queries, keys, keys]
    weights: Weights = ()
    for place, (name, size) in enumerate(zip(form.qkv, rows, strict=True)):
        bias = form.qkv_bias and (form.key_bias or place != 1)
        weights += tower_linear(
            name, (size, sizes.hidden), "column", bias=bias, component=component
        )
    return weights + tower_linear(
        form.out, (sizes.hidden, queries), "row", bias=form.out_bias, component=component
    )


def _feed_forward(sizes: TowerSizes, form: LayerForm, component: Component) -> Weights:
    weights: Weights = ()
    for name in form.ups:
        weights += tower_linear(
            name,
            (sizes.width, sizes.hidden),
            "column",
            bias=form.mlp_bias,
            component=component,
        )
    return weights + tower_linear(
        form.down, (sizes.hidden, sizes.width), "row", bias=form.mlp_bias, component=component
    )
