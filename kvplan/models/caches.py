"""What one layer keeps for a request: one class a kind of cache, with its byte arithmetic.

All sizes are what the cache holds by nature, per tensor-parallel rank; how an engine cuts them
into pages is the engine's business. ``tokens_held`` times ``token_bytes`` plus
``fixed_bytes`` is what a request of ``context`` tokens holds in the layer.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from typing_extensions import override

from kvplan.models.formats import DTYPE_BYTES, Dtype, KvFormat, ceil_div

PositiveInt = Annotated[int, Field(gt=0)]


class _Cache(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    def tokens_held(self, context: int) -> int:
        """Entries kept for a request of ``context`` tokens: one a token, unless compressed."""
        return context

    def token_bytes(self, kv: KvFormat, *, tp: int) -> int:
        """Bytes one kept entry takes on one rank."""
        raise NotImplementedError

    def fixed_bytes(self, dtype: Dtype, *, tp: int) -> int:  # noqa: ARG002 - overridden
        """Bytes a request takes whatever its length, on one rank."""
        return 0

    def request_bytes(self, context: int, kv: KvFormat, dtype: Dtype, *, tp: int) -> int:
        """Bytes a request of ``context`` tokens holds in this layer on one rank, unpaged."""
        per_token = self.token_bytes(kv, tp=tp)
        return self.tokens_held(context) * per_token + self.fixed_bytes(dtype, tp=tp)


class _AttentionCache(_Cache):
    kv_heads: PositiveInt
    head_dim: PositiveInt
    head_dim_v: PositiveInt

    def heads_per_rank(self, tp: int) -> int:
        """KV heads on the fullest rank: fewer heads than ranks are replicated, never split."""
        return ceil_div(self.kv_heads, tp)

    @override
    def token_bytes(self, kv: KvFormat, *, tp: int) -> int:
        return self.heads_per_rank(tp) * kv.cell_bytes(self.head_dim, self.head_dim_v)


class FullCache(_AttentionCache):
    """Every token's keys and values (multi-head, grouped-query or multi-query)."""

    kind: Literal["full"] = "full"


class WindowCache(_AttentionCache):
    """Only the last ``window`` tokens are attended to."""

    kind: Literal["window"] = "window"
    window: PositiveInt

    @override
    def tokens_held(self, context: int) -> int:
        return min(context, self.window)


class ChunkedCache(_AttentionCache):
    """Attention within consecutive chunks of ``chunk`` tokens."""

    kind: Literal["chunked"] = "chunked"
    chunk: PositiveInt

    @override
    def tokens_held(self, context: int) -> int:
        return min(context, self.chunk)


class LatentCache(_Cache):
    """One compressed vector a token (MLA); every rank holds all of it, TP never splits it.

    Attributes:
        latent_dim, rope_dim: Elements without and with rotary positions.
        unpacked: What an engine without latent kernels for the class keeps instead, where one
            serves it so; None where all keep the vector.
    """

    kind: Literal["latent"] = "latent"
    latent_dim: PositiveInt
    rope_dim: Annotated[int, Field(ge=0)]
    unpacked: FullCache | None = None

    @override
    def token_bytes(self, kv: KvFormat, *, tp: int) -> int:
        return kv.cell_bytes(self.latent_dim + self.rope_dim, 0)


class CompressedCache(_Cache):
    """One packed vector for every ``stride`` tokens (DeepSeek-V4); TP never splits it.

    The kernels prescribe the layout of the vector, so no cache type changes its size. What is
    not complete yet is held by a `CompressorCache`.

    Attributes:
        latent_dim, rope_dim: Elements without and with rotary positions.
        cell_bytes: Bytes of one vector, scales included.
        stride: Tokens that one vector stands for.
        window: Only the last so many tokens are kept; None: all.
    """

    kind: Literal["compressed"] = "compressed"
    latent_dim: PositiveInt
    rope_dim: Annotated[int, Field(ge=0)]
    cell_bytes: PositiveInt
    stride: PositiveInt = 1
    window: PositiveInt | None = None

    @override
    def tokens_held(self, context: int) -> int:
        kept = context if self.window is None else min(context, self.window)
        return kept // self.stride

    @override
    def token_bytes(self, kv: KvFormat, *, tp: int) -> int:
        return self.cell_bytes


class CompressorCache(_Cache):
    """What compression still needs of the last ``window`` tokens: fp32, whole on every rank."""

    kind: Literal["compressor"] = "compressor"
    state_dim: PositiveInt
    window: PositiveInt

    @override
    def tokens_held(self, context: int) -> int:
        return min(context, self.window)

    @override
    def token_bytes(self, kv: KvFormat, *, tp: int) -> int:
        return self.state_dim * DTYPE_BYTES["float32"]


class IndexerCache(_Cache):
    """The sparse indexer's own keys, whatever the type of the rest of the cache.

    Attributes:
        head_dim: Elements of a key.
        scale_block: Elements that share an fp32 scale; None: there are no scales.
        element_bytes: Bytes of an element.
        stride: Tokens that one key stands for.
    """

    kind: Literal["indexer"] = "indexer"
    head_dim: PositiveInt
    scale_block: PositiveInt | None = 128
    element_bytes: PositiveInt = 1
    stride: PositiveInt = 1

    @override
    def tokens_held(self, context: int) -> int:
        return context // self.stride

    @override
    def token_bytes(self, kv: KvFormat, *, tp: int) -> int:
        scales = self.head_dim // self.scale_block if self.scale_block else 0
        return self.head_dim * self.element_bytes + 4 * scales


class StateTensor(BaseModel):
    """One tensor of a recurrent state.

    Attributes:
        name: ``conv`` (inputs that a causal convolution still needs; the last dimension is one
            fewer than its taps), ``conv groups`` (those of Mamba 2's shared B and C), ``ssm``
            (Mamba), ``recurrent`` (delta rules), ``linear`` (lightning attention), ``shift``
            (RWKV's last token).
        shape: Per request, before tensor parallelism.
        split: Index of the dimension that TP splits, or None (replicated). Fewer entries than
            ranks are replicated, never split.
        dtype: A type that the model or its class prescribes, or None: the engine's choice, by
            default the model's own.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    name: str
    shape: Annotated[tuple[PositiveInt, ...], Field(min_length=1)]
    split: int | None = 0
    dtype: Dtype | None = None

    @field_validator("split")
    @classmethod
    def _in_shape(cls, split: int | None, known: ValidationInfo) -> int | None:
        if split is not None and not 0 <= split < len(known.data.get("shape", ())):
            raise ValueError("split is not the index of one of the shape's dimensions")
        return split

    def size(self, dtype: Dtype, *, tp: int) -> int:
        """Bytes on one rank."""
        shape = list(self.shape)
        if self.split is not None:
            shape[self.split] = ceil_div(shape[self.split], tp)
        return math.prod(shape) * DTYPE_BYTES[self.dtype or dtype]


class RecurrentCache(_Cache):
    """A state of fixed size: Mamba, gated DeltaNet, KDA, linear attention, short convolution."""

    kind: Literal["recurrent"] = "recurrent"
    states: Annotated[tuple[StateTensor, ...], Field(min_length=1)]

    @override
    def tokens_held(self, context: int) -> int:
        return 0

    @override
    def token_bytes(self, kv: KvFormat, *, tp: int) -> int:
        return 0

    @override
    def fixed_bytes(self, dtype: Dtype, *, tp: int) -> int:
        return sum(state.size(dtype, tp=tp) for state in self.states)


class CrossCache(_AttentionCache):
    """Keys and values of an encoder's output: sized by the source, not by what is generated.

    Attributes:
        source_tokens: Tokens of the longest source that the encoder takes; None: it takes any
            length, and a request is taken to have as many source tokens as tokens of its own.
    """

    kind: Literal["cross"] = "cross"
    source_tokens: PositiveInt | None

    @override
    def tokens_held(self, context: int) -> int:
        return context if self.source_tokens is None else self.source_tokens


class SharedCache(_Cache):
    """The layer reads another layer's cache and stores nothing of its own."""

    kind: Literal["shared"] = "shared"
    layer: Annotated[int, Field(ge=0)]

    @override
    def tokens_held(self, context: int) -> int:
        return 0

    @override
    def token_bytes(self, kv: KvFormat, *, tp: int) -> int:
        return 0


LayerCache = Annotated[
    FullCache
    | WindowCache
    | ChunkedCache
    | LatentCache
    | CompressedCache
    | CompressorCache
    | IndexerCache
    | RecurrentCache
    | CrossCache
    | SharedCache,
    Field(discriminator="kind"),
]
