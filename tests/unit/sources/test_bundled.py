"""Where the bundled specs are found: in a checkout, and in an installed package."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvplan.errors import InternalError
from kvplan.sources import bundled
from kvplan.sources.bundled import specs_dir


def test_the_checkout_has_them() -> None:
    assert (specs_dir("gpu_specs") / "H100-SXM-80GB.yaml").is_file()


def test_the_installed_package_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site-packages" / "kvplan"
    (package / "gpu_specs").mkdir(parents=True)
    (package.parent / "gpu_specs").mkdir()
    monkeypatch.setattr(bundled, "_PACKAGE", package)
    assert specs_dir("gpu_specs") == package / "gpu_specs"


def test_a_broken_installation_is_a_bug(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "_PACKAGE", tmp_path / "kvplan")
    with pytest.raises(InternalError, match="model_specs"):
        specs_dir("model_specs")
