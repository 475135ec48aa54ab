"""SGLang's memory that is neither weights nor pools: figures of public starts, with their spread.

Nothing here is exact, and there are few starts: a plan shows the figures as ``calibrated`` with
their ranges. They lie beside the pools and do not change their size, but for what is taken
before the model is loaded.
"""

from __future__ import annotations

from kvplan.engines.runtime import Range

# What is gone before anything is loaded: the card's memory, less what is free when loading begins
# and what connecting took. Two starts say it of SGLang; the low end is that of any CUDA process.
CUDA_CONTEXT_GIB = Range(0.50, 0.30, 0.80, n=2)
CUDA_CONTEXT_SOURCE = (
    "public SGLang starts: 0.50 on each of 8 H200 (sgl-project/sglang#11716), 0.78 on a card of "
    "the B200's size; n=2, and other engines' starts for the low end, as the driver takes it"
)
# What connecting the ranks takes, as "Init torch distributed ends" prints it; 0.00 on one rank
# (sgl-project/sglang#15426).
NCCL_MULTICAST_GIB = Range(1.96, 0.50, 2.10)
NCCL_GIB = Range(0.26, 0.20, 0.45)
NCCL_SOURCE = (
    "public starts: 1.77-2.01 on 8 H200 (sgl-project/sglang#11716), 1.0 on 2 H200 "
    "(sgl-project/sglang#7873); 0.26 on 2 RTX 4090 "
    "(sgl-project/sglang#16920), 0.22-0.27 on 8 A100 (sgl-project/sglang#3888), 0.39 on 4 RTX PRO "
    "6000 (sgl-project/sglang#40558)"
)
# From the end of the pools to the first capture: workspaces of attention, besides.
WORKSPACE_GIB = Range(0.60, 0.01, 1.20)
GRAPHS_GIB = Range(0.60, 0.03, 6.30, n=12)
AFTER_SOURCE = (
    "public SGLang starts until November 2026: workspaces n=8, graphs n=12; thin. Graphs of most "
    "take at most 1.7 GiB; of DeepSeek V3 on 8 H200, up to batches of 256, 6.2 and 6.3 "
    "(sgl-project/sglang#5893)"
)
# Least that the engine itself sets aside for a prefill of a token
# (sglang/srt/arg_groups/memory_hook.py), for want of a measurement.
PREFILL_TOKEN_MIB = 1.5
