"""transformers as the planner sees it: frame → tensors → memory → answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kvplan.engines import occupied
from kvplan.engines.base import DraftRequest, Setup
from kvplan.engines.transformers import history, memory, reasons
from kvplan.engines.transformers.deployment import TransformersDeployment
from kvplan.engines.transformers.frame import frame_of
from kvplan.engines.transformers.options import read_options
from kvplan.errors import EngineRefusesError, NotModelledError, UsageError
from kvplan.models import ggml_types

NAME = "transformers"


class Transformers:
    """The engine: `generate` of one batch of prompts of one length."""

    name = NAME
    newest = history.NEWEST
    # Nothing in it fills in a length that a configuration does not state.
    unstated_context: int | None = None

    def draft_of(self, options: Mapping[str, Any]) -> DraftRequest | None:
        """Assisted generation is refused by name, so there is no draft.

        Raises:
            KvplanError: see `kvplan.engines.base.Engine`.
        """
        read_options(options)
        return None

    def prepare(self, setup: Setup) -> TransformersDeployment:
        """Works out what is cached and what the rest of the memory is.

        Raises:
            EngineRefusesError, NotModelledError, UsageError: see `kvplan.engines.base.Engine`.
        """
        if setup.gpu.vendor in ("google", "aws"):
            raise NotModelledError(
                f"kvplan does not model transformers on {setup.gpu.id}.",
                hint="Choose a GPU, or another engine.",
            )
        if any(w.format and w.format.source == ggml_types.SOURCE for w in setup.model.weights):
            raise NotModelledError(
                "kvplan does not model GGUF weights under transformers, which unpacks them.",
                hint="Choose llama.cpp, or the model's own checkpoint.",
            )
        frame = frame_of(setup)
        deployment = TransformersDeployment(
            frame=frame,
            stages=memory.stages_of(frame),
            given=_given(setup),
            used_by_others=occupied.fullest_card(setup),
        )
        batch = frame.options.batch_size
        if batch is not None and setup.context is not None:
            _refuse_packing(deployment, batch, setup.context)
        return deployment


def _refuse_packing(deployment: TransformersDeployment, batch: int, context: int) -> None:
    for reason in reasons.refused(deployment, batch, context):
        raise EngineRefusesError(reason.message, hint=reason.hint)


def _given(setup: Setup) -> tuple[int, ...] | None:
    """Bytes for the cache by stage: one figure for all, one a stage, or one a rank."""
    budget, spread = setup.kv_budget, setup.parallelism
    if budget is None:
        return None
    if len(budget) == 1:
        return budget * spread.pp
    if len(budget) == spread.pp:
        return budget
    if len(budget) == spread.pp * spread.tp:
        ranks = range(0, len(budget), spread.tp)
        return tuple(min(budget[first : first + spread.tp]) for first in ranks)
    raise UsageError(
        f"{len(budget)} KV budgets were given for {spread.pp * spread.tp} ranks.",
        hint="Give one figure, or one a rank.",
    )
