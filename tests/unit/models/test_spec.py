"""A model as a whole: parameters, and what can't be a model."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from kvplan.models.caches import FullCache, RecurrentCache, StateTensor
from kvplan.models.spec import Layer, ModelSpec
from kvplan.models.weights import Weight

ATTENTION = Layer(caches=(FullCache(kv_heads=2, head_dim=8, head_dim_v=8),))
STATE = RecurrentCache(states=(StateTensor(name="ssm", shape=(4, 8)),))


def spec(**more: object) -> ModelSpec:
    stated: dict[str, object] = {
        "id": "org/small",
        "model_type": "llama",
        "architecture": "LlamaForCausalLM",
        "source": "made up",
        "dtype": "bfloat16",
        "max_context": 4096,
        "hidden_size": 64,
        "vocab_size": 1000,
        "intermediate_size": 192,
        "attention_heads": 8,
        "layers": (ATTENTION, ATTENTION),
        "tied_embeddings": True,
        "weights": (
            Weight(name="embed", component="embedding", shape=(1000, 64), place="embedding"),
            Weight(
                name="up",
                component="experts",
                shape=(32, 64),
                layers=(0, 1),
                copies=4,
                active_copies=2,
            ),
        ),
    }
    return ModelSpec.model_validate(stated | more)


def test_parameters_are_counted_from_the_inventory() -> None:
    model = spec()
    assert model.parameters_total == 64_000 + 2 * 4 * 32 * 64
    assert model.parameters_active == 64_000 + 2 * 2 * 32 * 64


def test_a_model_survives_json() -> None:
    model = spec(layers=(ATTENTION, Layer(caches=(STATE,)), Layer()))
    assert ModelSpec.model_validate_json(model.model_dump_json()) == model


def test_counting_parameters_adds_nothing_to_the_data() -> None:
    model = spec()
    before = model.model_dump_json()
    assert model.parameters_total
    assert model.model_dump_json() == before
    assert model == spec()


@pytest.mark.parametrize(
    "stated",
    [
        {"layers": ()},
        {"hidden_size": 0},
        {"vocab_size": -1},
        {"max_context": 0},
        {"attention_heads": -1},
        {"dtype": "int3"},
        {"surprise": 1},
    ],
)
def test_what_no_model_can_be_is_refused(stated: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        spec(**stated)


def test_a_model_may_state_no_maximum_and_have_no_attention() -> None:
    model = spec(max_context=None, attention_heads=0, layers=(Layer(caches=(STATE,)),))
    assert model.max_context is None
