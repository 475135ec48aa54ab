"""Arguments of vLLM's parser → flags and their values, as its FlexibleArgumentParser reads them.

Source: vLLM 0.33.0, vllm/utils/argparse_utils.py. Underscores are dashes, ``--no-x`` switches off,
``--x.key value`` is a piece of a mapping, a prefix that fits one flag alone is that flag, the last
of several wins, and ``--config FILE`` stands for the flags in that file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kvplan.engines.vllm import flags
from kvplan.engines.vllm.shell import Word
from kvplan.errors import UsageError, nearest, shown

# Reads a file of flags: its name → the mapping in it.
ReadFile = Callable[[str], Mapping[str, Any]]

_WORDS = {"true": True, "false": False, "1": True, "0": False}
KNOWN = (
    flags.BOOLEANS
    | flags.LISTS
    | flags.VALUES
    | flags.BENCH
    | flags.BENCH_BOOLEANS
    | flags.RENAMED.keys()
)
_BOOLEANS = flags.BOOLEANS | flags.BENCH_BOOLEANS


@dataclass(frozen=True, slots=True)
class Flags:
    """What the parser found.

    Attributes:
        positional: Words that belong to no flag; the model, for `vllm serve`.
        values: By the flag's name without dashes in front: True or False, a word, a list of
            words, or a mapping that dotted flags make.
        remarks: What was not understood, or not as it is written.
    """

    positional: tuple[str, ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def read(words: Sequence[Word], read_file: ReadFile) -> Flags:
    """Parses the arguments of one start.

    Raises:
        UsageError: a flag without its value, a value that a shell would have to fill in.
    """
    parser = _Parser(tuple(words))
    parser.run()
    if "config" not in parser.values:
        return parser.flags()
    below = _Parser(tuple(_words_of(read_file(str(parser.values.pop("config"))))))
    below.run()
    file, command = below.flags(), parser.flags()
    # vLLM puts the file's flags in front, so that those of the command win.
    return Flags(
        positional=(*file.positional, *command.positional),
        values={**file.values, **command.values},
        remarks=(*file.remarks, *command.remarks),
    )


@dataclass
class _Parser:
    words: tuple[Word, ...]
    at: int = 0
    positional: list[str] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    pieces: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    def flags(self) -> Flags:
        """All of it; vLLM puts mappings made of pieces last, so that they win over whole ones."""
        return Flags(tuple(self.positional), self.values | self.pieces, tuple(self.remarks))

    def run(self) -> None:
        while self.at < len(self.words):
            word = self.words[self.at]
            self.at += 1
            if word.text == "--":
                continue
            if word.text.startswith("-") and not _is_number(word.text):
                self._flag(word)
            else:
                self.positional.append(_filled(word, "the model"))

    def _flag(self, word: Word) -> None:
        written, equals, inline = word.text.partition("=")
        first = Word(inline, word.variable) if equals else None
        if written.startswith("-O") and len(written) > len("-O"):
            written, first = "-O", Word(written[2:])
        written, dot, path = written.partition(".")
        name = self._name(written)
        if name is None:
            self._unknown(written, known_value=first is not None)
        elif dot:
            self._piece(name, path, first)
        elif name.startswith("no-"):
            self.values[name.removeprefix("no-")] = False
        elif name in _BOOLEANS:
            self.values[name] = self._switch(first)
        elif name in flags.LISTS:
            self.values[name] = self._several(name, first)
        else:
            self.values[name] = self._one(name, first)

    def _name(self, written: str) -> str | None:
        """The flag's name without dashes in front, or None if there is none like it."""
        if not written.startswith("--"):
            return flags.SHORT.get(written)
        name = written[2:].replace("_", "-")
        if name in KNOWN:
            return flags.RENAMED.get(name, name)
        if name.removeprefix("no-") in _BOOLEANS:
            return name
        longer = sorted(known for known in KNOWN if name and known.startswith(name))
        if len(longer) != 1:
            return None
        self.remarks.append(f"{written[:60]} is taken for --{longer[0]}.")
        return flags.RENAMED.get(longer[0], longer[0])

    def _unknown(self, written: str, *, known_value: bool) -> None:
        """Keeps a flag aside with its value, if the next word looks like one."""
        if not known_value and self._has_value() and not self._is_model_next():
            self.at += 1
        hint = nearest(written.lstrip("-").replace("_", "-"), KNOWN, count=1, cutoff=0.7)
        meant = f" {hint.replace('mean ', 'mean --')}" if hint else ""
        self.remarks.append(f"{written[:60]} is no flag of vLLM's that kvplan knows.{meant}")

    def _is_model_next(self) -> bool:
        named = self.positional or "model" in self.values
        return not named and self.words[self.at].text.count("/") == 1

    def _has_value(self) -> bool:
        if self.at >= len(self.words):
            return False
        text = self.words[self.at].text
        return not text.startswith("-") or _is_number(text)

    def _switch(self, first: Word | None) -> bool:
        """``--x``, ``--x=false`` and, of older releases, ``--x False``."""
        if first is None and self._has_value():
            spoken = self.words[self.at].text.lower()
            if spoken in ("true", "false"):
                self.at += 1
                return _WORDS[spoken]
        return True if first is None else _WORDS.get(first.text.lower(), True)

    def _one(self, name: str, first: Word | None) -> str:
        if first is not None:
            return _filled(first, f"--{name}")
        if not self._has_value():
            if name in ("hf-token", "optimization-level"):  # their value may be left out
                return ""
            raise UsageError(
                f"--{name} has no value.",
                hint=f"Write --{name} VALUE, or leave it out.",
                location="--from-command",
            )
        self.at += 1
        return _filled(self.words[self.at - 1], f"--{name}")

    def _several(self, name: str, first: Word | None) -> tuple[str, ...]:
        found = [] if first is None else [_filled(first, f"--{name}")]
        while first is None and self._has_value():
            found.append(_filled(self.words[self.at], f"--{name}"))
            self.at += 1
        return tuple(found)

    def _piece(self, name: str, path: str, first: Word | None) -> None:
        """``--speculative-config.method mtp`` is a mapping of one key."""
        value = self._one(name, first)
        parsed: Any = value.split(",") if path.endswith("+") else _json_or_text(value)
        keys = path.removesuffix("+").split(".")
        for key in reversed(keys):
            parsed = {key: parsed}
        self.pieces[name] = _merged(self.pieces.get(name, {}), parsed)


def _filled(word: Word, what: str) -> str:
    """The word's text.

    Raises:
        UsageError: a shell would put a value in, and nobody knows which. Flags whose value does
            not matter take it as it is.
    """
    if word.variable is None or what.removeprefix("--") in _SILENT:
        return word.text
    raise UsageError(
        f"The value of {what} is {shown(word.variable)}, which only a shell can fill in.",
        hint="Write the value itself; kvplan runs no shell and reads no environment for it.",
        location="--from-command",
    )


# Their values never matter, and may be secrets.
_SILENT = frozenset(
    (
        *("api-key", "hf-token", "host", "port", "uds", "root-path", "served-model-name", "seed"),
        *("download-dir", "chat-template", "ssl-keyfile", "ssl-certfile", "ssl-ca-certs"),
        *("tokenizer", "otlp-traces-endpoint", "data-parallel-address", "master-addr"),
        *("node-rank", "data-parallel-rank", "data-parallel-start-rank", "lora-modules"),
        *("master-port", "data-parallel-rpc-port", "allowed-local-media-path", "log-config-file"),
        *("tool-call-parser", "reasoning-parser", "tool-parser-plugin", "middleware"),
    )
)


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(old)
    for key, value in new.items():
        before = found.get(key)
        both = isinstance(before, Mapping) and isinstance(value, Mapping)
        found[key] = _merged(before, value) if both else value  # type: ignore[arg-type]
    return found


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _is_number(text: str) -> bool:
    return text[1:].replace(".", "", 1).isdigit() if text.startswith("-") else False


def _words_of(config: Mapping[str, Any]) -> list[Word]:
    """A file of flags as words, as vLLM's load_config_file writes them out."""
    found: list[str] = []
    for key, value in config.items():
        name = f"--{key}".replace("_", "-")
        if isinstance(value, bool):
            found.append(name if value else f"--no-{name[2:]}")
        elif isinstance(value, list):
            found += [name, *(str(each) for each in value)] if value else []
        elif isinstance(value, Mapping):
            found += [name, json.dumps(value)]
        else:
            found.append(f"{name}={value}")
    return [Word(text) for text in found]
