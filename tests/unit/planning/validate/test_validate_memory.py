"""Weights, and the cache that the budget leaves: from logged weights and from flags alone."""

from __future__ import annotations

from typing import Any

import pytest
from measured_starts import CONFIG, Shelf, start

from kvplan.ledger import LedgerLine, total
from kvplan.planning.validate.cause import cause
from kvplan.planning.validate.lacking import LackingError
from kvplan.planning.validate.memory import end_to_end, overhead, weights
from kvplan.units import GIB

# Matrices and norms of the small model, and its table of rotary positions, in bytes.
HELD = 2 * (2 * 1024 * 256 + 4 * (4 * 256 * 256 + 3 * 512 * 256) + 9 * 256 + 4096 * 64)

FP8 = CONFIG | {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}


def _budget(**changes: Any) -> tuple[float, float, float, tuple[LedgerLine, ...]]:
    of = start(**changes)
    answer = of.engine.prepare(of.memory(of.model)).answer(of.context, None)
    ends = answer.kv.budget_bytes, answer.kv.budget_low or 0, answer.kv.budget_high or 0
    return *(end / GIB for end in ends), answer.ledger


def test_weights_by_hand() -> None:
    found = weights(start(weights_gib=0.01))
    assert found.predicted_weights_gib == pytest.approx(HELD / GIB)
    assert found.relative_error == pytest.approx(HELD / GIB / 0.01 - 1)
    assert found.share_of_card == pytest.approx(abs(HELD / GIB - 0.01) / 79.19, rel=1e-3)


def test_weights_as_they_were_loaded() -> None:
    """A copy in fp8 holds fewer bytes, and the record's format says that it ran."""
    plain, fp8 = (weights(start(weight_format=name)) for name in ("bf16", "fp8"))
    assert fp8.predicted_weights_gib < 0.8 * plain.predicted_weights_gib


def test_weights_without_a_gpu_have_no_share_of_a_card() -> None:
    assert weights(start(gpu=None)).share_of_card is None


def test_flags_alone() -> None:
    middle, low, high, _ = _budget()
    found = end_to_end(start(available_kv_gib=60.0))
    assert found.predicted_kv_gib == pytest.approx(middle)
    assert found.low_kv_gib == pytest.approx(low)
    assert found.high_kv_gib == pytest.approx(high)
    assert found.relative_error == pytest.approx(middle / 60 - 1)
    assert found.share_of_card == pytest.approx((middle - 60) / 79.19, rel=1e-3)
    assert found.in_interval is False
    assert (found.measured_from, found.measured_tokens) == ("log", 262_144)
    assert found.predicted_tokens == int(middle * GIB) // 65_536 * 16
    assert end_to_end(start(available_kv_gib=round(middle, 2))).in_interval is True


def test_logged_weights_take_the_place_of_the_predicted() -> None:
    middle, low, high, ledger = _budget()
    predicted = sum(line.bytes for line in ledger if line.name.startswith("weights"))
    found = overhead(start(weights_gib=2.5, available_kv_gib=60.0))
    more = predicted / GIB - 2.5
    assert found.predicted_kv_gib == pytest.approx(middle + more)
    assert found.low_kv_gib == pytest.approx(low + more)
    assert found.high_kv_gib == pytest.approx(high + more)
    assert found.predicted_tokens is None


def test_the_flags_of_the_record_are_used() -> None:
    whole, half = (
        end_to_end(start(gpu_memory_utilization=share)).predicted_kv_gib for share in (0.9, 0.45)
    )
    assert whole - half == pytest.approx(0.45 * 79.19, rel=1e-3)
    eager = end_to_end(start(enforce_eager=True)).predicted_kv_gib
    assert eager > whole


def test_the_logged_total_of_the_card_is_used_unless_it_was_assumed() -> None:
    usual = end_to_end(start()).predicted_kv_gib
    small = end_to_end(start(gpu_total_gib=70.0)).predicted_kv_gib
    assumed = end_to_end(start(gpu_total_gib=70.0, gpu_total_assumed=True)).predicted_kv_gib
    assert small < usual - 8
    assert assumed == usual


def test_bytes_are_worked_out_where_no_log_states_them() -> None:
    blocks = end_to_end(start(available_kv_gib=None))
    assert (blocks.measured_from, blocks.measured_kv_gib) == ("blocks", 1.0)
    tokens = end_to_end(start(available_kv_gib=None, num_gpu_blocks=None))
    assert tokens.measured_from == "tokens"
    assert tokens.measured_kv_gib == pytest.approx(1.0)


def test_nothing_left_has_no_relative_error() -> None:
    found = overhead(start(available_kv_gib=-1.5))
    assert found.relative_error is None
    assert found.share_of_card > 0.8


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"gpu": None}, "gpu is not stated"),
        ({"engine_version": None}, "engine_version is not stated"),
        ({"tp": None}, "tp is not stated"),
        ({"gpu_memory_utilization": None}, "gpu_memory_utilization is not stated"),
        ({"gpu_memory_utilization_assumed": True}, "the record assumes one"),
        ({"sleep_mode": True}, "sleep mode"),
        ({"cpu_offload_gib": 30}, "host's memory"),
        ({"num_gpu_blocks_override": 100}, "the size of the pool was given"),
        (
            {"available_kv_gib": None, "num_gpu_blocks": None, "kv_tokens": None},
            "available_kv_gib is not stated",
        ),
    ],
)
def test_what_flags_alone_need(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(LackingError, match=reason):
        end_to_end(start(**changes))


@pytest.mark.parametrize("gib", [None, 0.0, -3.0, 1e300])
def test_weights_that_are_none(gib: float | None) -> None:
    for check in (weights, overhead):
        with pytest.raises(LackingError, match="weights_gib"):
            check(start(weights_gib=gib))


@pytest.mark.parametrize("stated", ["unknown", "plugin", "gguf", "nvfp4_other"])
def test_weights_in_a_format_that_is_not_known(stated: str) -> None:
    for check in (weights, end_to_end):
        with pytest.raises(LackingError):
            check(start(weight_format=stated))
    assert overhead(start(weight_format=stated)).predicted_kv_gib > 60


def test_another_copy_of_the_model_says_nothing_of_the_weights() -> None:
    quantized = Shelf(quantized=FP8)
    same = weights(start(quantized, model="quantized", weight_format="fp8"))
    assert same.predicted_weights_gib > 0
    with pytest.raises(LackingError, match="another format: fp8, not int4_autoround"):
        weights(start(quantized, model="quantized", weight_format="int4_autoround"))
    assert weights(start(quantized, model="quantized")) == same


def _line(name: str, gib: float, spread: float = 0.0) -> LedgerLine:
    size = round(gib * GIB)
    return LedgerLine(
        name=name,
        section="budget",
        bytes=size,
        low=size,
        high=size + round(spread * GIB),
        formula="a",
        inputs={"a": size},
        source="by hand",
        confidence="calibrated",
    )


LEDGER = (
    _line("weights.mlp", 10),
    _line("weights.attention", 5),
    _line("activation_peak", 2, spread=3),
    _line("non_torch", 1, spread=0.5),
)


@pytest.mark.parametrize(
    ("logged", "miss", "expected"),
    [
        ({"weights_gib": 15.0, "activation_peak_gib": 5.0}, 3.1, "activation peak: 2.00 GiB pre"),
        ({"weights_gib": 18.0, "activation_peak_gib": 2.0}, 3.0, "weights: 15.00 GiB predicted, 1"),
        ({"weights_gib": 12.0, "activation_peak_gib": 2.0}, -3.0, "weights: 15.00 GiB predicted"),
        ({"weights_gib": 15.0}, 3.0, "least certain is activation peak"),
        (
            {"weights_gib": 15.0, "activation_peak_gib": 2.0, "non_torch_gib": 1.0},
            3.0,
            "no single part",
        ),
        ({"weights_gib": 18.0}, 0.01, "none to speak of"),
    ],
)
def test_the_part_that_is_off_most(logged: dict[str, float], miss: float, expected: str) -> None:
    unlogged = {"weights_gib": None}
    found = cause(LEDGER, start(**(unlogged | logged)).record, miss)
    assert expected in found


def test_what_the_engine_holds_beside_its_budget_is_no_cause() -> None:
    outside = _line("non_torch", 40).model_copy(update={"section": "outside"})
    found = cause((outside,), start(non_torch_gib=1.0).record, 5.0)
    assert found == "no single part"
    assert total((outside,), "budget") == 0


def test_several_parts_are_named_the_largest_first() -> None:
    logged = {"weights_gib": 17.0, "activation_peak_gib": 5.0, "non_torch_gib": 3.0}
    found = cause(LEDGER, start(**logged).record, 7.5)
    names = ("activation peak (2.00 GiB predicted", "weights (15.00", "memory past torch's")
    assert found.startswith("several parts: ")
    assert sorted(names, key=found.index) == list(names)


@pytest.mark.parametrize(("version", "peak"), [("0.26.1", 4.0), ("0.27.0", 5.0), ("0.33.0", 5.0)])
def test_activation_is_what_the_release_calls_so(version: str, peak: float) -> None:
    """Buffers of experts and compiling belong to it; the graphs since 0.27."""
    ledger = (
        _line("activation_peak", 2), _line("expert_buffers", 1), _line("compilation", 1),
        _line("cuda_graphs", 1),
    )  # fmt: skip
    of = start(engine_version=version, weights_gib=None, activation_peak_gib=9.0)
    assert f"activation peak: {peak:.2f} GiB predicted" in cause(ledger, of.record, 9 - peak)
