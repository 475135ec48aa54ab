"""The workbook, recalculated by LibreOffice: as it is written, and after its inputs are changed."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import kvplan
from kvplan.asked import asked_of
from kvplan.cli.traffic_source import TrafficFlags, question_of
from kvplan.exporting import Price, book_of
from kvplan.formula import compile_formula
from kvplan.plan import Plan
from kvplan.plan_book import PlanBook
from kvplan.reports.workbook.excel import cell_name
from kvplan.reports.workbook.render import workbook
from kvplan.reports.workbook.sweep_book import sweep_workbook

openpyxl = pytest.importorskip("openpyxl")
OFFICE = shutil.which("soffice")
pytestmark = pytest.mark.skipif(OFFICE is None, reason="LibreOffice is not installed")


@dataclass(frozen=True)
class Case:
    """A plan, and what its sheet is then changed to.

    Attributes:
        change: Context, concurrency, replicas and price.
    """

    model: str
    gpu: str
    engine: str = "vllm"
    sizes: dict[str, int] = field(default_factory=dict)
    context: int = 32768
    concurrency: int | None = 20
    kv_dtype: str = "auto"
    options: dict[str, Any] = field(default_factory=dict)
    price: float | None = 2.5
    change: tuple[int, int, int, float] = (12_000, 75, 3, 1.99)

    @property
    def dp_is_copies(self) -> bool:
        """Whether ``dp`` means servers of their own.

        Replicas of these models share their experts; llama.cpp has no data parallel size.
        """
        return self.engine != "llama.cpp" and not any(
            name in self.model for name in ("DeepSeek", "Qwen3-Next", "gpt-oss-120b")
        )

    def arguments(self, **changes: Any) -> dict[str, Any]:
        """Of `kvplan.size`."""
        return {
            "engine": self.engine,
            "context": self.context,
            "concurrency": self.concurrency,
            "kv_dtype": self.kv_dtype,
            "engine_options": self.options,
            "offline": True,
            "advice": False,
            **self.sizes,
            **changes,
        }

    def book(self) -> PlanBook:
        """The plan and what can be changed of it."""
        asked = asked_of(
            self.gpu,
            engine=self.engine,
            sizes={"tp": 1, "pp": 1, "dp": 1, "dcp": 1, **self.sizes},
            load=(self.context, self.concurrency),
            words={"weights": "auto", "kv_dtype": self.kv_dtype, "dtype": "auto"},
            kv_budget=None,
            options=self.options,
            images=(0, None, None),
        )
        price = Price(self.price) if self.price is not None else None
        return book_of(self.model, asked, price=price, offline=True)


LLAMA_8B, LLAMA_70B = "meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-70B-Instruct"
CASES = (
    Case(LLAMA_8B, "H100"),
    Case(LLAMA_70B, "H100", sizes={"tp": 4}, concurrency=50, change=(9_999, 100, 2, 3.33)),
    Case(LLAMA_70B, "H100", sizes={"tp": 4, "dp": 2}, kv_dtype="fp8", change=(50_001, 7, 5, 0.01)),
    Case("google/gemma-3-27b-it", "H100", concurrency=None, change=(1_025, 30, 2, 4.0)),
    Case("openai/gpt-oss-20b", "L40S-48GB", change=(17, 4000, 1, 1.0)),
    Case("deepseek-ai/DeepSeek-V3", "H200", sizes={"tp": 8}, change=(100_000, 12, 2, 5.25)),
    Case("Qwen/Qwen3-Next-80B-A3B-Instruct", "H100", sizes={"tp": 4}, change=(321, 900, 2, 2.2)),
    Case("nvidia/NVIDIA-Nemotron-Nano-9B-v2", "A100-SXM-80GB", change=(70_000, 10, 4, 1.5)),
    Case(LLAMA_8B, "H100", engine="sglang", change=(8_193, 40, 2, 2.0)),
    Case("openai/gpt-oss-20b", "H100", engine="sglang", price=None),
    Case(LLAMA_8B, "H100", engine="tensorrt-llm", change=(777, 99, 6, 2.75)),
    Case(LLAMA_8B, "A100-SXM-80GB", sizes={"pp": 2}, kv_dtype="fp8", change=(5000, 77, 3, 2.13)),
    Case("openai/gpt-oss-120b", "H100", sizes={"tp": 2}, change=(999, 500, 2, 2.2)),
    Case(LLAMA_8B, "H100", options={"num_gpu_blocks_override": 5000}, change=(9_000, 44, 2, 2.1)),
    Case(LLAMA_8B, "H100", engine="llama.cpp", concurrency=2, change=(8_192, 9, 2, 1.25)),
)


@pytest.fixture(scope="module")
def books() -> tuple[PlanBook, ...]:
    return tuple(case.book() for case in CASES)


@pytest.fixture(scope="module")
def recalculated(
    books: tuple[PlanBook, ...], tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Named cells of every workbook: as written, and with the changed inputs."""
    folder = tmp_path_factory.mktemp("books")
    for number, (case, book) in enumerate(zip(CASES, books, strict=True)):
        written = folder / f"{number}.xlsx"
        written.write_bytes(workbook(book))
        _changed(written, folder / f"{number}-same.xlsx", {})
        context, concurrency, replicas, price = case.change
        changes = {
            "context": context,
            "concurrency": concurrency,
            "gpus": replicas * book.unit_gpus,
            "price_per_gpu_hour": price,
        }
        _changed(written, folder / f"{number}-changed.xlsx", changes)
    out = folder / "out"
    _recalculate(folder, out)
    numbers = range(len(CASES))
    return (
        [_cells(out / f"{number}-same.xlsx") for number in numbers],
        [_cells(out / f"{number}-changed.xlsx") for number in numbers],
    )


def _changed(source: Path, target: Path, changes: dict[str, float]) -> None:
    """The same workbook with other inputs and without computed values."""
    book = openpyxl.load_workbook(source)
    for name, value in changes.items():
        sheet, cell = next(iter(book.defined_names[name].destinations))
        book[sheet][cell.replace("$", "")].value = value
    book.save(target)


def _recalculate(folder: Path, out: Path) -> None:
    assert OFFICE is not None
    subprocess.run(
        [
            OFFICE,
            f"-env:UserInstallation=file://{folder}/profile",
            "--headless",
            "--convert-to",
            "xlsx",
            "--outdir",
            str(out),
            *map(str, sorted(folder.glob("*-*.xlsx"))),
        ],
        check=True,
        capture_output=True,
        timeout=240,
    )


def _cells(path: Path) -> dict[str, Any]:
    book = openpyxl.load_workbook(path, data_only=True)
    cells: dict[str, Any] = {}
    for name, defined in book.defined_names.items():
        sheet, cell = next(iter(defined.destinations))
        if ":" not in cell:
            cells[name] = book[sheet][cell.replace("$", "")].value
    for sheet in book.worksheets:
        for row in sheet.iter_rows(values_only=True):
            broken = [value for value in row if isinstance(value, str) and value.startswith("#")]
            assert not broken, (path.name, sheet.title, broken)
    return cells


@pytest.mark.parametrize("number", range(len(CASES)))
def test_every_cell_is_the_plans_number(
    number: int, books: tuple[PlanBook, ...], recalculated: tuple[list[dict[str, Any]], ...]
) -> None:
    book, cells = books[number], recalculated[0][number]
    plan = book.plan
    for line in plan.ledger:
        assert cells[cell_name("ledger", line.name)] == line.bytes, line.name
        assert compile_formula(line.formula).evaluate(line.inputs) == line.bytes
        for name, value in line.inputs.items():
            assert cells[cell_name("in", line.name, name)] == pytest.approx(value, rel=1e-15)
    assert plan.capacity is not None
    assert cells["blocks"] == plan.capacity.blocks
    assert cells["requests"] == plan.capacity.requests
    assert cells["planned_tokens"] == plan.capacity.tokens
    assert cells["planned_max_context"] == plan.capacity.max_context
    assert cells["ledger_total_bytes"] == sum(line.bytes for line in plan.ledger)
    assert cells["verdict"] == _verdict(plan, book.concurrency)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_changed_inputs_give_what_kvplan_gives_for_them(
    number: int, books: tuple[PlanBook, ...], recalculated: tuple[list[dict[str, Any]], ...]
) -> None:
    case, book, cells = CASES[number], books[number], recalculated[1][number]
    context, concurrency, replicas, price = case.change
    plan = kvplan.size(
        case.model,
        case.gpu,
        **case.arguments(context=context, concurrency=concurrency, **_replicas(case, replicas)),
    )
    assert plan.capacity is not None
    held = plan.capacity.requests
    if not case.dp_is_copies:
        held *= replicas
    gpus = replicas * book.unit_gpus
    assert cells["requests"] == held
    assert cells["verdict"] == ("fits" if held >= concurrency else "does not fit")
    month = _cents(gpus * price * 730)
    assert cells["cost_per_month"] == month
    assert cells["cost_per_request_held_per_month"] == _cents(month / held)
    needed = -(-concurrency // (held // replicas)) * book.unit_gpus
    assert cells["gpus_needed"] == needed
    assert cells["year_3_gpus"] == needed
    assert cells["year_3_cost"] == _cents(needed * price * 730 * 12)
    assert cells["cost_of_all_years"] == pytest.approx(5 * cells["year_3_cost"], abs=0.001)


TWICE = 2.0


def _traffic_book(rate: float, dp: int = 1) -> PlanBook:
    asked = asked_of(
        "H100",
        engine="vllm",
        sizes={"tp": 1, "pp": 1, "dp": dp, "dcp": 1},
        load=(32768, 20),
        words={"weights": "auto", "kv_dtype": "auto", "dtype": "auto"},
        kv_budget=None,
        options={},
        images=(0, None, None),
    )
    flags = TrafficFlags(
        lengths="p50=1k,p95=8k/300", rate=f"{rate}/s", decode_rate="30", daily="peak=2.5"
    )
    return book_of(LLAMA_8B, asked, price=Price(2.5), traffic=question_of(flags), offline=True)


def test_twice_the_traffic_in_the_sheet_is_what_kvplan_says_of_it(tmp_path: Path) -> None:
    book = _traffic_book(9.0)
    (tmp_path / "t.xlsx").write_bytes(workbook(book))
    _changed(tmp_path / "t.xlsx", tmp_path / "t-same.xlsx", {})
    changes = {"traffic_factor": TWICE, "gpus": 3}
    _changed(tmp_path / "t.xlsx", tmp_path / "t-changed.xlsx", changes)
    _recalculate(tmp_path, tmp_path / "out")
    same, changed = (_cells(tmp_path / "out" / f"t-{name}.xlsx") for name in ("same", "changed"))
    for cells, rate, dp in ((same, 9.0, 1), (changed, 9.0 * TWICE, 3)):
        real = _traffic_book(rate, dp).traffic
        assert real is not None
        load = real.plan.load
        assert load is not None
        assert load.replicas_needed is not None
        assert load.replicas_needed > 1
        assert cells["traffic_gpus_needed"] == load.replicas_needed
        assert cells["traffic_peak"] == pytest.approx(load.peak_concurrent)
        most = (load.most_rate_per_s or 0) * load.life_s
        assert cells["traffic_most"] == pytest.approx(most, rel=1e-3)
        assert cells["traffic_cost_per_month"] == _cents(load.replicas_needed * 2.5 * 730)


def test_a_sweeps_load_and_price_are_live(tmp_path: Path) -> None:
    found = kvplan.sweep(
        LLAMA_8B, vary={"gpu": "L4,H100", "tp": [1, 2], "context": "8k,32k"}, offline=True
    )
    (tmp_path / "s.xlsx").write_bytes(sweep_workbook(found))
    changes = {"concurrency": 30, "price_per_gpu_hour": 1.25}
    _changed(tmp_path / "s.xlsx", tmp_path / "s-changed.xlsx", changes)
    _recalculate(tmp_path, tmp_path / "out")
    _cells(tmp_path / "out" / "s-changed.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "out" / "s-changed.xlsx", data_only=True)["Sweep"]
    rows = [row for row in sheet.iter_rows(values_only=True) if row[-1] is not None][1:]
    assert len(rows) == len(found.points)
    for row, point in zip(rows, found.rows(), strict=True):
        assert row[:4] == (point["gpu"], point["tp"], point["context"], point["requests"])
        assert row[9] == ("yes" if point["requests"] >= 30 else "no")
        if point["requests"]:
            needed = -(-30 // point["requests"]) * point["gpus"]
            assert row[10:12] == (needed, _cents(needed * 1.25 * 730))
        else:
            assert row[10] == row[11] == "none are enough"


def _replicas(case: Case, replicas: int) -> dict[str, int]:
    return {"dp": replicas} if case.dp_is_copies else {}


def _cents(amount: float) -> float:
    return round(amount + 1e-9, 2)


def _verdict(plan: Plan, asked: int) -> str:
    held = plan.capacity.requests if plan.capacity else 0
    return "fits" if held >= max(1, asked) else "does not fit"
