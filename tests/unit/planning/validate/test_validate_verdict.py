"""Would it have started?"""

from __future__ import annotations

from typing import Any

import pytest
from measured_starts import checked, start

from kvplan.planning.validate.lacking import LackingError
from kvplan.planning.validate.verdict import check


def test_a_start_from_flags_alone() -> None:
    found = check(start())
    assert (found.predicted, found.measured, found.basis) == ("started", "started", "flags")
    assert found.agrees


@pytest.mark.parametrize(
    "changes",
    [
        # A twentieth of the card is less than what runs beside the model.
        {"gpu": "T4", "gpu_memory_utilization": 0.001},
        # Heads that tensor parallelism can't split: the engine itself refuses.
        {"tp": 3},
    ],
)
def test_a_refusal_from_flags_alone(changes: dict[str, Any]) -> None:
    found = check(start(outcome="max_length_too_large", **changes))
    assert (found.predicted, found.measured, found.basis) == ("refused", "refused", "flags")


def test_flags_alone_do_not_look_at_the_log() -> None:
    assert check(start(available_kv_gib=-1.0)).predicted == "started"


@pytest.mark.parametrize(
    ("changes", "predicted"),
    [
        ({"available_kv_gib": 1.0}, "started"),
        ({"available_kv_gib": 0.01}, "refused"),  # 163 blocks, and 4,096 tokens take 256
        ({"available_kv_gib": -1.0}, "refused"),
        ({"available_kv_gib": None, "num_gpu_blocks": 200}, "refused"),
        ({"available_kv_gib": None, "num_gpu_blocks": None, "kv_tokens": 8192}, "started"),
    ],
)
@pytest.mark.parametrize(
    "lacking", [{"gpu": None}, {"engine_version": None}, {"weight_format": "unknown"}]
)
def test_the_logged_cache_where_flags_do_not_suffice(
    changes: dict[str, Any], predicted: str, lacking: dict[str, Any]
) -> None:
    found = check(start(**(lacking | changes)))
    assert (found.predicted, found.basis) == (predicted, "logged_kv")


def test_neither_flags_nor_bytes() -> None:
    nothing = {"available_kv_gib": None, "num_gpu_blocks": None, "kv_tokens": None}
    with pytest.raises(LackingError, match="gpu is not stated"):
        check(start(gpu=None, **nothing))


@pytest.mark.parametrize(
    ("outcome", "measured"),
    [
        ("started", "started"),
        ("started; crash later", "started"),
        ("refused", "refused"),
        ("max_length_too_large", "refused"),
        ("no_memory_for_cache", "refused"),
        ("error: max_seq_len_too_large", "refused"),
        ("error: no_memory_for_cache_blocks (second instance)", "refused"),
        ("configuration_refused", "refused"),
    ],
)
def test_outcomes(outcome: str, measured: str) -> None:
    assert check(start(outcome=outcome)).measured == measured


@pytest.mark.parametrize(
    "outcome", ["out_of_memory_in_warm_up", "error: CUBLAS", "hang", "restarted", ""]
)
def test_what_is_neither(outcome: str) -> None:
    with pytest.raises(LackingError, match="neither a start nor a refusal"):
        check(start(outcome=outcome))


def test_an_unknown_release_is_no_refusal() -> None:
    """Kvplan does not know the rules of 0.0.1; that is no word of vLLM's."""
    found = checked(engine_version="0.0.1", outcome="max_length_too_large")
    assert found.verdict is None
    assert found.not_checked["verdict"].startswith("release not modelled: ")
    assert found.skipped is not None
