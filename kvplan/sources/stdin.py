"""Standard input: a model (a ``config.json``, or a model spec in YAML), or a saved plan."""

from __future__ import annotations

import sys

from kvplan.errors import InputError, UsageError
from kvplan.models.facts import ModelFacts
from kvplan.sources import model_specs, yaml_reader
from kvplan.sources.json_reader import CONFIG_LIMIT, parse_json_object

# How people write it. The device is read as the same, because as a file it has no size.
NAMES = frozenset({"-", "/dev/stdin"})
_NAME = "standard input"


def read_stdin() -> ModelFacts:
    """Reads whatever form of a model comes on standard input, within the limits for files.

    Raises:
        UsageError: standard input is closed.
        InputError: it is empty, too large, or neither form.
    """
    data = read(CONFIG_LIMIT + 1)
    start = data.lstrip()[:1]
    if not start:
        raise InputError(
            "Nothing came on standard input.",
            hint="Send a config.json: kvplan size - --gpu L4 < config.json.",
        )
    if start in (b"{", b"["):
        config = parse_json_object(data, _NAME)
        return ModelFacts(id=_NAME, source=_NAME, config=config)
    return model_specs.facts_of(yaml_reader.decode_yaml(data, _NAME))


def read(count: int) -> bytes:
    """At most ``count`` bytes of it.

    Raises:
        UsageError: it is closed.
        InputError: it can't be read.
    """
    if sys.stdin is None:
        raise UsageError(
            "Standard input is closed.", hint="Send a config.json, or name a file in place of -."
        )
    try:
        return sys.stdin.buffer.read(count)
    except OSError as error:  # a folder, for instance
        raise InputError(
            f"Standard input can't be read: {error.strerror or error}.",
            hint="Send a config.json, or name a file in place of -.",
        ) from None
