"""`kvplan gpus`: what it prints, and its exit codes."""

from __future__ import annotations

import json

import pytest

from kvplan.cli.main import run
from kvplan.errors import NoDeviceError
from kvplan.hardware import DetectedGpu
from kvplan.sources import nvml


def detected() -> tuple[DetectedGpu, ...]:
    return (DetectedGpu(index=0, name="NVIDIA L4", uuid="GPU-1", driver_version="550"),)


def no_device() -> tuple[DetectedGpu, ...]:
    raise NoDeviceError("This machine has no NVIDIA driver.", hint="Name a GPU.")


@pytest.mark.parametrize("arguments", [["gpus"], ["gpus", "list"]])
def test_list_prints_every_gpu(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 0
    out, err = capsys.readouterr()
    assert "H100-SXM-80GB" in out
    assert "Apple-M2-Max-96GB" in out
    assert err == ""


def test_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gpus", "list", "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["gpus"]) > 100


def test_search(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gpus", "search", "hopper"]) == 0
    out = capsys.readouterr().out
    assert "H200-SXM-141GB" in out
    assert "A100" not in out


def test_search_without_a_match_is_a_no(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gpus", "search", "nothing like it"]) == 1
    assert capsys.readouterr() == ("", "No bundled GPU matches 'nothing like it'.\n")
    assert run(["models", "search", "nothing like it"]) == 1
    assert capsys.readouterr() == ("", "No bundled model's id contains 'nothing like it'.\n")
    assert run(["-q", "models", "search", "nothing like it"]) == 1
    assert capsys.readouterr() == ("", "")


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["gpus", "show", "h100"]) == 0
    assert "81,559 MiB" in capsys.readouterr().out
    assert run(["gpus", "show", "h100", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == "H100-SXM-80GB"


@pytest.mark.parametrize(
    ("name", "message"), [("A100", "may be several GPUs"), ("H100-SMX", "No GPU is called")]
)
def test_show_of_a_name_that_is_none(
    name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["gpus", "show", name]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert "hint:" in err


def test_detect(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "detect", detected)
    assert run(["gpus", "detect"]) == 0
    assert "0: NVIDIA L4" in capsys.readouterr().out
    assert run(["gpus", "detect", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["gpus"][0]["name"] == "NVIDIA L4"


def test_detect_without_a_gpu(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "detect", no_device)
    assert run(["gpus", "detect"]) == 3
    out, err = capsys.readouterr()
    assert (out, "no NVIDIA driver" in err) == ("", True)
