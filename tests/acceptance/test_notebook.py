"""examples/kvplan.ipynb: a sound file whose cells run in order, without Jupyter."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "kvplan.ipynb"


def read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return found


def shown(source: str, names: dict[str, Any]) -> object:
    """Runs a cell; the value of its last line, which a notebook would show."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(NOTEBOOK), "exec"), names)  # noqa: S102
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)  # noqa: S307


def test_it_is_a_notebook_without_outputs() -> None:
    notebook = read()
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in notebook["cells"]:
        assert cell["cell_type"] in ("markdown", "code")
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)


def test_the_cells_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    seen = {
        cell["id"]: shown("".join(cell["source"]), names)
        for cell in read()["cells"]
        if cell["cell_type"] == "code"
    }
    assert list(seen["ledger"].columns) == ["name", "section", "GiB", "confidence"]  # type: ignore[attr-defined]
    assert list(seen["sweep"].columns) == ["auto", "fp8"]  # type: ignore[attr-defined]
    assert seen["curve"]._repr_svg_().startswith("<svg")  # type: ignore[attr-defined]
    assert len(seen["advice"]) > 0  # type: ignore[arg-type]
    assert len(seen["fit"]) == 8  # type: ignore[arg-type]
    page = (tmp_path / "plan.html").read_text(encoding="utf-8")
    assert page.lower().startswith("<!doctype html>")
    assert capsys.readouterr().out.splitlines()[-1].startswith("fits on")
