"""Variables of the Hub's client that would make it fail: a sentence, and no secret in it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kvplan.errors import UsageError
from kvplan.sources.hub import check_endpoint, check_token
from kvplan.sources.models import read_model

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.fixture(autouse=True)
def _online(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "address",
    [
        "https://[::1",
        "http://127.0.0.1:99999",
        "huggingface.co",
        "ftp://x",
        "http://",
        "http://a b",
    ],
)
def test_an_endpoint_that_is_no_address(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    with pytest.raises(UsageError, match="HF_ENDPOINT") as caught:
        read_model(LLAMA)
    assert address not in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("address", ["", " ", "https://huggingface.co", "http://me:x@[::1]:80/hub"])
def test_an_endpoint_that_may_be_asked(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    check_endpoint()


def test_an_empty_endpoint_is_none() -> None:
    code = (
        "import os\n"
        "from kvplan.sources import hub\n"
        "with hub.quiet(): print(hub.endpoint(), repr(os.environ['HF_ENDPOINT']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HF_ENDPOINT": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("https://huggingface.co ''\n", "")


@pytest.mark.parametrize("token", ["hf_secr\u00e9t", "hf_sec\x01ret"])
def test_a_token_that_no_request_can_carry(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(UsageError, match="HF_TOKEN") as caught:
        check_token()
    assert "sec" not in caught.value.message
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    check_token()
