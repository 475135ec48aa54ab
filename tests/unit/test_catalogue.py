"""The bundled models: every file is sourced, is read, is sized, and adds up."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import kvplan
from kvplan.architectures import read_model
from kvplan.models.formats import PLAIN
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import stored_bytes
from kvplan.sources.model_specs import (
    ModelSpecFile,
    find_model_spec,
    list_model_specs,
    load_model_spec,
    read_model_spec,
)

IDS = list_model_specs()
TOLERANCE = 0.005
CONTEXT = 8192  # for a model that states none

# "0.5B", "70b", "8x7B", "125m" in a name; neither the "A3B" nor the "17B-16E" that count what is
# active.
NOMINAL = re.compile(r"(?<![A-Za-z\d.])(?:(\d+)x)?(\d+(?:\.\d+)?)([BbMm])(?![A-Za-z\d]|-\d+E)")
TOWERS = ("vision", "audio")
UNITS = {"b": 10**9, "m": 10**6}
# Names round; experts share their attention, so 8x7B is less than 56 B; embeddings come on top.
SMALLEST, LARGEST = 0.75, 1.35

# Files that hold more than kvplan's inventory, or less.
ODD_BYTES = {
    "tiiuae/falcon-180B-chat": "the tied head is stored a second time",
}


def path_of(model_id: str) -> Path:
    path = find_model_spec(model_id)
    assert path is not None
    return path


@cache
def file_of(model_id: str) -> ModelSpecFile:
    return read_model_spec(path_of(model_id))


@cache
def spec_of(model_id: str) -> ModelSpec:
    return read_model(load_model_spec(path_of(model_id)))


def stored_elements(spec: ModelSpec) -> int:
    return sum(weight.parameters for weight in spec.weights)


def tower_elements(spec: ModelSpec) -> int:
    return sum(weight.parameters for weight in spec.weights if weight.component in TOWERS)


def ranks(spec: ModelSpec) -> int:
    """Eight GPUs, or one where eight don't go into the model's heads or its states."""
    counts = {getattr(cache, "kv_heads", 1) for layer in spec.layers for cache in layer.caches}
    split = {
        state.shape[state.split]
        for cache in spec.caches
        if cache.kind == "recurrent"
        for state in cache.states
        if state.split is not None
    }
    fits = spec.attention_heads % 8 == 0 and all(n % 8 == 0 or 8 % n == 0 for n in counts)
    return 8 if fits and all(n % 8 == 0 or n == 1 for n in split) else 1


def has_experts(spec: ModelSpec) -> bool:
    return any(weight.component == "experts" for weight in spec.weights)


def only_recurrent(spec: ModelSpec) -> bool:
    return all(cache.kind == "recurrent" for layer in spec.layers for cache in layer.caches)


def test_enough_models() -> None:
    assert len(IDS) >= 220


def test_ids_are_unique_in_any_case() -> None:
    assert len({model_id.casefold() for model_id in IDS}) == len(IDS)


@pytest.mark.parametrize("model_id", IDS)
def test_the_file_is_named_after_its_id_and_has_a_source(model_id: str) -> None:
    stated = file_of(model_id)
    assert stated.id == model_id
    assert path_of(model_id).name == model_id.replace("/", "--") + ".yaml"
    assert stated.source


@pytest.mark.parametrize("model_id", IDS)
def test_sources_are_public(model_id: str) -> None:
    """No path of a machine; a commit, an address, a package, a thread, a log, a numbered file."""
    text = path_of(model_id).read_text()
    assert not re.search(r"[\s\"]/\w", text)
    for line in re.findall(r"^ *source: (.+)$", text, re.MULTILINE):
        assert re.search(r"@[0-9a-f]{40}:|https://|\(PyPI\)|#\d+|public file \d+|:\S+\.log", line)


@pytest.mark.parametrize("model_id", IDS)
def test_the_context_is_known(model_id: str) -> None:
    """A state of fixed size is all that a recurrent model keeps: it need not state a context."""
    spec = spec_of(model_id)
    assert spec.max_context is not None or only_recurrent(spec)


@pytest.mark.parametrize("model_id", IDS)
def test_the_model_is_of_the_size_in_its_name(model_id: str) -> None:
    found = NOMINAL.search(model_id.partition("/")[2])
    if found is None:
        return
    experts, number, unit = found.groups()
    nominal = int(experts or 1) * float(number) * UNITS[unit.lower()]
    spec = spec_of(model_id)
    # Some names count the text part alone.
    sizes = (spec.parameters_total, spec.parameters_total - tower_elements(spec))
    assert any(SMALLEST <= size / nominal <= LARGEST for size in sizes)


# Their files hold the tied head a second time.
HEAD_TWICE = {
    "Qwen/Qwen3-0.6B", "Qwen/Qwen3-1.7B", "tiiuae/falcon-40b", "tiiuae/falcon-7b",
    "tiiuae/falcon-7b-instruct",
}  # fmt: skip


@pytest.mark.parametrize("model_id", IDS)
def test_parameters_are_those_of_the_files(model_id: str) -> None:
    """To the element; files may add scales, routers' biases, and a tied head a second time."""
    stated = file_of(model_id).checkpoint
    if stated is None or stated.parameters is None:
        return
    spec = spec_of(model_id)
    head = spec.vocab_size * spec.hidden_size if model_id in HEAD_TWICE else 0
    extra = stated.parameters - stored_elements(spec)
    if spec.quantization is None and not spec.experts:
        assert extra == head
    else:
        assert 0 <= extra <= stated.parameters * 0.001


@pytest.mark.parametrize("model_id", IDS)
def test_bytes_are_those_of_the_files(model_id: str) -> None:
    stated = file_of(model_id).checkpoint
    if stated is None or stated.total_bytes is None:
        return
    spec = spec_of(model_id)
    computed = sum(stored_bytes(spec.weights, PLAIN[spec.dtype]).values())
    agrees = computed == pytest.approx(stated.total_bytes, rel=TOLERANCE)
    assert agrees is (model_id not in ODD_BYTES)


@pytest.mark.parametrize("model_id", IDS)
def test_the_model_can_be_sized(model_id: str) -> None:
    """Whatever the verdict, nothing in the file makes kvplan or the engine refuse."""
    spec = spec_of(model_id)
    plan = kvplan.size(
        model_id,
        "H200-SXM-141GB",
        tp=ranks(spec),
        context=spec.max_context or CONTEXT,
        # Blocks of FP8 experts don't divide over eight ranks: vLLM wants them whole.
        engine_options={"enable_expert_parallel": has_experts(spec)},
        offline=True,
        advice=False,
    )
    assert plan.model.id == model_id
    assert plan.model.parameters_total == spec.parameters_total
    assert plan.verdict != "refused"
