"""What a workload says: rates, days, lengths, and what may not be said at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvplan.errors import InputError
from tests.scenario_files import loaded, one, questions, write


def workload_of(tmp_path: Path, text: str, rest: str = "") -> object:
    (asked,) = questions(write(tmp_path, one(f"workload: {{{text}}}\n{rest}")))
    return asked.workload


@pytest.mark.parametrize(
    ("written", "rate"), [("5/s", 5.0), ("300/min", 5.0), ("18k/h", 5.0), ("0.432M / day", 5.0)]
)
def test_a_rate_is_requests_a_second(written: str, rate: float, tmp_path: Path) -> None:
    found = workload_of(tmp_path, f"rate: {written}, lengths: 1k/100, decode_rate: 30")
    assert getattr(found, "rate") == pytest.approx(rate)  # noqa: B009 - of any workload


def test_a_day_is_its_peak_or_24_weights(tmp_path: Path) -> None:
    base = "rate: 5/s, lengths: 1k/100, decode_rate: 30"
    peak = getattr(workload_of(tmp_path, f"{base}, daily: peak=2.5"), "daily")  # noqa: B009
    assert max(peak) == pytest.approx(2.5)
    assert sum(peak) == pytest.approx(24)
    hours = [*([1] * 23), 25]
    listed = getattr(workload_of(tmp_path, f"{base}, daily: {hours}"), "daily")  # noqa: B009
    assert max(listed) == pytest.approx(12.5)


WRONG = [
    ("rate: 5", "5 is not a rate. Write 5/s"),
    ("rate: 5/week", "'5/week' is not a rate"),
    ("rate: 0/s", "is not a rate"),
    ("lengths: p50", "is not a"),
    ("rate: 999999999999M/s", "is more than anybody serves"),
    ("lengths: " + " + ".join(["4% 1k/9"] * 25), "25 kinds of requests are mixed, at most 20"),
    ("sessions: {turns: 501}", "less than or equal to 500"),
    ("lengths: gauss:median=3", "no distribution 'gauss'"),
    ("daily: noon", "is no day. Write peak=2.5"),
    ("daily: peak=0.5", "A peak factor of 0.5 is not possible"),
    ("daily: [1, 2]", "A daily profile has 24 hours, not 2"),
    ("risk: 60%", "A risk of 0.6 can't be planned for"),
    ("risk: 0%", "A risk of 0 can't be planned for"),
    ("trace_columns: x", "'x'"),
    ("decode_rate: -1", "greater than 0"),
    ("users: 0", "greater than or equal to 1"),
    ("rates: 5/s", "`rates` is not a known key. Did you mean rate"),
    ("sessions: {turn: 3}", "is not a known key. Did you mean turns"),
]


@pytest.mark.parametrize(("text", "sentence"), WRONG)
def test_a_wrong_value_is_said_at_its_place(text: str, sentence: str, tmp_path: Path) -> None:
    path = write(tmp_path, one(f"workload:\n  {text}"))
    with pytest.raises(InputError) as caught:
        loaded(path)
    assert sentence in caught.value.message
    assert (caught.value.location or "").startswith(f"{path}:8:")


CONTRADICTIONS = [
    ("lengths: 1k/100, trace: a.csv", "`lengths` and `trace` both say how long requests are"),
    ("input_tokens: 1k, lengths: 1k/100", "`input_tokens` and `lengths` both say"),
    ("rate: 5/s, users: 3, lengths: 1k/9, decode_rate: 9", "`rate` and `users` both say"),
    (
        "rate: 5/s, lengths: 1k/9, decode_rate: 9, concurrency: 3",
        "`concurrency` and `rate` both say how many requests there are",
    ),
    ("rate: 5/s, decode_rate: 9", "`rate` needs lengths"),
    ("rate: 5/s, lengths: 1k/9", "`rate` needs how long a request lasts"),
    ("think: 3s, lengths: 1k/9", "`think` says nothing without `users`"),
    ("daily: peak=2, lengths: 1k/9", "`daily` says nothing without a `rate`"),
    ("trace_columns: prompt=a, lengths: 1k/9", "says nothing without a `trace`"),
    ("prefill_rate: 3, lengths: 1k/9", "`prefill_rate` says nothing without `decode_rate`"),
    ("sessions: {turns: 3}", "`turns` needs the `lengths`"),
    ("trace: a.csv, sessions: {turns: 3}", "A trace has its own turns"),
    (
        "lengths: 1k/9, sessions: {turns: 3, ttl: 5min}, decode_rate: 9",
        "`sessions.ttl` needs `think`",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), CONTRADICTIONS)
def test_what_contradicts_itself_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    path = write(tmp_path, one(f"workload: {{{text}}}"))
    with pytest.raises(InputError) as caught:
        questions(path)
    assert sentence in caught.value.message


def test_all_contradictions_are_said_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, one("workload: {rate: 5/s, think: 3s, trace_columns: prompt=a}"))
    with pytest.raises(InputError, match="4 problems") as caught:
        questions(path)
    assert caught.value.message.count(f"{path}:7:") == 4


def test_a_trace_stays_in_the_repository(tmp_path: Path) -> None:
    (tmp_path / "outside.csv").write_text("a\n", encoding="utf-8")
    repository = tmp_path / "in"
    (repository / ".git").mkdir(parents=True)
    (repository / "link.csv").symlink_to(tmp_path / "outside.csv")
    for trace in ("../outside.csv", str(tmp_path / "outside.csv"), "link.csv"):
        path = write(repository, one(f"workload: {{trace: {trace}}}"))
        with pytest.raises(InputError, match="is outside of the repository") as caught:
            questions(path)
        assert caught.value.location == f"{path}:7:16"
