"""The weights of one rank as ledger lines, one a component.

Under data-parallel attention every group holds attention, embedding and recurrent layers of its
own, and all ranks of the replica share the rest.
Source: SGLang 0.5.23, sglang/srt/layers/dp_attention.py and the model classes.
"""

from __future__ import annotations

from functools import lru_cache

from kvplan.engines.sglang.frame import Frame
from kvplan.engines.weight_drafts import drafts_of, origin
from kvplan.ledger import Confidence, Draft
from kvplan.models.formats import PLAIN, Dtype
from kvplan.models.identity import ById
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import Component, RankLayout, RankPart, rank_parts

# sglang/srt/layers/vocab_parallel_embedding.py
VOCAB_MULTIPLE = 64
_OF_A_GROUP: frozenset[Component] = frozenset({"attention", "recurrent", "embedding", "norms"})


def layout_of(frame: Frame, stage: tuple[int, int], *, first: bool, last: bool) -> RankLayout:
    """The part of the model on one rank of a stage."""
    return RankLayout(
        tp=frame.setup.parallelism.tp,
        ep=frame.settings.ep_size,
        layers=stage,
        first=first,
        last=last,
        vocab_multiple=VOCAB_MULTIPLE,
    )


def weight_lines(frame: Frame, layout: RankLayout) -> tuple[Draft, ...]:
    """Lines of the model's weights and, on the last stage, of a draft's."""
    lines = _lines(frame, frame.setup.model, layout, "")
    draft = frame.setup.draft
    if draft is None or not layout.last or frame.rules.draft_reserve_mib is not None:
        return lines
    whole = {"layers": (0, len(draft.layers)), "first": True, "last": True}
    return lines + _lines(frame, draft, layout.model_copy(update=whole), "draft_")


def _lines(frame: Frame, model: ModelSpec, layout: RankLayout, prefix: str) -> tuple[Draft, ...]:
    parts = _parts(model, frame.dtype, layout)
    if frame.settings.dp_size > 1:
        own = _parts(model, frame.dtype, layout.model_copy(update={"tp": frame.attention_tp}))
        parts = tuple(p for p in own if p.component in _OF_A_GROUP) + tuple(
            p for p in parts if p.component not in _OF_A_GROUP
        )
        return drafts_of(parts, source=model.source, confidence="derived", prefix=prefix)
    return _cached_drafts(ById(parts), *origin(model), prefix)


def _parts(model: ModelSpec, dtype: Dtype, layout: RankLayout) -> tuple[RankPart, ...]:
    return rank_parts(model.weights, PLAIN[dtype], layout, tied=model.tied_embeddings)


@lru_cache(maxsize=1024)
def _cached_drafts(
    parts: ById[tuple[RankPart, ...]], source: str, confidence: Confidence, prefix: str
) -> tuple[Draft, ...]:
    return drafts_of(parts.value, source=source, confidence=confidence, prefix=prefix)
