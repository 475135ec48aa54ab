"""ModelSpec: what a model stores, built from facts and never from a model's name."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from kvplan.models.caches import LayerCache
from kvplan.models.formats import Dtype
from kvplan.models.identity import ById
from kvplan.models.images.rules import AnyImageRule
from kvplan.models.weights import Weight, active_parameters, total_parameters

PositiveInt = Annotated[int, Field(gt=0)]


class Layer(BaseModel):
    """One decoder layer: the caches it keeps (none for a layer without attention)."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    caches: tuple[LayerCache, ...] = ()


class RotaryTable(BaseModel):
    """Sines and cosines of rotary positions, which engines compute once and keep.

    Attributes:
        rows: Positions.
        width: Elements of a position, sines and cosines together.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    rows: PositiveInt
    width: PositiveInt


class FilledDefault(BaseModel):
    """A value that the configuration leaves out and the architecture's own class fills in."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    field: str
    value: str
    source: str


class Checkpoint(BaseModel):
    """What is known of the files on disk, where something is.

    Attributes:
        total_bytes: Tensor bytes over all files, or None.
        parameters: Elements stated by the headers, or None.
        bytes_by_dtype: Tensor bytes by the header's type name, empty if unknown.
        source: Where the figures come from.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    total_bytes: PositiveInt | None = None
    parameters: PositiveInt | None = None
    bytes_by_dtype: dict[str, int] = {}
    source: str


class ModelSpec(BaseModel):
    """Everything the planner asks of a model.

    Attributes:
        id: As the user or the Hub names it.
        revision: The resolved commit, or None for local files and bundled specs without one.
        model_type, architecture: The configuration's own words.
        source: Where the configuration was read from.
        dtype: The type the checkpoint computes in.
        max_context: The model's own maximum, or None if it states none.
        extended_context: What may be asked for beyond ``max_context`` (longrope), or None.
        rope_scaling: Type of rope scaling, or None.
        attention_heads: Query heads (0 for models without attention).
        hidden_size, vocab_size, intermediate_size: Width of the residual stream, rows of the
            embedding, and the widest feed-forward of one token (of the experts: one expert).
        rotary: Tables of rotary positions that the configuration describes.
        layers: The decoder's layers in order.
        tied_embeddings: The head reads the embedding's matrix and has none of its own.
        weights: The inventory; a tied head has no entry.
        quantization: Name of the checkpoint's scheme, or None.
        kv_scheme: Cache format that the checkpoint itself prescribes, or None.
        draft: Kind of draft for speculative decoding that it is (``EAGLE-3``), or None.
        prediction_modules: Modules for multi-token prediction that the configuration states, or
            None.
        images: How many tokens of context an image takes; None: it takes none, or nothing at hand
            states how many.
        defaults: What the configuration left out, and what filled it in.
        notes: Sentences a plan has to repeat: what is not exact for this architecture.

    Example:
        >>> from kvplan.api import read_spec
        >>> spec = read_spec("Qwen/Qwen3-8B", offline=True)
        >>> len(spec.layers), spec.attention_heads, spec.max_context
        (36, 32, 40960)
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    id: str
    revision: str | None = None
    model_type: str
    architecture: str
    source: str
    dtype: Dtype
    max_context: PositiveInt | None
    extended_context: PositiveInt | None = None
    rope_scaling: str | None = None
    hidden_size: PositiveInt
    vocab_size: PositiveInt
    intermediate_size: PositiveInt
    attention_heads: Annotated[int, Field(ge=0)]
    experts: Annotated[int, Field(ge=0)] = 0
    experts_per_token: Annotated[int, Field(ge=0)] = 0
    rotary: tuple[RotaryTable, ...] = ()
    layers: Annotated[tuple[Layer, ...], Field(min_length=1)]
    tied_embeddings: bool
    weights: tuple[Weight, ...]
    quantization: str | None = None
    kv_scheme: str | None = None
    draft: str | None = None
    checkpoint: Checkpoint | None = None
    prediction_modules: PositiveInt | None = None
    images: AnyImageRule | None = None
    defaults: tuple[FilledDefault, ...] = ()
    notes: tuple[str, ...] = ()

    # Plain properties, not cached ones: `model_copy(update=...)` would carry a stale cache over.

    @property
    def parameters_total(self) -> int:
        """Elements of all weights: tied tensors once, vocabulary unpadded."""
        return total_parameters(self.weights)

    @property
    def parameters_active(self) -> int:
        """Elements one token is multiplied with."""
        return active_parameters(self.weights)

    @property
    def caches(self) -> tuple[LayerCache, ...]:
        """Every distinct cache once, in order of first use."""
        return _distinct_caches(ById(self.layers))


@lru_cache(maxsize=1024)
def _distinct_caches(layers: ById[tuple[Layer, ...]]) -> tuple[LayerCache, ...]:
    # Layers are interned: most models have one or two distinct ones.
    distinct = {id(layer): layer for layer in layers.value}.values()
    return tuple(dict.fromkeys(cache for layer in distinct for cache in layer.caches))
