"""The layer step's peak in closed form: what `step` allocates, summed by hand. No torch.

The widths are those of `kvplan.models.step`; MLA besides makes room for keys and values of 64k
tokens of context while it attends.
"""

from __future__ import annotations

from kvplan.measure.job import Job
from kvplan.models.formats import DTYPE_BYTES
from kvplan.models.step import layer_step


def layer_step_bytes(job: Job) -> int:
    """The peak beyond the weights over all kinds of layers."""
    step = layer_step(job.model, job.layout)
    tokens = job.tokens
    room = tokens * step.latent_alive + job.latent_rows * step.latent_row if step.latent_row else 0
    widest = max(tokens * (step.alive + step.kept), room + tokens * step.kept)
    return DTYPE_BYTES[job.dtype] * widest
