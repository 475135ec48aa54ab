"""Prometheus pages of running engines, from files and from a server on this machine."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kvplan.errors import FactsError, InputError, UsageError
from kvplan.measurement import LiveLoad, Measurement
from kvplan.sources import metrics_page
from kvplan.sources.metrics import read_metrics

FOLDER = Path(__file__).parents[2] / "data" / "metrics"


def page(name: str) -> list[Measurement]:
    return list(read_metrics(str(FOLDER / name)))


def live(record: Measurement) -> LiveLoad:
    return LiveLoad.model_validate((record.model_extra or {})["live"])


def test_a_page_of_the_newest_vllm() -> None:
    busy, idle, full = page("vllm-0.33.0-dp.prom")
    assert (busy.engine, busy.model, busy.outcome) == ("vllm", "Qwen/Qwen3-8B", "started")
    assert (busy.num_gpu_blocks, busy.block_size, busy.kv_tokens) == (25281, 16, 404480)
    assert (busy.gpu_memory_utilization, busy.kv_cache_dtype) == (0.92, "auto")
    assert busy.max_concurrency == 9.875
    # One of the 25,281 blocks is nobody's.
    assert live(busy) == LiveLoad(
        usage=0.75,
        used_blocks=18960,
        free_blocks=6320,
        free_tokens=101120,
        free_tokens_at_most=101120,
        running=12,
        waiting=4,
        preemptions=7,
        prefix_hit_rate=0.25,
    )
    assert (live(idle).free_blocks, live(idle).free_tokens) == (25280, 404480)
    assert (live(full).free_blocks, live(full).free_tokens) == (0, 0)
    assert [(record.id or "")[-3:] for record in (busy, idle, full)] == ["m#0", "m#1", "#10"]


def test_an_older_page_has_the_share_of_all_blocks() -> None:
    (record,) = page("vllm-0.8.5.prom")
    assert (record.kv_cache_dtype, record.kv_tokens) == ("fp8", None)
    now = live(record)
    assert (now.used_blocks, now.free_blocks, now.free_tokens) == (10000, 10000, None)
    assert (now.free_tokens_at_most, now.prefix_hit_rate) == (160000, 0.25)


def test_a_page_of_v0() -> None:
    (record,) = page("vllm-0.6.6.prom")
    assert (record.num_gpu_blocks, record.gpu_memory_utilization) == (28000, 0.9)
    now = live(record)
    assert (now.used_blocks, now.free_blocks, now.running, now.waiting) == (7000, 21000, 3, 1)
    assert (now.preemptions, now.prefix_hit_rate) == (2, None)


def test_pages_of_sglang() -> None:
    (record,) = page("sglang-0.5.10.prom")
    assert (record.engine, record.kv_tokens, record.block_size) == ("sglang", 388110, 1)
    now = live(record)
    assert (now.free_tokens, now.running, now.waiting, now.preemptions) == (288110, 5, 2, 1)
    (old,) = page("sglang-0.4.4.prom")
    assert old.kv_tokens is None
    assert (live(old).free_tokens, live(old).running, live(old).usage) == (None, 5, 0.03)


def prom(tmp_path: Path, text: str) -> str:
    path = tmp_path / "page"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vllm:num_requests_running 1\n", LiveLoad(running=1)),
        ("vllm:num_requests_running NaN\nvllm:num_requests_waiting 2\n", LiveLoad(waiting=2)),
        ("vllm:num_requests_running -1\n", LiveLoad()),
        ("vllm:kv_cache_usage_perc 0.5\n", LiveLoad(usage=0.5)),
        (
            (
                'vllm:cache_config_info{num_gpu_blocks="None",block_size="x"} 1\n'
                "vllm:gpu_cache_usage_perc 0.5\n"
            ),
            LiveLoad(usage=0.5),
        ),
    ],
)
def test_what_a_page_lacks_is_unknown(tmp_path: Path, text: str, expected: LiveLoad) -> None:
    (record,) = read_metrics(prom(tmp_path, text))
    assert live(record) == expected


def test_a_usage_beyond_the_whole_frees_nothing(tmp_path: Path) -> None:
    info = 'vllm:cache_config_info{num_gpu_blocks="11",kv_cache_size_tokens="160"} 1\n'
    (record,) = read_metrics(prom(tmp_path, info + "vllm:kv_cache_usage_perc 7.5\n"))
    assert (live(record).free_blocks, live(record).free_tokens) == (None, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("process_cpu_seconds_total 1\n", "no figures of vLLM or SGLang"),
        ("", "no figures"),
        ("<html>not found</html>\n", "not a Prometheus page"),
        ('vllm:num_requests_running{a="b 1\n', "not a Prometheus page"),
        ("vllm:num_requests_running one\n", "not a Prometheus page"),
    ],
)
def test_what_is_no_page_is_said(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_metrics(prom(tmp_path, text))
    assert caught.value.hint


class _Handler(BaseHTTPRequestHandler):
    """Answers with what its server was told, once ``delay`` has passed."""

    def do_GET(self) -> None:
        server: Any = self.server
        server.asked.append((self.path, self.headers.get("User-Agent")))
        status, headers, body = server.answers.get(self.path, (404, {}, b"none"))
        time.sleep(server.delay)
        with contextlib.suppress(OSError):  # nobody waits any more
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@contextmanager
def served(answers: dict[str, tuple[int, dict[str, str], bytes]]) -> Iterator[Any]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.answers, server.asked, server.delay = answers, [], 0.0
    server.address = f"http://127.0.0.1:{server.server_port}"
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


BODY = (FOLDER / "vllm-0.33.0-dp.prom").read_bytes()


@pytest.mark.parametrize("path", ["/metrics", "", "/"])
def test_a_server_is_asked_for_its_page(path: str) -> None:
    with served({"/metrics": (200, {}, BODY)}) as server:
        records = list(read_metrics(server.address + path))
        assert server.asked[0][0] == "/metrics"
        assert server.asked[0][1].startswith("kvplan/")
    of_file = page("vllm-0.33.0-dp.prom")
    assert [live(record) for record in records] == [live(record) for record in of_file]
    assert records[0].source == f"{server.address}/metrics"


def test_redirects_are_followed_within_the_web() -> None:
    with served({"/metrics": (200, {}, BODY), "/old": (307, {"Location": "/metrics"}, b"")}) as s:
        assert len(read_metrics(f"{s.address}/old")) == 3


@pytest.mark.parametrize("target", ["file:///etc/hostname", "ftp://127.0.0.1/x", "data:,x"])
def test_redirects_elsewhere_are_refused(target: str) -> None:
    with (
        served({"/metrics": (302, {"Location": target}, b"")}) as server,
        pytest.raises(FactsError),
    ):
        read_metrics(server.address)


@pytest.mark.parametrize("status", [401, 404, 500, 503])
def test_an_error_of_the_server_is_told(status: int) -> None:
    with (
        served({"/metrics": (status, {}, b"")}) as server,
        pytest.raises(FactsError, match=f"answers {status}") as caught,
    ):
        read_metrics(server.address)
    assert caught.value.location == f"{server.address}/metrics"
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("kept", [0, 1, len(BODY) // 2, len(BODY) - 1])
def test_an_answer_that_breaks_off_is_no_page(kept: int) -> None:
    headers = {"Content-Length": str(len(BODY))}
    with (
        served({"/metrics": (200, headers, BODY[:kept])}) as server,
        pytest.raises(FactsError, match="breaks off") as caught,
    ):
        read_metrics(server.address)
    assert caught.value.exit_code == 3


def test_a_whole_answer_may_state_its_length() -> None:
    with served({"/metrics": (200, {"Content-Length": str(len(BODY))}, BODY)}) as server:
        assert len(read_metrics(server.address)) == 3


def test_a_number_that_is_cut_off_is_not_read(tmp_path: Path) -> None:
    text = "vllm:num_requests_waiting 2\nvllm:num_requests_running 12"
    (record,) = read_metrics(prom(tmp_path, text))
    assert (live(record).waiting, live(record).running) == (2, None)


@pytest.mark.parametrize("name", ["sglang-0.5.10.prom", "vllm-0.33.0-dp.prom", "vllm-0.8.5.prom"])
def test_a_page_cut_anywhere_says_nothing_else(tmp_path: Path, name: str) -> None:
    data, whole = (FOLDER / name).read_bytes(), [flat(record) for record in page(name)]
    path = tmp_path / "page"
    for place in range(0, len(data), 29):
        path.write_bytes(data[:place])
        try:
            cut = [flat(record) for record in read_metrics(str(path))]
        except InputError:
            continue
        for record in cut:
            for key, value in record.items():
                assert value is None or value in [each.get(key) for each in whole], (place, key)


def flat(record: Measurement) -> dict[str, Any]:
    """What a record says, without its name."""
    own = record.model_dump(exclude={"id", "source", "live"})
    return {**own, **live(record).model_dump()}


def test_nobody_is_there() -> None:
    with served({}) as server:
        address = server.address
    with pytest.raises(FactsError, match="Nobody can be asked there"):
        read_metrics(address)


def test_a_slow_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_page, "_PATIENCE", 0.2)
    with served({"/metrics": (200, {}, BODY)}) as server:
        server.delay = 1.0
        with pytest.raises(FactsError, match="in time"):
            read_metrics(server.address)


def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_page, "_SILENCE", 0.2)
    with served({"/metrics": (200, {}, BODY)}) as server:
        server.delay = 1.0
        with pytest.raises(FactsError, match="in time"):
            read_metrics(server.address)


def test_a_page_that_is_too_large(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(metrics_page, "PAGE_LIMIT", 100)
    with (
        served({"/metrics": (200, {}, BODY)}) as server,
        pytest.raises(InputError, match="more than 100 bytes"),
    ):
        read_metrics(server.address)
    with pytest.raises(InputError, match="at most 100"):
        read_metrics(prom(tmp_path, "x" * 200))


@pytest.mark.parametrize(
    "target",
    ["file:///etc/passwd", "ftp://host/x", "gopher://x/", "http://", "http://[::1", "http://h:x/"],
)
def test_other_addresses_are_refused(target: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_metrics(target)
    assert caught.value.hint


@pytest.mark.parametrize("place", ["127.0.0.1:1", "127.0.0.1:x"])
def test_a_password_is_neither_sent_nor_repeated(place: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_metrics(f"http://user:hunter2@{place}/metrics")
    assert "hunter2" not in f"{caught.value} {caught.value.hint}"


def test_a_key_in_the_address_is_not_repeated() -> None:
    with served({"/metrics?key=hunter2": (200, {}, BODY)}) as server:
        (record, *_) = read_metrics(f"{server.address}/metrics?key=hunter2")
    assert "hunter2" not in record.json_line()


def test_without_the_parser_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client.parser", None)
    with pytest.raises(UsageError, match="not installed") as caught:
        read_metrics(prom(tmp_path, "vllm:num_requests_running 1\n"))
    assert "kvplan-sizer[metrics]" in (caught.value.hint or "")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no file"):
        read_metrics(str(tmp_path / "none"))
