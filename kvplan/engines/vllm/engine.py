"""vLLM as the planner sees it: settings → pages → groups → memory → pool → answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kvplan.engines import runtime
from kvplan.engines.base import Answer, Figures, Setup, parse_version
from kvplan.engines.vllm import answer as answers
from kvplan.engines.vllm import groups, history, kv_dtypes, memory, pages, settings
from kvplan.engines.vllm.memory import RankInputs, RankMemory
from kvplan.engines.vllm.pool import Pool, whole_requests
from kvplan.errors import EngineRefusesError, UsageError, shown
from kvplan.hardware import DeviceMemory, device_memory
from kvplan.models.formats import DTYPE_BYTES, Dtype
from kvplan.models.spec import ModelSpec
from kvplan.models.weights import RankLayout
from kvplan.plan import Parallelism

NAME = "vllm"
# A bare amount of memory takes the rules of this device (compute capability).
CUSTOM_SM = (9, 0)
BFLOAT16_SM = (8, 0)
VOCAB_MULTIPLE = 64  # vllm/model_executor/layers/vocab_parallel_embedding.py


@dataclass(frozen=True)
class VllmDeployment:
    """A prepared configuration (see `kvplan.engines.base.Prepared`).

    Attributes:
        pool: Groups and the arithmetic over them.
        stages: One rank's memory by pipeline stage, or None where the bytes were given.
        available: Bytes for the cache by pipeline stage.
    """

    setup: Setup
    version: str
    dtype: Dtype
    kv_dtype: str
    settings: settings.Settings
    device: DeviceMemory
    sm: tuple[int, int]
    parallelism: Parallelism
    pool: Pool
    stages: tuple[RankMemory, ...] | None
    available: tuple[int, ...]

    @cached_property
    def low(self) -> tuple[int, ...] | None:
        """Bytes for the cache by stage if runtime memory is at its high end; None: no range."""
        return tuple(rank.low for rank in self.stages) if self.stages and self.ranged else None

    @cached_property
    def high(self) -> tuple[int, ...] | None:
        """Bytes for the cache by stage if runtime memory is at its low end; None: no range."""
        return tuple(rank.high for rank in self.stages) if self.stages and self.ranged else None

    @property
    def ranged(self) -> bool:
        """Whether the cache is what fitted runtime memory leaves, not what somebody gave."""
        return self.stages is not None and self.settings.kv_cache_memory_bytes is None

    @cached_property
    def blocks(self) -> int:
        """Blocks of one replica."""
        return self.pool.blocks(self.available)

    @cached_property
    def fullest(self) -> int:
        """The stage that runs out first: fewest blocks, then fewest bytes to spare."""
        stage_blocks = self.pool.stage_block_bytes

        def key(stage: int) -> tuple[float, int]:
            block = stage_blocks[stage]
            left = self.available[stage]
            return (left / block if block else float("inf"), left)

        return min(range(len(self.available)), key=key)

    @cached_property
    def outside_left(self) -> int:
        """Bytes that the utilization leaves beside what the budget does not count.

        A pool of given size knows no utilization: 0.
        """
        if self.stages is None or not self.ranged:
            return 0
        rank = self.stages[self.fullest]
        return rank.device.total - rank.requested - rank.beside

    @property
    def beyond_calibration(self) -> bool:
        """Whether runtime memory rests on starts of older releases alone."""
        return runtime.is_beyond(parse_version(self.version))

    @cached_property
    def left(self) -> int:
        """Bytes of the cache's memory beyond whole blocks, on the rank that has the least.

        Negative where the pool is given (kv_cache_memory_bytes, num_gpu_blocks_override) and
        larger than what there is for it.
        """
        return min(self._left(stage) for stage in range(len(self.available)))

    def _left(self, stage: int) -> int:
        pool = self.blocks * self.pool.stage_block_bytes[stage]
        if self.stages is None or self.ranged:
            return self.available[stage] - pool
        rank = self.stages[stage]
        return rank.device.total - rank.spent - rank.beside - pool

    @cached_property
    def limit(self) -> int:
        """The longest context the model itself allows, or what was asked where it is longer."""
        model_limit = self.setup.model.max_context or 0
        return max(model_limit, self.setup.context or 1)

    def longest_context(self) -> int:
        """The longest request the pool holds, at most the model's own maximum."""
        return self.pool.longest(self.pool.usable_blocks(self.available), self.limit)

    def requests(self, blocks: int, context: int) -> int:
        """Whole requests over the deployment."""
        seqs = self.settings.max_num_seqs
        held = whole_requests(self.pool, blocks, context, max_num_seqs=seqs)
        return held * self.parallelism.dp

    def figures(self, context: int) -> Figures:
        """Capacity for requests of ``context`` tokens."""
        blocks = self.blocks
        longest = self.longest_context()
        return Figures(
            blocks=blocks,
            tokens=self.pool.tokens(blocks, context),
            max_concurrency=self.pool.concurrency(blocks, context),
            max_context=longest,
            requests=self.requests(blocks, context),
            starts=longest >= context and self.left >= 0 and self.outside_left >= 0,
        )

    def answer(self, context: int, concurrency: int | None) -> Answer:
        """The full answer for ``concurrency`` requests of ``context`` tokens."""
        return answers.build(self, context, concurrency)


class Vllm:
    """The engine."""

    name = NAME
    newest = history.NEWEST

    def prepare(self, setup: Setup) -> VllmDeployment:
        """Works out pages, groups and memory.

        Raises:
            EngineRefusesError, NotModelledError, UsageError: see `kvplan.engines.base.Engine`.
        """
        version = setup.version or history.NEWEST
        rules = history.rules_for(version)
        model = setup.model
        parallel = setup.parallelism
        device = device_memory(setup.gpu)
        sm = _compute_capability(setup)
        dtype = compute_dtype(model, setup.dtype, sm)
        options = settings.resolve(
            setup.options,
            rules,
            setup.gpu,
            total_bytes=device.total,
            context=setup.context or model.max_context or 1,
            pp=parallel.pp,
        )
        kv_dtype, kv = kv_dtypes.resolve(setup.kv_dtype, dtype, model.kv_scheme)
        pages.check_heads(model, parallel.tp)
        _check_parallel(model, parallel, rules)
        stages = groups.pipeline_stages(len(model.layers), parallel.pp)
        layers = pages.layer_pages(
            model,
            pages.PageContext(
                kv_dtype=kv_dtype,
                kv=kv,
                tp=parallel.tp,
                dcp=parallel.dcp,
                sm=sm,
                block_size=options.block_size,
                dtype=dtype,
                rules=rules,
                kept_whole=options.disable_hybrid_kv_cache_manager
                and any(cache.kind in pages.WHOLE for cache in model.caches),
            ),
        )
        if options.disable_hybrid_kv_cache_manager:
            layers = tuple(groups.without_hybrid_manager(layers))
        pool = Pool(
            groups=groups.group(layers, stages, rules),
            rules=rules,
            in_flight=options.in_flight_tokens,
            dcp=parallel.dcp,
            blocks_override=options.num_gpu_blocks_override,
        )
        ep = parallel.tp * parallel.dp if options.enable_expert_parallel and model.experts else 1
        parallel = parallel.model_copy(update={"ep": ep})
        ranks = None
        if setup.kv_budget is None:
            ranks = tuple(
                memory.rank_memory(
                    RankInputs(
                        model=model,
                        dtype=dtype,
                        device=device,
                        settings=options,
                        rules=rules,
                        version=parse_version(version),
                        layout=_layout(parallel, stage, index, len(stages)),
                        world=parallel.tp * parallel.pp,
                        sm=sm,
                    )
                )
                for index, stage in enumerate(stages)
            )
        return VllmDeployment(
            setup=setup,
            version=version,
            dtype=dtype,
            kv_dtype=kv_dtype,
            settings=options,
            device=device,
            sm=sm,
            parallelism=parallel,
            pool=pool,
            stages=ranks,
            available=_available(setup, options, ranks, parallel),
        )


def _layout(parallel: Parallelism, stage: groups.Stage, index: int, count: int) -> RankLayout:
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


def compute_dtype(model: ModelSpec, asked: str, sm: tuple[int, int]) -> Dtype:
    """The type vLLM computes in.

    ``auto`` halves a float32 checkpoint, and takes float16 where the device has no bfloat16
    (below compute capability 8.0). Source: vllm/config/model.py, _resolve_auto_dtype.
    """
    names: dict[str, Dtype] = {
        "bfloat16": "bfloat16",
        "float16": "float16",
        "half": "float16",
        "float32": "float32",
        "float": "float32",
    }
    if asked == "auto":
        if sm < BFLOAT16_SM:
            return "float16"
        return "bfloat16" if model.dtype == "float32" else model.dtype
    if asked not in names:
        raise UsageError(
            f"vLLM has no dtype {shown(asked)}.",
            hint=f"Use auto or one of {', '.join(DTYPE_BYTES)}.",
        )
    return names[asked]


def _compute_capability(setup: Setup) -> tuple[int, int]:
    gpu = setup.gpu
    if gpu.sm is not None:
        return gpu.sm
    if gpu.vendor in ("apple", "google", "aws"):
        raise EngineRefusesError(
            f"vLLM's CUDA and ROCm builds do not run on {gpu.id}.",
            hint="Choose an NVIDIA or AMD GPU, or another engine.",
        )
    return CUSTOM_SM


def _check_parallel(model: ModelSpec, parallel: Parallelism, rules: history.Rules) -> None:
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
    kv_heads = max(pages.kv_heads(model), default=0)
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


def _available(
    setup: Setup,
    options: settings.Settings,
    ranks: tuple[RankMemory, ...] | None,
    parallel: Parallelism,
) -> tuple[int, ...]:
    """Bytes for the cache by stage: as given, as the option says, or what the budget leaves."""
    if setup.kv_budget is not None:
        return _by_stage(setup.kv_budget, parallel)
    if options.kv_cache_memory_bytes is not None:
        return (options.kv_cache_memory_bytes,) * parallel.pp
    return tuple(rank.available for rank in ranks or ())


def _by_stage(budget: tuple[int, ...], parallel: Parallelism) -> tuple[int, ...]:
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
