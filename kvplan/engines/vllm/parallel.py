"""What vLLM asks of parallel sizes, and which part of the model each rank holds."""

from __future__ import annotations

from kvplan.engines.vllm import layers
from kvplan.engines.vllm.groups import Stage
from kvplan.engines.vllm.history import Rules
from kvplan.errors import EngineRefusesError, UsageError
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout
from kvplan.plan import Parallelism

VOCAB_MULTIPLE = 64  # vllm/model_executor/layers/vocab_parallel_embedding.py


def check_parallel(model: ModelSpec, parallel: Parallelism, rules: Rules) -> None:
    """Pipeline stages and decode context parallelism.

    Raises:
        EngineRefusesError: more stages than layers, or ranks that cannot share a request.
    """
    if parallel.pp > len(model.layers):
        raise EngineRefusesError(
            f"--pp {parallel.pp} is more stages than the model's {len(model.layers)} layers.",
            hint=f"Use --pp {len(model.layers)} or fewer.",
        )
    if parallel.dcp > 1 and not rules.decode_context:
        raise EngineRefusesError(
            "vLLM has no decode context parallelism before 0.10.", hint="Leave out --dcp."
        )
    _check_dcp(model, parallel)


def _check_dcp(model: ModelSpec, parallel: Parallelism) -> None:
    """What decode context parallelism asks of heads. MLA has none to share.

    Source: vllm/config/model.py, verify_with_parallel_config; vllm/config/parallel.py.
    """
    if parallel.tp % parallel.dcp:
        raise EngineRefusesError(
            f"vLLM refuses --dcp {parallel.dcp}: it must divide --tp {parallel.tp}.",
            hint="Decode context parallelism reuses the tensor-parallel ranks.",
        )
    kv_heads = max(layers.kv_heads(model), default=0)
    if parallel.dcp == 1 or not kv_heads:
        return
    copies = parallel.tp // kv_heads
    if parallel.dcp > copies:
        raise EngineRefusesError(
            f"vLLM refuses --dcp {parallel.dcp}: --tp {parallel.tp} holds each of the {kv_heads} "
            f"KV heads {max(1, copies)} times, and no more ranks than that can share a request.",
            hint=f"Use --dcp {max(1, copies)} or less, or a larger --tp.",
        )
    queries = model.attention_heads // kv_heads
    if queries % parallel.dcp:
        raise EngineRefusesError(
            f"vLLM refuses --dcp {parallel.dcp}: it does not divide the {queries} query heads of "
            "a KV head.",
            hint="Use --dcp 1.",
        )


def check_experts(model: ModelSpec, parallel: Parallelism) -> None:
    """Experts that are split over all tensor-parallel ranks of all replicas.

    Source: vllm/model_executor/layers/fused_moe/config.py, FusedMoEConfig (v0.33.0, and layer.py
    before it); quantization/utils/fp8_utils.py, validate_fp8_block_shape_moe. MXFP4 is padded
    instead, and formats that pack several elements count theirs differently: both are let through.

    Raises:
        EngineRefusesError: their width, or its blocks of FP8, don't divide.
    """
    ranks = parallel.tp * parallel.dp
    if ranks == 1 or parallel.ep > 1:
        return
    for weight in model.weights:
        packed = weight.elements is not None or (weight.format and weight.format.bits < 8)
        if weight.component != "experts" or weight.sharding != "row" or packed:
            continue
        width, unit = weight.shape[-1], (weight.format and weight.format.block_columns) or 1
        if len(weight.shape) > 1 and width % (ranks * unit):
            parts = f"blocks of {unit} of " if unit > 1 else ""
            raise EngineRefusesError(
                f"vLLM refuses to split experts over {ranks} ranks: {parts}their width of {width} "
                "do not divide by it.",
                hint="Keep them whole: -o enable_expert_parallel=true.",
            )


def rank_layout(parallel: Parallelism, stage: Stage, index: int, count: int) -> RankLayout:
    """The part of the model on one rank of stage ``index`` of ``count``."""
    return RankLayout(
        tp=parallel.tp,
        ep=parallel.ep,
        # Without expert parallelism vLLM splits every expert over all TP × DP ranks
        # (docs/serving/data_parallel_deployment.md).
        expert_tp=parallel.tp * parallel.dp,
        layers=stage,
        first=index == 0,
        last=index == count - 1,
        vocab_multiple=VOCAB_MULTIPLE,
    )


def by_stage(budget: tuple[int, ...], parallel: Parallelism) -> tuple[int, ...]:
    """The smallest budget of each stage's ranks: rank = stage × tp + tensor-parallel rank."""
    tp, pp = parallel.tp, parallel.pp
    if len(budget) == 1:
        return budget * pp
    if len(budget) == tp * pp:
        return tuple(min(budget[stage * tp : (stage + 1) * tp]) for stage in range(pp))
    raise UsageError(
        f"{len(budget)} KV budgets were given for {tp * pp} ranks.",
        hint="Give one for all, or one for each rank of a replica.",
    )
