"""What SGLang fills in by the size of the card: chunk, captured batch, and the static fraction.

The fraction leaves room for prefill activations (1.5 MiB a token of a chunk), captured graphs
(2 MiB a request) and a fixed part; it does not look at the model's width.
Source: SGLang 0.5.23, sglang/srt/arg_groups/memory_hook.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.engines.sglang.history import Rules

_GIB_IN_MIB = 1024
# Cards from here on get at least the floor.
_LARGE_MIB = 60 * _GIB_IN_MIB
_FLOOR_MIB = 10 * _GIB_IN_MIB
_MANY_RANKS = 4
# Batches above this take half as much again under data-parallel attention.
_WIDE_BATCH = 300
_FIXED_MIB = 512
_CHUNK_MIB = 1.5
_LEAST_CHUNK = 2048
_BATCH_MIB = 2
_LATENT_PREFILL_MIB = 1536
_PREFILL_GRAPH_MIB = 8
_DEEPEP_MIB = 2048
# adjust_mem_fraction_for_vlm: the base factor, and a vision tower of 24 layers of 1,024.
_IMAGES_FACTOR = 0.95
_BASE_COMPLEXITY = 24 * 1024**2
_SENSITIVITY = 0.1
_LEAST_FACTOR, _MOST_FACTOR = 0.8, 1.05
# Parameters of a transformer layer by the square of its width: 4 in attention, 8 in an MLP.
_PARAMETERS_BY_SQUARE = 12


@dataclass(frozen=True, slots=True)
class Card:
    """What the defaults look at.

    Attributes:
        mib: The card's memory as nvidia-smi prints it.
        tp, pp: Ranks of a replica.
        attn_dp: Groups of data-parallel attention.
        latent: The model's attention is MLA.
        prefill_graphs: Prefill is captured.
        decode_graphs: Decode is captured.
        deepep: Experts are reached through DeepEP.
        draft: None, or whether the draft is a whole model.
        vision_parameters: Of the image tower; 0 for a text model.
    """

    mib: float
    tp: int
    pp: int
    attn_dp: int
    latent: bool
    prefill_graphs: bool
    decode_graphs: bool
    deepep: bool
    draft: bool | None
    vision_parameters: int


def chunk_tokens(mib: float, rules: Rules) -> int:
    """Default of chunked_prefill_size."""
    bands = ((20, 2048), (35, rules.small_chunk), (60, 4096), (160, 8192))
    return next((chunk for below, chunk in bands if mib < below * _GIB_IN_MIB), 16384)


def captured_batch(mib: float, tp: int, rules: Rules) -> int:
    """Default of cuda_graph_max_bs: the largest batch that is captured."""
    few, many = rules.small_batch
    bands = ((20, 8, 8), (35, few, many), (60, 32, 160), (160, 256, 512))
    for below, narrow, wide in bands:
        if mib < below * _GIB_IN_MIB:
            return narrow if tp < _MANY_RANKS else wide
    return 512


def static_fraction(card: Card, rules: Rules, *, chunk: int, batch: int) -> float:
    """Default of mem_fraction_static.

    Args:
        card: The device and what runs on it.
        rules: Those of the release.
        chunk: Tokens of a prefill batch.
        batch: The largest captured batch.
    """
    reserved = _FIXED_MIB + max(chunk, _LEAST_CHUNK) * _CHUNK_MIB
    reserved += card.tp * card.pp / 8 * _GIB_IN_MIB
    reserved += _graphs_mib(card, rules, chunk=chunk, batch=batch)
    if card.mib > _LARGE_MIB:
        reserved = max(reserved, _FLOOR_MIB)
    if card.deepep and card.decode_graphs:
        reserved += _DEEPEP_MIB
    if rules.draft_reserve_mib is not None and card.draft is not None:
        reserved += rules.draft_reserve_mib[int(card.draft)]
    fraction = round((card.mib - reserved) / card.mib, 3)
    return fraction * _images_factor(card.vision_parameters)


def _graphs_mib(card: Card, rules: Rules, *, chunk: int, batch: int) -> float:
    reserved = 0.0
    if card.decode_graphs:
        reserved += batch * _BATCH_MIB
    if card.attn_dp > 1:
        reserved += batch * card.attn_dp * (3 if batch <= _WIDE_BATCH else 4.5)
    if card.prefill_graphs and rules.prefill_graphs:
        sizes = prefill_sizes(chunk)
        reserved += _LATENT_PREFILL_MIB if card.latent else sizes * _PREFILL_GRAPH_MIB
    return reserved


def prefill_sizes(most: int) -> int:
    """How many lengths of a prefill up to ``most`` tokens are captured."""
    sizes = (
        *range(4, 33, 4),
        *range(48, 257, 16),
        *range(288, 513, 32),
        *range(576, 1025, 64),
        *range(1280, 4097, 256),
        *range(4608, most + 1, 512),
    )
    return sum(size <= most for size in sizes)


def _images_factor(vision_parameters: int) -> float:
    """What the fraction of a model that reads images is multiplied with.

    SGLang takes layers × width² of the tower; here a twelfth of its parameters stands for that.
    """
    if not vision_parameters:
        return 1.0
    ratio = vision_parameters / _PARAMETERS_BY_SQUARE / _BASE_COMPLEXITY
    factor = 1.0 - _SENSITIVITY * (ratio - 1.0)
    return _IMAGES_FACTOR * max(_LEAST_FACTOR, min(_MOST_FACTOR, factor))
