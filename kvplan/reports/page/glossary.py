"""The words on the page that a reader may not know, in the order in which they are needed."""

from __future__ import annotations

_KV = (
    "What the model keeps of every token of a running request, so that it need not be computed"
    " again: keys and values of each attention layer, or what stands for them."
)
_BLOCK = (
    "The unit in which an engine hands out the cache. A request holds whole blocks, as many as"
    " its tokens need."
)
_HELD = (
    "A request whose whole cache is in memory at once with the others. More than are held wait,"
    " or lose their cache and are computed again (preempted)."
)
_REPLICA = (
    "One copy of the model, on as many GPUs as tensor and pipeline parallelism need. Data"
    " parallelism is several of them."
)
_BUDGET = (
    "The share of the GPU's memory that the engine may use. Weights and the engine's own memory"
    " come off it; the cache gets the rest."
)
_OUTSIDE = (
    "Memory that is used on the card although the engine does not count it: the driver's context,"
    " libraries, other programs."
)
_SURE = (
    "exact: arithmetic on stated facts. derived: arithmetic that rests on a stated approximation."
    " calibrated: fitted to measured starts. assumed: nobody stated it."
)
GLOSSARY: tuple[tuple[str, str], ...] = (
    ("KV cache", _KV),
    ("context", "Tokens of a request, prompt and output together."),
    ("block", _BLOCK),
    ("request held", _HELD),
    ("replica", _REPLICA),
    ("budget", _BUDGET),
    ("outside the budget", _OUTSIDE),
    ("how sure", _SURE),
)
