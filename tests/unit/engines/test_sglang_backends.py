"""Tokens of a page by device, class and backend."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.engines.sglang.backends import page_tokens

HOPPER, BLACKWELL, CONSUMER = (9, 0), (10, 0), (12, 0)


def page(architecture: str = "LlamaForCausalLM", sm: tuple[int, int] = HOPPER, **given: Any) -> int:
    asked: dict[str, Any] = {
        "asked": None, "backend": None, "latent": False, "sparse": False, "unequal": False,
        "one_token_states": False, "branches": None,
    }  # fmt: skip
    return page_tokens(architecture, sm, **(asked | given))


def test_hopper_takes_pages_of_one_token_unless_told() -> None:
    assert page() == 1
    assert page(sm=CONSUMER) == 1
    assert page(asked=48) == 48
    assert page("DeepseekV3ForCausalLM", latent=True) == 1


def test_sparse_attention_has_one_size() -> None:
    assert page(sparse=True, latent=True, asked=1) == 64


@pytest.mark.parametrize("backend", ["flashmla", "trtllm_mla", "cutedsl_mla", "trtllm_mha"])
def test_some_backends_allow_few_pages(backend: str) -> None:
    assert page(backend=backend) == 64
    assert page(backend=backend, asked=1) == 64
    assert page(backend=backend, asked=32) == 32


def test_other_backends_take_any() -> None:
    assert page(backend="fa3") == 1
    assert page(backend="fa3", asked=7) == 7


def test_blackwell_has_kernels_with_larger_pages() -> None:
    assert page(sm=BLACKWELL) == 64
    assert page(sm=BLACKWELL, asked=16) == 16
    assert page(sm=BLACKWELL, asked=7) == 64
    assert page(sm=BLACKWELL, unequal=True) == 128
    assert page("DeepseekV3ForCausalLM", BLACKWELL, latent=True) == 64
    assert page("DeepseekV2ForCausalLM", BLACKWELL, latent=True) == 1
    # Triton serves these: branches of drafts, states of one token, two classes.
    assert page(sm=BLACKWELL, branches=4) == 1
    assert page(sm=BLACKWELL, branches=1) == 64
    assert page(sm=BLACKWELL, one_token_states=True) == 1
    assert page("FalconH1ForCausalLM", BLACKWELL) == 1
