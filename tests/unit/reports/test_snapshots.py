"""Whole reports as they look. A change shows in the diff of the .ambr file: read it there."""

from __future__ import annotations

import pytest
from sample_plans import SAMPLES, does_not_fit
from syrupy.assertion import SnapshotAssertion

from kvplan._version import __version__
from kvplan.reports.render import render


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_text_at_80_columns(name: str, snapshot: SnapshotAssertion) -> None:
    assert render(SAMPLES[name](), "text", width=80) == snapshot


def test_text_at_140_columns_explained(snapshot: SnapshotAssertion) -> None:
    assert render(does_not_fit(), "text", width=140, explain=True) == snapshot


def test_text_in_ascii(snapshot: SnapshotAssertion) -> None:
    assert render(does_not_fit(), "text", width=80, ascii_only=True) == snapshot


def test_text_in_colour(snapshot: SnapshotAssertion) -> None:
    assert render(does_not_fit(), "text", width=80, color=True).replace("\x1b", "^[") == snapshot


@pytest.mark.parametrize("name", ["does_not_fit", "refused", "assumed"])
def test_markdown(name: str, snapshot: SnapshotAssertion) -> None:
    assert render(SAMPLES[name](), "markdown", explain=True) == snapshot


@pytest.mark.parametrize("name", ["does_not_fit", "refused"])
def test_json(name: str, snapshot: SnapshotAssertion) -> None:
    assert render(SAMPLES[name](), "json").replace(__version__, "VERSION") == snapshot


def test_csv(snapshot: SnapshotAssertion) -> None:
    assert render(does_not_fit(), "csv") == snapshot
