"""How far off kvplan is for engines other than vLLM: the tables of engines.md.

    python validation/engines.py RECORDS [--write FILE]

RECORDS is a folder with sglang.jsonl, trtllm.jsonl, llamacpp.jsonl and ollama.jsonl, one engine
start a line; `records/engine_starts.yaml` says which bundled model a start is compared with, and
why one is left out. Prints Markdown; with --write it takes the place of FILE.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from engine_starts import llamacpp, servers
from engine_starts.notes import Report, Row, read_notes, read_rows
from engine_starts.page import section

FILES = {
    "sglang": "SGLang",
    "trtllm": "TensorRT-LLM",
    "llamacpp": "llama.cpp",
    "ollama": "Ollama",
}
HEAD = """# Starts of other engines

Made by `python validation/engines.py RECORDS --write validation/engines.md`, where RECORDS is a
folder of public starts as JSON lines; `records/engine_starts.yaml` holds what each is compared
with. A start's id is that of its record. Most sources are no more than a number of an index of
public files, which is why the records are not carried here.

Two questions are asked. Are the bytes right that a number of tokens takes, where the model's
geometry is known from outside the log? And are the tokens right, from model, card and flags alone?
The second can be asked of the few starts whose flags suffice; the cause of each difference stands
beside it. A cache of llama.cpp follows from its flags, so that both questions are one there.
"""


def reports(folder: Path) -> Iterator[tuple[str, Report]]:
    """One engine after the other."""
    for name, title in FILES.items():
        rows, notes = read_rows(folder / f"{name}.jsonl"), read_notes(name)
        if name == "sglang":
            yield title, servers.report("sglang", rows, notes)
        elif name == "trtllm":
            yield title, servers.report("tensorrt-llm", rows, notes)
        else:
            yield title, llamacpp.report(_with_fields(rows), notes)


def _with_fields(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """Ollama's records have fewer fields than those of its server."""
    return tuple({"v_size": None, "kv_tokens": None, **row} for row in rows)


def page(folder: Path) -> str:
    """The whole page."""
    lines = [HEAD]
    for title, report in reports(folder):
        lines += section(title, report)
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Prints or writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", type=Path)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    text = page(asked.records)
    if asked.write is None:
        sys.stdout.write(text)
    else:
        asked.write.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
