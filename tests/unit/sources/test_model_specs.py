"""Bundled facts of models, and the same form by a user's hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvplan.errors import InputError
from kvplan.sources import model_specs
from kvplan.sources.model_specs import (
    find_model_spec,
    list_model_specs,
    load_model_spec,
    read_model_spec,
)

HEAD = "schema: kvplan.model/1\nid: org/name\n"
FULL = f"""{HEAD}config: {{model_type: llama, hidden_size: 64, rope_scaling: null}}
source: other/repo@abc:config.json
revision: {"a" * 40}
checkpoint: {{total_bytes: 1000, parameters: 500, source: index}}
license: {{value: apache-2.0, source: its card}}
notes: [A sentence.]
"""


@pytest.fixture
def specs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands in for the bundled one."""
    monkeypatch.setattr(model_specs, "specs_dir", lambda _: tmp_path)
    return tmp_path


def write(folder: Path, text: str, name: str = "org--name.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_all_facts(tmp_path: Path) -> None:
    facts = load_model_spec(write(tmp_path, FULL))
    assert facts.id == "org/name"
    assert facts.revision == "a" * 40
    assert facts.source == "org--name.yaml, from other/repo@abc:config.json"
    assert facts.config == {"model_type": "llama", "hidden_size": 64, "rope_scaling": None}
    assert (facts.checkpoint_bytes, facts.checkpoint_parameters) == (1000, 500)
    assert facts.checkpoint_source == "index"
    assert facts.notes == ("A sentence.",)
    spec = read_model_spec(tmp_path / "org--name.yaml")
    assert spec.license is not None
    assert spec.license.value == "apache-2.0"


def test_base(specs: Path) -> None:
    """The base's configuration underneath; null takes a key away; nothing else is inherited."""
    write(
        specs,
        "schema: kvplan.model/1\nid: org/base\nsource: there\nnotes: [Of the base.]\n"
        "checkpoint: {total_bytes: 7, source: x}\n"
        "config: {a: 1, b: 2, text_config: {c: 3, d: 4}, e: {f: 5}}\n",
        "org--base.yaml",
    )
    over = "config: {b: null, text_config: {d: 6, g: 7}, e: 8, h: {i: null, j: 9}}\nsource: here\n"
    facts = load_model_spec(write(specs, f"{HEAD}base: org/base\n{over}"))
    assert facts.config == {"a": 1, "text_config": {"c": 3, "d": 6, "g": 7}, "e": 8, "h": {"j": 9}}
    assert facts.source == "org--name.yaml, from there and here"
    assert (facts.checkpoint_bytes, facts.notes) == (None, ())
    alone = load_model_spec(write(specs, f"{HEAD}base: ORG/BASE\n"))
    assert alone.config["b"] == 2
    assert alone.id == "org/name"


def test_a_base_that_is_none(specs: Path) -> None:
    """Missing, one that has a base itself, and one that is its own."""
    path = write(specs, f"{HEAD}base: org/nowhere\n")
    with pytest.raises(InputError, match="No bundled model") as caught:
        load_model_spec(path)
    assert caught.value.location == f"{path}:3:1"
    write(specs, "schema: kvplan.model/1\nid: org/other\nbase: org/name\n", "org--other.yaml")
    with pytest.raises(InputError, match="has a base itself"):
        load_model_spec(write(specs, f"{HEAD}base: org/other\n"))
    with pytest.raises(InputError, match="has a base itself"):
        load_model_spec(write(specs, f"{HEAD}base: org/name\n"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("schema: kvplan.model/2\nid: org/name\nconfig: {a: 1}\nsource: x\n", "kvplan.model/1"),
        (HEAD, "a config, a base, or both"),
        (f"{HEAD}config: {{a: 1}}\n", "needs its source"),
        (f"{HEAD}base: org/x\nsource: y\n", "a source its config"),
        (f"{HEAD}config: {{}}\nsource: x\n", "config"),
        (f"{HEAD}config: [a]\nsource: x\n", "config"),
        (FULL.replace("org/name", "a b"), "not a name"),
        (FULL.replace("a" * 40, "main"), "revision"),
        (FULL.replace("1000", "-1"), "total_bytes"),
        (FULL.replace("1000", "1.5"), "total_bytes"),
        (FULL.replace(", source: index", ""), "source"),
        (FULL.replace("[A sentence.]", "A sentence."), "notes"),
        (f"{FULL}layers: 3\n", "layers"),
        (f"{FULL}revison: x\n", "Did you mean revision"),
        (f"{FULL}id: again\n", "already"),
    ],
)
def test_refused(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=said) as caught:
        load_model_spec(path)
    assert caught.value.location is not None
    assert caught.value.location.startswith(str(path))


def test_find(specs: Path) -> None:
    """By id in any case; without its organization where that leaves one."""
    first = write(specs, FULL, "Org--Name-7B.yaml")
    write(specs, FULL, "a--same.yaml")
    write(specs, FULL, "b--same.yaml")
    lone = write(specs, FULL, "gpt2.yaml")
    (specs / "notes.txt").touch()
    assert find_model_spec("Org/Name-7B") == first
    assert find_model_spec("oRG/nAME-7b") == first
    assert find_model_spec("name-7b") == first
    assert find_model_spec("GPT2") == lone
    assert find_model_spec("same") is None
    assert find_model_spec("org/same") is None
    assert find_model_spec("Name") is None
    assert list_model_specs() == ("a/same", "b/same", "gpt2", "Org/Name-7B")


def test_bundled_files_are_named_after_their_models() -> None:
    names = list_model_specs()
    assert "meta-llama/Llama-3.1-70B-Instruct" in names
    for name in names:
        path = find_model_spec(name)
        assert path is not None
        facts = load_model_spec(path)
        assert facts.id == name
        assert facts.config.get("model_type")
