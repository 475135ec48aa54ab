"""SGLang's KV cache types: the string a user writes → bytes of an element and of its scales.

Source: SGLang 0.5.23, sglang/srt/mem_cache/kv_cache_dtype.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.errors import EngineRefusesError, NotModelledError, UnknownNameError, nearest, shown
from kvplan.models.formats import DTYPE_BYTES, Dtype

FP8_BYTES = 1


@dataclass(frozen=True, slots=True)
class Stored:
    """How the pools hold an element.

    Attributes:
        name: The type in force, as SGLang writes it.
        element_bytes: Bytes of an element.
        scale_block: Elements that share a byte of scale, or None.
    """

    name: str
    element_bytes: int
    scale_block: int | None = None

    @property
    def is_fp8(self) -> bool:
        """Whether sparse attention stores it with scales of its own."""
        return self.name == "fp8_e4m3"


_MXFP8_BLOCK = 32
_FORMATS: dict[str, Stored] = {
    "fp8_e4m3": Stored("fp8_e4m3", FP8_BYTES),
    "fp8_e5m2": Stored("fp8_e5m2", FP8_BYTES),
    "mxfp8": Stored("mxfp8", FP8_BYTES, _MXFP8_BLOCK),
    "bfloat16": Stored("bfloat16", DTYPE_BYTES["bfloat16"]),
}
# fp8 is what other engines and people call it.
_ALIASES = {"bf16": "bfloat16", "fp8": "fp8_e4m3"}
# Their pools carry workspaces that depend on the attention backends of both phases.
_LATER = ("nvfp4", "fp4_mx_block16")
KNOWN = ("auto", *_FORMATS, *_ALIASES, *_LATER)
_BLACKWELL = 10


def resolve(
    asked: str, dtype: Dtype, *, prescribed: str | None, sparse: bool, sm: tuple[int, int]
) -> Stored:
    """The cache type in force.

    Args:
        asked: As written.
        dtype: The type that the model runs in.
        prescribed: What the checkpoint asks for in a way that SGLang reads, or None.
        sparse: The model has an indexer beside latent caches.
        sm: Compute capability.

    Raises:
        UnknownNameError: SGLang has no such type.
        EngineRefusesError: a type that sparse attention does not take.
        NotModelledError: a type of SGLang's that kvplan does not size.
    """
    name = _ALIASES.get(asked, asked)
    if name in _LATER:
        raise NotModelledError(
            f"kvplan does not size SGLang's {name} cache yet.", hint="Use auto or fp8_e4m3."
        )
    if name == "auto":
        name = _automatic(dtype, prescribed=prescribed, sparse=sparse, sm=sm)
        return _FORMATS.get(name, Stored(name, DTYPE_BYTES[dtype]))
    if name not in _FORMATS:
        raise UnknownNameError(
            f"SGLang has no KV cache type {shown(asked)}.",
            hint=nearest(asked, KNOWN) or f"It has {', '.join(KNOWN)}.",
        )
    if sparse and name not in ("bfloat16", "fp8_e4m3"):
        raise EngineRefusesError(
            f"SGLang refuses a {name} cache for sparse MLA.", hint="Use bfloat16 or fp8_e4m3."
        )
    return _FORMATS[name]


def _automatic(dtype: Dtype, *, prescribed: str | None, sparse: bool, sm: tuple[int, int]) -> str:
    if sparse:
        return "fp8_e4m3" if sm[0] >= _BLACKWELL else "bfloat16"
    return "fp8_e4m3" if prescribed == "fp8" else dtype
