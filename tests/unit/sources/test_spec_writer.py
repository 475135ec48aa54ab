"""What is written is read back the same, whatever stands in it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.models.facts import ModelFacts
from kvplan.sources.model_specs import ModelSpecFile, find_model_spec, read_model_spec
from kvplan.sources.spec_draft import draft_spec, missing_facts
from kvplan.sources.spec_writer import spec_text
from kvplan.sources.yaml_reader import parse_yaml, validate

COMMIT = "0123456789abcdef0123456789abcdef01234567"
_TEXTS = st.one_of(
    st.text(alphabet=st.characters(codec="utf-8"), max_size=12),
    st.sampled_from(["yes", "null", "1e5", "012", "a: b", "a #b", "- a", "*", "re:.*x", "~", ""]),
)
_NUMBERS = st.one_of(
    st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False, width=32)
)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXTS),
    lambda inner: (
        st.lists(inner, max_size=30)
        | st.dictionaries(_TEXTS.filter(lambda name: name != ""), inner, max_size=4)
    ),
    max_leaves=40,
)


def read_back(text: str) -> ModelSpecFile:
    return validate(parse_yaml(text, "spec.yaml"), ModelSpecFile)


def facts(**changes: Any) -> ModelFacts:
    source = f"https://huggingface.co/org/model/blob/{COMMIT}/config.json"
    stated: dict[str, Any] = {"id": "org/model", "revision": COMMIT, "source": source, "config": {}}
    return ModelFacts(**{**stated, **changes})


@given(value=_VALUES)
def test_every_value_comes_back(value: Any) -> None:
    config = {"model_type": "x", "value": value, "inside": {"value": value}}
    assert read_back(spec_text(draft_spec(facts(), config))).config == config


@pytest.mark.parametrize("model_id", ["openai/gpt-oss-20b", "Qwen/Qwen2.5-14B-Instruct-AWQ"])
def test_bundled_files_come_back(model_id: str) -> None:
    path = find_model_spec(model_id)
    assert path is not None
    spec = read_model_spec(path)
    text = spec_text(spec)
    assert read_back(text) == spec
    assert max(map(len, text.splitlines())) <= 250  # long sources stay on one line


def test_a_model_of_the_hub() -> None:
    known = facts(
        checkpoint_bytes=10, checkpoint_parameters=5, checkpoint_source="safetensors headers"
    )
    spec = draft_spec(known, {"model_type": "x"})
    assert spec.id == "org/model"
    assert spec.source == f"org/model@{COMMIT}:config.json"
    assert spec.revision == COMMIT
    assert spec.checkpoint is not None
    assert spec.checkpoint.source == f"org/model@{COMMIT}:safetensors headers"
    assert missing_facts(known) == (
        "No licence was found on the model's card: add it with its source.",
    )


def test_of_another_spec_the_source_is_kept() -> None:
    known = facts(source="org--model.yaml, from owner/name@1:config.json", revision=None)
    assert draft_spec(known, {"a": 1}).source == "owner/name@1:config.json"
    assert "No revision is known." in missing_facts(known)


@pytest.mark.parametrize(
    ("source", "model_id"),
    [
        ("/somewhere/org--model/config.json", "org/model"),
        ("/somewhere/my model (1)/config.json", "my-model-1"),
        ("/somewhere/else/tiny.json", "tiny"),
        ("/somewhere/\x1b[2J/config.json", "2J"),
        ("/somewhere/-/config.json", "model"),
        ("standard input", "model"),
    ],
)
def test_a_model_on_this_machine(source: str, model_id: str) -> None:
    """The id comes from the folder, and no path of the machine is written."""
    known = facts(id=source, source=source, revision=None)
    text = spec_text(draft_spec(known, {"model_type": "x"}))
    assert read_back(text).id == model_id
    assert "somewhere" not in text
    assert "not published" in text
    assert missing_facts(known)[:2] == (
        f"No id is known: {model_id} is made from the file's place.",
        "No public source is known: replace `source` with one others can open.",
    )
