"""Host profiles from and to YAML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from kvplan.errors import InputError
from kvplan.host_profile import HostProfile
from kvplan.sources.spec_writer import inline
from kvplan.sources.yaml_reader import read_yaml
from kvplan.sources.yaml_validation import validate

SCHEMA = "kvplan.host/1"


def read_profile(path: Path) -> HostProfile:
    """The profile in a file.

    Raises:
        UsageError: there is no such file.
        InputError: it is no profile; with ``file:line`` and what is wrong there.
    """
    document = read_yaml(path)
    if document.data.get("schema") != SCHEMA:
        raise InputError(
            "This is not a host profile of this version of kvplan.",
            hint=f"Its first line is `schema: {SCHEMA}`; `kvplan calibrate` writes one.",
            location=document.location(("schema",)),
        )
    facts = {key: value for key, value in document.data.items() if key != "schema"}
    return validate(replace(document, data=facts), HostProfile)


def as_profile(profile: HostProfile | str | Path | None) -> HostProfile | None:
    """A profile, or the one in the file of that path."""
    if profile is None or isinstance(profile, HostProfile):
        return profile
    return read_profile(Path(profile))


def profile_text(profile: HostProfile) -> str:
    """The file; read back it is the same profile."""
    return "".join(f"{line}\n" for line in _lines(profile))


def _lines(profile: HostProfile) -> Iterator[str]:
    yield f"schema: {SCHEMA}"
    for name, value in profile.model_dump(mode="json").items():
        yield f"{name}: {inline(value)}"
