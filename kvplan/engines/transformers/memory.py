"""One device's memory without the cache: weights, the prompt's activations, CUDA's own.

Nothing is reserved in advance: whatever the device has and these leave is the cache's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from kvplan.engines import runtime
from kvplan.engines.runtime import Range
from kvplan.engines.transformers.frame import Frame
from kvplan.engines.weight_drafts import drafts_of, origin
from kvplan.ledger import Confidence, Draft
from kvplan.models.formats import DTYPE_BYTES, PLAIN, ceil_div
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout, RankPart, Weight, rank_parts
from kvplan.units import GIB

# Copies of a token's hidden vector and of its feed-forward that are alive at once in the largest
# step of a layer: the residual, its norm and the output; gate, its activation, and up. Read from
# modeling_llama.py (LlamaMLP, LlamaRMSNorm's float32 copy); no start was measured.
HIDDEN_COPIES = Range(3.0, 2.0, 6.0)
FEED_FORWARD_COPIES = Range(3.0, 2.0, 4.0)
ACTIVATION_SOURCE = (
    "transformers 5.24.0, models/llama/modeling_llama.py: the whole prompt is one pass; "
    "generation/utils.py: a float32 copy of the last logits; not measured"
)


@dataclass(frozen=True)
class Stage:
    """The layers of one device and what they weigh.

    Attributes:
        weights: Ledger lines.
        first, last: Whether it has the embedding, and whether the head.
    """

    layers: range
    weights: tuple[Draft, ...]
    first: bool
    last: bool

    @cached_property
    def weight_bytes(self) -> int:
        """All weights of the device."""
        return sum(draft.value() for draft in self.weights)


def stages_of(frame: Frame) -> tuple[Stage, ...]:
    """One stage a device of a device map: consecutive layers, as even as they come."""
    layers, pp = len(frame.setup.model.layers), frame.setup.parallelism.pp
    even, more = divmod(layers, pp)
    made = []
    start = 0
    for index in range(pp):
        stop = start + even + (index < more)
        made.append(_stage(frame, range(start, stop), last=index == pp - 1))
        start = stop
    return tuple(made)


def _stage(frame: Frame, layers: range, *, last: bool) -> Stage:
    first = layers.start == 0
    layout = RankLayout(
        tp=frame.setup.parallelism.tp,
        layers=(layers.start, layers.stop),
        first=first,
        last=last,
        vocab_multiple=1,
    )
    return Stage(layers, _weight_lines(frame, layout), first, last)


def _weight_lines(frame: Frame, layout: RankLayout) -> tuple[Draft, ...]:
    source, found = origin(frame.setup.model)
    confidence: Confidence = found if layout.tp == 1 else "derived"
    return drafts_of(_parts(frame.setup.model, frame, layout), source=source, confidence=confidence)


def _parts(model: ModelSpec, frame: Frame, layout: RankLayout) -> Iterable[RankPart]:
    """Draft modules stay on disk; tensor parallel plans leave the embedding whole."""
    whole = layout.model_copy(update={"tp": 1})
    for embedding in (True, False):
        weights = tuple(w for w in model.weights if _is_of(w, embedding=embedding))
        used = whole if embedding else layout
        yield from rank_parts(weights, PLAIN[frame.dtype], used, tied=model.tied_embeddings)


def _is_of(weight: Weight, *, embedding: bool) -> bool:
    return weight.component != "mtp" and (weight.component == "embedding") == embedding


def activation(frame: Frame, stage: Stage, batch: int, context: int) -> Draft:
    """The prompt's pass at its largest, or the logits of the last tokens."""
    model = frame.setup.model
    width = model.intermediate_size * max(1, model.experts_per_token)
    inputs: dict[str, int | float] = {
        "batch": batch,
        "prompt": context,
        "element_bytes": DTYPE_BYTES[frame.dtype],
        "hidden": model.hidden_size,
        "intermediate": ceil_div(width, frame.setup.parallelism.tp),
    }
    formula = (
        "batch * prompt * element_bytes * "
        "(hidden_copies * hidden + feed_forward_copies * intermediate)"
    )
    if stage.last:
        inputs["vocab"] = model.vocab_size
        formula = f"max({formula}, batch * vocab * (element_bytes + 4))"
    ranges = {"hidden_copies": HIDDEN_COPIES, "feed_forward_copies": FEED_FORWARD_COPIES}
    return Draft(
        "activation_peak",
        "budget",
        f"ceil({formula})",
        {**inputs, **{name: fitted.value for name, fitted in ranges.items()}},
        source=ACTIVATION_SOURCE,
        confidence="assumed",
        low={name: fitted.low for name, fitted in ranges.items()},
        high={name: fitted.high for name, fitted in ranges.items()},
    )


def cuda_context() -> Draft:
    """What the driver takes before the first tensor."""
    fitted = runtime.CUDA_CONTEXT_GIB
    return Draft(
        "cuda_context",
        "outside",
        "ceil(cuda_context_gib * gib)",
        {"cuda_context_gib": fitted.value, "gib": GIB},
        source=f"{runtime.OUTSIDE_SOURCE}; of another engine, the same driver",
        confidence="assumed",
        low={"cuda_context_gib": fitted.low},
        high={"cuda_context_gib": fitted.high},
    )
