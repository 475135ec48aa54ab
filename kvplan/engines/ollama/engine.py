"""Ollama as the planner sees it: its defaults, then the llama-server it starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from kvplan.engines.base import DraftRequest, Setup
from kvplan.engines.llamacpp.deployment import LlamaCppDeployment
from kvplan.engines.llamacpp.engine import LlamaCpp
from kvplan.engines.llamacpp.wording import Wording
from kvplan.engines.ollama import history
from kvplan.engines.ollama.options import read_options
from kvplan.engines.ollama.server import Server, server_of
from kvplan.plan import Reason

NAME = "ollama"
_FILLED = ("num_ctx", "num_parallel", "num_batch", "num_gpu")


class Ollama:
    """The engine."""

    name = NAME
    newest = history.NEWEST
    unstated_context: int | None = None

    def draft_of(self, options: Mapping[str, Any]) -> DraftRequest | None:
        """None: drafts come with the model's own files.

        Raises:
            KvplanError: see `kvplan.engines.base.Engine`.
        """
        read_options(options)
        return None

    def prepare(self, setup: Setup) -> LlamaCppDeployment:
        """Works out what Ollama fills in, then as llama.cpp.

        Raises:
            EngineRefusesError, NotModelledError, UsageError: see `kvplan.engines.base.Engine`.
        """
        given = read_options(setup.options)
        version = setup.version or history.NEWEST
        build = history.build_of(version)
        server = server_of(setup, given)
        options = _translated(given, server)
        inner = LlamaCpp().prepare(replace(setup, version=build, options=options))
        wording = Wording(
            name=NAME,
            sequences="num_parallel",
            context="num_ctx",
            cache_type="-o kv_cache_type=q8_0",
            notes=(*server.reasons, *_newer(version)),
            options=_shown(given, server, build),
            assumed=tuple(name for name in _FILLED if name not in given),
        )
        return replace(inner, version=version, wording=wording)


def _translated(given: Mapping[str, Any], server: Server) -> dict[str, Any]:
    """llama-server's settings: one batch size for both, the context of all requests."""
    options: dict[str, Any] = {
        "n_ctx": server.num_ctx * server.parallel,
        "n_seq_max": server.parallel,
        "n_batch": server.batch,
        "n_ubatch": server.batch,
    }
    num_gpu = given.get("num_gpu", -1)
    options["n_gpu_layers"] = "auto" if num_gpu < 0 else num_gpu
    if "kv_cache_type" in given:
        options |= dict.fromkeys(("cache_type_k", "cache_type_v"), given["kv_cache_type"])
    if given.get("flash_attention") is not None:
        options["flash_attn"] = given["flash_attention"]
    return options


def _shown(given: Mapping[str, Any], server: Server, build: str) -> dict[str, Any]:
    return {
        "num_ctx": server.num_ctx,
        "num_parallel": server.parallel,
        "num_batch": server.batch,
        "num_gpu": given.get("num_gpu", -1),
        "kv_cache_type": given.get("kv_cache_type", "f16"),
        "llama.cpp": build,
    }


def _newer(version: str) -> Iterator[Reason]:
    if history.is_newer_than_modelled(version):
        yield Reason(
            code="engine_newer_than_modelled",
            message=(
                f"Ollama {version} is newer than the one that was read ({history.NEWEST}); its "
                "rules are taken from that."
            ),
        )
