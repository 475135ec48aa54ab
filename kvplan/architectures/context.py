"""How long a context a configuration allows.

The rule is vLLM's (v0.33.0 vllm/config/model.py _get_and_verify_max_len and
vllm/transformers_utils/model_arch_config_convertor.py derive_max_model_len_and_key), without the
tokenizer's own limit, which a configuration does not state.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from kvplan.architectures.fields import MAX_POSITIONS, Fields

_LENGTH_FIELDS = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
# These types leave max_position_embeddings as it is after scaling: their factor is not applied.
_ALREADY_SCALED = (
    "su",
    "longrope",
    "llama3",
    "yarn",
    "deepseek_yarn",
    "deepseek_llama_scaling",
)


class Context(BaseModel):
    """What a configuration says of its context.

    Attributes:
        maximum: Tokens an engine plans for when nothing is asked, or None if nothing is stated.
        extended: Tokens that may be asked for beyond that, or None.
        rope_scaling: Type of rope scaling, or None.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    maximum: int | None
    extended: int | None = None
    rope_scaling: str | None = None


def read_context(fields: Fields, *, default: int | None, scaled: bool) -> Context:
    """Derives the context.

    Args:
        fields: The text model's configuration.
        default: The class default of ``max_position_embeddings``.
        scaled: The class states lengths after scaling, whatever the type (Gemma 3).

    Raises:
        InputError: a length or a factor that is none.
    """
    kind, factor = _rope(fields)
    longest = _stated_length(fields, default)
    if longest is not None and not scaled and kind not in _ALREADY_SCALED:
        longest = min(int(longest * factor), MAX_POSITIONS)
    named = None if kind == "default" else kind
    if kind in ("longrope", "su"):
        original = fields.optional_integer("original_max_position_embeddings", most=MAX_POSITIONS)
        if original is not None and longest is not None and original < longest:
            return Context(maximum=original, extended=longest, rope_scaling=named)
    return Context(maximum=longest, rope_scaling=named)


def _stated_length(fields: Fields, default: int | None) -> int | None:
    stated = [
        length
        for name in _LENGTH_FIELDS
        if (length := fields.optional_integer(name, most=MAX_POSITIONS)) is not None
    ]
    own = fields.optional_integer("model_max_length", most=MAX_POSITIONS)
    if own is not None:
        return own
    if not stated and default is not None:
        fields.fill("max_position_embeddings", default)
        return default
    return min(stated, default=None)


def _rope(fields: Fields) -> tuple[str, float]:
    rope = fields.section("rope_scaling") or fields.section("rope_parameters")
    if rope is None:
        return "default", 1.0
    # Newer files keep one set of parameters a layer type; only the full layers' reach counts.
    rope = rope.section("full_attention") or rope
    kind = rope.optional_text("rope_type") or rope.optional_text("type") or "default"
    return kind, rope.number("factor") or 1.0
