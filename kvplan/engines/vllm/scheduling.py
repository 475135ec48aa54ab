"""The pool as vLLM's scheduler fills it: what each group keeps of a request, and the batch.

Sources: vLLM 0.33.0, vllm/v1/core/single_type_kv_cache_manager.py (what groups keep and what
admission counts), vllm/v1/core/sched/scheduler.py (batches).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvplan.engines.base import BlockGroup, BlockPool, parse_version
from kvplan.engines.vllm.groups import Group
from kvplan.engines.vllm.pages import shared_by
from kvplan.engines.vllm.pool import Pool

if TYPE_CHECKING:
    from kvplan.engines.vllm.deployment import VllmDeployment

# scheduler_reserve_full_isl came with this release: a prompt is admitted whole or not at all.
# Sources: vllm-project/vllm#37307 (the option) and vllm-project/vllm#39866 (0.19.1 does so).
_WHOLE_PROMPTS = (0, 19)


def block_pool(deployment: VllmDeployment) -> BlockPool:
    """The pool of one replica; the null block holds nobody."""
    pool, settings = deployment.pool, deployment.settings
    groups = tuple(_group(pool, group, deployment.limit) for group in pool.groups)
    held_back = 0 if pool.rules.v0 else 1
    return BlockPool(
        blocks=max(0, deployment.blocks - held_back),
        block_bytes=pool.stage_block_bytes[deployment.fullest],
        groups=groups,
        sequences=settings.max_num_seqs,
        batch_tokens=settings.max_num_batched_tokens,
        # States are cached at boundaries of their own, and encoders' caches never.
        caches_prefixes=settings.enable_prefix_caching
        and all(group.keeps != "none" for group in groups),
        admits_whole=parse_version(deployment.version) >= _WHOLE_PROMPTS,
        replicas=deployment.parallelism.dp,
    )


def _group(pool: Pool, group: Group, longest: int) -> BlockGroup:
    page = group.page
    tokens = page.block_size * shared_by(page, pool.dcp)
    read = sum(group.stage_used) / tokens
    match page.kind:
        case "window" | "latent_window":
            most = pool.group_blocks(group, longest)
            return BlockGroup("window", tokens, read, span=page.span + page.extra, most=most)
        case "chunked":
            most = pool.group_blocks(group, longest)
            return BlockGroup("chunk", tokens, read, span=page.span, most=most)
        case "recurrent" if page.held is None:
            return BlockGroup("all", tokens, 0.0, fixed=page.extra)
        case "recurrent" | "cross":
            return BlockGroup("none", tokens, 0.0, fixed=pool.group_blocks(group, longest))
        case _:
            return BlockGroup("all", tokens, read)
