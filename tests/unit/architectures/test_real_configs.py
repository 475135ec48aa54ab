"""Real configuration files, hundreds of them: read or refused, never anything else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kvplan.architectures import read_model
from kvplan.architectures.table import FAMILIES
from kvplan.architectures.wrappers.table import WRAPPERS
from kvplan.errors import InputError, NotModelledError
from kvplan.models.facts import ModelFacts
from kvplan.models.formats import PLAIN
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout, rank_bytes, stored_bytes

KNOWN = {*FAMILIES, *WRAPPERS}


class Read(NamedTuple):
    """One configuration and what became of it."""

    name: str
    config: dict[str, Any]
    result: ModelSpec | InputError | NotModelledError


def facts_of(path: Path, total: int | None = None) -> ModelFacts:
    beside = path.with_name("hf_quant_config.json")
    return ModelFacts(
        id=path.parent.name,
        source=str(path),
        config=json.loads(path.read_text()),
        quantization=json.loads(beside.read_text()) if beside.exists() else None,
        checkpoint_bytes=total,
    )


def everything(shared: Path) -> Iterator[Read]:
    for path in sorted(shared.glob("configs/*/config*.json")):
        facts = facts_of(path)
        try:
            yield Read(path.parent.name, facts.config, read_model(facts))
        except (InputError, NotModelledError) as error:
            yield Read(path.parent.name, facts.config, error)


def test_every_file_is_read_or_refused(shared: Path) -> None:
    results = list(everything(shared))
    sized = [read for read in results if isinstance(read.result, ModelSpec)]
    assert len(results) >= 400
    assert len(sized) >= 350
    for read in results:
        if isinstance(read.result, Exception):
            assert read.result.message.endswith(".")
            assert read.result.hint


# Folders whose models are no decoders of text, nor wrap one: encoders, an embedder, translators of
# speech, a segmenter of images.
NO_DECODERS = {
    "BAAI--bge-large-en",
    "facebook--seamless-m4t-v2-large",
    "google--umt5-xxl",
    "nvidia--NV-Embed-v2",
    "tiiuae--Falcon-Perception",
}


def test_nearly_every_decoder_is_sized(
    shared: Path, record_property: Callable[[str, object], None]
) -> None:
    """At least 97 of 100 folders; the others are listed after the run, with the reason."""
    results = list(everything(shared))
    folders = {read.name for read in results}
    refused = {read.name: read.result for read in results if isinstance(read.result, Exception)}
    width = max(map(len, refused))
    lines = [f"{name:{width}}  {error.message}" for name, error in sorted(refused.items())]
    decoders = folders - NO_DECODERS
    share = 1 - len(refused.keys() - NO_DECODERS) / len(decoders)
    lines.append(
        f"{len(folders) - len(refused)} of {len(folders)} folders sized;"
        f" of {len(decoders)} with a decoder of text, {share:.1%}"
    )
    record_property("table: configurations that are refused", "\n".join(lines))
    assert refused.keys() >= NO_DECODERS
    assert share >= 0.97


def test_a_known_type_is_refused_for_its_class_or_its_quantization_only(shared: Path) -> None:
    reasons = (
        " is built on ",
        "Quantization by ",
        " with a tower ",
        " alone: it keeps no ",
        "Drafts of class ",
    )
    for read in everything(shared):
        if read.config.get("model_type") in KNOWN and isinstance(read.result, Exception):
            assert any(reason in read.result.message for reason in reasons), read.name


def test_everything_that_is_read_can_be_placed_on_ranks(shared: Path) -> None:
    for read in everything(shared):
        spec = read.result
        if isinstance(spec, ModelSpec):
            plain, layers = PLAIN["bfloat16"], (0, len(spec.layers))
            whole = sum(
                rank_bytes(
                    spec.weights, plain, RankLayout(layers=layers, vocab_multiple=1), tied=False
                ).values()
            )
            stored = stored_bytes(spec.weights, plain)
            assert whole == sum(stored.values()) - stored.get("mtp", 0), read.name
            eighth = sum(
                rank_bytes(
                    spec.weights, plain, RankLayout(tp=8, layers=layers), tied=False
                ).values()
            )
            assert whole / 8 <= eighth < whole, read.name


# Files that hold something else than the model's weights, or whose index is wrong.
DIFFERENT = {
    "Orenguteng--Lexi-Llama-3-8B-Uncensored",  # its index claims 1.5 GiB more than the tensors
    "tiiuae--falcon-180B-chat",  # a copy of the tied head
    "tiiuae--falcon-40b-refinedweb",  # likewise
    "THUDM--chatglm-6b",  # its index is of the release with 150,528 tokens
    "MBZUAI--AIN",  # in float32, though it says bfloat16
    "mustafaaljadery--llama3v",  # likewise, and with a tower that nothing sizes
    "bryce-hoehn--Qwen3.5-18B-REAP-A3B-Coding",  # states a draft module that it does not hold
    "bryce-hoehn--Qwen3.5-25B-REAP-A3B-Coding",  # likewise
    "Youssofal--Qwen3.8-27B-MTPLX-Optimized-Speed",  # the total leaves out the draft module
}


def test_computed_bytes_equal_the_indexes(shared: Path) -> None:
    """Within half a percent for every index, and to the byte for most."""
    rows = map(json.loads, (shared / "configs" / "models.jsonl").read_text().splitlines())
    exact = 0
    for row in rows:
        name = row["model"].replace("/", "--")
        known = row["model_type"] in KNOWN and name not in DIFFERENT
        if not row["total_size"] or not known:
            continue
        path = shared / "configs" / name / "config.json"
        spec = read_model(facts_of(path, int(row["total_size"])))
        assert not any("the files may hold" in note for note in spec.notes), name
        computed = sum(stored_bytes(spec.weights, PLAIN[spec.dtype]).values())
        exact += computed == int(row["total_size"])
    assert exact >= 50
