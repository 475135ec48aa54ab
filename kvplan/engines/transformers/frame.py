"""Everything that is settled before bytes are counted: release, device, types, cache, layers."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.base import Setup
from kvplan.engines.transformers import history, kinds
from kvplan.engines.transformers import options as names
from kvplan.engines.transformers.kept import Kept, kept_of
from kvplan.engines.transformers.options import Options, read_options
from kvplan.engines.transformers.quantized import Scheme
from kvplan.engines.transformers.sizes import Layout, Moment
from kvplan.errors import EngineRefusesError, NotModelledError, UsageError, shown
from kvplan.hardware import DeviceMemory, device_memory
from kvplan.models.formats import DTYPE_BYTES, Dtype
from kvplan.models.spec import ModelSpec

_DTYPES: dict[str, Dtype] = {
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "float16": "float16",
    "half": "float16",
    "fp16": "float16",
    "float32": "float32",
    "float": "float32",
    "fp32": "float32",
}


@dataclass(frozen=True, slots=True)
class Frame:
    """A setup with what follows from it.

    Attributes:
        dtype: The type that the model runs in.
        cache: Class of the cache.
        kept: What all layers keep.
    """

    setup: Setup
    version: str
    rules: history.Rules
    device: DeviceMemory
    dtype: Dtype
    options: Options
    cache: str
    kept: tuple[Kept, ...]

    @property
    def element_bytes(self) -> int:
        """Bytes of an element that is not packed."""
        return DTYPE_BYTES[self.dtype]

    @property
    def scheme(self) -> Scheme | None:
        """How keys and values are packed, or None."""
        if self.cache != names.QUANTIZED:
            return None
        chosen = self.options
        return Scheme(
            backend=chosen.backend,
            nbits=chosen.nbits,
            group=chosen.q_group_size,
            residual=chosen.residual_length,
            axis_key=chosen.axis_key,
            axis_value=chosen.axis_value,
            element_bytes=self.element_bytes,
        )

    def static_len(self, context: int) -> int | None:
        """Tokens that a static cache is made for; None: the cache grows.

        Source: generation/utils.py: max_length - 1, the last token is never fed.
        """
        if self.cache != names.STATIC:
            return None
        return self.options.max_cache_len or context + self.options.decode_steps

    def layout(self, context: int) -> Layout:
        """How the cache keeps rows for prompts of ``context`` tokens."""
        return Layout(
            element_bytes=self.element_bytes,
            static_len=self.static_len(context),
            scheme=self.scheme,
        )

    def moment(self, batch: int, context: int) -> Moment:
        """The end of a generation."""
        return Moment(batch=batch, prompt=context, steps=self.options.decode_steps)


def frame_of(setup: Setup) -> Frame:
    """Settles release, device, types and cache.

    Raises:
        EngineRefusesError, NotModelledError, UsageError: see `kvplan.engines.base.Engine`.
    """
    version = setup.version or history.NEWEST
    rules = history.rules_for(version)
    options = read_options(setup.options)
    dtype = _compute_dtype(setup.model, setup.dtype)
    _check_kv_dtype(setup.kv_dtype, dtype)
    cache = kinds.cache_class(setup.model, options, rules)
    if options.max_cache_len is not None and cache != names.STATIC:
        raise UsageError(
            f"max_cache_len is the length of a StaticCache; {cache} grows.",
            hint="Add -o cache=StaticCache, or leave it out.",
        )
    _check_parallel(setup)
    _check_encoder(setup.model, options)
    kept = kept_of(
        setup.model, rules, dtype, tp=setup.parallelism.tp, encoder_len=options.encoder_len
    )
    return Frame(setup, version, rules, device_memory(setup.gpu), dtype, options, cache, kept)


def _compute_dtype(model: ModelSpec, asked: str) -> Dtype:
    if asked == "auto":
        return model.dtype
    if asked not in _DTYPES:
        raise UsageError(
            f"transformers has no dtype {shown(asked)}.",
            hint=f"Use auto or one of {', '.join(DTYPE_BYTES)}.",
        )
    return _DTYPES[asked]


def _check_kv_dtype(asked: str, dtype: Dtype) -> None:
    if asked != "auto" and _DTYPES.get(asked) != dtype:
        raise EngineRefusesError(
            f"transformers keeps its cache in the type the model runs in ({dtype}), not in "
            f"{shown(asked)}.",
            hint="Leave out --kv-dtype; -o cache=QuantizedCache packs keys and values.",
        )


def _check_parallel(setup: Setup) -> None:
    spread, model = setup.parallelism, setup.model
    if spread.dcp > 1:
        raise EngineRefusesError(
            "transformers has no decode context parallelism.", hint="Leave out --dcp."
        )
    if spread.pp > len(model.layers):
        raise EngineRefusesError(
            f"{len(model.layers)} layers can't be spread over {spread.pp} devices.",
            hint="Use a smaller --pp.",
        )
    if spread.tp > 1:
        _check_heads(model, spread.tp)


def _check_heads(model: ModelSpec, tp: int) -> None:
    """Tensor parallel plans split projections by columns: whole heads a rank."""
    others = sorted({c.kind for c in model.caches} - {"full", "window", "chunked", "shared"})
    if others:
        raise NotModelledError(
            f"kvplan does not model transformers' tensor parallel plan of a model with "
            f"{', '.join(others)} caches.",
            hint="Spread its layers with --pp (device_map), or choose another engine.",
        )
    counts = {c.kv_heads for c in model.caches if c.kind in ("full", "window", "chunked")}
    uneven = sorted(heads for heads in (*counts, model.attention_heads) if heads % tp)
    if uneven:
        raise EngineRefusesError(
            f"{uneven[0]} heads can't be split evenly over {tp} ranks.",
            hint="Use a --tp that divides them, or --pp.",
        )


def _check_encoder(model: ModelSpec, options: Options) -> None:
    sources = [c.source_tokens for c in model.caches if c.kind == "cross"]
    if options.encoder_len is None:
        return
    if not sources:
        raise UsageError(
            f"encoder_len is the length of an encoder's output; {model.architecture} has none.",
            hint="Leave it out.",
        )
    most = max(source or 0 for source in sources)
    if most and options.encoder_len > most:
        raise EngineRefusesError(
            f"The encoder of {model.architecture} takes at most {most} tokens.",
            hint=f"Use -o encoder_len={most} or less.",
        )
