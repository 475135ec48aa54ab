"""The page in a real browser: narrow and wide, light, dark and printed; and with hostile names."""

from __future__ import annotations

import importlib.resources
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import kvplan
from kvplan.asked import asked_of
from kvplan.cli.traffic_source import TrafficFlags, question_of
from kvplan.exporting import Price, book_of, book_of_plan
from kvplan.plan_book import PlanBook
from kvplan.reports.page.render import page
from kvplan.reports.page.sweep_page import sweep_page

pytest.importorskip("jinja2")

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "{{ 7 * 7 }}{% for x in y %}",
    "</title></head><body onload=alert(1)>",
    "javascript:alert(1)",
    "a&lt;b&amp;c",
    "\u202eevil\u2066 \x1b[2J\x00",
    "]]><!--",
)
FLAGS = TrafficFlags(lengths="p50=1k,p95=8k/300", rate="3/s", decode_rate="20", daily="peak=2.5")
AXE = "axe_playwright_python"


def _book(model: str = "openai/gpt-oss-20b", **changes: Any) -> PlanBook:
    asked = asked_of(
        changes.get("gpu", "L40S-48GB"),
        engine=changes.get("engine", "vllm"),
        sizes={"tp": 1, "pp": 1, "dp": changes.get("dp", 1), "dcp": 1},
        load=(changes.get("context", 32768), changes.get("concurrency", 40)),
        words={"weights": "auto", "kv_dtype": "auto", "dtype": "auto"},
        kv_budget=None,
        options=None,
        images=(0, None, None),
    )
    return book_of(
        model,
        asked,
        price=changes.get("price", Price(1.1)),
        traffic=changes.get("traffic"),
        offline=True,
    )


@pytest.fixture(scope="module")
def books() -> dict[str, PlanBook]:
    refused = kvplan.size(
        "openai/gpt-oss-20b", "L4", tp=7, context=4096, offline=True, advice=False
    )
    return {
        "short": _book(),
        "fits": _book(concurrency=2, price=None),
        "nothing fits": _book("meta-llama/Llama-3.1-70B-Instruct", concurrency=None),
        "llama.cpp": _book("Qwen/Qwen3-8B", gpu="RTX 4090", engine="llama.cpp", concurrency=2),
        "refused": book_of_plan(refused),
        "traffic": _book(traffic=question_of(FLAGS)),
    }


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield running
        running.close()


class _Tags(HTMLParser):
    """What a parser takes for markup."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.handlers: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.handlers |= {name for name, _ in attrs if name.startswith("on")}
        self.handlers |= {name for name, _ in attrs if name in ("src", "href", "action")}


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_text(name: str) -> None:
    plan = kvplan.size("Qwen/Qwen3-8B", "L4", context=4096, offline=True, advice=False)
    reason = plan.reasons[0].model_copy(update={"message": name, "hint": name})
    line = plan.ledger[0].model_copy(update={"source": name})
    model = plan.model.model_copy(update={"id": name, "source": name, "revision": name})
    gpu = plan.gpu.model_copy(update={"id": name})
    changed = plan.model_copy(
        update={"model": model, "gpu": gpu, "reasons": (reason,), "ledger": (line,)}
    )
    plain, hostile = _Tags(), _Tags()
    plain.feed(page(book_of_plan(plan)))
    hostile.feed(page(book_of_plan(changed)))
    assert hostile.seen <= plain.seen
    assert not hostile.handlers
    assert "script" not in hostile.seen
    assert "49" not in hostile.rawdata.partition("</h1>")[0].partition("<h1>")[2]


def test_the_page_states_what_the_plan_says(books: dict[str, PlanBook]) -> None:
    text = page(books["short"])
    capacity = books["short"].plan.capacity
    assert capacity is not None
    assert f"{capacity.tokens:,}" in text
    for line in books["short"].plan.ledger:
        assert f"<dt>{line.name}</dt>" in text
    assert "http" not in text.partition("<main>")[0].replace("http-equiv", "")


@pytest.mark.parametrize(
    "name", ["short", "fits", "nothing fits", "llama.cpp", "refused", "traffic"]
)
@pytest.mark.parametrize("look", [(360, "dark"), (1280, "light"), (1280, "dark")])
def test_in_a_browser(
    browser: Any, books: dict[str, PlanBook], tmp_path: Path, name: str, look: tuple[int, str]
) -> None:
    _looked_at(browser, page(books[name]), tmp_path, look)


def _looked_at(browser: Any, text: str, folder: Path, look: tuple[int, str]) -> None:
    """A page opened: silent, alone, no wider than the window, accessible, and printable."""
    width, scheme = look
    file = folder / "plan.html"
    file.write_text(text, encoding="utf-8")
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True
    )
    tab = context.new_page()
    said: list[str] = []
    asked: list[str] = []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(file.as_uri())
    assert not said
    assert asked == [file.as_uri()]
    # Nothing is wider than the window but what scrolls by itself.
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert not _violations(tab)
    tab.emulate_media(media="print")
    assert tab.evaluate("document.documentElement.scrollHeight") > 300
    context.close()


@pytest.fixture(scope="module")
def sweeps() -> dict[str, str]:
    lengths = {"gpu": "L4,H100", "context": "4k..64k*2", "concurrency": [1, 20]}
    return {
        "curves": sweep_page(kvplan.sweep("Qwen/Qwen3-8B", vary=lengths, offline=True)),
        "memory": sweep_page(
            kvplan.sweep(
                "Qwen/Qwen3-8B", "L4", vary={"concurrency": [1, 4]}, context=8192, offline=True
            )
        ),
    }


@pytest.mark.parametrize("name", ["curves", "memory"])
@pytest.mark.parametrize("look", [(360, "dark"), (1280, "light")])
def test_a_sweep_in_a_browser(
    browser: Any, sweeps: dict[str, str], tmp_path: Path, name: str, look: tuple[int, str]
) -> None:
    _looked_at(browser, sweeps[name], tmp_path, look)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_text_in_a_sweep(name: str) -> None:
    found = kvplan.sweep(
        "Qwen/Qwen3-8B", "L4", vary={"context": [4096, 8192], "tp": [1, 3]}, offline=True
    )
    inputs = tuple((key, name if key == "model" else value) for key, value in found.inputs)
    cells = tuple(replace(cell, reason=name, hint=name) for cell in found.cells)
    plain, hostile = _Tags(), _Tags()
    plain.feed(sweep_page(found))
    hostile.feed(sweep_page(replace(found, inputs=inputs, cells=cells)))
    assert hostile.seen <= plain.seen
    assert not hostile.handlers
    assert "script" not in hostile.seen


def _violations(tab: Any) -> list[str]:
    """What axe-core calls serious or critical."""
    pytest.importorskip(AXE)
    script = importlib.resources.files(AXE).joinpath("axe.min.js").read_text(encoding="utf-8")
    tab.evaluate(script)
    found = json.loads(tab.evaluate("axe.run().then(found => JSON.stringify(found.violations))"))
    return [
        f"{each['id']}: {node['html'][:200]} {node['failureSummary']}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def test_axe_sees_what_is_wrong(browser: Any) -> None:
    tab = browser.new_page()
    tab.set_content("<html><body><img src='x'><p style='color:#999;background:#aaa'>a</p>")
    assert _violations(tab)


def test_details_open_by_keyboard(browser: Any, books: dict[str, PlanBook], tmp_path: Path) -> None:
    file = tmp_path / "plan.html"
    file.write_text(page(books["short"]), encoding="utf-8")
    tab = browser.new_page()
    tab.goto(file.as_uri())
    tab.locator("summary").first.focus()
    tab.keyboard.press("Enter")
    assert tab.locator("details").first.get_attribute("open") is not None
