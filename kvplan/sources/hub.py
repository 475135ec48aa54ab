"""The Hub's own client: quiet, bounded in time, and with errors that people understand.

The only module that imports huggingface_hub, and only when it is called: the import takes longer
than planning. What a model is made of is the business of `hub_model`.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from kvplan._version import __version__
from kvplan.errors import KvplanError, UsageError
from kvplan.sources import files, hub_errors
from kvplan.sources.card import card_license
from kvplan.sources.deadline import THREAD_NAME, all_within
from kvplan.sources.references import is_model_id

ResultT = TypeVar("ResultT")

LIBRARY = "kvplan"
TOTAL_SECONDS = 30.0
_WORKERS = 8
_TRUE = frozenset({"1", "ON", "YES", "TRUE"})
_LONGEST_SIZE = 19  # digits


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository at one commit.

    Attributes:
        asked: The id that was asked for; the client keeps its cache under it.
        id: The id that the Hub gives it.
        commit: As the Hub resolved the revision.
        sizes: Bytes of each file by name, None where the Hub does not say.
        license: As the model's card states it, or None.
        until: When to give up (`time.monotonic`).
    """

    asked: str
    id: str
    commit: str
    sizes: Mapping[str, int | None]
    until: float
    license: str | None = None


def offline_by_environment() -> bool:
    """Whether HF_HUB_OFFLINE forbids asking the Hub, read as huggingface_hub reads it."""
    stated = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    return stated.upper() in _TRUE


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps the client's log, warnings and progress bars off stderr, and its telemetry off."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _import_without_telemetry()
        from huggingface_hub import utils  # noqa: PLC0415

        # Getting its logger this way also sets it up: it writes to stderr by itself.
        for handler in utils.logging.get_logger().handlers:
            handler.addFilter(_of_others)
        bars = not utils.are_progress_bars_disabled()
        utils.disable_progress_bars()
        try:
            yield
        finally:
            if bars:
                utils.enable_progress_bars()


def _of_others(record: logging.LogRecord) -> bool:
    """Drops what the client logs in our threads, even in one that was left behind.

    Whoever turned its log on (below the usual level of warnings) still gets everything.
    """
    wanted = logging.getLogger("huggingface_hub").level < logging.WARNING
    return wanted or record.threadName != THREAD_NAME


def _import_without_telemetry() -> None:
    """The client reads its settings once, at import; kvplan leaves the environment as it was."""
    if "huggingface_hub.constants" in sys.modules:
        return
    before = {name: os.environ.get(name) for name in ("HF_HUB_DISABLE_TELEMETRY", "HF_ENDPOINT")}
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    # Empty is unset; the client would take it for an address.
    if not (before["HF_ENDPOINT"] or "").strip():
        os.environ.pop("HF_ENDPOINT", None)
    try:
        import huggingface_hub.constants  # noqa: F401, PLC0415
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def check_endpoint() -> None:
    """Refuses an HF_ENDPOINT that is no address, before the client trips over it.

    Raises:
        UsageError: it is none. Its text is not shown: it may hold a password.
    """
    stated = os.environ.get("HF_ENDPOINT", "").strip()
    if stated and not _is_address(stated):
        raise UsageError(
            "HF_ENDPOINT is not the address of a Hub.",
            hint="Write it like https://huggingface.co, or unset it.",
        )


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        valid_port = parts.port is None or parts.port > 0
    except ValueError:  # a broken IPv6 host, or a port beyond 65535
        return False
    readable = text.isascii() and text.isprintable() and " " not in text
    return readable and parts.scheme in ("http", "https") and bool(parts.hostname) and valid_port


def check_token() -> None:
    """Refuses a token that no request could carry.

    Raises:
        UsageError: it has characters that no token has. Its value is not shown.
    """
    from huggingface_hub import get_token  # noqa: PLC0415

    token = get_token() or ""
    if not (token.isascii() and token.isprintable()):
        stated = any(os.environ.get(name) for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"))
        name = "HF_TOKEN" if stated else "The stored access token"
        raise UsageError(
            f"{name} has characters that no token of the Hub has.",
            hint="Check HF_TOKEN, or log in again with `hf auth login`.",
        )


def endpoint() -> str:
    """The Hub's address, without a password that may be in it."""
    from huggingface_hub import constants  # noqa: PLC0415

    parts = urlsplit(constants.ENDPOINT)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def resolve(repo_id: str, revision: str | None) -> Repository:
    """Asks for a repository's commit and its files.

    Raises:
        FactsError: gated, missing, or no answer in time.
    """
    from huggingface_hub import HfApi, constants  # noqa: PLC0415

    timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
    until = time.monotonic() + max(TOTAL_SECONDS, 3.0 * timeout)
    api = HfApi(library_name=LIBRARY, library_version=__version__)
    ask = partial(api.model_info, repo_id, revision=revision, timeout=timeout, files_metadata=True)
    info = _all([ask], until, repo_id, revision)[0]
    return Repository(
        asked=repo_id,
        id=info.id if isinstance(info.id, str) and is_model_id(info.id) else repo_id,
        commit=str(info.sha),
        sizes={file.rfilename: file.size for file in info.siblings or ()},
        until=until,
        license=card_license(info.card_data, info.tags),
    )


def download(
    repository: Repository, name: str, *, limit: int, revision: str | None
) -> tuple[bytes, str]:
    """Reads one small file through the client's cache.

    Args:
        repository: Where it is.
        name: The file.
        limit: Most bytes accepted.
        revision: What to ask for; the cache remembers which commit a branch was.

    Returns:
        The file and the commit it is of.

    Raises:
        FactsError: gated, missing, or no answer in time.
        InputError: the file is larger than ``limit``.
    """
    from huggingface_hub import hf_hub_download  # noqa: PLC0415

    size = repository.sizes.get(name)
    if isinstance(size, int) and size > limit:
        raise files.too_large(size, limit, f"{repository.id}/{name}")
    fetch = partial(
        hf_hub_download,
        repository.asked,
        name,
        revision=revision,
        library_name=LIBRARY,
        library_version=__version__,
    )
    path = Path(_all([fetch], repository.until, repository.asked, revision)[0])
    return files.read_whole(path, limit=limit), path.parent.name


def cached_folder(repo_id: str, name: str, revision: str | None) -> Path:
    """The folder, named after its commit, in which the client has cached a file.

    Raises:
        HubUnreachableError: it has not.
    """
    from huggingface_hub import hf_hub_download  # noqa: PLC0415

    try:
        path = hf_hub_download(repo_id, name, revision=revision, local_files_only=True)
    except (OSError, ValueError):  # not cached, or a damaged cache
        shown = f"{repo_id}@{revision}" if revision else repo_id
        raise hub_errors.not_cached(shown) from None
    return Path(path).parent


def first_bytes(repository: Repository, name: str, count: int) -> tuple[bytes, int | None]:
    """Reads the start of a file, and its whole size if the server says it.

    A server that ignores the range sends everything: reading stops after ``count`` bytes.
    """
    from huggingface_hub import constants, get_session, hf_hub_url  # noqa: PLC0415
    from huggingface_hub.utils import build_hf_headers, hf_raise_for_status  # noqa: PLC0415

    headers = build_hf_headers(library_name=LIBRARY, library_version=__version__)
    headers |= {"range": f"bytes=0-{count - 1}", "accept-encoding": "identity"}
    url = hf_hub_url(repository.asked, name, revision=repository.commit)
    timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
    data = bytearray()
    with get_session().stream("GET", url, headers=headers, timeout=timeout) as response:
        hf_raise_for_status(response)
        for chunk in response.iter_bytes():
            data += chunk
            if len(data) >= count or time.monotonic() > repository.until:
                break
        return bytes(data[:count]), _stated_size(response.headers)


def _stated_size(headers: Mapping[str, str]) -> int | None:
    stated = headers.get("content-length", "")
    if "content-range" in headers:
        stated = headers["content-range"].rpartition("/")[2]
    if not (stated.isascii() and stated.isdigit() and len(stated) <= _LONGEST_SIZE):
        return None
    return int(stated)


def all_answers(jobs: Sequence[Callable[[], ResultT]], repository: Repository) -> list[ResultT]:
    """Runs jobs that call the client, several at once, in the time that is left.

    Raises:
        KvplanError: the first error of a job, or time is over.
    """
    return _all(jobs, repository.until, repository.asked, repository.commit)


def _all(
    jobs: Sequence[Callable[[], ResultT]], until: float, repo_id: str, revision: str | None
) -> list[ResultT]:
    try:
        return all_within(jobs, seconds=until - time.monotonic(), workers=_WORKERS)
    except KvplanError:
        raise
    except Exception as error:  # noqa: BLE001  what the client raises depends on its HTTP library
        raise _explained(error, repo_id, revision) from None


def _explained(error: BaseException, repo_id: str, revision: str | None) -> KvplanError:
    """Our error for one of the client's, whose own text may hold more than should be shown."""
    from huggingface_hub import errors  # noqa: PLC0415

    if isinstance(error, errors.LocalEntryNotFoundError) and error.__cause__ is not None:
        return _explained(error.__cause__, repo_id, revision)
    if isinstance(error, errors.GatedRepoError):  # before its parent, RepositoryNotFoundError
        sentence = f"{repo_id} is gated: its licence has to be accepted first."
        return hub_errors.gated(sentence, repo_id, endpoint())
    if isinstance(error, errors.RevisionNotFoundError):
        return hub_errors.no_revision(repo_id, revision)
    if isinstance(error, errors.RepositoryNotFoundError):
        return hub_errors.no_model(repo_id)
    if isinstance(error, errors.HfHubHTTPError):
        lost = isinstance(error, errors.EntryNotFoundError)
        return hub_errors.by_status(error.response.status_code, repo_id, endpoint(), file=lost)
    return hub_errors.unreachable(_network_problem(error), endpoint())


def _network_problem(error: BaseException) -> str:
    name = type(error).__name__
    if isinstance(error, TimeoutError) or "Timeout" in name:
        return "did not answer in time"
    if isinstance(error, OSError) or name in {"ConnectError", "ProxyError", "ReadError"}:
        return "can't be reached"
    return f"gave an answer that makes no sense ({name})"
