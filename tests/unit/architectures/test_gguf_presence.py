"""GGUF files whose weights are not all there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from gguf_files import LLAMA, LLAMA_TENSORS, header

from kvplan.architectures import read_model
from kvplan.errors import InputError
from kvplan.models.facts import ModelFacts, TensorHeader
from kvplan.models.spec import ModelSpec
from kvplan.sources.local import read_path


def read(names: Iterable[str], metadata: dict[str, Any] | None = None) -> ModelSpec:
    """A file with tensors of these names, all of one shape."""
    tensors = tuple(TensorHeader(name=name, dtype="f32", shape=(8,), size=32) for name in names)
    config = LLAMA | {"llama.vocab_size": 1000} | (metadata or {})
    return read_model(
        ModelFacts(id="m", source="m.gguf", config=config, gguf=True, tensors=tensors)
    )


def refused(names: Iterable[str], metadata: dict[str, Any] | None = None) -> str:
    with pytest.raises(InputError) as caught:
        read(names, metadata)
    assert caught.value.hint
    assert caught.value.location == "m.gguf"
    return caught.value.message


def test_a_vocabulary_alone_is_refused() -> None:
    assert "no tensors" in refused(())
    assert "no tensors" in refused((), {"tokenizer.ggml.model": "gpt2"})


def test_a_description_for_a_dry_run_is_read() -> None:
    spec = read((), {"tokenizer.ggml.model": "none"})
    assert len(spec.layers) == 2
    assert "no tensors" in spec.notes[-1]


def test_layers_without_a_tensor_are_named() -> None:
    assert len(read(LLAMA_TENSORS).layers) == 2
    assert "of 2 of its 2 layers (blk.0, blk.1)" in refused(["token_embd.weight"])
    second = [name for name in LLAMA_TENSORS if not name.startswith("blk.0.")]
    assert "of 1 of its 2 layers (blk.0)" in refused(second)
    many = refused(LLAMA_TENSORS, {"llama.block_count": 32})
    assert "of 30 of its 32 layers (blk.2, blk.3, blk.4, blk.5, …)" in many


def test_layers_that_keep_nothing_may_be_empty() -> None:
    pruned = {key.replace("llama.", "deci."): value for key, value in LLAMA.items()} | {
        "general.architecture": "deci",
        "deci.attention.head_count_kv": (2, 0),
        "deci.vocab_size": 1000,
    }
    first = [name for name in LLAMA_TENSORS if not name.startswith("blk.1.")]
    assert [len(layer.caches) for layer in read(first, pruned).layers] == [1, 0]


def test_modules_for_further_tokens_may_be_a_file_of_their_own() -> None:
    stated = {"llama.block_count": 3, "llama.nextn_predict_layers": 1}
    modules = ["token_embd.weight", "blk.2.attn_q.weight", "blk.2.nextn.eh_proj.weight"]
    assert len(read(modules, stated).layers) == 2
    assert "(blk.1)" in refused([*modules, "blk.0.attn_q.weight"], stated)


def test_the_parts_of_a_split_file_are_looked_at_together(tmp_path: Path) -> None:
    names = list(LLAMA_TENSORS)
    shares = ([], names[:9], names[9:])  # the first part may hold metadata alone
    for number, share in enumerate(shares, 1):
        stated = LLAMA if number == 1 else {}
        path = tmp_path / f"m-{number:05d}-of-00003.gguf"
        path.write_bytes(header(stated, {name: LLAMA_TENSORS[name] for name in share}))
    whole = tmp_path / "whole.gguf"
    whole.write_bytes(header(LLAMA, LLAMA_TENSORS))
    assert read_model(read_path(path)).weights == read_model(read_path(whole)).weights
