"""A comparison for a pull request."""

from __future__ import annotations

from kvplan.engine_comparison import EngineComparison
from kvplan.reports import engines_rows
from kvplan.reports.clean import markdown_text


def engines_markdown(comparison: EngineComparison) -> str:
    """GitHub-flavoured Markdown: a table, and why the engines differ."""
    names = [markdown_text(name) for name in engines_rows.names(comparison)]
    lines = [
        f"**{markdown_text(engines_rows.headline(comparison))}**",
        "",
        markdown_text(comparison.model),
        "",
        f"| | {' | '.join(names)} |",
        f"| --- | {' | '.join('---:' for _ in names)} |",
    ]
    lines += [
        f"| {_label(row.label, title=not row.values)} |"
        f" {' | '.join(markdown_text(value) for value in row.values or ('',) * len(names))} |"
        for row in engines_rows.rows(comparison)
    ]
    why = [
        f"- **{markdown_text(engine)}**: {markdown_text(text)}"
        for engine, text in engines_rows.differences(comparison)
    ]
    settings = [f"- {markdown_text(text)}" for text in engines_rows.settings(comparison)]
    for block in (why, settings):
        lines += ["", *block] if block else []
    return "\n".join(lines) + "\n"


def _label(label: str, *, title: bool) -> str:
    text = markdown_text(label.strip())
    return f"**{text}**" if title else f"{'&nbsp;' * 4 if label.startswith(' ') else ''}{text}"
