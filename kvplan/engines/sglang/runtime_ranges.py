"""SGLang's memory that is neither weights nor pools: figures of public starts, with their spread.

Nothing here is exact, and there are few starts: a plan shows the figures as ``calibrated`` with
their ranges. They lie beside the pools and do not change their size, but for what is taken
before the model is loaded.
"""

from __future__ import annotations

from kvplan.engines.runtime import Range

# What connecting the ranks takes, as "Init torch distributed ends" prints it; 0.00 on one rank
# (sgl-project/sglang#15426).
NCCL_MULTICAST_GIB = Range(1.96, 0.50, 2.10)
NCCL_GIB = Range(0.26, 0.20, 0.45)
NCCL_SOURCE = (
    "public starts: 1.77-2.01 on 8 H200 (sgl-project/sglang#11716); 0.26 on 2 RTX 4090 "
    "(sgl-project/sglang#16920), 0.22-0.27 on 8 A100 (sgl-project/sglang#3888), 0.39 on 4 RTX PRO "
    "6000 (sgl-project/sglang#40558)"
)
# From the end of the pools to the first capture: workspaces of attention, besides.
WORKSPACE_GIB = Range(0.60, 0.01, 1.20)
GRAPHS_GIB = Range(0.60, 0.03, 1.70)
AFTER_SOURCE = "public SGLang starts until November 2026: workspaces n=8, graphs n=9; thin"
# Least that the engine itself sets aside for a prefill of a token
# (sglang/srt/arg_groups/memory_hook.py), for want of a measurement.
PREFILL_TOKEN_MIB = 1.5
