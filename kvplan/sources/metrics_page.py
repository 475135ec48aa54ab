"""A Prometheus page, from a server or a file, as plain samples."""

from __future__ import annotations

import http.client
import math
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from kvplan._version import __version__
from kvplan.errors import FactsError, InputError, KvplanError, UsageError, shown
from kvplan.sources.deadline import all_within
from kvplan.sources.files import too_large
from kvplan.sources.text_lines import STDIN_NAMES, opened

PAGE_LIMIT = 16 * 2**20  # bytes; a page of a busy server has some 200,000
_SILENCE, _PATIENCE = 10.0, 30.0  # seconds: between two bytes, and in all
_SCHEMES = ("http", "https")
_WHERE = "Name the page of a running server, as http://localhost:8000/metrics, or a file of it."


@dataclass(frozen=True)
class Sample:
    """One line of a page."""

    name: str
    labels: dict[str, str]
    value: float


def read_page(target: str) -> tuple[str, tuple[Sample, ...]]:
    """The samples of a page, and what the page is called: its address or path, without secrets.

    Args:
        target: An address (http or https; without a path ``/metrics`` is asked for), a file, or
            ``-`` for standard input.

    Raises:
        UsageError: no such file, an address of another kind, or the parser is not installed.
        FactsError: nobody answers there, or not with a page.
        InputError: it is no page, or larger than any.
    """
    address = _address(target)
    if address is None:
        name = "standard input" if target in STDIN_NAMES else target
        return name, _parse(_from_file(target), name)
    name = f"{address.scheme}://{address.netloc}{address.path}"
    return name, _parse(_from_server(address.geturl(), name), name)


def _address(target: str) -> SplitResult | None:
    if "://" not in target:
        return None
    try:
        parts = urlsplit(target)
        _ = parts.port
    except ValueError:
        # Not quoted: it may hold a password.
        raise UsageError("This is not the address of a page.", hint=_WHERE) from None
    if parts.scheme.lower() not in _SCHEMES or not parts.hostname:
        raise UsageError(f"Pages are not read over {shown(parts.scheme)}.", hint=_WHERE)
    if "@" in parts.netloc:
        raise UsageError(
            "The address holds a user or a password.",
            hint="Save the page with a tool that can log in, and name the file.",
        )
    return parts if parts.path not in ("", "/") else parts._replace(path="/metrics")


def _from_file(target: str) -> bytes:
    with opened(target) as stream:
        data = stream.read(PAGE_LIMIT + 1)
    if len(data) > PAGE_LIMIT:
        raise too_large(len(data), PAGE_LIMIT, target)
    return data


class _SameKindOnly(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http and https, and to nothing else."""

    def redirect_request(  # noqa: PLR0917  as urllib calls it
        self, req: Any, fp: Any, code: Any, msg: Any, headers: Any, newurl: str
    ) -> Any:
        if urlsplit(newurl).scheme not in _SCHEMES:
            fp.close()
            raise urllib.error.URLError("it redirects to something else than a web address")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """As urllib's own, without the handlers of files and FTP."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        _SameKindOnly(),
    ):
        opener.add_handler(handler)
    opener.addheaders = [("User-Agent", f"kvplan/{__version__}")]
    return opener


def _from_server(url: str, name: str) -> bytes:
    try:
        (data,) = all_within([lambda: _download(url)], seconds=_PATIENCE)
    except urllib.error.HTTPError as error:
        error.close()
        raise _unanswered(name, f"The server answers {error.code}", _WHERE) from None
    except TimeoutError:
        raise _unanswered(name, "The server does not answer in time", _RUNNING) from None
    except urllib.error.URLError as error:
        raise _unanswered(name, f"Nobody can be asked there: {_reason(error)}", _RUNNING) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _unanswered(name, f"The answer breaks off: {_words(error)}", _RUNNING) from None
    if len(data) > PAGE_LIMIT:
        raise InputError(
            f"The page has more than {PAGE_LIMIT:,} bytes.", hint=_WHERE, location=name
        )
    return data


_RUNNING = "Check that the server runs, and that this machine may reach it."


def _download(url: str) -> bytes:
    request = urllib.request.Request(url, headers={"Accept": "text/plain;version=0.0.4"})  # noqa: S310
    with _opener().open(request, timeout=_SILENCE) as answer:
        data: bytes = answer.read(PAGE_LIMIT + 1)
        # A read that is told how much to take does not say that the rest is missing.
        if len(data) <= PAGE_LIMIT and getattr(answer, "length", None):
            whole = len(data) + answer.length
            raise ConnectionError(f"{len(data):,} of {whole:,} bytes came")
    return data


def _reason(error: urllib.error.URLError) -> str:
    return _words(error.reason) if isinstance(error.reason, Exception) else str(error.reason)


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (isinstance(error, OSError) and error.strerror) or str(error) or type(error).__name__


def _unanswered(name: str, sentence: str, hint: str) -> KvplanError:
    return FactsError(f"{sentence}.", hint=hint, location=name)


def _parse(data: bytes, name: str) -> tuple[Sample, ...]:
    try:
        from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415
    except ImportError:
        raise UsageError(
            "Reading a metrics page needs prometheus-client, which is not installed.",
            hint="Install it with: pip install 'kvplan-sizer[metrics]'",
        ) from None
    try:
        families = text_string_to_metric_families(_whole_lines(data).decode("utf-8"))
        return tuple(_samples(families))
    except Exception as error:  # noqa: BLE001  the parser fails on junk in many ways
        raise InputError(
            f"This is not a Prometheus page: {shown(str(error))}.", hint=_WHERE, location=name
        ) from None


def _whole_lines(data: bytes) -> bytes:
    """Without a last line that has no end: every line of a page ends, so it is cut off."""
    return data[: data.rfind(b"\n") + 1]


def _samples(families: Any) -> Iterator[Sample]:
    for family in families:
        for each in family.samples:
            value = float(each.value)
            if math.isfinite(value):
                yield Sample(each.name, dict(each.labels), value)
