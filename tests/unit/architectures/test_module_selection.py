"""How quantization configs name modules."""

from __future__ import annotations

import time

import pytest

from kvplan.architectures.quantization.modules import Modules
from kvplan.errors import NotModelledError

Q3 = "layers.3.self_attn.q_proj"


@pytest.mark.parametrize(
    ("entry", "module"),
    [
        ("lm_head", "lm_head"),
        ("language_model.lm_head", "lm_head"),
        ("model.layers.3.self_attn.q_proj", Q3),
        ("model.language_model.layers.3.self_attn", Q3),
        ("language_model.model.layers.3", Q3),
        ("q_proj", Q3),
        ("self_attn", Q3),
        ("model.layers.*.self_attn", Q3),
        ("model.layers.3*", Q3),
        ("model.layers.3*", "layers.31.mlp.up_proj"),
        ("language_model.model.layers.3.*", Q3),
        ("*.self_attn.*", Q3),
        ("re:.*self_attn.*", Q3),
        (r"re:.*layers\.\d+\.self_attn\.(q|k)_proj$", Q3),
        (r"re:^model\.layers\.3\..*", Q3),
        ("re:.*q_proj", Q3),
        ("re:model.layers.[0-9]+.self_attn", Q3),
    ],
)
def test_covered(entry: str, module: str) -> None:
    assert Modules([entry]).cover(module)


@pytest.mark.parametrize(
    ("entry", "module"),
    [
        ("lm_head", Q3),
        ("model.layers.30.self_attn.q_proj", Q3),
        ("model.layers.3.self_attn.q_proj", "layers.30.self_attn.q_proj"),
        ("proj", Q3),
        ("attn", Q3),
        ("model.layers.3.*", "layers.31.mlp.up_proj"),
        ("re:self_attn.*", Q3),
        (r"re:.*mlp\.gate$", "layers.3.mlp.gate_proj"),
        (r"re:.*self_attn\.(k|v)_proj", Q3),
        ("model.vision_tower", Q3),
    ],
)
def test_not_covered(entry: str, module: str) -> None:
    assert not Modules([entry]).cover(module)


@pytest.mark.parametrize(
    "pattern",
    [
        "re:(a+)+$",
        "re:(?=x)",
        "re:[a-z]*",
        "re:a{2,}",
        "re:" + "(a|b)" * 7,
        "re:" + "(a|b|c|d|e|f)" * 4,
        "x" * 257,
    ],
)
def test_what_could_run_away_is_refused(pattern: str) -> None:
    with pytest.raises(NotModelledError, match="not understood"):
        Modules([pattern])


def test_matching_stays_quick() -> None:
    """A thousand patterns against a thousand long names, none of which match."""
    patterns = [f"model.layers.{layer}.*a*a*a*a*b" for layer in range(1000)]
    modules = Modules([*patterns, *(f"model.layers.{n}.mlp.gate" for n in range(1000))])
    start = time.process_time()
    for layer in range(1000):
        assert not modules.cover(f"layers.{layer}.{'a' * 60}.{'a' * 60}")
    assert time.process_time() - start < 2
