"""The examples in the docstrings do what they show."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import kvplan

MODULES = sorted(module.name for module in pkgutil.walk_packages(kvplan.__path__, "kvplan."))


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name), report=True)
    assert results.failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    found = [
        test
        for name in MODULES
        for test in finder.find(importlib.import_module(name))
        if test.examples
    ]
    assert len(found) > 5
