"""llama.cpp's options: names, values, releases, and the command line that a plan comes to."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvplan
from kvplan.engines.launch import Asked
from kvplan.engines.llamacpp import history
from kvplan.engines.llamacpp.command_emit import emit
from kvplan.engines.llamacpp.engine import LlamaCpp
from kvplan.engines.llamacpp.fit import shrunk_context
from kvplan.engines.llamacpp.options import ALIASES, READERS, read_options
from kvplan.engines.llamacpp.settings import resolve
from kvplan.errors import EngineRefusesError, KvplanError, NotModelledError, UsageError

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize(
    ("written", "value", "name", "read"),
    [
        ("parallel", 4, "n_seq_max", 4),
        ("--ctx-size", 8192, "n_ctx", 8192),
        ("-c", 0, "n_ctx", 0),
        ("ctk", "Q8_0", "cache_type_k", "q8_0"),
        ("fa", "on", "flash_attn", True),
        ("flash-attn", 0, "flash_attn", False),
        ("flash_attn", "auto", "flash_attn", None),
        ("kv_unified", 1, "kv_unified", True),
        ("no-kv-unified", True, "kv_unified", False),
        ("offload_kqv", 0, "no_kv_offload", True),
        ("kv-offload", True, "no_kv_offload", False),
        ("ngl", "all", "n_gpu_layers", "all"),
        ("ngl", -1, "n_gpu_layers", "auto"),
        ("ngl", 33, "n_gpu_layers", 33),
        ("ts", "3,1", "tensor_split", (3.0, 1.0)),
        ("tensor_split", [1, 2.5], "tensor_split", (1.0, 2.5)),
        ("tensor_split", 1, "tensor_split", (1.0,)),
        ("tensor_split", "3/1", "tensor_split", (3.0, 1.0)),
    ],
)
def test_names_and_values(written: str, value: Any, name: str, read: Any) -> None:
    assert read_options({written: value}) == {name: read}


def test_every_alias_leads_to_an_option() -> None:
    assert set(ALIASES.values()) <= set(READERS)
    assert not set(ALIASES) & set(READERS)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_ctxx": 1}, "no option 'n_ctxx'"),
        ({"n_ctx": -1}, "n_ctx is a whole number"),
        ({"n_ctx": True}, "n_ctx is a whole number"),
        ({"parallel": 2, "np": 2}, "n_seq_max is given twice"),
        ({"cache_type_k": "q3_k"}, "cache_type_k is one of"),
        ({"cache_type_k": 8}, "cache_type_k is one of"),
        ({"swa_full": "maybe"}, "swa_full is true or false"),
        ({"tensor_split": "a,b"}, "tensor_split lists a share"),
        ({"tensor_split": [0, 0]}, "tensor_split lists a share"),
        ({"tensor_split": ["nan", 1]}, "tensor_split lists a share"),
        ({"model_draft": ""}, "model_draft is a text"),
        ({"model": "x"}, "model is not set with -o"),
    ],
)
def test_values_that_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_options(options)


def test_what_is_not_sized_is_refused_by_name_unless_it_is_the_default() -> None:
    with pytest.raises(NotModelledError, match="override_tensor"):
        read_options({"override_tensor": "exps=CPU"})
    assert read_options({"split_mode": "layer", "main_gpu": 0}) == {}


def test_defaults_are_filled_in_and_named() -> None:
    found = resolve({"n_ubatch": 1024, "flash_attn": "auto"}, "auto")
    assert (found.n_batch, found.n_ubatch, found.flash_attn) == (2048, 1024, True)
    assert "flash_attn" in found.assumed
    assert "n_ubatch" not in found.assumed
    assert "spec_draft_n_max" not in found.as_options()


@given(
    st.dictionaries(
        st.sampled_from([*READERS, *ALIASES, "split_mode", "nonsense"]),
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=9),
                  st.lists(st.integers(), max_size=3)),
        max_size=3,
    )
)  # fmt: skip
def test_nothing_but_a_kvplan_error_is_raised(options: dict[str, Any]) -> None:
    with contextlib.suppress(KvplanError):
        resolve(options, "auto")


@pytest.mark.parametrize(
    ("version", "limited", "fit"),
    [
        ("b7079", False, False),
        ("b8763", False, True),
        ("b9688", True, True),
        ("0.5.0", True, True),
        ("v9.0", True, True),
    ],
)
def test_rules_by_release(version: str, limited: bool, fit: bool) -> None:  # noqa: FBT001
    rules = history.rules_for(version)
    assert (rules.outputs_limited, rules.fit) == (limited, fit)


def test_a_release_too_old_or_no_release() -> None:
    with pytest.raises(EngineRefusesError, match="older than"):
        history.rules_for("b7078")
    with pytest.raises(UsageError):
        history.rules_for("blue")
    assert history.is_newer_than_modelled("0.6.0")
    assert not history.is_newer_than_modelled("b99999")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_ctx": 32_768, "parallel": 4, "cache_type_k": "q8_0"},
         "-c 32768 -np 4 -ngl all -ctk q8_0"),
        ({"n_ctx": 8192, "ngl": 10, "fa": "off"}, "-c 8192 -np 1 -ngl 10 -fa off"),
        ({"n_ctx": 8192, "ts": "3,1", "kvu": True, "swa_full": True, "ub": 1024, "nkvo": True},
         "-c 8192 -np 1 -ngl all -ts 3,1 -ub 1024 -kvu --swa-full -nkvo"),
        ({"n_ctx": 8192, "n_cpu_moe": 3}, "-c 8192 -np 1 -ngl all --n-cpu-moe 3"),
    ],
)  # fmt: skip
def test_the_command_that_starts_a_plan(options: dict[str, Any], words: str) -> None:
    plan = kvplan.size(LLAMA, "H100", engine="llama.cpp", engine_options=options, offline=True)
    line = emit(plan, Asked(model="/models/a b.gguf", options=options))
    assert line == f"llama-server -m '/models/a b.gguf' {words}"


def test_a_command_needs_a_name_and_flags() -> None:
    plan = kvplan.size(LLAMA, "H100", engine="llama.cpp", context=4096, offline=True)
    assert emit(plan, Asked(model=LLAMA)).startswith(
        "llama-server -m Llama-3.1-8B-Instruct.gguf -c 4096 -np 1"
    )
    with pytest.raises(UsageError, match="standard input"):
        emit(plan, Asked(model="-"))
    with pytest.raises(UsageError, match="no flag for n_rs_seq"):
        emit(plan, Asked(model=LLAMA, options={"n_rs_seq": 2}))


def test_drafts_that_options_ask_for() -> None:
    engine = LlamaCpp()
    assert engine.draft_of({}) is None
    assert engine.draft_of({"spec_type": "ngram-mod"}) is None
    named = engine.draft_of({"md": "small.gguf"})
    assert named is not None
    assert named.model == "small.gguf"
    own = engine.draft_of({"spec_type": "draft-mtp"})
    assert own is not None
    assert own.model is None


@pytest.mark.parametrize(
    ("target", "expected"),
    [(10**9, 131_072), (4096 * 10 + 500, 4096), (100, 4096), (500_000, 49_920)],
)
def test_fit_interpolates_the_context_down_to_a_multiple_of_256(target: int, expected: int) -> None:
    found = shrunk_context(lambda cells: cells * 10 + 500, most=131_072, streams=1, target=target)
    assert found == expected


def test_fit_never_goes_below_the_smallest_context() -> None:
    assert shrunk_context(lambda cells: cells, most=2048, streams=1, target=0) == 2048
    assert shrunk_context(lambda cells: cells, most=131_072, streams=4, target=0) == 16_384
