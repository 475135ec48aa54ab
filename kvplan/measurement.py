"""Measurement: one engine start as its log tells it, per GPU; null is what nobody wrote down.

The keys are those of the measurement records (JSON lines) that `validate` reads and that the log
readers write. A key that kvplan does not know is kept beside them and ignored.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

_Count = Annotated[int, Field(ge=0)]
_Size = Annotated[int, Field(ge=1)]


class Measurement(BaseModel):
    """One start of one engine. Every number is of one GPU, the fullest where ranks differ.

    Attributes:
        id: Names the record among others.
        source: Where the figures were read: a file and line, or a public thread.
        gpu_total_gib: Total memory of one card, as the engine sees it.
        weights_gib: What loading the model took, as the engine prints it.
        activation_peak_gib: Peak of the profiling run above the weights.
        non_torch_gib: What was taken past torch's allocator while profiling.
        cudagraph_gib: What capturing graphs took; cudagraph_est_gib what was set aside for it.
        available_kv_gib: Memory left for the cache; negative when there was none.
        kv_tokens: Tokens of one request stream that the cache holds, as the engine prints them.
        outcome: ``started``, or the reason why not.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, strict=True, extra="allow", allow_inf_nan=False, protected_namespaces=()
    )

    id: str | None = None
    source: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    model: str | None = None
    gpu: str | None = None
    gpu_count: _Size | None = None
    gpu_total_gib: float | None = None
    tp: _Size | None = None
    pp: _Size | None = None
    dp: _Size | None = None
    gpu_memory_utilization: float | None = None
    max_model_len: _Count | None = None
    max_num_seqs: _Count | None = None
    max_num_batched_tokens: _Count | None = None
    kv_cache_dtype: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    weight_format: str | None = None
    block_size: _Count | None = None
    enforce_eager: bool | None = None
    weights_gib: float | None = None
    activation_peak_gib: float | None = None
    non_torch_gib: float | None = None
    cudagraph_gib: float | None = None
    cudagraph_est_gib: float | None = None
    available_kv_gib: float | None = None
    num_gpu_blocks: _Count | None = None
    kv_tokens: _Count | None = None
    max_concurrency: float | None = None
    outcome: str | None = None

    def json_line(self) -> str:
        """The record as one line of JSON, without the line's end; read back it is the same."""
        return self.model_dump_json()


class LiveLoad(BaseModel):
    """What one running engine holds at the moment, and what room it has left.

    Attributes:
        usage: Share of the cache in use, 0 to 1, as the engine states it.
        used_blocks: Of the engine's blocks; None where it counts tokens.
        free_blocks: Likewise.
        free_tokens: Tokens that still fit; None where the page does not tell a block's tokens.
        free_tokens_at_most: The same if every block holds its full length of one request, which
            is less where layers of several kinds share the pool.
        running: Requests being computed.
        waiting: Requests in the queue.
        preemptions: Requests thrown out of the cache since the start.
        prefix_hit_rate: Share of looked-up tokens that were found in the cache, since the start.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False
    )

    usage: float | None = None
    used_blocks: int | None = None
    free_blocks: int | None = None
    free_tokens: int | None = None
    free_tokens_at_most: int | None = None
    running: int | None = None
    waiting: int | None = None
    preemptions: int | None = None
    prefix_hit_rate: float | None = None
