"""Wording: one sentence of an engine's log, as a template of its own words and of facts.

``Model loading took {weights_gib} GiB memory and`` is found in a line by its longest run of plain
words; ``{}`` stands for anything short. A fact is always followed by words of the template (or by
the line's end, which then has to be there), so a number that is cut off is never taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import Formatter
from typing import Literal

from kvplan.sources.logs.facts import Fact, Value
from kvplan.sources.logs.lines import Line

Begins = Literal["", "server", "program", "core", "process"]
# Rare in what an engine prints once it runs, and in most of what it prints before.
_COMMON = (
    *("GiB", "MiB", " GB", "memory", "block", "version", ": n_", "args", "allocate"),
    *("started in", "max_num_", "max_model_len", "maximum", "loaded", "loading"),
)
# Further words of sentences whose loss would go unnoticed: one of two is there if one byte of the
# line is damaged.
ALSO_LOOKED_FOR = (
    *("buffer size", "using device", "draft", "Graph capturing", "kv_cache_utils.py", "worker.py"),
    *("executor", "paged KV", "Load weight", "graph end", "Mamba Cache", "max_running_requests="),
    *("ServerArgs(", "tokens per request", "Initializing a", 'size="', "library="),
)
# Characters of a line in which a sentence begins and ends; only settings go on further. It bounds
# what a hostile line can cost.
LOOKED_AT = 4096
# Groups of a sentence that say whose it is, and no fact of the start.
WHOSE = frozenset({"device", "component", "encoder"})


@dataclass(frozen=True, eq=False)
class Wording:
    """A sentence and what it means.

    Attributes:
        needle: Words that a line has to hold before anything else is tried.
        words: All plain words of the sentence.
        pattern: The sentence; its groups are names of facts.
        facts: How each is read.
        begins: Whether a start begins here: its server, a program that says so in several lines,
            one of its engine processes, or any of its processes.
        outcome: What the sentence says of the start as a whole.
        arguments: Names of facts by the engine's names of its settings, where those follow.
        at_end: The last fact ends with the line, so that the line's end has to be there.
        needs: The fact that its settings always hold, where those follow.
        resets: Facts that are said anew from here on.
        closes: What follows is of another model.
        opens: Whether a log whose beginning is missing may begin with it.
    """

    needle: str
    words: str
    pattern: re.Pattern[str]
    facts: Mapping[str, Fact]
    begins: Begins = ""
    outcome: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    needs: str = ""
    at_end: bool = False
    resets: tuple[str, ...] = ()
    closes: bool = False
    opens: bool = True

    @property
    def coarse(self) -> str:
        """Words that are in every line that says it, alike for many sentences.

        A whole log is searched for each of them: the fewer there are, the sooner it is done.
        """
        return next((word for word in _COMMON if word in self.words), self.needle)

    def find(self, line: Line) -> re.Match[str] | None:
        """Where the line says it first, or None."""
        return next(self.find_all(line), None)

    def find_all(self, line: Line) -> Iterator[re.Match[str]]:
        """Wherever the line says it: two lines may have run into one."""
        if self.at_end and (not line.whole or len(line.text) > LOOKED_AT):
            return
        yield from self.pattern.finditer(line.text, 0, LOOKED_AT)

    def read(self, match: re.Match[str]) -> dict[str, Value]:
        """The facts of a match, without those that can't be meant."""
        values: dict[str, Value] = {}
        for name, fact in self.facts.items():
            if name in WHOSE:
                continue
            written = match[name]
            value = fact.read(written) if written is not None else None
            if value is not None:
                values[name] = value
        return values


def wording(  # noqa: D417  the other arguments are those of Wording
    template: str,
    facts: Mapping[str, Fact],
    *,
    needle: str = "",
    begins: Begins = "",
    outcome: str = "",
    arguments: Mapping[str, str] | None = None,
    needs: str = "",
    resets: tuple[str, ...] = (),
    closes: bool = False,
    opens: bool = True,
) -> Wording:
    """Compiles a template; one that ends with a fact wants the line to end there too.

    Args:
        template: The sentence; one blank stands for any number of them.
        facts: Those that it may name.
        needle: Words that are always there; without it the template's longest run of words.
    """
    parts = [each[:2] for each in Formatter().parse(template)]
    literals = [literal for literal, _ in parts]
    return Wording(
        needle=needle or max(literals, key=len).strip(),
        words="\n".join(literals),
        pattern=_pattern(parts, facts),
        facts={name: facts[name] for _, name in parts if name},
        begins=begins,
        outcome=outcome,
        arguments=arguments or {},
        needs=needs,
        at_end=parts[-1][1] is not None,
        resets=resets,
        closes=closes,
        opens=opens,
    )


def _pattern(parts: Sequence[tuple[str, str | None]], facts: Mapping[str, Fact]) -> re.Pattern[str]:
    pieces = "".join(_piece(literal, name, facts) for literal, name in parts)
    return re.compile(pieces + (r"\s*$" if parts[-1][1] is not None else ""), re.ASCII)


def _piece(literal: str, name: str | None, facts: Mapping[str, Fact]) -> str:
    # Columns are aligned with blanks that vary; one that is all there is between two facts is the
    # first one's end, and has to be there.
    gap = r"\\s*" if literal.strip() else r"\\s+"
    words = re.sub(r"(\\ )+", gap, re.escape(literal))
    if name is None:
        return words
    return words + (f"(?P<{name}>{facts[name].pattern})" if name else ".{0,400}?")
