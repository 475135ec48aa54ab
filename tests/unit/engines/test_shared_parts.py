"""What engines have in common: option tables, remarks, weight lines."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.api import read_spec
from kvplan.engines import remarks
from kvplan.engines.launch import Asked, named, one_budget
from kvplan.engines.option_table import OptionTable
from kvplan.engines.weight_drafts import drafts_of, identifier, origin
from kvplan.errors import KvplanError, NotModelledError, UnknownNameError, UsageError
from kvplan.models.formats import PLAIN
from kvplan.models.weights import RankLayout, rank_parts


def _number(name: str, value: Any) -> int:
    if not isinstance(value, int):
        raise UsageError(f"{name} is a number.", hint="Write 1.")
    return value


TABLE = OptionTable(
    "Engine",
    readers={"page_size": _number, "batch": _number},
    aliases={"page": "page_size"},
    not_yet={"lora": False},
    arguments={"tp": "--tp"},
)


def test_names_are_read_in_any_spelling() -> None:
    given = {"--page-size": 16, "cache.batch": 4, "lora": False}
    assert TABLE.read(given) == {"page_size": 16, "batch": 4}


@pytest.mark.parametrize(
    ("options", "error", "message", "hint"),
    [
        ({"page": 1, "page_size": 1}, UsageError, "page_size is given twice.", "Keep one"),
        ({"tp": 2}, UsageError, "tp is not set with -o.", "Use --tp."),
        ({"lora": True}, NotModelledError, "kvplan does not size Engine's lora yet.", "Leave"),
        ({"page_sise": 1}, UnknownNameError, "Engine has no option", "Did you mean page_size"),
        ({"xyz": 1}, UnknownNameError, "Engine has no option", "It knows page_size, batch."),
        ({"batch": "x"}, UsageError, "batch is a number.", "Write 1."),
    ],
)
def test_other_names_are_said(
    options: dict[str, Any], error: type[KvplanError], message: str, hint: str
) -> None:
    with pytest.raises(error) as caught:
        TABLE.read(options)
    assert caught.value.message.startswith(message)
    assert (caught.value.hint or "").startswith(hint)


def test_remarks_are_made_where_they_are_true() -> None:
    spec = read_spec("Qwen/Qwen3-8B", offline=True)
    assert spec.max_context == 40_960
    assert not list(remarks.above_maximum(spec, 40_960 if spec.extended_context is None else 1))
    (longer,) = remarks.above_maximum(spec, 1_000_000)
    assert longer.code == "context_above_model_maximum"
    assert not list(remarks.within_uncertainty(4, 4, unless="x", measure="a start"))
    (tight,) = remarks.within_uncertainty(3, 4, unless="more is taken", measure="a start")
    assert "not if more is taken: then 3 requests are held" in tight.message
    assert tight.hint is not None
    assert "measure a start" in tight.hint
    assert "its rules are taken" in remarks.newer_than_modelled("X", "2", "1").message


def test_weights_are_a_line_a_component_and_sum_to_the_rank() -> None:
    spec = read_spec("Qwen/Qwen3-8B", offline=True)
    layout = RankLayout(tp=2, layers=(0, 36), first=True, last=True, vocab_multiple=64)
    parts = tuple(rank_parts(spec.weights, PLAIN["bfloat16"], layout, tied=False))
    source, confidence = origin(spec)
    drafts = drafts_of(parts, source=source, confidence=confidence, prefix="draft_")
    assert len({draft.name for draft in drafts}) == len(drafts)
    assert all(draft.name.startswith("weights.draft_") for draft in drafts)
    assert sum(draft.value() for draft in drafts) == sum(part.bytes for part in parts)


def test_identifiers_are_what_formulas_hold() -> None:
    assert identifier("FP8 (e4m3)/128é") == "fp8__e4m3__128_"


def test_a_model_and_its_revision() -> None:
    assert named(Asked("org/model@main"), "X") == ("org/model", "main")
    assert one_budget(None, "X") is None
    assert one_budget((5, 5), "X") == 5
    with pytest.raises(UsageError, match="every rank the same"):
        one_budget((5, 6), "X")
