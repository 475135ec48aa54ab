"""How images are prepared: the file that says so, in a folder, on the Hub, in a bundled spec."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from loopback_hub import Repo, running

from kvplan.sources.hub_model import read_hub
from kvplan.sources.local import read_folder
from kvplan.sources.model_specs import facts_of
from kvplan.sources.yaml_reader import parse_yaml

CONFIG = {"model_type": "qwen2_vl"}
OLDER, NEWER = {"max_pixels": 1}, {"image_processor": {"max_pixels": 2}}
SPEC = """
schema: kvplan.model/1
id: org/name
base: Qwen/Qwen2.5-VL-7B-Instruct
"""


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert read_folder(tmp_path).processor is None
    (tmp_path / "processor_config.json").write_text(json.dumps(NEWER))
    assert read_folder(tmp_path).processor == NEWER
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(OLDER))
    assert read_folder(tmp_path).processor == OLDER


def test_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"config.json": CONFIG, "preprocessor_config.json": OLDER}
    with_file = Repo(files={name: json.dumps(data).encode() for name, data in files.items()})
    without = Repo(files={"config.json": json.dumps(CONFIG).encode()})
    with running({"org/with": with_file, "org/without": without}) as hub:
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", hub.url)
        monkeypatch.setattr(
            "huggingface_hub.constants.HUGGINGFACE_CO_URL_TEMPLATE",
            hub.url + "/{repo_id}/resolve/{revision}/{filename}",
        )
        monkeypatch.setattr("huggingface_hub.hf_api.ENDPOINT", hub.url, raising=False)
        assert read_hub("org/with").processor == OLDER
        assert read_hub("org/without").processor is None


def test_a_derived_spec_keeps_its_bases() -> None:
    kept = facts_of(parse_yaml(SPEC, "spec.yaml")).processor
    assert kept == {"min_pixels": 3136, "max_pixels": 12_845_056}
    own = f"{SPEC}processor:\n  config: {{max_pixels: 5}}\n  source: here\n"
    assert facts_of(parse_yaml(own, "spec.yaml")).processor == {"max_pixels": 5}
