"""Defaults of a batch by release, device and entry point, and what is clamped to what."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.engines.base import parse_version
from kvplan.engines.vllm import batches, defaults
from kvplan.engines.vllm.defaults import Attention, Batch, Entry
from kvplan.errors import EngineRefusesError
from kvplan.hardware import device_memory
from kvplan.sources.gpus import find_gpu


def default(gpu: str, version: str, entry: Entry = "serve") -> tuple[int, int]:
    spec = find_gpu(gpu)
    memory = device_memory(spec).total
    found = defaults.batch(spec, memory, version=parse_version(version), entry=entry)
    return found.tokens, found.seqs


@pytest.mark.parametrize(
    ("gpu", "tokens", "requests"),
    [
        ("T4", 2048, 256),
        ("L4", 2048, 256),
        ("RTX 4090", 2048, 256),
        ("L40S", 2048, 256),
        ("A100-SXM-40GB", 2048, 256),
        ("A100-SXM-80GB", 2048, 256),
        ("A100-PCIe-80GB", 2048, 256),
        ("GB10", 2048, 256),
        ("H100", 8192, 1024),
        ("H100-NVL-94GB", 8192, 1024),
        ("H200", 8192, 1024),
        ("B200", 16384, 1024),
        ("custom:70GiB", 8192, 1024),
        ("custom:69.9GiB", 2048, 256),
        ("custom:160GiB", 16384, 1024),
        ("custom:159.9GiB", 8192, 1024),
    ],
)
def test_the_newest_release_by_device(gpu: str, tokens: int, requests: int) -> None:
    assert default(gpu, "0.33.0") == (tokens, requests)


@pytest.mark.parametrize(
    ("gpu", "version", "serve", "llm"),
    [
        ("A100-SXM-80GB", "0.8.4", (2048, 1024), (8192, 1024)),
        ("H100", "0.8.4", (8192, 1024), (16384, 1024)),
        ("L40S", "0.8.0", (2048, 1024), (8192, 1024)),
        ("A100-SXM-80GB", "0.8.5", (8192, 1024), (16384, 1024)),
        ("L40S", "0.8.5", (2048, 256), (8192, 256)),
        ("A100-SXM-80GB", "0.9.0", (2048, 256), (8192, 256)),
        ("B200", "0.27.1", (8192, 1024), (16384, 1024)),
        ("B200", "0.28.0", (16384, 1024), (16384, 1024)),
        ("GB10", "0.32.0", (8192, 1024), (16384, 1024)),
        ("GB10", "0.33.0", (2048, 256), (8192, 256)),
        ("H100", "0.33.0", (8192, 1024), (16384, 1024)),
        ("H100", "1.2.0", (8192, 1024), (16384, 1024)),
    ],
)
def test_dated_rows(gpu: str, version: str, serve: tuple[int, int], llm: tuple[int, int]) -> None:
    assert default(gpu, version) == serve
    assert default(gpu, version, "llm") == llm
    assert default(gpu, version, "other") == (2048, 128)


def test_rows_are_dated_in_order_and_sourced() -> None:
    dates = [table.since for table in defaults.TABLES]
    assert dates == sorted(set(dates))
    assert all(table.source for table in defaults.TABLES)


def resolved(
    options: dict[str, Any],
    version: str = "0.33.0",
    *,
    context: int = 8192,
    dp: int = 1,
    attention: Attention = "decoder",
    gpu: str = "H100",
) -> tuple[int, int]:
    spec = find_gpu(gpu)
    at = batches.Situation(
        gpu=spec,
        total_bytes=device_memory(spec).total,
        context=context,
        dp=dp,
        version=parse_version(version),
        attention=attention,
    )
    found = batches.resolve(options, at)
    assert isinstance(found, Batch)
    return found.tokens, found.seqs


@pytest.mark.parametrize(
    ("version", "options", "context", "expected"),
    [
        # Requests within tokens: since 0.10.1.
        ("0.10.1", {"max_num_batched_tokens": 512}, 8192, (512, 512)),
        # Tokens within what the requests can have: since 0.11.2.
        ("0.11.0", {"max_num_seqs": 2}, 100, (8192, 2)),
        ("0.11.2", {"max_num_seqs": 2}, 100, (200, 2)),
        # Chunking can be switched off: since 0.11.2.
        ("0.11.0", {"enable_chunked_prefill": False}, 100_000, (8192, 1024)),
        ("0.11.2", {"enable_chunked_prefill": False}, 100_000, (100_000, 1024)),
        ("0.33.0", {"enable_chunked_prefill": False}, 1000, (8192, 1024)),
        # Throughput mode: since 0.17.
        ("0.16.0", {"performance_mode": "throughput"}, 8192, (8192, 1024)),
        ("0.17.0", {"performance_mode": "throughput"}, 8192, (16384, 2048)),
        ("0.33.0", {"performance_mode": "throughput", "max_num_seqs": 8}, 8192, (16384, 8)),
        ("0.33.0", {"performance_mode": "balanced"}, 8192, (8192, 1024)),
        ("0.33.0", {"usage_context": "llm"}, 8192, (16384, 1024)),
        ("0.33.0", {"usage_context": "other"}, 8192, (2048, 128)),
        # V0: one figure, or the whole length where it does not chunk.
        ("0.6.6", {}, 8192, (8192, 256)),
        ("0.6.6", {}, 1024, (2048, 256)),
        ("0.7.3", {}, 32768, (32768, 256)),
        ("0.7.3", {}, 32769, (2048, 256)),
        ("0.7.3", {"enable_chunked_prefill": False}, 131072, (131072, 256)),
        ("0.9.2", {"use_v1": False}, 8192, (8192, 256)),
        ("0.9.2", {"use_v1": False}, 4, (1024, 256)),
        ("0.8.5", {"use_v1": False}, 4, (2048, 256)),
        ("0.9.2", {"use_v1": True}, 8192, (8192, 1024)),
        ("0.7.3", {"enable_chunked_prefill": True, "usage_context": "llm"}, 8192, (2048, 256)),
    ],
)
def test_steps(
    version: str, options: dict[str, Any], context: int, expected: tuple[int, int]
) -> None:
    assert resolved(options, version, context=context) == expected


@pytest.mark.parametrize("version", ["0.9.2", "0.10.0"])
def test_older_releases_refuse_few_tokens_rather_than_clamp_requests(version: str) -> None:
    with pytest.raises(EngineRefusesError, match=r"max_num_seqs \(1,024\) above"):
        resolved({"max_num_batched_tokens": 512}, version)


@pytest.mark.parametrize(
    ("version", "dp", "options", "tokens"),
    [
        ("0.20.0", 8, {}, 256),
        ("0.19.0", 8, {}, 8192),
        ("0.20.0", 1, {}, 8192),
        ("0.20.0", 8, {"enable_expert_parallel": False}, 8192),
        ("0.20.0", 8, {"all2all_backend": "pplx"}, 8192),
        ("0.20.0", 8, {"max_num_batched_tokens": 4096}, 4096),
    ],
)
def test_batched_experts_over_replicas_take_small_steps(
    version: str, dp: int, options: dict[str, Any], tokens: int
) -> None:
    usual = {"enable_expert_parallel": True, "all2all_backend": "deepep_low_latency"}
    assert resolved(usual | options, version, dp=dp)[0] == tokens


@pytest.mark.parametrize(
    ("version", "attention", "cached"),
    [
        ("0.33.0", "decoder", True),
        ("0.33.0", "hybrid", True),
        ("0.28.0", "hybrid", True),
        ("0.27.1", "hybrid", False),
        ("0.10.2", "hybrid", False),
        ("0.33.0", "attention_free", False),
        ("0.33.0", "encoder_decoder", False),
        ("0.8.0", "decoder", True),
        ("0.7.3", "decoder", False),
    ],
)
def test_prefix_caching_goes_by_what_a_model_keeps(
    version: str,
    attention: Attention,
    cached: bool,  # noqa: FBT001
) -> None:
    assert defaults.caches_prefixes(parse_version(version), attention) is cached


def test_v0_caches_no_prefixes() -> None:
    assert not defaults.caches_prefixes((0, 9), "decoder", v0=True)
    assert defaults.is_v0((0, 9), use_v1=False)
    assert not defaults.is_v0((0, 9), use_v1=None)


def test_an_encoder_decoder_reads_its_whole_input_at_once() -> None:
    assert resolved({}, attention="encoder_decoder", context=100_000) == (100_000, 1024)
    assert resolved({}, attention="encoder_decoder", context=448) == (8192, 1024)
