"""MiniCPM-V: SigLIP, a resampler, and a text model that depends on the version.

Source: vLLM v0.33.0 vllm/model_executor/models/minicpmv.py; for 4.6 transformers v5.24.0
src/transformers/models/minicpmv4_6/modeling_minicpmv4_6.py.
"""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.towers.clip import headless_siglip
from kvplan.architectures.towers.parts import tower_linear, tower_norm, tower_table
from kvplan.architectures.towers.resampler import resampler
from kvplan.architectures.wrappers.parts import Beside, part
from kvplan.architectures.wrappers.timm import SO400M, so400m
from kvplan.errors import NotModelledError

_TEXTS = {
    "2.0": "minicpm",
    "2.5": "llama",
    "2.6": "qwen2",
    "4.0": "llama",
    "4.5": "qwen3",
}
_MOST = 64


def minicpmv_text(fields: Fields) -> str:
    """The type of the text model: it follows from the version.

    Raises:
        NotModelledError: a version that is not known.
    """
    version = _version(fields)
    if version not in _TEXTS:
        raise NotModelledError(
            f"MiniCPM-V {version[:10]} is not modelled.",
            hint=f"Known are {', '.join(_TEXTS)}.",
        )
    return _TEXTS[version]


def minicpmv(fields: Fields, text: Anatomy) -> Beside:
    """MiniCPM-V 2.0 to 4.5."""
    if fields.optional_text("vision_encoder") == SO400M:
        return _first(fields, text)
    if not fields.has("vision_config"):
        return Beside((), "vision tower and resampler")
    tower, width = headless_siglip(part(fields, "vision_config", "siglip"), patch=16)
    if fields.flag("drop_vision_last_layer", default=True):
        tower = _without_last(tower)
    queries = fields.integer("query_num", default=64)
    weights = tower + resampler(queries=queries, hidden=text.hidden_size, width=width)
    added = fields.raw("use_gene_module") is True
    return Beside(weights, "gene module" if added else None)


def _first(fields: Fields, text: Anatomy) -> Beside:
    """MiniCPM-V 2.0: a tower by its name in timm; the resampler's positions are in the files."""
    tower, width = so400m()
    if fields.flag("drop_vision_last_layer", default=True):
        tower = _without_last(tower)
    queries = fields.integer("query_num", default=64)
    positions = tower_table("resampler.pos_embed", (queries, text.hidden_size))
    return Beside(
        tower + resampler(queries=queries, hidden=text.hidden_size, width=width) + positions
    )


def minicpmv4_6(fields: Fields, text: Anatomy) -> Beside:
    """MiniCPM-V 4.6: patches are merged twice, once within the tower."""
    config = part(fields, "vision_config", "minicpmv4_6")
    tower, width = headless_siglip(config, patch=16)
    inner = config.integer("intermediate_size", default=3072)
    steps = fields.integer("merger_times", default=1, most=_MOST)
    merged = 4 * width
    weights = tower + _window_merger(width, inner)
    for step in range(steps):
        out = merged if step < steps - 1 else text.hidden_size
        weights += _merger(f"mlp.{step}", merged, out)
    return Beside(weights)


def _window_merger(width: int, inner: int) -> Weights:
    weights: Weights = ()
    for name in ("q_proj", "k_proj", "v_proj"):
        weights += tower_linear(f"vit_merger.self_attn.{name}", (width, width), bias=True)
    return (
        weights
        + tower_linear("vit_merger.self_attn.out_proj", (width, width), bias=True)
        + tower_norm("vit_merger.layer_norm1", width, bias=True)
        + tower_norm("vit_merger.pre_norm", 4 * width, bias=True)
        + tower_linear("vit_merger.linear_1", (4 * inner, 4 * width), bias=True)
        + tower_linear("vit_merger.linear_2", (width, 4 * inner), bias=True)
    )


def _merger(name: str, merged: int, out: int) -> Weights:
    return (
        tower_norm(f"{name}.pre_norm", merged, bias=True)
        + tower_linear(f"{name}.linear_1", (merged, merged), bias=True)
        + tower_linear(f"{name}.linear_2", (out, merged), bias=True)
    )


def _version(fields: Fields) -> str:
    stated = fields.number("version")
    if stated is not None:
        return f"{stated:.1f}"
    # Files before 2.6 do not say: the first has these sizes.
    first = fields.raw("hidden_size") == 2304 and fields.raw("query_num") == 64
    version = "2.0" if first else "2.5"
    fields.fill("version", version, "vLLM v0.33.0 vllm/model_executor/models/minicpmv.py")
    return version


def _without_last(tower: Weights) -> Weights:
    return tuple(
        weight.model_copy(update={"copies": weight.copies - 1, "active_copies": weight.copies - 1})
        if weight.copies > 1
        else weight
        for weight in tower
    )
