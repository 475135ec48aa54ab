"""The pool: as planned, and where memory runs out."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch")

from small_models import small_model

from kvplan import api
from kvplan.errors import UsageError
from kvplan.measure.job import Job, job_of
from kvplan.measure.meters import cpu_meter
from kvplan.measure.pool import allocate_pool, check_groups, slots_of

MIB = 2**20


@pytest.fixture
def job() -> Job:
    """A model with two kinds of groups."""
    model = small_model("encoder-decoder")
    plan = api.size(
        model,
        "custom:4GiB",
        context=64,
        engine_options={"max_num_batched_tokens": 48, "max_num_seqs": 4},
        advice=False,
    )
    return job_of(plan, model)


def test_groups_share_the_tensors(job: Job) -> None:
    assert len(slots_of(job).page_bytes) == 3
    with cpu_meter(2 * job.pool_bytes) as meter:
        result = allocate_pool(job, meter, to_exhaustion=False)
        assert meter.allocated() == 0
    assert result.allocated == job.pool_bytes
    assert result.groups == (job.pool_bytes, job.pool_bytes)
    assert (result.exhausted, result.beyond) == (False, None)


def test_the_rest_is_found_to_the_last_step(job: Job) -> None:
    small = replace(job, blocks=100)
    left = 1500 * MIB
    with cpu_meter(small.pool_bytes + left) as meter:
        result = allocate_pool(small, meter, to_exhaustion=True)
        assert meter.allocated() == 0
    assert result.beyond is not None
    assert left - MIB <= result.beyond <= left


def test_memory_runs_out(job: Job) -> None:
    with cpu_meter(job.pool_bytes - 1) as meter:
        result = allocate_pool(job, meter, to_exhaustion=True)
    assert result.exhausted
    assert result.allocated == job.pool_bytes * 2 // 3
    assert result.beyond == 0


def test_pages_of_several_sizes_lie_in_one_tensor(job: Job) -> None:
    uneven = replace(job, bytes_per_block=job.bytes_per_block + 16)
    assert slots_of(uneven).page_bytes == (uneven.bytes_per_block,)


def test_no_block(job: Job) -> None:
    with pytest.raises(UsageError, match="no block"):
        check_groups(replace(job, blocks=0))
