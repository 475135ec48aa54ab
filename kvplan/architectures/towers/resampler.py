"""The resampler of MiniCPM-V: a few learned queries read a tower's output.

Shapes: vLLM v0.33.0 vllm/model_executor/layers/resampler.py BaseResampler and
vllm/model_executor/models/minicpmv.py.
"""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.towers.parts import tower_linear, tower_norm, tower_table, tower_vector


def resampler(*, queries: int, hidden: int, width: int) -> Weights:
    """``queries`` tokens of ``hidden`` elements out of a tower that is ``width`` wide."""
    weights = tower_table("query", (queries, hidden))
    weights += tower_table("attn.in_proj_weight", (3 * hidden, hidden))
    weights += tower_vector("attn.in_proj_bias", 3 * hidden)
    weights += tower_linear("attn.out_proj", (hidden, hidden), bias=True)
    weights += tower_table("proj", (hidden, hidden))
    if width != hidden:
        weights += tower_linear("kv_proj", (hidden, width))
    for name in ("ln_q", "ln_kv", "ln_post"):
        weights += tower_norm(name, hidden, bias=True)
    return weights
