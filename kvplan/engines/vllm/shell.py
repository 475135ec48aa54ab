"""Text of a shell → the words of its commands. Nothing is run and nothing is expanded.

POSIX quoting (IEEE 1003.1, Shell Command Language, 2.2), written out here because the standard
library's splitter forgets which characters were quoted: ``'$X'`` is text, ``"$X"`` is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from kvplan.errors import UsageError

LONGEST = 100_000
_ENDS = frozenset("\n;&|()")
_BLANK = frozenset(" \t\r")
_CLOSING = {"(": ")", "{": "}"}


@dataclass(frozen=True, slots=True)
class Word:
    """One argument.

    Attributes:
        text: With its quotes taken away.
        variable: What the shell would put a value in for, such as ``$MODEL``; None: nothing.
    """

    text: str
    variable: str | None = None


def split(text: str) -> tuple[tuple[Word, ...], ...]:
    """The commands of a text, each as its words; empty ones are left out.

    Raises:
        UsageError: a quote that is never closed, or more than 100,000 characters.
    """
    if len(text) > LONGEST:
        raise UsageError(
            f"A command of {len(text):,} characters is too long.",
            hint=f"At most {LONGEST:,}.",
        )
    return tuple(tuple(words) for words in _Scanner(text).commands() if words)


def plain(texts: Iterable[str]) -> tuple[Word, ...]:
    """Words that no shell reads, of a list of arguments; ``$(NAME)`` is Kubernetes' own."""
    return tuple(Word(text, text if text.startswith(("$(", "${")) else None) for text in texts)


@dataclass
class _Scanner:
    text: str
    at: int = 0
    letters: list[str] = field(default_factory=list)
    begun: bool = False
    variable: str | None = None
    dropping: bool = False

    def commands(self) -> list[list[Word]]:
        found: list[list[Word]] = [[]]
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter == "#" and not self.begun:
                self._skip_comment()
            elif letter in _BLANK or letter in _ENDS:
                self._finish(found[-1])
                self.at += 1
                if letter in _ENDS:
                    found.append([])
            elif letter in "<>":
                self._redirect(found[-1])
            else:
                self._step(letter)
        self._finish(found[-1])
        return found

    def _finish(self, words: list[Word]) -> None:
        if self.begun:
            if not self.dropping:
                words.append(Word("".join(self.letters), self.variable))
            self.dropping = False
        self.letters, self.begun, self.variable = [], False, None

    def _redirect(self, words: list[Word]) -> None:
        """``2> log``: the number in front, the sign and the word behind it are no arguments."""
        self.dropping = "".join(self.letters).isdigit()
        self._finish(words)
        while self.at < len(self.text) and self.text[self.at] in "<>":
            self.at += 1
        self.at += self.text[self.at : self.at + 1] == "&"
        self.dropping = True

    def _skip_comment(self) -> None:
        end = self.text.find("\n", self.at)
        self.at = len(self.text) if end < 0 else end

    def _step(self, letter: str) -> None:
        if letter == "\\":
            self._escape()
            return
        self.begun = True
        if letter == "'":
            end = self._close("'", self.at + 1)
            self.letters.append(self.text[self.at + 1 : end])
            self.at = end + 1
        elif letter == '"':
            self._double()
        elif letter in "$`":
            self._expand()
        else:
            self.letters.append(letter)
            self.at += 1

    def _escape(self) -> None:
        """A backslash: the next character as it is, or nothing at the end of a line."""
        following = self.text[self.at + 1 : self.at + 3]
        if following.startswith(("\n", "\r\n")):
            self.at += 3 if following.startswith("\r") else 2
            return
        self.begun = True
        self.letters.append(following[:1])
        self.at += 2

    def _double(self) -> None:
        start, self.at = self.at, self.at + 1
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter == '"':
                self.at += 1
                return
            if letter == "\\" and self.text[self.at + 1 : self.at + 2] in tuple('$`"\\\n'):
                self.letters.append(self.text[self.at + 1].replace("\n", ""))
                self.at += 2
            elif letter in "$`":
                self._expand()
            else:
                self.letters.append(letter)
                self.at += 1
        raise _open_quote('"', self.text, start)

    def _expand(self) -> None:
        """A variable or a command's output: kept as it is written, and marked."""
        start = self.at
        opening = self.text[start + 1 : start + 2]
        if self.text[start] == "`":
            end = self._close("`", start + 1) + 1
        elif opening in _CLOSING:
            end = self._matching(start + 1, opening)
        else:
            end = start + 1
            while end < len(self.text) and (self.text[end].isalnum() or self.text[end] == "_"):
                end += 1
            if end == start + 1 and opening in tuple("@*#?$!"):
                end += 1
        written = self.text[start:end]
        if written != "$":
            self.variable = self.variable or written
        self.letters.append(written)
        self.at = end

    def _matching(self, start: int, opening: str) -> int:
        depth = 0
        for position in range(start, len(self.text)):
            letter = self.text[position]
            depth += (letter == opening) - (letter == _CLOSING[opening])
            if depth == 0:
                return position + 1
        raise _open_quote("$" + opening, self.text, start)

    def _close(self, quote: str, start: int) -> int:
        end = self.text.find(quote, start)
        if end < 0:
            raise _open_quote(quote, self.text, start)
        return end


def _open_quote(quote: str, text: str, position: int) -> UsageError:
    line = text.count("\n", 0, position) + 1
    return UsageError(
        f"The command opens {quote} on line {line} and never closes it.",
        hint="Copy it whole. On standard input no shell takes its quotes away: use"
        " --from-command - and paste.",
    )
