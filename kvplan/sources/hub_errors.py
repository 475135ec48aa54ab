"""What the Hub's answers mean for a person, as sentences."""

from __future__ import annotations

import os
from collections.abc import Collection

from kvplan.errors import FactsError, GatedModelError, HubUnreachableError, ModelNotFoundError
from kvplan.sources import contents

_REFUSED = frozenset({401, 403})
_GONE = frozenset({404, 410})
_TOO_MANY_REQUESTS = 429


def by_status(status: int, repo_id: str, endpoint: str, *, file: bool = False) -> FactsError:
    """The error for an HTTP status; ``file`` if it was about one file, not the repository."""
    if file:
        return ModelNotFoundError(
            f"{repo_id} lists a file that the Hub then does not have.", hint="Try again."
        )
    if status in _REFUSED:
        return gated(f"The Hub refuses access to {repo_id} (HTTP {status}).", repo_id, endpoint)
    if status in _GONE:
        return no_model(repo_id)
    if status == _TOO_MANY_REQUESTS:
        return unreachable(f"wants fewer requests (HTTP {status})", endpoint)
    return unreachable(f"answers with an error (HTTP {status})", endpoint)


def gated(sentence: str, repo_id: str, endpoint: str) -> GatedModelError:
    """A login or an accepted licence is missing."""
    return GatedModelError(
        sentence,
        hint=(
            f"Accept the licence at {endpoint}/{repo_id}, "
            "then log in with `hf auth login` or set HF_TOKEN."
        ),
    )


def no_model(repo_id: str) -> ModelNotFoundError:
    """No such model; the Hub does not tell private ones from missing ones."""
    return ModelNotFoundError(
        f"The Hub has no model {repo_id}, or it is private.",
        hint="Check the name; for a private model log in with `hf auth login` or set HF_TOKEN.",
    )


def no_revision(repo_id: str, revision: str | None) -> ModelNotFoundError:
    """The model is there, the branch, tag or commit is not."""
    return ModelNotFoundError(
        f"{repo_id} has no revision {revision or 'main'!r}.",
        hint="Use a branch, a tag or a commit of that repository.",
    )


def no_config(repo_id: str, names: Collection[str]) -> ModelNotFoundError:
    """The repository holds something else than a model in Hugging Face layout."""
    what, hint = contents.without_config(names)
    return ModelNotFoundError(f"{repo_id} holds {what} and no config.json.", hint=hint)


def unreachable(what: str, endpoint: str) -> HubUnreachableError:
    """The Hub gave no usable answer; ``what`` continues the sentence "The Hub …"."""
    mirror = bool(os.environ.get("HF_ENDPOINT", "").strip())
    return HubUnreachableError(
        f"The Hub at {endpoint} {what}.",
        hint=("Check HF_ENDPOINT and the connection" if mirror else "Check the connection")
        + ", or use --offline with a bundled or cached model.",
    )


def not_cached(name: str) -> HubUnreachableError:
    """Offline, and the client has no copy."""
    return HubUnreachableError(
        f"{name} is not in the Hub's cache, and offline the Hub is not asked.",
        hint="Run once without --offline (and without HF_HUB_OFFLINE).",
    )
