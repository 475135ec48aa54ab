"""How long and how wide the tables of rotary positions are that a configuration describes.

vLLM keeps one table for each distinct description: v0.33.0
vllm/model_executor/layers/rotary_embedding/__init__.py get_rope and the classes it picks.
"""

from __future__ import annotations

from kvplan.architectures.fields import MAX_POSITIONS, Fields
from kvplan.errors import InputError
from kvplan.models.caches import FullCache, LatentCache, WindowCache
from kvplan.models.spec import Layer, RotaryTable

# A position of an image or a video may lie beyond the text's: mrope.py.
_MULTIMODAL = 4
_SCALED = ("linear", "dynamic")
_ORIGINAL_SCALED = ("yarn", "deepseek_yarn", "deepseek_llama_scaling")
_LONG = ("longrope", "su")
# Every head's width, though only a part turns: gemma4_rope.py.
_WHOLE_WIDTH = "proportional"
_MOST_ROWS = 2**26
# Windows turn by a description of their own there, without the scaling of the full layers:
# transformers v5.24.0 src/transformers/models/gemma3/configuration_gemma3.py and gemma3n, gemma4.
_LOCAL_OF_ITS_OWN = frozenset({"gemma3", "gemma3_text", "gemma3n", "gemma3n_text"})
_STATING = ("rope_theta", "rope_scaling", "rope_parameters", "rotary_pct", "rotary_dim")
_KINDS = (("full_attention", "full"), ("sliding_attention", "window"))


def read_rotary(
    text: Fields, layers: tuple[Layer, ...], maximum: int | None
) -> tuple[RotaryTable, ...]:
    """The distinct tables of a decoder; none where nothing says that positions are rotary.

    They are small beside the weights, so a description that makes no sense is passed over.

    Args:
        text: The decoder's configuration.
        layers: Whose caches tell how wide the heads are.
        maximum: Longest context, by default of the class where the configuration states none.
    """
    if not any(text.states(name) for name in _STATING):
        return ()
    try:
        longest = text.optional_integer("max_position_embeddings", most=MAX_POSITIONS) or maximum
        return () if longest is None else _tables(text, layers, longest)
    except InputError:
        return ()


def _tables(text: Fields, layers: tuple[Layer, ...], longest: int) -> tuple[RotaryTable, ...]:
    stated = text.section("rope_parameters") or text.section("rope_scaling")
    by_kind = {
        kind: stated.section(name) if stated is not None and stated.has(name) else stated
        for name, kind in _KINDS
    }
    if text.optional_text("model_type") in _LOCAL_OF_ITS_OWN and by_kind["window"] is stated:
        by_kind["window"] = None
    tables = (_table(text, by_kind[kind], longest, head) for kind, head in _heads(layers))
    return tuple(dict.fromkeys(table for table in tables if table is not None))


def _heads(layers: tuple[Layer, ...]) -> tuple[tuple[str, int], ...]:
    """Kinds of attention with the elements that may turn, each once."""
    found: dict[tuple[str, int], None] = {}
    for layer in layers:
        for cache in layer.caches:
            match cache:
                case FullCache() | WindowCache():
                    found[cache.kind, cache.head_dim] = None
                case LatentCache() if cache.rope_dim:
                    found["full", cache.rope_dim] = None
                case _:
                    pass
    return tuple(found)


def _table(text: Fields, rope: Fields | None, longest: int, head: int) -> RotaryTable | None:
    kind = "default"
    if rope is not None:
        kind = rope.optional_text("rope_type") or rope.optional_text("type") or "default"
    width = head if kind == _WHOLE_WIDTH else _turning(text, rope, head)
    rows = min(_rows(text, rope, kind, longest), _MOST_ROWS)
    return RotaryTable(rows=rows, width=width) if width > 0 else None


def _turning(text: Fields, rope: Fields | None, head: int) -> int:
    """Elements of a head that turn."""
    for part, name in ((rope, "rope_dim"), (text, "rotary_dim")):
        stated = part.optional_integer(name) if part is not None else None
        if stated is not None:
            return stated
    for part in (rope, text):
        for name in ("partial_rotary_factor", "rotary_pct"):
            share = part.number(name) if part is not None else None
            if share is not None:
                return int(head * min(share, 1.0))
    return head


def _rows(text: Fields, rope: Fields | None, kind: str, longest: int) -> int:
    if rope is None:
        return longest
    factor = rope.number("factor") or 1.0
    original = (
        rope.optional_integer("original_max_position_embeddings", most=MAX_POSITIONS)
        or text.optional_integer("original_max_position_embeddings", most=MAX_POSITIONS)
        or longest
    )
    if kind in _ORIGINAL_SCALED:
        rows = int(original * factor)
    elif kind in _SCALED and not rope.has("alpha"):
        rows = int(longest * factor)
    elif kind in _LONG:
        rows = longest + original
    else:
        rows = longest
    return _MULTIMODAL * rows if rope.has("mrope_section") else rows
