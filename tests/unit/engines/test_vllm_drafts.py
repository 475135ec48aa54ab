"""Speculative decoding: which draft is asked for, how many tokens, what windows keep for it."""

from __future__ import annotations

from typing import Any

import pytest
from real_models import full, toy

from kvplan.engines.base import DraftRequest
from kvplan.engines.vllm.drafts import check_draft, requested, tokens_drafted, window_lookahead
from kvplan.engines.vllm.speculative import Speculative
from kvplan.errors import EngineRefusesError, NotModelledError, UnknownNameError, UsageError
from kvplan.models.spec import ModelSpec


def draft(layers: int = 1, kind: str | None = "MTP") -> ModelSpec:
    return toy(*[full()] * layers, draft=kind)


@pytest.mark.parametrize(
    ("config", "request_"),
    [
        ({"method": "mtp", "num_speculative_tokens": 2}, DraftRequest(model=None)),
        ({"method": "deepseek_mtp"}, DraftRequest(model=None)),
        ({"method": "mtp", "model": "org/modules"}, DraftRequest(model="org/modules")),
        ({"method": "eagle3", "model": "org/head"}, DraftRequest(model="org/head")),
        ({"method": "eagle", "model": "org/head"}, DraftRequest(model="org/head", is_head=True)),
        ({"method": "draft_model", "model": "org/small"}, DraftRequest(model="org/small")),
        ({"model": "org/small"}, DraftRequest(model="org/small")),
        # From the prompt or from earlier answers: no layers.
        ({"method": "ngram", "num_speculative_tokens": 4}, None),
        ({"method": "suffix"}, None),
        ({"model": "ngram", "num_speculative_tokens": 4}, None),
        ({"model": "[ngram]"}, None),
    ],
)
def test_the_draft_that_is_asked_for(config: dict[str, Any], request_: DraftRequest | None) -> None:
    assert requested({"speculative_config": config}) == request_


def test_without_a_configuration_none_is() -> None:
    assert requested({}) is None
    assert requested({"max_num_seqs": 5}) is None


@pytest.mark.parametrize(
    "method", ["medusa", "mlp_speculator", "extract_hidden_states", "custom_class"]
)
def test_methods_that_are_not_modelled(method: str) -> None:
    config = {"method": method, "model": "org/head", "num_speculative_tokens": 2}
    with pytest.raises(NotModelledError, match=f"drafting by {method}") as raised:
        requested({"speculative_config": config})
    assert raised.value.hint == ("mtp, eagle, eagle3, draft_model, dflash and ngram are modelled.")


@pytest.mark.parametrize("config", [{"method": "eagle3"}, {"num_speculative_tokens": 3}])
def test_a_draft_needs_a_name(config: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="names no model to draft with") as raised:
        requested({"speculative_config": config})
    assert raised.value.hint == ('Add "model": "ORG/NAME", or use "method": "mtp" or "ngram".')


def test_a_draft_in_the_models_own_checkpoint() -> None:
    # vLLM 0.33.0, vllm/config/speculative.py: dspark without a model takes the target's.
    config = {"method": "dspark", "num_speculative_tokens": 7}
    with pytest.raises(NotModelledError, match="the model's own checkpoint") as raised:
        requested({"speculative_config": config})
    assert raised.value.hint == 'Name a draft that stands alone: "model": "ORG/NAME".'


def test_unknown_options_are_errors_here_too() -> None:
    with pytest.raises(UnknownNameError):
        requested({"speculative_confg": {"method": "mtp"}})


@pytest.mark.parametrize(
    ("config", "made", "tokens"),
    [
        (None, None, 0),
        (Speculative(method="mtp", num_speculative_tokens=3), draft(), 3),
        (Speculative(method="mtp"), draft(2), 2),  # as many as there are modules
        (Speculative(method="eagle3", model="x", num_speculative_tokens=5), draft(1, "EAGLE-3"), 5),
        (Speculative(method="ngram", num_speculative_tokens=4, prompt_lookup_max=9), None, 4),
        (Speculative(method="ngram", prompt_lookup_max=9), None, 9),
        (Speculative(method="ngram"), None, 0),
        (Speculative(model="ngram", prompt_lookup_max=7), None, 7),
    ],
)
def test_tokens_a_step(config: Speculative | None, made: ModelSpec | None, tokens: int) -> None:
    assert tokens_drafted(config, made) == tokens


@pytest.mark.parametrize("made", [draft(1, "EAGLE-3"), draft(1, None), None])
def test_a_draft_without_a_number_of_tokens_is_refused(made: ModelSpec | None) -> None:
    config = Speculative(method="eagle3", model="org/head")
    with pytest.raises(EngineRefusesError, match="wants num_speculative_tokens") as raised:
        tokens_drafted(config, made)
    assert raised.value.hint == 'Add "num_speculative_tokens": 3 to speculative_config.'


# Several modules at work read further than one: all drafted tokens but one are kept besides.
@pytest.mark.parametrize(
    ("made", "tokens", "kept"),
    [
        (None, 4, 0),
        (draft(1), 4, 0),
        (draft(3), 1, 0),
        (draft(3), 3, 2),
        (draft(3), 2, 1),
        (draft(2), 5, 4),
        (draft(3, "EAGLE-3"), 3, 0),
        (draft(3), 0, 0),
    ],
)
def test_what_windows_keep_besides(made: ModelSpec | None, tokens: int, kept: int) -> None:
    assert window_lookahead(made, tokens) == kept


def test_a_draft_that_is_asked_for_has_to_be_given() -> None:
    config = Speculative(method="mtp", num_speculative_tokens=1)
    with pytest.raises(UsageError, match="asks for a draft, and none was given") as raised:
        check_draft(config, None, 1)
    assert raised.value.hint == "Give its specification as the setup's draft."
    check_draft(config, draft(), 1)
    check_draft(None, None, 1)
    check_draft(Speculative(method="ngram"), None, 1)
    check_draft(Speculative(model="[ngram]"), None, 1)


@pytest.mark.parametrize(("ranks", "tp", "fine"), [(None, 4, True), (4, 4, True), (1, 4, False)])
def test_a_draft_is_spread_as_the_model_is(ranks: int | None, tp: int, *, fine: bool) -> None:
    config = Speculative(model="org/small", draft_tensor_parallel_size=ranks)
    if fine:
        check_draft(config, draft(1, None), tp)
        return
    with pytest.raises(NotModelledError, match="a draft on 1 of 4 tensor-parallel") as raised:
        check_draft(config, draft(1, None), tp)
    assert raised.value.hint == "Leave out draft_tensor_parallel_size."
