"""A Hub on 127.0.0.1 that speaks enough of the real protocol for the real client.

What it answers, and with which headers, follows what huggingface_hub reads: the repository's
information under /api/models, files with X-Repo-Commit and ETag under /resolve, ranges for large
files, and X-Error-Code for refusals.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Repo:
    """A repository, and how it misbehaves.

    Attributes:
        files: Bytes by name; weight files may be given shorter than ``sizes`` says they are.
        sizes: Sizes that differ from the bytes held here.
        gated: Status of every request for a file: 401 without a token, 403 with one.
        renamed: The id that requests are redirected to.
        status: Status of every request.
        file_status: Status of requests for one file by name.
        delay: Seconds before an answer; ``slow_files`` limits it to some files.
        drip: Seconds between two bytes of a file.
        card: What the repository's information adds: ``cardData``, ``tags``.
        ignore_range: Answer a ranged request with the whole file.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    commit: str = COMMIT
    branches: dict[str, str] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    gated: int = 0
    renamed: str = ""
    status: int = 0
    file_status: dict[str, int] = field(default_factory=dict)
    delay: float = 0.0
    slow_files: tuple[str, ...] = ()
    drip: float = 0.0
    ignore_range: bool = False
    body: bytes | None = None
    card: dict[str, object] = field(default_factory=dict)

    def revision(self, name: str) -> str | None:
        """The commit that a branch or commit means, or None."""
        known = {"main": self.commit, self.commit: self.commit, **self.branches}
        return known.get(name)

    def size(self, name: str) -> int:
        return self.sizes.get(name, len(self.files[name]))


class LoopbackHub:
    """The server with its repositories; ``requests`` holds "METHOD path" of what it was asked."""

    def __init__(self, repos: dict[str, Repo]) -> None:
        self.repos = repos
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.sent = 0
        hub = self

        class Handler(_Handler):
            pass

        Handler.hub = hub
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def running(repos: dict[str, Repo]) -> Iterator[LoopbackHub]:
    """A server with these repositories, stopped at the end."""
    hub = LoopbackHub(repos)
    hub.start()
    try:
        yield hub
    finally:
        hub.stop()


class _Handler(BaseHTTPRequestHandler):
    hub: LoopbackHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Stays silent."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = urlsplit(self.path).path
        self.hub.requests.append(f"{self.command} {unquote(path)}")
        self.hub.headers.append({key.lower(): value for key, value in self.headers.items()})
        info = re.fullmatch(r"/api/models/(.+?)(?:/revision/(.+))?", path)
        file = re.fullmatch(r"/(.+?)/resolve/([^/]+)/(.+)", path)
        if info:
            self._repository(info[1], unquote(info[2] or "main"))
        elif file:
            self._file(file[1], unquote(file[2]), unquote(file[3]))
        else:
            self._refuse(404, "", "Not found")

    def _repository(self, name: str, revision: str) -> None:
        repo = self._find(name)
        if repo is None:
            return
        commit = repo.revision(revision)
        if commit is None:
            self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return
        siblings = [{"rfilename": file, "size": repo.size(file)} for file in repo.files]
        body = {"_id": "1", "id": name, "modelId": name, "sha": commit, "siblings": siblings}
        body |= repo.card
        data = json.dumps(body | {"private": False, "gated": bool(repo.gated)}).encode()
        self._send(
            200, data if repo.body is None else repo.body, {"Content-Type": "application/json"}
        )

    def _file(self, name: str, revision: str, file: str) -> None:
        repo = self._find(name, file)
        if repo is None:
            return
        commit = repo.revision(revision)
        if commit is None:
            self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        elif repo.gated:
            self._refuse(repo.gated, "GatedRepo", f"Access to model {name} is restricted.")
        elif file in repo.file_status:
            self._refuse(repo.file_status[file], "", "Something went wrong")
        elif file not in repo.files:
            self._refuse(404, "EntryNotFound", "Entry not found")
        else:
            self._send_file(repo, file, commit)

    def _find(self, name: str, file: str = "") -> Repo | None:
        """The repository, unless it refuses or moves."""
        repo = self.hub.repos.get(name)
        if repo is None:
            self._refuse(404, "RepoNotFound", "Repository not found")
            return None
        if not repo.slow_files or file in repo.slow_files:
            time.sleep(repo.delay)
        if repo.renamed:
            location = self.path.replace(f"/{name}", f"/{repo.renamed}", 1)
            self._send(307, b"", {"Location": location})
            return None
        if repo.status:
            self._refuse(repo.status, "", "Something went wrong")
            return None
        return repo

    def _send_file(self, repo: Repo, file: str, commit: str) -> None:
        data, size = repo.files[file], repo.size(file)
        headers = {
            "X-Repo-Commit": commit,
            "ETag": f'"{hashlib.sha1(data).hexdigest()}"',  # noqa: S324  as git names blobs
            "Accept-Ranges": "bytes",
        }
        if file.endswith(".safetensors"):
            headers |= {"X-Linked-Size": str(size), "X-Linked-ETag": headers["ETag"]}
        ranged = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if ranged and not repo.ignore_range:
            first, last = int(ranged[1]), min(int(ranged[2]), size - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{size}"
            self._send(206, data[first : last + 1], headers, repo.drip)
        elif repo.ignore_range and file.endswith(".safetensors"):
            self._send_endless(data, size, headers)
        else:
            self._send(200, data, headers, repo.drip)

    def _refuse(self, status: int, code: str, message: str) -> None:
        headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
        self._send(status, json.dumps({"error": message}).encode(), headers)

    def _send(self, status: int, data: bytes, headers: dict[str, str], drip: float = 0.0) -> None:
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "HEAD":
            return
        try:
            for part in (data[i : i + 1] for i in range(len(data))) if drip else (data,):
                self.wfile.write(part)
                self.wfile.flush()
                self.hub.sent += len(part)
                time.sleep(drip)
        except OSError:  # the client has gone
            self.close_connection = True

    def _send_endless(self, data: bytes, size: int, headers: dict[str, str]) -> None:
        """The whole file, as a server does that knows no ranges."""
        self.send_response(200)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.close_connection = True
        try:
            self.wfile.write(data)
            for _ in range((size - len(data)) // 2**20):
                self.wfile.write(bytes(2**20))
                self.hub.sent += 2**20
        except OSError:
            return
