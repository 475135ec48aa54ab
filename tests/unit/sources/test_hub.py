"""The real huggingface_hub client against a Hub on this machine.

Each call runs in its own process, because the client reads its environment once, at import.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from loopback_hub import COMMIT, LoopbackHub, Repo, running
from safetensors_files import header_bytes

DRIVER = """
import json, sys
from kvplan.errors import KvplanError
from kvplan.sources import hub, {module}
hub.TOTAL_SECONDS = {seconds}
try:
    facts = {module}.{call}
except KvplanError as error:
    print(json.dumps({{"error": type(error).__name__, "exit": error.exit_code,
        "message": str(error), "hint": error.hint or ""}}))
else:
    print(facts.model_dump_json())
"""
CONFIG = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2}
NAME = "org/model"
BUNDLED = "meta-llama/Llama-3.1-8B-Instruct"


@dataclass
class Answer:
    """What one process printed: facts or an error, and its stderr."""

    data: dict[str, Any]
    stderr: str
    seconds: float

    @property
    def notes(self) -> str:
        return "\n".join(self.data["notes"])


Ask = Callable[..., Answer]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Runs one call of kvplan against an endpoint, with a cache that lasts for the test."""

    def run(
        endpoint: str, call: str, *, module: str = "hub_model", seconds: float = 30, **extra: str
    ) -> Answer:
        environment = {
            **os.environ,
            "HF_HOME": str(tmp_path / "hf"),
            "HF_ENDPOINT": endpoint,
            "HF_TOKEN": "hf_secretsecret",
            "NO_PROXY": "127.0.0.1",
            **extra,
        }
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-c", DRIVER.format(module=module, call=call, seconds=seconds)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "hf_secretsecret" not in done.stdout + done.stderr
        return Answer(json.loads(done.stdout), done.stderr, time.monotonic() - begin)

    return run


@pytest.fixture
def repo() -> Repo:
    """A small model in two shards with an index."""
    first, first_size = header_bytes({"embed": ("BF16", [100, 64])})
    second, second_size = header_bytes({"head": ("F8_E4M3", [100, 64]), "scale": ("F32", [1])})
    index = {
        "metadata": {"total_size": 19204},
        "weight_map": {"embed": "a.safetensors", "head": "b.safetensors", "scale": "b.safetensors"},
    }
    return Repo(
        files={
            "config.json": json.dumps(CONFIG).encode(),
            "model.safetensors.index.json": json.dumps(index).encode(),
            "a.safetensors": first,
            "b.safetensors": second,
        },
        sizes={"a.safetensors": first_size, "b.safetensors": second_size},
    )


@pytest.fixture
def hub(repo: Repo) -> Iterator[LoopbackHub]:
    """The server with that model under its name."""
    with running({NAME: repo}) as server:
        yield server


def read(revision: str | None = None, *, offline: bool = False) -> str:
    return f"read_hub({NAME!r}, revision={revision!r}, offline={offline})"


def read_any(name: str, *, offline: bool = False) -> str:
    return f"read_model({name!r}, offline={offline})"


def test_found(hub: LoopbackHub, ask: Ask) -> None:
    """Configuration, commit and headers; nothing of a tensor, nothing on stderr."""
    answer = ask(hub.url, read())
    facts = answer.data
    assert facts["config"] == CONFIG
    assert facts["revision"] == COMMIT
    assert facts["source"] == f"{hub.url}/{NAME}/blob/{COMMIT}/config.json"
    assert {(t["name"], t["dtype"], tuple(t["shape"]), t["size"]) for t in facts["tensors"]} == {
        ("embed", "BF16", (100, 64), 12800),
        ("head", "F8_E4M3", (100, 64), 6400),
        ("scale", "F32", (1,), 4),
    }
    assert facts["checkpoint_bytes"] == 19204
    assert facts["notes"] == []
    assert answer.stderr == ""
    assert not [line for line in hub.requests if "harness" in line]


def test_everything_is_read_at_one_commit(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    """A branch may be asked for once; what follows names the commit."""
    repo.files["hf_quant_config.json"] = b'{"quantization": {"quant_algo": "FP8"}}'
    facts = ask(hub.url, read()).data
    assert facts["quantization"] == {"quantization": {"quant_algo": "FP8"}}
    files = [line.split("/resolve/")[1] for line in hub.requests if "/resolve/" in line]
    assert {line for line in files if not line.endswith("/config.json")} == {
        f"{COMMIT}/{name}" for name in repo.files if name != "config.json"
    }


def test_a_revision_is_resolved(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    commit = "f" * 40
    repo.branches = {"v2": commit, commit: commit, "refs/pr/1": commit}
    assert ask(hub.url, read("v2")).data["revision"] == commit
    assert ask(hub.url, read(commit)).data["revision"] == commit
    assert ask(hub.url, read("refs/pr/1")).data["revision"] == commit


def test_a_branch_that_moves_in_between(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    """The file's own commit wins, and the rest is asked for again at that commit."""
    moved = "e" * 40
    repo.branches = {moved: moved}

    def revision(name: str) -> str | None:
        if name == "main":
            return COMMIT if len(hub.requests) <= 1 else moved
        return moved if name == moved else None

    repo.revision = revision  # type: ignore[method-assign]
    facts = ask(hub.url, read()).data
    assert facts["revision"] == moved
    assert facts["tensors"] is not None
    assert f"GET /api/models/{NAME}/revision/{moved}" in hub.requests


def test_cached(hub: LoopbackHub, ask: Ask) -> None:
    """What was read once is there offline, by either way of saying so, and with the Hub gone."""
    ask(hub.url, read())
    hub.requests.clear()
    offline = ask(hub.url, read(offline=True))
    assert offline.data["config"] == CONFIG
    assert offline.data["revision"] == COMMIT
    assert offline.data["tensors"] is None
    assert offline.data["checkpoint_bytes"] == 19204  # by the cached index
    assert "cache" in offline.data["source"]
    assert "headers" in offline.notes
    assert ask(hub.url, read(), HF_HUB_OFFLINE="1").data["config"] == CONFIG
    assert ask(hub.url, read(COMMIT, offline=True)).data["revision"] == COMMIT
    assert hub.requests == []
    hub.stop()
    gone = ask(hub.url, read_any(NAME), module="models")
    assert gone.data["config"] == CONFIG
    assert "can't be reached" in gone.notes
    assert "cache" in gone.notes
    assert gone.stderr == ""


def test_offline_and_not_cached(ask: Ask) -> None:
    """Offline is an error of its own, and takes no time."""
    answer = ask("http://127.0.0.1:9", read(offline=True))
    assert answer.data["error"] == "HubUnreachableError"
    assert answer.data["exit"] == 3
    assert "cache" in answer.data["message"]
    answer = ask("http://127.0.0.1:9", read_any(NAME), module="models", HF_HUB_OFFLINE="1")
    assert answer.data["error"] == "ModelNotFoundError"


@pytest.mark.parametrize("status", [401, 403])
def test_gated(hub: LoopbackHub, repo: Repo, ask: Ask, status: int) -> None:
    """The Hub shows a gated repository and refuses its files."""
    repo.gated = status
    answer = ask(hub.url, read())
    assert answer.data["error"] == "GatedModelError"
    assert answer.data["exit"] == 3
    assert f"{hub.url}/{NAME}" in answer.data["hint"]
    assert "HF_TOKEN" in answer.data["hint"]
    assert answer.stderr == ""


@pytest.mark.parametrize("status", [401, 403])
def test_refused_altogether(hub: LoopbackHub, repo: Repo, ask: Ask, status: int) -> None:
    """A private repository, or a token that is no good."""
    repo.status = status
    assert ask(hub.url, read()).data["error"] == "GatedModelError"


def test_one_file_refused(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    """The client wraps this in an error about its cache."""
    repo.file_status = {"config.json": 403}
    answer = ask(hub.url, read())
    assert answer.data["error"] == "GatedModelError"
    assert "HTTP 403" in answer.data["message"]


def test_retries_are_silent(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    """The client tries again for longer than kvplan waits, and logs each time."""
    repo.file_status = {"config.json": 503}
    answer = ask(hub.url, read(), seconds=2, HF_HUB_DOWNLOAD_TIMEOUT="1")
    assert answer.data["error"] == "HubUnreachableError"
    assert answer.stderr == ""


def test_missing(hub: LoopbackHub, ask: Ask) -> None:
    """No such model: exit 3, with the bundled names that look like it."""
    answer = ask(hub.url, read_any("meta-llama/Llama-3.1-9B-Instruct"), module="models")
    assert answer.data["error"] == "ModelNotFoundError"
    assert answer.data["exit"] == 3
    assert BUNDLED in answer.data["hint"]


def test_missing_revision(hub: LoopbackHub, ask: Ask) -> None:
    answer = ask(hub.url, read("nowhere"))
    assert answer.data["error"] == "ModelNotFoundError"
    assert "'nowhere'" in answer.data["message"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"model-Q4_K_M.gguf": b"GGUF"}, "GGUF files"),
        ({"model_index.json": b"{}"}, "diffusers"),
        ({"adapter_config.json": b"{}"}, "LoRA adapter"),
        ({"README.md": b""}, "README.md"),
    ],
)
def test_no_config(
    hub: LoopbackHub, repo: Repo, ask: Ask, files: dict[str, bytes], said: str
) -> None:
    """The message says what the repository has instead."""
    repo.files = files
    repo.sizes = {}
    answer = ask(hub.url, read())
    assert answer.data["error"] == "ModelNotFoundError"
    assert said in answer.data["message"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[:50], "not whole"),
        (lambda data: data[:4], "not whole"),
        (lambda data: b"\xff" * 7 + b"\x7f" + data[8:], "claims"),
        (lambda data: data.replace(b"BF16", b"BF32").replace(b"[0,12800]", b"[0,99999]"), "embed"),
        (lambda data: data.replace(b'"embed"', b'"embed '), "not JSON"),
    ],
)
def test_damaged_header(
    hub: LoopbackHub, repo: Repo, ask: Ask, damage: Callable[[bytes], bytes], said: str
) -> None:
    """The index stands in for headers that are not what they claim to be."""
    repo.files["a.safetensors"] = damage(repo.files["a.safetensors"])
    answer = ask(hub.url, read())
    assert answer.data["tensors"] is None
    assert answer.data["checkpoint_bytes"] == 19204
    assert answer.data["checkpoint_source"] == "model.safetensors.index.json"
    assert said in answer.notes
    assert answer.stderr == ""


def test_long_header(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    """A header beyond the first request is read in a second one."""
    tensors = {f"layers.{number}.{'x' * 60}": ("I8", [3]) for number in range(2000)}
    data, size = header_bytes(tensors)
    assert len(data) > 100_000
    repo.files = {"config.json": repo.files["config.json"], "model.safetensors": data}
    repo.sizes = {"model.safetensors": size}
    facts = ask(hub.url, read()).data
    assert len(facts["tensors"]) == 2000
    assert facts["checkpoint_bytes"] == 6000


def test_ranges_ignored(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    """A server that answers with the whole file is cut off after the header."""
    data, size = header_bytes({"embed": ("BF16", [2**18, 1024])})
    repo.files = {"config.json": repo.files["config.json"], "model.safetensors": data}
    repo.sizes = {"model.safetensors": size}
    repo.ignore_range = True
    facts = ask(hub.url, read()).data
    assert facts["checkpoint_bytes"] == 2**29
    assert hub.sent < 2**26


def test_pickled_weights(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    index = b'{"metadata": {"total_size": 23702829384.0}, "weight_map": {"a": "x.bin"}}'
    repo.files = {
        "config.json": repo.files["config.json"],
        "pytorch_model.bin.index.json": index,
        "x.bin": b"",
    }
    answer = ask(hub.url, read())
    assert answer.data["checkpoint_bytes"] == 23702829384
    assert "pickled" in answer.notes


def test_old_gptq(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    """A quantize_config.json becomes the quantization_config that newer checkpoints have."""
    repo.files["quantize_config.json"] = b'{"bits": 4, "group_size": 128, "desc_act": false}'
    assert ask(hub.url, read()).data["config"]["quantization_config"] == {
        "bits": 4,
        "group_size": 128,
        "desc_act": False,
        "quant_method": "gptq",
    }


def test_renamed(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    """Redirects are followed, the new name is shown, and the old one is found in the cache."""
    hub.repos = {NAME: Repo(renamed="new-org/new-model"), "new-org/new-model": repo}
    answer = ask(hub.url, read())
    assert answer.data["id"] == "new-org/new-model"
    assert "new-org/new-model" in answer.notes
    assert answer.data["tensors"] is not None
    assert ask(hub.url, read(offline=True)).data["config"] == CONFIG


def test_too_large_config(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    """A 50 MB config.json is refused by its size, before it is downloaded."""
    repo.files["config.json"] = b"{" + b" " * 50_000_000 + b"}"
    answer = ask(hub.url, read())
    assert answer.data["error"] == "InputError"
    assert "50,000,002 bytes" in answer.data["message"]
    assert hub.sent < 2**20


def test_broken_config(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    repo.files["config.json"] = b"<html>"
    answer = ask(hub.url, read())
    assert (answer.data["error"], answer.data["exit"]) == ("InputError", 2)
    assert f"{NAME}/blob/{COMMIT}/config.json:1:1" in answer.data["message"]


@pytest.mark.parametrize("status", [500, 503, 429])
def test_server_error(hub: LoopbackHub, repo: Repo, ask: Ask, status: int) -> None:
    repo.status = status
    answer = ask(hub.url, read())
    assert answer.data["error"] == "HubUnreachableError"
    assert f"HTTP {status}" in answer.data["message"]
    assert hub.url in answer.data["message"]
    assert "HF_ENDPOINT" in answer.data["hint"]
    assert answer.stderr == ""


@pytest.mark.parametrize("body", [b"<html>Log in to this network</html>", b"[]", b'{"id": 3}', b""])
def test_answer_without_sense(hub: LoopbackHub, repo: Repo, ask: Ask, body: bytes) -> None:
    """A captive portal says 200 to everything."""
    repo.body = body
    answer = ask(hub.url, read())
    assert answer.data["exit"] == 3
    assert answer.stderr == ""


def test_slow_server(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    """The client's own time-out is honoured."""
    repo.delay = 20
    answer = ask(hub.url, read(), HF_HUB_DOWNLOAD_TIMEOUT="1")
    assert answer.data["error"] == "HubUnreachableError"
    assert "in time" in answer.data["message"]
    assert answer.seconds < 10


def test_slow_weight_file(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    """Headers that don't come are a note, not an error."""
    repo.delay = 20
    repo.slow_files = ("b.safetensors",)
    answer = ask(hub.url, read(), HF_HUB_DOWNLOAD_TIMEOUT="1")
    assert answer.data["config"] == CONFIG
    assert answer.data["checkpoint_bytes"] == 19204
    assert "in time" in answer.notes
    assert answer.seconds < 10


def test_dripping_server(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    """A byte at a time outlasts every time-out of the client, but not the total."""
    repo.drip = 0.5
    answer = ask(hub.url, read(), seconds=2, HF_HUB_DOWNLOAD_TIMEOUT="1")
    assert "in time" in answer.data["message"]
    assert answer.data["exit"] == 3
    assert answer.seconds < 15


def test_connection_refused(ask: Ask) -> None:
    answer = ask("http://127.0.0.1:9", read())
    assert answer.data["error"] == "HubUnreachableError"
    assert "http://127.0.0.1:9" in answer.data["message"]
    assert answer.seconds < 20


def test_mirror_without_its_password(ask: Ask) -> None:
    """An address may hold a password, which is never shown."""
    answer = ask("http://me:secret@127.0.0.1:9/hub", read())
    assert "http://127.0.0.1:9/hub" in answer.data["message"]
    assert "secret" not in json.dumps(answer.data)


def test_token_is_sent(hub: LoopbackHub, ask: Ask) -> None:
    ask(hub.url, read())
    assert {headers["authorization"] for headers in hub.headers} == {"Bearer hf_secretsecret"}


def test_bundled_facts_stand_in(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    """Where the Hub refuses or is gone, what kvplan brings along is used, and said."""
    hub.repos = {BUNDLED: Repo(gated=403, files=repo.files)}
    gated = ask(hub.url, read_any(BUNDLED), module="models")
    assert gated.data["config"]["hidden_size"] == 4096
    assert "gated" in gated.notes
    assert "bundled facts" in gated.notes
    hub.repos = {}
    missing = ask(hub.url, read_any(BUNDLED), module="models")
    assert "has no model" in missing.notes
    wrong = ask(hub.url, read_any(f"{BUNDLED}@nowhere"), module="models")
    assert wrong.data["error"] == "ModelNotFoundError"
    hub.stop()
    gone = ask(hub.url, read_any(f"{BUNDLED}@main"), module="models")
    assert gone.data["config"]["hidden_size"] == 4096
    assert "can't be reached" in gone.notes
    assert "may differ" in gone.notes


def test_hub_before_bundled(hub: LoopbackHub, repo: Repo, ask: Ask) -> None:
    """A Hub that answers is believed."""
    hub.repos = {BUNDLED: repo}
    assert ask(hub.url, read_any(BUNDLED), module="models").data["config"] == CONFIG
