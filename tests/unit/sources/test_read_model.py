"""What a person calls a model → its facts. The Hub is played by functions; see test_hub.py."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kvplan.errors import (
    FactsError,
    GatedModelError,
    HubUnreachableError,
    InputError,
    ModelNotFoundError,
    UsageError,
)
from kvplan.models.facts import ModelFacts
from kvplan.sources import hub_model
from kvplan.sources.models import read_model

BUNDLED = "meta-llama/Llama-3.1-8B-Instruct"
ONLINE = ModelFacts(id="x", source="the Hub", config={"from": "hub"}, notes=("One.",))
CACHED = ModelFacts(id="x", source="the cache", config={"from": "cache"})
Play = Callable[..., list[str]]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """Sets what the Hub and its cache answer; returns the list of what was asked."""

    def set_answers(
        online: ModelFacts | FactsError, cached: ModelFacts | FactsError | None = None
    ) -> list[str]:
        asked: list[str] = []

        def read_hub(
            repo_id: str, *, revision: str | None = None, offline: bool = False
        ) -> ModelFacts:
            asked.append(f"{'cache' if offline else 'hub'} {repo_id} {revision}")
            answer = (cached or HubUnreachableError("Not cached.")) if offline else online
            if isinstance(answer, FactsError):
                raise answer
            return answer

        monkeypatch.setattr(hub_model, "read_hub", read_hub)
        return asked

    return set_answers


def test_the_hub_first(play: Play) -> None:
    asked = play(ONLINE)
    assert read_model(BUNDLED) == ONLINE
    assert read_model("org/name@v1") == ONLINE
    assert asked == [f"hub {BUNDLED} None", "hub org/name v1"]


def test_offline_bundled_first(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    """Said in the notes, and nothing is asked; HF_HUB_OFFLINE means the same."""
    asked = play(ONLINE, CACHED)
    for facts in (read_model(BUNDLED, offline=True), read_model(BUNDLED.upper(), offline=True)):
        assert facts.config["hidden_size"] == 4096
        assert facts.id == BUNDLED
        assert "Offline" in facts.notes[0]
    monkeypatch.setenv("HF_HUB_OFFLINE", "yes")
    assert read_model(BUNDLED).config["hidden_size"] == 4096
    assert asked == []
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    assert read_model(BUNDLED) == ONLINE


def test_offline_then_the_cache(play: Play) -> None:
    asked = play(ONLINE, CACHED)
    facts = read_model("org/name", offline=True)
    assert facts.config == {"from": "cache"}
    assert "cache" in facts.notes[0]
    assert asked == ["cache org/name None"]


def test_offline_and_unknown(play: Play) -> None:
    play(ONLINE)
    with pytest.raises(ModelNotFoundError) as caught:
        read_model("meta-llama/Llama-3.1-9B-Instruct", offline=True)
    assert caught.value.hint is not None
    assert BUNDLED in caught.value.hint
    assert "--offline" in caught.value.hint


def test_a_revision_is_sought_in_the_cache_first(play: Play) -> None:
    play(ONLINE, CACHED)
    assert read_model(f"{BUNDLED}@v1", offline=True).config == {"from": "cache"}
    play(ONLINE)
    facts = read_model(f"{BUNDLED}@v1", offline=True)
    assert facts.config["hidden_size"] == 4096
    assert "may differ from the revision v1" in facts.notes[0]


def test_unreachable(play: Play) -> None:
    """Bundled facts, else the cache, else the error with names that look alike."""
    error = HubUnreachableError("The Hub is gone.", hint="Wait.")
    play(error, CACHED)
    facts = read_model(BUNDLED)
    assert facts.config["hidden_size"] == 4096
    assert facts.notes[0].startswith("The Hub is gone. The bundled facts")
    facts = read_model("org/name")
    assert facts.config == {"from": "cache"}
    assert facts.notes[0].startswith("The Hub is gone.")
    play(error)
    with pytest.raises(HubUnreachableError, match="gone") as caught:
        read_model("meta-llama/Llama-3.1-9B-Instruct")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("Wait. Did you mean")


@pytest.mark.parametrize("kind", [GatedModelError, ModelNotFoundError])
def test_refused(play: Play, kind: type[FactsError]) -> None:
    play(kind("No.", hint="Log in."))
    facts = read_model(BUNDLED)
    assert facts.config["hidden_size"] == 4096
    assert facts.notes[0].startswith("No. The bundled facts")
    with pytest.raises(kind, match="No"):
        read_model("org/name")


def test_a_revision_that_is_missing_is_not_replaced(play: Play) -> None:
    play(ModelNotFoundError("No such revision."))
    with pytest.raises(ModelNotFoundError):
        read_model(f"{BUNDLED}@typo")


def test_paths(play: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders, files and specs are read from disk, online or not."""
    asked = play(ONLINE)
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"model_type": "llama"}))
    spec = tmp_path / "mine.yaml"
    spec.write_text(
        "schema: kvplan.model/1\nid: me/mine\nconfig: {model_type: qwen3}\nsource: myself\n"
    )
    (tmp_path / "x.gguf").write_bytes(b"GGUF")
    monkeypatch.chdir(tmp_path)
    for offline in (False, True):
        assert read_model(str(tmp_path), offline=offline).config == {"model_type": "llama"}
        assert read_model("./config.json", offline=offline).config == {"model_type": "llama"}
        assert read_model("mine.yaml", offline=offline).id == "me/mine"
        with pytest.raises(InputError, match="GGUF"):
            read_model("x.gguf", offline=offline)
        with pytest.raises(UsageError):
            read_model("./nowhere", offline=offline)
        with pytest.raises(InputError):
            read_model("nowhere.yaml", offline=offline)
        with pytest.raises(UsageError):
            read_model("no name at all", offline=offline)
    assert asked == []


def test_only_one_module_imports_the_client() -> None:
    """And only when it is called: planning offline never waits for that import."""
    sources = Path(hub_model.__file__).parents[1]
    importing = {
        path.relative_to(sources).as_posix()
        for path in sources.rglob("*.py")
        if "import huggingface_hub" in path.read_text()
        or "from huggingface_hub" in path.read_text()
    }
    assert importing == {"sources/hub.py"}
    script = (
        "import sys\nfrom kvplan.sources.models import read_model\n"
        f"read_model({BUNDLED!r}, offline=True)\n"
        "print(sorted(m for m in sys.modules if m.startswith(('huggingface_hub', 'httpx'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"
