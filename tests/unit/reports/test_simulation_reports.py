"""Simulations as text, JSON, CSV and a picture."""

from __future__ import annotations

import csv
import json
from io import StringIO
from xml.etree import ElementTree as ET

import pytest
from simulated import pool, run

from kvplan.planning.simulate.recorder import Limits
from kvplan.planning.simulate.tiers import Tier
from kvplan.reports.simulation_csv import simulation_csv
from kvplan.reports.simulation_json import simulation_json
from kvplan.reports.simulation_rows import headline
from kvplan.reports.simulation_svg import simulation_svg
from kvplan.reports.simulation_text import simulation_text
from kvplan.reports.sparkline import sparkline
from kvplan.simulation import CurvePoint, Simulation
from kvplan.workloads.requests import PrefixUse, Request

CROWDED = [Request(float(i), 30, 20, PrefixUse("system", 12)) for i in range(20)]


@pytest.fixture(scope="module")
def crowded() -> Simulation:
    found = run(
        CROWDED, pool(24, sequences=4), tiers=(Tier("host", 9, 1e9),), limits=Limits(5.0, 2.0)
    )
    curve = (
        CurvePoint(blocks=1, bytes=1024, hit_rate=0.0),
        CurvePoint(blocks=2, bytes=2048, hit_rate=0.0),
        CurvePoint(blocks=8, bytes=8192, hit_rate=0.25),
    )
    assumed = ("steps get [80%] of the bandwidth",)
    return found.model_copy(update={"curve": curve, "assumed": assumed})


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_text_keeps_its_width_and_alphabet(
    crowded: Simulation, *, width: int, ascii_only: bool
) -> None:
    text = simulation_text(crowded, width=width, color=False, ascii_only=ascii_only)
    assert all(len(line) <= width for line in text.splitlines())
    assert text.isascii() == ascii_only


def test_text_says_everything(crowded: Simulation) -> None:
    text = simulation_text(crowded, width=100, color=False, ascii_only=False)
    assert text.startswith("20 requests finished")
    for word in (
        "pool in use", "requests running", "time to first token", "between tokens", "preemptions",
        "prefix hits", "from host", "goodput", "kept first token 5.00 s", "8 KiB", "25.0 %",
        "[80%]",
    ):  # fmt: skip
        assert word in text
    # Sizes that change nothing are left out.
    assert "1 KiB" in text
    assert "2 KiB" not in text


def test_an_interrupted_run_says_so_first(crowded: Simulation) -> None:
    made = crowded.requests.model_copy(update={"finished": 7, "unfinished": 13, "refused": 2})
    cut = crowded.model_copy(update={"status": "interrupted", "requests": made})
    assert headline(cut).startswith("Interrupted: 7 requests finished, 13 on their way, 2 refused")


def test_json_reads_back(crowded: Simulation) -> None:
    fields = json.loads(simulation_json(crowded))
    assert fields["schema"] == "kvplan.simulation/1"
    assert Simulation.model_validate(fields) == crowded


def test_csv_has_a_row_an_interval(crowded: Simulation) -> None:
    rows = list(csv.DictReader(StringIO(simulation_csv(crowded))))
    assert len(rows) == len(crowded.timeline)
    assert float(rows[3]["used"]) == pytest.approx(crowded.timeline[3].used, rel=1e-5)
    assert rows[0]["start_s"] == "0"


def test_the_picture_is_valid_and_stays_inside(crowded: Simulation) -> None:
    root = ET.fromstring(simulation_svg(crowded.model_copy(update={"model": "<a> & b"})))  # noqa: S314  our own
    words = " ".join(root.itertext())
    assert "<a> & b" in words
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for shape in root.iter():
        for point in shape.attrib.get("points", "").split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height


def test_nothing_that_happened_is_still_a_report() -> None:
    empty = run([], pool(10))
    text = simulation_text(empty, width=80, color=False, ascii_only=False)
    assert text.startswith("0 requests finished")
    assert simulation_csv(empty).count("\n") == 1
    ET.fromstring(simulation_svg(empty))  # noqa: S314  our own


def test_sparklines_squeeze_and_scale() -> None:
    assert sparkline([0, 0, 10, 10, 0, 0, 5, 5], 10, width=4) == "▁█▁▅"
    assert len(sparkline([3] * 1000, 10, width=70)) == 70
    assert sparkline([1, 2], 0, width=8, ascii_only=True) == "__"
    assert sparkline([20], 10, width=4) == "█"
