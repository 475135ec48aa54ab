"""A model on the Hugging Face Hub, or the copy of it that the Hub's client has cached.

Nothing downloads weights: of a weight file only its header is asked for.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from kvplan.errors import KvplanError
from kvplan.models.facts import ModelFacts, TensorHeader
from kvplan.sources import checkpoint, contents, hub, hub_errors, local, safetensors
from kvplan.sources.hub import Repository
from kvplan.sources.json_reader import CONFIG_LIMIT, parse_json_object
from kvplan.sources.references import check_model_id, check_revision

# huggingface_hub reads the first 100 kB of a file for the same purpose, as 97 % of the headers of
# the most used models are shorter (huggingface_hub 2.4.0, parse_safetensors_file_metadata).
_FIRST_BYTES = 100_000


def read_hub(repo_id: str, *, revision: str | None = None, offline: bool = False) -> ModelFacts:
    """Reads a model's configuration, quantization files, index and safetensors headers.

    Args:
        repo_id: ``org/name``.
        revision: A branch, a tag or a commit; None is the main branch. Everything is read at the
            one commit that it resolves to.
        offline: Read what the client has cached, and ask nothing.

    Raises:
        UsageError: no possible id or revision, or HF_ENDPOINT or the token can't be used.
        GatedModelError: the Hub wants a login or an accepted licence.
        ModelNotFoundError: no such model or revision, or it has no ``config.json``.
        HubUnreachableError: no answer, or ``offline`` and not cached.
        InputError: a configuration file is not what it claims to be.
    """
    check_model_id(repo_id)
    if revision is not None:
        check_revision(revision)
    hub.check_endpoint()
    with hub.quiet():
        if offline or hub.offline_by_environment():
            return _read_cached(repo_id, revision)
        hub.check_token()
        return _read_online(repo_id, revision)


def _read_online(repo_id: str, revision: str | None) -> ModelFacts:
    repository = hub.resolve(repo_id, revision)
    if local.CONFIG not in repository.sizes:
        raise hub_errors.no_config(repo_id, repository.sizes)
    data, commit = hub.download(repository, local.CONFIG, limit=CONFIG_LIMIT, revision=revision)
    if commit != repository.commit:  # the branch moved between the two answers
        repository = hub.resolve(repo_id, commit)
    page = f"{hub.endpoint()}/{repository.id}/blob/{commit}/{local.CONFIG}"
    config = parse_json_object(data, page)
    old = _object(repository, local.OLD_GPTQ) if "quantization_config" not in config else None
    weights = _weights(repository)
    return ModelFacts(
        id=repository.id,
        revision=commit,
        source=page,
        config=contents.with_old_quantization(config, old),
        quantization=_object(repository, local.MODELOPT),
        processor=_processor(repository),
        tensors=weights.tensors,
        checkpoint_bytes=weights.total_bytes,
        checkpoint_source=weights.source,
        license=repository.license,
        license_source=f"{repository.id}@{commit}, the model's card"
        if repository.license
        else None,
        notes=_renamed(repository) + weights.notes,
    )


def _renamed(repository: Repository) -> tuple[str, ...]:
    if repository.id == repository.asked:
        return ()
    return (f"The Hub now calls {repository.asked} {repository.id}.",)


def _processor(repository: Repository) -> dict[str, Any] | None:
    name = next((name for name in local.PROCESSORS if name in repository.sizes), None)
    return None if name is None else _object(repository, name)


def _object(repository: Repository, name: str) -> dict[str, Any] | None:
    """A further configuration file at the repository's commit, or None if it has none."""
    if name not in repository.sizes:
        return None
    data, _ = hub.download(repository, name, limit=CONFIG_LIMIT, revision=repository.commit)
    return parse_json_object(data, f"{repository.id}/{name}")


def _weights(repository: Repository) -> checkpoint.Weights:
    """Headers of all weight files; where they can't be had, what the index says, with a note."""
    names = repository.sizes
    index_name = next((name for name in checkpoint.INDEX_NAMES if name in names), None)
    index = None
    try:
        if index_name is not None:
            index = _index(repository, index_name)
        wanted = checkpoint.weight_files(names, index)
        missing = tuple(name for name in wanted if name not in names)
        if not wanted or missing:
            note = checkpoint.absent_note(wanted, missing, names)
            return checkpoint.without_headers(index, index_name, note)
        return checkpoint.with_headers(_headers(repository, wanted))
    except KvplanError as error:
        note = f"The headers of the weight files could not be read. {error}"
        return checkpoint.without_headers(index, index_name, note)


def _index(repository: Repository, name: str) -> checkpoint.CheckpointIndex:
    data, _ = hub.download(
        repository, name, limit=checkpoint.INDEX_LIMIT, revision=repository.commit
    )
    return checkpoint.parse_index(data, f"{repository.id}/{name}")


def _headers(repository: Repository, names: tuple[str, ...]) -> tuple[TensorHeader, ...]:
    shards = hub.all_answers([partial(_shard, repository, name) for name in names], repository)
    return safetensors.merge_headers(zip(names, shards, strict=True))


def _shard(repository: Repository, name: str) -> tuple[TensorHeader, ...]:
    where = f"{repository.id}/{name}"
    data, size = hub.first_bytes(repository, name, _FIRST_BYTES)
    size = size or repository.sizes.get(name) or len(data)
    whole = safetensors.header_length(data, where, size) + safetensors.PREFIX_BYTES
    if whole > _FIRST_BYTES:
        data, _ = hub.first_bytes(repository, name, whole)
    return safetensors.parse_header(data, where, size)


def _read_cached(repo_id: str, revision: str | None) -> ModelFacts:
    folder = hub.cached_folder(repo_id, local.CONFIG, revision)
    facts = local.read_folder(folder)
    update: dict[str, Any] = {
        "id": repo_id,
        "revision": folder.name,
        "source": f"{repo_id}@{folder.name}/{local.CONFIG} in the Hub's cache",
    }
    if facts.tensors is None:
        update["notes"] = ("The headers of the weight files are not in the Hub's cache.",)
    return facts.model_copy(update=update)
