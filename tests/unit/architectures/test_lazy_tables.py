"""Tables name functions in words: every one is there, and is of the kind that the table calls."""

from __future__ import annotations

import subprocess
import sys
from typing import get_type_hints

import pytest

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.drafts.table import DRAFTS
from kvplan.architectures.fields import Fields
from kvplan.architectures.images.settings import ImageSettings
from kvplan.architectures.images.table import RULES
from kvplan.architectures.lazy import function
from kvplan.architectures.table import FAMILIES
from kvplan.architectures.wrappers.parts import Beside
from kvplan.architectures.wrappers.table import WRAPPERS
from kvplan.models.images.base import ImageRule


def kinds(name: str) -> tuple[list[object], object]:
    """Types of the parameters, and of what is returned."""
    hints = get_type_hints(function(name))
    returned = hints.pop("return")
    return list(hints.values()), returned


@pytest.mark.parametrize(
    "name", sorted({row.reader for row in (*FAMILIES.values(), *DRAFTS.values())})
)
def test_decoders(name: str) -> None:
    assert kinds(name) == ([Fields], Anatomy)


@pytest.mark.parametrize("name", sorted({row.towers for row in WRAPPERS.values()}))
def test_towers(name: str) -> None:
    assert kinds(name) == ([Fields, Anatomy], Beside)


def test_types_of_text_parts() -> None:
    named = {row.text for row in WRAPPERS.values() if ":" in row.text}
    assert named == {"wrappers.minicpm_v:minicpmv_text"}
    assert all(kinds(name) == ([Fields], str) for name in named)


@pytest.mark.parametrize("name", sorted(set(RULES.values())))
def test_rules_for_images(name: str) -> None:
    parameters, returned = kinds(name)
    assert parameters == [ImageSettings]
    members = getattr(returned, "__args__", (returned,))
    flat = [kind for part in members for kind in getattr(part, "__args__", (part,))]
    assert all(kind is type(None) or issubclass(kind, ImageRule) for kind in flat)


def test_reading_a_model_imports_its_own_family_only() -> None:
    code = (
        "import sys, kvplan.api; "
        "kvplan.api.read_spec('meta-llama/Llama-3.1-8B-Instruct', offline=True); "
        "print(*sorted(name for name in sys.modules if name.startswith('kvplan.architectures.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True
    )
    loaded = {name.removeprefix("kvplan.architectures.") for name in done.stdout.split()}
    assert "llama" in loaded
    assert not {"gemma", "mamba2", "wrappers.llava", "towers.parts", "images.tiled"} & loaded
    assert len(loaded) <= 60
