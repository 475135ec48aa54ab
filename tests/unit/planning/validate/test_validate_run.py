"""Records through all checks."""

from __future__ import annotations

from measured_starts import Shelf, checked, record

from kvplan.planning.validate.run import validate
from kvplan.validation import CHECK_NAMES


def test_a_full_record_gets_every_check() -> None:
    found = checked()
    assert found.skipped is None
    assert found.not_checked == {}
    assert all(getattr(found, name) is not None for name in CHECK_NAMES)
    assert (found.id, found.model, found.gpu) == ("a", "toy", "H100-SXM-80GB")
    assert found.engine == "vllm==0.33.0"


def test_a_record_may_say_what_it_is_for() -> None:
    found = checked(modes=["geometry"])
    assert found.geometry is not None
    assert set(found.not_checked) == set(CHECK_NAMES) - {"geometry"}
    assert found.skipped is None


def test_why_nothing_could_be_compared() -> None:
    found = checked(modes=["geometry"], available_kv_gib=None)
    assert found.skipped == "available_kv_gib is not stated"
    assert checked(modes=[]).skipped == "not among the checks that the record is for"


def test_a_caution_counts_unless_the_run_is_strict() -> None:
    odd = record(caution="a modified card")
    assert validate([odd], Shelf()).records[0].skipped is None
    strict = validate([odd, record()], Shelf(), strict=True)
    assert strict.records[0].skipped == "the record has a caution: a modified card"
    assert strict.records[1].skipped is None
    assert strict.summary.geometry.n == 1


def test_a_record_without_a_name_is_named_by_its_place() -> None:
    found = validate([record(), record(id=None)], Shelf())
    assert [each.id for each in found.records] == ["a", "record 2"]


def test_what_the_engine_refuses_is_no_comparison() -> None:
    found = checked(tp=3)
    assert found.geometry is None
    assert found.not_checked["geometry"].startswith("refused by the engine's rules: ")
    assert found.verdict is not None


def test_flags_that_can_not_be_planned() -> None:
    found = checked(gpu_memory_utilization=1.5)
    assert found.geometry is not None
    assert found.not_checked["end_to_end"].startswith("flags that can't be planned: ")


def test_releases_that_are_not_modelled() -> None:
    found = checked(engine_version="0.0.1")
    assert found.skipped is not None
    assert {reason.partition(":")[0] for reason in found.not_checked.values()} == {
        "release not modelled"
    }
