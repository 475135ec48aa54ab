"""What Ollama fills in: the context by the memory of all GPUs, the batch by the context.

Source: ollama/ollama@fb307609 server/routes.go (tiers), server/sched.go (batch, parallel) and
llm/llama_server.go (``PredictServerVRAM``).
"""

from __future__ import annotations

from kvplan.models.caches import FullCache, LatentCache, WindowCache
from kvplan.models.spec import ModelSpec
from kvplan.units import GIB, MIB

_TIERS = ((47 * GIB, 262_144), (23 * GIB, 32_768), (0, 4096))
_SMALL, _MEDIUM, _LARGE = 512, 1024, 2048
_WITHOUT_FLASH = 256
_SMALL_GPU = 8 * GIB
# Share of the free memory, in percent, that the prediction may reach for a batch, and the bytes
# that the batch is taken to add.
_HEADROOM = {_LARGE: (60, 2 * GIB), _MEDIUM: (75, 768 * MIB)}
_THRESHOLD = 80

# Architectures that serve one request at a time: GGUF's names, and the Hub's.
_ONE_AT_A_TIME = frozenset(
    {
        "lfm2",
        "lfm2moe",
        "lfm2_moe",
        "mllama",
        "nemotron_h",
        "nemotron_h_moe",
        "nemotron_h_omni",
        "qwen35",
        "qwen35moe",
        "qwen3_5",
        "qwen3_5_moe",
        "qwen3next",
        "qwen3_next",
        "qwen3vl",
        "qwen3_vl",
        "qwen3vlmoe",
        "qwen3_vl_moe",
    }
)


def default_context(vram: int) -> int:
    """num_ctx where nobody gives one, by the memory of all GPUs in bytes.

    >>> default_context(24 * 2**30)
    32768
    """
    return next(tokens for least, tokens in _TIERS if vram >= least)


def one_at_a_time(spec: ModelSpec) -> bool:
    """Whether Ollama serves the architecture one request at a time, whatever was asked."""
    return spec.model_type in _ONE_AT_A_TIME


def predicted_bytes(spec: ModelSpec, file_bytes: int, cells: int) -> int:
    """What Ollama's scheduler predicts: the file, and keys and values by a textbook formula.

    It knows no sizes of heads, windows, latent caches or types of the cache.
    """
    heads = [
        1 if isinstance(cache, LatentCache) else cache.kv_heads
        for cache in spec.caches
        if isinstance(cache, FullCache | WindowCache | LatentCache)
    ]
    size = spec.hidden_size // spec.attention_heads if spec.attention_heads else 0
    return file_bytes + 2 * len(spec.layers) * min(heads, default=1) * size * cells * 2


def default_batch(
    cells: int, predicted: int, free: int, *, flash_attn: bool, smallest_gpu: int | None
) -> int:
    """num_batch where nobody gives one.

    Args:
        cells: Context of all requests.
        predicted: `predicted_bytes`.
        free: Bytes that are free on all GPUs.
        flash_attn: Whether flash attention is on.
        smallest_gpu: Bytes of the smallest CUDA GPU; None: there is none.
    """
    if not flash_attn and smallest_gpu is not None:
        return _WITHOUT_FLASH if cells > 4096 and smallest_gpu <= _SMALL_GPU else _SMALL
    batch = _LARGE if cells > 32_768 else _MEDIUM if cells > 4096 else _SMALL
    while batch > _SMALL and not _fits(batch, predicted, free):
        batch = _MEDIUM if batch > _MEDIUM else _SMALL
    return batch


def _fits(batch: int, predicted: int, free: int) -> bool:
    if not predicted or not free:
        return True
    headroom, more = _HEADROOM[batch]
    threshold = free * _THRESHOLD // 100
    return predicted <= free * headroom // 100 and more <= threshold - predicted
