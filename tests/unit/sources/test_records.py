"""Models and GPUs as records name them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from measured_starts import CONFIG, record

from kvplan.errors import (
    HubUnreachableError,
    KvplanError,
    ModelNotFoundError,
    NotModelledError,
    UnknownNameError,
    UsageError,
)
from kvplan.models.facts import ModelFacts
from kvplan.sources import records
from kvplan.sources.records import NamedInRecords


def named(configs: Path | None = None, *, offline: bool = True) -> NamedInRecords:
    return NamedInRecords(engines={}, offline=offline, configs=configs)


def test_a_bundled_model() -> None:
    facts = named().facts(record(model="Qwen/Qwen3-8B"))
    assert facts.config["model_type"] == "qwen3"


def test_each_model_is_read_once() -> None:
    found = named()
    first = found.facts(record(model="Qwen/Qwen3-8B"))
    assert found.facts(record(id="b", model="Qwen/Qwen3-8B")) is first


def test_a_name_that_nobody_knows_fails_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found = named()
    with pytest.raises(ModelNotFoundError):
        found.facts(record(model="nobody/knows"))
    monkeypatch.setattr(records, "read_model", _unexpected)
    with pytest.raises(ModelNotFoundError):
        found.facts(record(model="nobody/knows"))


def _unexpected(*_: Any, **__: Any) -> ModelFacts:
    raise AssertionError("asked again")


@pytest.mark.parametrize("name", [None, "", "-", "/dev/stdin"])
def test_no_name(name: str | None) -> None:
    with pytest.raises(UsageError, match="names no model"):
        named().facts(record(model=name))


def test_a_folder_of_configurations_comes_first(tmp_path: Path) -> None:
    for name in ("Qwen--Qwen3-8B", "base--model"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text(json.dumps(CONFIG))
    found = named(tmp_path)
    assert found.facts(record(model="Qwen/Qwen3-8B")).config == CONFIG
    by_field = found.facts(record(model="Qwen/Qwen3-8B", config="base--model"))
    assert by_field.source == str(tmp_path / "base--model" / "config.json")
    # Where it has none of them the usual order goes on.
    assert found.facts(record(model="Qwen/Qwen3-0.6B", config="no--such")).config != CONFIG


@pytest.mark.parametrize("config", ["..", "../secret", "/etc", ".", "", 7, "a/b/c"])
def test_a_record_can_not_leave_the_folder(tmp_path: Path, config: Any) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "inner").mkdir()
    with pytest.raises(ModelNotFoundError):
        named(tmp_path / "inner").facts(record(model="nobody/knows", config=config))


def test_the_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no folder"):
        named(tmp_path / "nowhere")


def test_an_unreachable_hub_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    def read(_name: str, *, offline: bool) -> ModelFacts:
        asked.append(offline)
        raise HubUnreachableError("No route.")

    monkeypatch.setattr(records, "read_model", read)
    found = named(offline=False)
    for name in ("a/b", "a/c"):
        with pytest.raises(HubUnreachableError):
            found.facts(record(model=name))
    assert asked == [False, True]


def test_gpus() -> None:
    found = named()
    assert found.gpu("h100-sxm").id == "H100-SXM-80GB"
    assert found.gpu("h100-sxm") is found.gpu("h100-sxm")
    with pytest.raises(UnknownNameError):
        found.gpu("Z9000")
    with pytest.raises(UsageError, match="names no GPU"):
        found.gpu("auto")


def test_engines() -> None:
    with pytest.raises(NotModelledError, match="does not model the engine 'sglang'"):
        named().engine("sglang")
    with pytest.raises(KvplanError):
        named().engine("")
