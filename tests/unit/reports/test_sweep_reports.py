"""A sweep in every format: the same figures, and pictures that are drawn whole."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

import kvplan
from kvplan.errors import UsageError
from kvplan.reports.clean import inert_cell
from kvplan.reports.page.sweep_page import sweep_page
from kvplan.reports.sweep_csv import sweep_csv
from kvplan.reports.sweep_json import sweep_json, sweep_jsonl
from kvplan.reports.sweep_markdown import sweep_markdown
from kvplan.reports.sweep_memory_svg import sweep_memory_svg
from kvplan.reports.sweep_parquet import sweep_parquet
from kvplan.reports.sweep_png import png
from kvplan.reports.sweep_series import curves
from kvplan.reports.sweep_svg import sweep_svg
from kvplan.reports.sweep_text import sweep_text

MODEL = "meta-llama/Llama-3.1-8B-Instruct"
ORDERS = (
    {"concurrency": [1, 20, 500], "context": "4k..64k*4", "gpu": "L4,H100", "tp": [1, 3]},
    {"gpu": "L4,H100", "tp": [1, 3], "context": "4k..64k*4", "concurrency": [1, 20, 500]},
    {"gpu": "L4,H100", "concurrency": [1, 20, 500], "context": "4k..64k*4", "tp": [1, 3]},
    {"context": "4k..64k*4", "gpu": "L4,H100"},
)


def sweep(vary: Mapping[str, object] | None = None) -> kvplan.Sweep:
    return kvplan.sweep(MODEL, vary=vary or ORDERS[0], offline=True)  # type: ignore[arg-type]


def words_of(picture: str) -> str:
    """All text of a picture, which has to be well-formed for that."""
    return " ".join(ET.fromstring(picture).itertext())  # noqa: S314 - our own


def rows_of(found: kvplan.Sweep) -> list[dict[str, object]]:
    return [dict(row) for row in found.rows()]


@pytest.mark.parametrize("vary", ORDERS)
def test_json_and_lines_have_the_rows(vary: dict[str, object]) -> None:
    found = sweep(vary)
    document = json.loads("".join(sweep_json(found)))
    assert document["rows"] == rows_of(found)
    assert document["schema"] == "kvplan.sweep/1"
    assert sum(document["verdicts"].values()) == document["points"] == found.grid.size
    lines = "".join(sweep_jsonl(found)).splitlines()
    assert [json.loads(line) for line in lines] == rows_of(found)


@pytest.mark.parametrize("vary", ORDERS)
def test_csv_has_the_rows(vary: dict[str, object]) -> None:
    found = sweep(vary)
    read = list(csv.DictReader(io.StringIO("".join(sweep_csv(found)))))
    assert len(read) == found.grid.size
    for given, row in zip(read, rows_of(found), strict=True):
        assert list(given) == list(row)
        for name, value in row.items():
            text = inert_cell(value) if isinstance(value, str) else str(value)
            assert given[name] == ("" if value is None else text)


def test_csv_is_no_formula() -> None:
    found = kvplan.sweep(
        MODEL, "L4", vary={"enforce_eager": [True]}, context=4096, offline=True,
        engine_options={"limit_mm_per_prompt": {"image": 1}},
    )  # fmt: skip
    text = "".join(sweep_csv(found))
    assert '"{""image"": 1}"' in text


def test_parquet_has_the_rows() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for vary in ORDERS:
        found = sweep(vary)
        assert parquet.read_table(io.BytesIO(sweep_parquet(found))).to_pylist() == rows_of(found)


def test_an_extra_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sweep()
    monkeypatch.setattr("kvplan.sweep_frames.find_spec", lambda _: None)
    monkeypatch.setattr("kvplan.reports.sweep_png.find_spec", lambda _: None)
    for make, extra in (
        (lambda: sweep_parquet(found), "parquet"),
        (found.to_arrow, "parquet"),
        (lambda: png("<svg/>"), "png"),
        (found.to_pandas, "pandas"),
        (found.to_polars, "polars"),
    ):
        with pytest.raises(UsageError) as caught:
            make()
        assert extra in (caught.value.hint or "")


def test_a_page_without_jinja_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sweep()
    for module in ("jinja2", "markupsafe"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match="Pages need Jinja2") as caught:
        sweep_page(found)
    assert caught.value.hint == "pip install 'kvplan-sizer[html]'"


def test_whole_numbers_have_no_fraction() -> None:
    found = kvplan.sweep(MODEL, "L4", vary={"tp": [1, 2, 4]}, context=4096, offline=True)
    text = sweep_text(found, width=120, color=False, ascii_only=False)
    assert "Requests held, tp 1 to 4 (" in text


def test_text_says_what_holds_and_why_not() -> None:
    text = sweep_text(sweep(), width=120, color=False, ascii_only=False)
    assert text.startswith("36 points: ")
    assert "18 are refused" in text
    assert "vLLM refuses --tp 3: 32 attention heads do not divide by it. (6 rows)" in text
    assert "fits up to" in text
    assert "Requests held, context 4k to 64k" in text
    plain = sweep_text(sweep(), width=80, color=False, ascii_only=True)
    assert plain.isascii()
    assert max(map(len, plain.splitlines())) <= 80


def test_memory_against_requests_is_drawn_in_the_terminal_too() -> None:
    found = sweep({"gpu": "L4,H100", "concurrency": "1..40"})
    text = sweep_text(found, width=100, color=False, ascii_only=False)
    assert "One GPU's memory, by requests at once" in text
    bars = [line for line in text.splitlines() if line.strip().partition(" ")[2][:1] == "┃"]
    assert len(bars) == 2 * 10
    assert len({line.partition("┃")[2].partition("┃")[0].count("█") for line in bars[:10]}) == 1
    held = [line.count("▒") for line in bars[10:]]
    assert held == sorted(held)
    assert held[0] < held[-1]
    assert "GiB missing" in bars[-1]
    assert "GiB missing" not in bars[10]
    plain = sweep_text(found, width=80, color=False, ascii_only=True, plot="memory")
    assert plain.isascii()
    assert max(map(len, plain.splitlines())) <= 80
    curves = sweep_text(
        sweep({"gpu": "L4", "context": "2k,4k", "concurrency": [1, 2]}),
        width=80,
        color=False,
        ascii_only=True,
    )
    assert "One GPU's memory" not in curves


def test_a_long_table_is_cut_and_says_so() -> None:
    text = sweep_text(sweep({"context": "1k..100k+1k", "gpu": "L4"}), width=120, color=False,
                      ascii_only=False)  # fmt: skip
    assert "40 more rows" in text


def test_markdown_is_a_table() -> None:
    lines = sweep_markdown(sweep()).splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + 12
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1


def test_the_curves_are_those_of_the_rows() -> None:
    found = sweep({"context": "4k..64k*4", "gpu": "L4,H100", "tp": [1, 3]})
    drawn = curves(found)
    assert drawn is not None
    assert [one.label for one in drawn.series] == ["L4-24GB, tp 1", "H100-SXM-80GB, tp 1"]
    assert drawn.empty == ("L4-24GB, tp 3", "H100-SXM-80GB, tp 3")
    held = {
        (row["gpu"], row["context"]): row["requests"] for row in rows_of(found) if row["tp"] == 1
    }
    for one in drawn.series:
        gpu = one.label.split(",")[0]
        for point in one.points:
            assert point.y == held[gpu, point.x]
            assert point.low <= point.y <= point.high
        for x in one.none_at:
            assert not held[gpu, x]


def test_pictures_are_drawn() -> None:
    found = sweep({"context": "4k..64k*4", "gpu": "L4,H100", "tp": [1, 3]})
    picture = sweep_svg(found)
    words = words_of(picture)
    for word in ("Requests held at once", "context, tokens a request", "64k", "L4-24GB, tp 1",
                 "bands:", "nothing to draw"):  # fmt: skip
        assert word in words
    assert picture.count("<polyline") == 2 * 2
    assert "prefers-color-scheme: dark" in picture
    assert "prefers-color-scheme" not in sweep_svg(found, dark=False)


def test_memory_maps_are_drawn() -> None:
    found = sweep({"context": "4k..64k*4", "concurrency": "1..60", "gpu": "L4,H100"})
    words = words_of(sweep_memory_svg(found))
    for word in ("GiB on one GPU", "context 4k, L4-24GB: holds", "KV cache to spare", "the card"):
        assert word in words
    alone = sweep({"gpu": "H100"})
    assert "requests at once" in sweep_memory_svg(alone)


def test_there_is_no_curve_without_numbers() -> None:
    with pytest.raises(UsageError, match="several numbers"):
        sweep_svg(sweep({"gpu": "L4,H100", "concurrency": [1, 2]}))
    with pytest.raises(UsageError, match="all points are refused"):
        sweep_memory_svg(sweep({"gpu": "L4,H100", "tp": [3]}))


def test_names_from_outside_are_text() -> None:
    found = sweep({"context": [1024, 2048], "gpu": "custom:48GiB"})
    picture = sweep_svg(replace(found, inputs=(*found.inputs, ("note", '<script>"&'))))
    assert "<script>" not in picture
    assert 'note <script>"&' in words_of(picture)


def test_a_png_is_one() -> None:
    pytest.importorskip("resvg_py")
    assert png(sweep_svg(sweep(ORDERS[3]), dark=False)).startswith(b"\x89PNG")
