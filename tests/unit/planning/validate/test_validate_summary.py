"""Many records → a few figures. What was skipped never counts as right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measured_starts import Shelf, record

from kvplan.measurement import Measurement
from kvplan.planning.validate.run import validate
from kvplan.planning.validate.summary import percentile, summarise
from kvplan.validation import (
    CHECK_NAMES,
    CheckedRecord,
    KvCheck,
    Summary,
    VerdictCheck,
)


def kv(error: float, *, card: float = 0.01, held: bool | None = True) -> KvCheck:
    """A comparison that is off by ``error``."""
    return KvCheck(
        predicted_kv_gib=10 * (1 + error),
        low_kv_gib=None,
        high_kv_gib=None,
        measured_kv_gib=10.0,
        relative_error=error,
        share_of_card=card,
        in_interval=held,
        cause="none",
    )


def named(name: str, **checks: Any) -> CheckedRecord:
    """A record with these checks."""
    return CheckedRecord(
        id=name, source=None, model=None, gpu=None, engine=None, skipped=None, **checks
    )


ERRORS = (0.01, -0.02, 0.03, 0.06, -0.30, 0.10, 0.0, 0.04, -0.005, 0.02)
TEN = tuple(
    named(str(number), end_to_end=kv(error, card=number / 100, held=number % 2 == 0))
    for number, error in enumerate(ERRORS)
)


def test_errors() -> None:
    found = summarise(TEN).end_to_end
    assert found.n == 10
    assert found.median_relative_error == pytest.approx(0.025)
    assert found.p90_relative_error == pytest.approx(0.10)
    assert found.worst is not None
    assert (found.worst.id, found.worst.relative_error) == ("4", -0.30)
    assert found.within_2_percent == 0.5
    assert found.within_5_percent == 0.7
    assert found.within_10_percent == 0.9
    assert found.optimistic_over_5_percent == 0.2
    assert found.p90_share_of_card == 0.08
    assert found.interval_coverage == 0.5
    assert found.within_print_rounding is None


def test_the_checks_are_kept_apart() -> None:
    found = summarise((named("a", overhead=kv(0.5)),))
    assert (found.overhead.n, found.end_to_end.n) == (1, 0)


def test_nothing_to_take_a_share_of() -> None:
    found = summarise(()).weights
    assert (found.n, found.median_relative_error, found.worst) == (0, None, None)
    assert found.within_2_percent is None


def test_an_error_of_nothing_is_left_out_of_shares_and_counted() -> None:
    unknown = kv(0.0).model_copy(update={"relative_error": None, "in_interval": None})
    found = summarise((*TEN, named("x", end_to_end=unknown))).end_to_end
    assert found.n == 11
    assert found.within_2_percent == 0.5
    assert found.interval_coverage == 0.5


def test_verdicts() -> None:
    pairs = [("started", "started"), ("refused", "started"), ("refused", "refused")]
    verdicts = [
        named(
            str(number),
            verdict=VerdictCheck.model_validate(
                {"predicted": predicted, "measured": measured, "basis": "flags"}
            ),
        )
        for number, (predicted, measured) in enumerate([*pairs, ("started", "refused")])
    ]
    found = summarise(verdicts).verdict
    assert (found.n, found.refusals, found.refusals_predicted) == (4, 2, 1)
    assert (found.starts, found.starts_called_refused) == (2, 1)


def test_reasons_are_counted_by_kind() -> None:
    missing = [
        named("a", not_checked={"weights": "unknown GPU: No GPU is called 'A'."}),
        named("b", not_checked={"weights": "unknown GPU: No GPU is called 'B'."}),
        named("c", not_checked={"weights": "tp is not stated"}),
    ]
    found = summarise(missing)
    assert found.weights.skipped == {"unknown GPU": 2, "tp is not stated": 1}
    assert found.geometry.skipped == {}


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([], 90, None), ([1.0], 90, 1.0), ([1.0, 2.0, 3.0], 50, 2.0), (list(range(10)), 90, 8)],
)
def test_percentiles(values: list[float], percent: int, expected: float | None) -> None:
    assert percentile(values, percent) == expected


# The law: records that say nothing change no figure but the counts of what was skipped.

SOUND = st.builds(
    record,
    available_kv_gib=st.floats(0.01, 60).map(lambda gib: round(gib, 2)),
    num_gpu_blocks=st.integers(1, 10**6),
    weights_gib=st.floats(0.01, 40).map(lambda gib: round(gib, 2)),
    outcome=st.sampled_from(["started", "max_length_too_large"]),
)
SILENT = st.sampled_from(
    [
        record(model="nobody/knows"),
        record(gpu="Z9000"),
        record(engine="sglang"),
        record(engine_version="0.0.1"),
        record(modes=[]),
        Measurement(),
    ]
)


def _figures(summary: Summary) -> dict[str, Any]:
    data = summary.model_dump(exclude={"records", "skipped"})
    for each in data.values():
        del each["skipped"]
    return data


@settings(max_examples=30)
@given(st.lists(SOUND, max_size=3), st.lists(SILENT, max_size=3))
def test_a_skipped_record_never_counts(
    sound: Sequence[Measurement], silent: Sequence[Measurement]
) -> None:
    alone = validate(sound, Shelf()).summary
    both = validate([*silent, *sound], Shelf())
    assert _figures(both.summary) == _figures(alone)
    assert both.summary.skipped == len(silent)
    for check in CHECK_NAMES:
        found = getattr(both.summary, check)
        assert found.n + sum(found.skipped.values()) == len(sound) + len(silent)


FIGURES = st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False), st.just(0.0))
COUNTS = st.one_of(st.none(), st.integers(0, 2**62), st.just(1))


@given(
    st.fixed_dictionaries(
        {
            "gpu_total_gib": FIGURES,
            "gpu_memory_utilization": FIGURES,
            "weights_gib": FIGURES,
            "activation_peak_gib": FIGURES,
            "available_kv_gib": FIGURES,
            "max_concurrency": FIGURES,
            "max_model_len": COUNTS,
            "max_num_seqs": COUNTS,
            "max_num_batched_tokens": COUNTS,
            "num_gpu_blocks": COUNTS,
            "kv_tokens": COUNTS,
            "block_size": COUNTS,
            "engine_version": st.one_of(st.none(), st.text(max_size=8), st.just("0.19.0")),
            "kv_cache_dtype": st.one_of(st.none(), st.text(max_size=5)),
            "dtype": st.one_of(st.none(), st.text(max_size=5)),
            "weight_format": st.one_of(st.none(), st.text(max_size=5)),
            "outcome": st.one_of(st.none(), st.text(max_size=5)),
            "speculative": st.one_of(st.none(), st.dictionaries(st.text(), st.integers())),
            "lora": st.one_of(st.none(), st.text(), st.just({"enabled": "yes"})),
            "modes": st.one_of(st.none(), st.integers()),
        }
    )
)
def test_no_record_stops_a_run(values: dict[str, Any]) -> None:
    found = validate([record(**values)], Shelf())
    assert len(found.records) == 1
