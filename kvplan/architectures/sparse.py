"""Decoders whose first layers are dense and whose others have routed and shared experts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.blocks import Weights, experts, gated_mlp, router
from kvplan.architectures.fields import MAX_EXPERTS, MAX_LAYERS, Fields
from kvplan.architectures.shapes import DecoderShape

_SHARED = tuple(f"mlp.shared_experts.{part}_proj" for part in ("gate", "up", "down"))
_ROUTED = tuple(f"mlp.experts.{part}_proj" for part in ("gate", "up", "down"))


class Sparse(BaseModel):
    """Which layers are sparse, and how wide things are.

    Attributes:
        dense_layers, sparse_layers: Layer numbers.
        dense_width: Feed-forward of a dense layer.
        experts, active: Routed experts of a layer, and how many a token goes through.
        expert_width: Feed-forward of one routed expert.
        shared_width: Of all shared experts together; 0 if there are none.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    dense_layers: tuple[int, ...]
    sparse_layers: tuple[int, ...]
    dense_width: int
    experts: int
    active: int
    expert_width: int
    shared_width: int

    @property
    def widest(self) -> int:
        """The widest feed-forward of one token."""
        return max(
            self.dense_width if self.dense_layers else 0,
            self.expert_width if self.sparse_layers else 0,
        )


def read_sparse(fields: Fields, shape: DecoderShape, defaults: Mapping[str, int]) -> Sparse:
    """Reads the fields that DeepSeek V2 and V3 and GLM 4.5 to 4.7 name alike.

    Args:
        fields: The configuration.
        shape: The decoder's sizes.
        defaults: Class defaults by field name; a name without one has to be stated.

    Raises:
        InputError: a field is missing or out of range.
    """

    def sized(name: str, *, least: int = 1, most: int) -> int:
        return fields.integer(name, default=defaults.get(name), least=least, most=most)

    sparse = listed_sparse(fields, shape)
    if sparse is None:
        first = sized("first_k_dense_replace", least=0, most=MAX_LAYERS)
        # Stated by the files, read by vLLM v0.33.0 vllm/model_executor/models/deepseek_v2.py.
        step = fields.integer("moe_layer_freq", default=1, most=MAX_LAYERS)
        sparse = tuple(layer for layer in shape.every if layer >= first and layer % step == 0)
    count = sized("n_routed_experts", most=MAX_EXPERTS)
    width = sized("moe_intermediate_size", most=2**24)
    return Sparse(
        dense_layers=tuple(sorted(set(shape.every) - set(sparse))),
        sparse_layers=sparse,
        dense_width=fields.integer("intermediate_size"),
        experts=count,
        active=sized("num_experts_per_tok", most=count),
        expert_width=width,
        shared_width=width * sized("n_shared_experts", least=0, most=MAX_EXPERTS),
    )


def listed_sparse(fields: Fields, shape: DecoderShape) -> tuple[int, ...] | None:
    """The layers that ``mlp_layer_types`` calls sparse, or None if the file has no such list.

    Raises:
        InputError: a list that does not say dense or sparse for each layer.
    """
    types = fields.texts("mlp_layer_types", most=MAX_LAYERS)
    if types is None:
        return None
    if len(types) != shape.layers or set(types) - {"dense", "sparse"}:
        raise fields.conflict(
            f"`mlp_layer_types` has to say dense or sparse for each of {shape.layers} layers."
        )
    return tuple(layer for layer, kind in enumerate(types) if kind == "sparse")


def dense_and_sparse(
    shape: DecoderShape,
    sparse: Sparse,
    *,
    bias: bool = False,
    routed: tuple[str, ...] = _ROUTED,
    shared: tuple[str, ...] = _SHARED,
    gate: str = "mlp.gate",
) -> Weights:
    """The feed-forwards of all layers.

    Args:
        shape: The decoder's sizes.
        sparse: Which layers are sparse, and how wide things are.
        bias: Whether dense and shared projections have one.
        routed: Names of the projections of a routed expert.
        shared: Names of those of the shared experts.
        gate: Name of the router.
    """
    hidden, layers = shape.hidden, sparse.sparse_layers
    weights = gated_mlp(hidden, sparse.dense_width, layers=sparse.dense_layers, bias=bias)
    weights += experts(
        hidden,
        sparse.expert_width,
        count=sparse.experts,
        active=sparse.active,
        layers=layers,
        names=routed,
    )
    if sparse.shared_width:
        weights += gated_mlp(
            hidden,
            sparse.shared_width,
            layers=layers,
            names=shared,
            component="shared_experts",
            bias=bias,
        )
    return weights + router(hidden, sparse.experts, layers=layers, name=gate)
