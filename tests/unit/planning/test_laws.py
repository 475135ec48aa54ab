"""What more memory, shorter requests, a smaller cache type and more ranks may never do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from hypothesis import assume, given
from hypothesis import strategies as st
from real_models import GIB, device, full, real, real_names, toy

from kvplan import api
from kvplan.engines.base import Figures, Prepared
from kvplan.errors import RefusedError
from kvplan.models.spec import ModelSpec
from kvplan.plan import Parallelism
from kvplan.sources.bundled import specs_dir

BUNDLED = sorted(
    path.stem.replace("--", "/", 1) for path in Path(specs_dir("model_specs")).glob("*.yaml")
)
# Given, they do not jump at 70 and 160 GiB (see the exceptions below).
FIXED = {"max_num_seqs": 256, "max_num_batched_tokens": 2048}
ADA, HOPPER, BLACKWELL = (8, 9), (9, 0), (10, 0)


@cache
def model(name: str) -> ModelSpec:
    return real(name) if name in REAL else api.read_spec(name, offline=True)


# Drafts are not served alone.
REAL = [name for name in real_names() if "eagle3" not in name]
MODELS = st.sampled_from([*BUNDLED, *REAL]).map(model)
MEMORY = st.floats(8, 300)
CONTEXT = st.integers(1, 200_000)
BUDGET = st.integers(1, 300 * GIB)


@dataclass(frozen=True)
class Place:
    """A model on a device, and the requests that are asked of it."""

    spec: ModelSpec
    sm: tuple[int, int] = HOPPER
    gib: float = 80
    context: int = 8192
    tp: int = 1
    version: str = "0.33.0"
    kv_dtype: str = "auto"
    kv_budget: int | None = None
    default_options: bool = False

    def prepared(self) -> Prepared:
        """Ready to be asked, or the example is dropped where the engine refuses it."""
        try:
            return api.prepare(
                self.spec,
                device(self.gib, sm=self.sm),
                engine=f"vllm=={self.version}",
                context=self.context,
                options={} if self.default_options else FIXED,
                parallelism=Parallelism(tp=self.tp),
                kv_dtype=self.kv_dtype,
                kv_budget=None if self.kv_budget is None else (self.kv_budget,),
            )
        except RefusedError:
            assume(False)  # noqa: FBT003 - hypothesis' own way
            raise

    def figures(self) -> Figures:
        """What it holds."""
        return self.prepared().figures(self.context)


PLACES = st.builds(
    Place,
    spec=MODELS,
    sm=st.sampled_from([ADA, HOPPER, BLACKWELL]),
    gib=MEMORY,
    context=CONTEXT,
    tp=st.sampled_from([1, 2, 4, 8]),
    version=st.sampled_from(["0.9.2", "0.12.0", "0.20.0", "0.33.0"]),
)


@given(PLACES, MEMORY)
def test_more_memory_never_holds_fewer_requests(place: Place, other: float) -> None:
    less, more = (replace(place, gib=gib).figures() for gib in sorted((place.gib, other)))
    assert less.requests <= more.requests
    assert less.tokens <= more.tokens
    assert less.max_context <= more.max_context
    assert less.starts <= more.starts


@given(PLACES, CONTEXT, st.booleans())
def test_shorter_requests_are_never_fewer(
    place: Place,
    other: int,
    default_options: bool,  # noqa: FBT001
) -> None:
    short, long = (
        replace(place, context=context, default_options=default_options).figures()
        for context in sorted((place.context, other))
    )
    assert short.requests >= long.requests
    assert short.starts >= long.starts


def is_latent(spec: ModelSpec) -> bool:
    return any(cache.kind == "latent" for cache in spec.caches)


@given(PLACES)
def test_an_8_bit_cache_never_holds_fewer_requests(place: Place) -> None:
    # Exception: latent attention on Hopper takes blocks of 64 tokens for it, else 16.
    assume(not (is_latent(place.spec) and place.sm == HOPPER))
    assert replace(place, kv_dtype="fp8").figures().requests >= place.figures().requests


@given(st.sampled_from(["deepseek-v3", "deepseek-v2-lite"]), BUDGET, CONTEXT)
def test_latent_attention_on_hopper_loses_only_by_rounding(
    name: str, budget: int, context: int
) -> None:
    """Requests of whole long blocks lose nothing."""
    whole = Place(real(name), context=-(-context // 64) * 64, kv_budget=budget)
    assert replace(whole, kv_dtype="fp8").figures().requests >= whole.figures().requests


def test_short_requests_of_latent_attention_on_hopper_are_the_exception() -> None:
    """A request of 16 tokens holds a block of 64: of 576 bytes each instead of 16 of 1,152."""
    place = Place(real("deepseek-v3"), context=16, kv_budget=2**25)
    assert place.figures().requests == 2**25 // (61 * 16 * 1152) - 1 == 28
    small = replace(place, kv_dtype="fp8").figures()
    assert small.requests == 2**25 // (61 * 64 * 576) - 1 == 13


@given(PLACES, BUDGET)
def test_more_ranks_never_hold_fewer_requests_in_the_same_bytes(place: Place, budget: int) -> None:
    few = replace(place, kv_budget=budget).figures()
    many = replace(place, kv_budget=budget, tp=2 * place.tp).figures()
    assert few.requests <= many.requests
    assert few.max_context <= many.max_context


@given(PLACES)
def test_more_ranks_never_hold_fewer_requests(place: Place) -> None:
    # Exception: models so small that ranks which talk cost more than they save. A second rank
    # saves half of the weights and costs up to 1.76 GiB of runtime memory (see below).
    assume(place.tp > 1 or 2 * place.spec.parameters_total >= 4 * GIB)
    assert place.figures().requests <= replace(place, tp=2 * place.tp).figures().requests


def test_small_models_are_the_exception_where_ranks_talk_at_a_price() -> None:
    """One KV head, so that both ranks hold all of it, and next to no weights to split."""
    small = Place(toy(full(1), full(1)), gib=4.5)
    assert small.figures().requests > replace(small, tp=2).figures().requests > 0


def test_the_defaults_of_a_larger_card_are_the_exception_to_more_memory() -> None:
    """From 70 GiB on vLLM batches 8,192 tokens and 1,024 requests: the peak takes more."""
    card = Place(real("gemma-3-27b"), gib=69.9, default_options=True)
    assert card.figures().tokens > replace(card, gib=70.1).figures().tokens > 0


@given(PLACES, BUDGET)
def test_a_request_takes_more_the_longer_it_is_and_all_fit_in_the_pool(
    place: Place, budget: int
) -> None:
    prepared = replace(place, kv_budget=budget).prepared()
    answer = prepared.answer(place.context, None)
    shorter = prepared.answer(max(1, place.context // 2), None)
    assert shorter.kv.bytes_per_request <= answer.kv.bytes_per_request
    held = answer.capacity.requests * answer.kv.bytes_per_request
    assert held <= answer.kv.allocated_bytes <= budget
    assert answer.kv.bytes_per_token >= 0


@given(PLACES)
def test_an_interval_contains_its_point(place: Place) -> None:
    answer = place.prepared().answer(place.context, None)
    kv, capacity = answer.kv, answer.capacity
    assert kv.budget_low is not None
    assert kv.budget_high is not None
    assert kv.budget_low <= kv.budget_bytes <= kv.budget_high
    assert capacity.tokens_low is not None
    assert capacity.tokens_high is not None
    assert capacity.tokens_low <= capacity.tokens <= capacity.tokens_high
    assert all(line.low <= line.bytes <= line.high for line in answer.ledger)
