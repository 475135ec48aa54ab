"""A forward of a rank's blocks at the profile shape, with the buffers alive that vLLM keeps alive.

The order is that of a compiled graph cut at attention: a piece runs from one attention to the
next, its inputs (attention's output and the residual stream) live as long as it does, everything
else is gone after its last use. A sum over tensor-parallel ranks gives a new buffer.
Source: vLLM 0.33.0, vllm/compilation (pieces), vllm/distributed/parallel_state.py
_all_reduce_out_place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from kvplan.measure import feedforward, latent, recurrent
from kvplan.measure.attention import Heads, attend, spans
from kvplan.measure.feedforward import ExpertSizes, feed_forward
from kvplan.measure.job import Job
from kvplan.measure.operands import Operands
from kvplan.measure.piece import Piece, normed
from kvplan.measure.roles import LayerRoles, roles_of
from kvplan.measure.store import Weights
from kvplan.models.caches import LatentCache, LayerCache, RecurrentCache, SharedCache
from kvplan.models.formats import ceil_div

_INPUT_STATES = ("conv", "conv groups")


@dataclass(frozen=True, slots=True)
class Step:
    """The blocks of a rank, ready to run.

    Attributes:
        order: Layers to run, by index.
    """

    job: Job
    weights: Weights
    operands: Operands
    order: tuple[int, ...]

    def run(self, workspace: Any) -> Any:
        """Runs the layers once over ``job.tokens`` tokens: the (tokens, hidden) residual stream."""
        job, operands = self.job, self.operands
        residual = operands.empty(job.tokens, job.model.hidden_size).normal_()
        piece = Piece(inputs=[], entered=normed(residual))
        for index in self.order:
            roles = roles_of(self.weights.layers[index], job.model.hidden_size)
            mixed = self._mix(index, roles, piece)
            piece = Piece(inputs=[mixed, residual])
            outward = _outward(roles)
            if outward is not None:
                residual = self._add(operands.project(mixed, (outward,)), residual)
            del mixed
            piece.enter(normed(residual))
            spread = self._feed(roles, piece, workspace)
            if spread is not None:
                residual = self._add(spread, residual)
                del spread
                piece.enter(normed(residual))
        return residual

    def _add(self, added: Any, residual: Any) -> Any:
        """The sum over ranks, then the residual stream added in place."""
        return self._reduced(added).add_(residual)

    def _reduced(self, partial: Any) -> Any:
        return partial.clone() if self.job.layout.tp > 1 else partial

    def _mix(self, index: int, roles: LayerRoles, piece: Piece) -> Any:
        """Attention, MLA or a recurrent mixer, whichever the layer has."""
        job, operands = self.job, self.operands
        caches = job.model.layers[index].caches
        found = next((c for c in caches if isinstance(c, LatentCache)), None)
        if found is not None and roles.attention.middle:
            parts = latent.latent_parts(roles.attention, found.latent_dim, found.rope_dim)
            heads = _latent_heads(job, parts, found)
            return latent.attend_latent(piece, parts, heads, operands)
        if roles.recurrent.outward is not None:
            return recurrent.mix(piece, roles.recurrent, _convolved(job, caches), operands)
        if roles.attention.outward is None or not roles.attention.inward:
            return piece.take()
        heads_of = _heads(job, roles, caches)
        return attend(piece, roles.attention, heads_of, operands)

    def _feed(self, roles: LayerRoles, piece: Piece, workspace: Any) -> Any:
        """The layer's feed-forward, or None where it has none."""
        job, operands = self.job, self.operands
        if roles.experts.outward is None:
            if roles.mlp.outward is None:
                return None
            return feed_forward(piece, roles.mlp, operands)
        inputs = piece.take()
        routed = (
            feedforward.route(inputs, roles.router, job.model.experts_per_token, operands)
            if roles.router
            else ()
        )
        sizes = expert_sizes(job, roles)
        result = feedforward.run_experts(inputs, roles.experts, sizes, workspace, operands)
        del routed
        for dense in (roles.shared_experts, roles.mlp):
            if dense.outward is not None:
                result = result.add_(feed_forward(Piece(entered=inputs), dense, operands))
        return result

    def workspace(self) -> Any:
        """What experts work in. vLLM keeps it: hold it while the sampler runs."""
        most = 0
        for index in self.order:
            roles = roles_of(self.weights.layers[index], self.job.model.hidden_size)
            if roles.experts.outward is not None:
                most = max(
                    most, sum(expert_sizes(self.job, roles).workspace_elements(self.job.tokens))
                )
        return self.operands.empty(most)


def sample(job: Job, weights: Weights, operands: Operands, hidden: Any) -> Any:
    """Logits of ``job.requests`` requests and one sampled token each.

    The model's logits and one float32 copy, to which noise is added in place: vLLM 0.33.0,
    vllm/v1/worker/gpu/sample/sampler.py apply_sampling_params and gumbel.py. Earlier samplers
    take two more float32 copies, for probabilities and noise.
    """
    chosen = hidden[: job.requests].clone()
    head = [m for m in weights.others if m.weight.sharding == "vocab" and m.is_matrix]
    logits = operands.project(chosen, (head[-1],))
    if job.layout.tp > 1:  # gathered from all ranks
        logits = logits.repeat(1, job.layout.tp)
    scores = logits[:, : job.model.vocab_size].float()
    for first, last in spans(scores.shape[0]):
        scores[first:last] += (
            torch.empty_like(scores[first : first + 1]).exponential_().log_().neg_()
        )
    return scores.argmax(-1)


def representatives(job: Job, weights: Weights) -> tuple[int, ...]:
    """One layer of each kind, the last of them twice: enough for the peak of all."""
    seen: dict[tuple[object, ...], int] = {}
    for index in job.layer_indices:
        matrices = weights.layers[index]
        shapes = tuple((m.weight.name, m.rows, m.columns, m.copies) for m in matrices)
        seen.setdefault((shapes, job.model.layers[index].caches), index)
    kinds = tuple(seen.values())
    return (*kinds, kinds[-1])


def _outward(roles: LayerRoles) -> Any:
    if roles.recurrent.outward is not None and roles.attention.outward is None:
        return roles.recurrent.outward
    return roles.attention.outward


def expert_sizes(job: Job, roles: LayerRoles) -> ExpertSizes:
    """Widths of a layer's experts on this rank."""
    outward = roles.experts.outward
    return ExpertSizes(
        chosen=max(1, job.model.experts_per_token),
        inward=roles.experts.inward_width,
        inner=outward.columns if outward else 0,
        hidden=job.model.hidden_size,
    )


def _latent_heads(job: Job, parts: latent.LatentParts, cache: LatentCache) -> latent.LatentHeads:
    heads = ceil_div(job.model.attention_heads, job.layout.tp)
    queries = (parts.query_up or parts.query).rows // heads
    nope = queries - cache.rope_dim
    return latent.LatentHeads(
        heads=heads,
        latent=cache.latent_dim,
        rope=cache.rope_dim,
        nope=nope,
        value=parts.expand.rows // heads - nope,
        context_rows=job.latent_rows,
    )


def _heads(job: Job, roles: LayerRoles, caches: Sequence[LayerCache]) -> Heads:
    cache = _headed(job, caches)
    outward = roles.attention.outward
    width = outward.columns if outward else 0
    if cache is None:
        heads = max(1, ceil_div(job.model.attention_heads, job.layout.tp))
        return Heads(heads, heads, width // heads, width // heads)
    keys = cache.heads_per_rank(job.layout.tp)
    queries = max(1, width // cache.head_dim_v)
    return Heads(queries, keys, cache.head_dim, cache.head_dim_v)


def _headed(job: Job, caches: Sequence[LayerCache]) -> Any:
    for cache in caches:
        if isinstance(cache, SharedCache):
            return _headed(job, job.model.layers[cache.layer].caches)
        if cache.kind in ("full", "window", "chunked"):
            return cache
    return None


def _convolved(job: Job, caches: Sequence[LayerCache]) -> int:
    """Channels of a recurrent layer that go through its convolution, on this rank."""
    total = 0
    for cache in caches:
        if isinstance(cache, RecurrentCache):
            for state in cache.states:
                if state.name in _INPUT_STATES:
                    channels = state.shape[0] * (state.shape[1] if len(state.shape) > 2 else 1)
                    total += ceil_div(channels, job.layout.tp)
    return total
