"""TensorName: what the name of a checkpoint's tensor says about its place in the model."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_LISTS = "layers|layer|h|blocks|block|resblocks|deepstack_merger_list|merger_list"
_LAYER = re.compile(rf"(?:^|\.)(?:{_LISTS})\.(\d{{1,6}})\.", re.ASCII)
# Modules for multi-token prediction that count from 0 in a branch of their own.
_DRAFT = re.compile(r"(?:^|\.)mtp\.(?:layers\.)?(?:(\d{1,6})\.)?", re.ASCII)
_EXPERT = re.compile(r"\.experts\.\d{1,6}\.", re.ASCII)
_TOWER = re.compile(
    r"vision|visual|image|audio|projector|merger|connector|resampler|aligner"
    r"|^mlp1\.|^vpm\.|^(?:model\.)?encoder\b",
    re.ASCII,
)
# gpt-oss glues the kind of tensor to the module with an underscore, or leaves it out.
_FUSED_EXPERTS = re.compile(r"((?:.*\.)?experts\.(?:gate_up_proj|down_proj))(?:_(\w+))?", re.ASCII)
_GLUED = {"blocks": "weight_packed", "scales": "weight_scale", "bias": "bias", "": "weight"}

# Saved by some exporters, loaded by no engine: masks and tables that are computed anew.
_NEVER_LOADED = (
    "rotary_emb.inv_freq",
    ".attn.bias",
    ".attn.masked_bias",
    ".attention.bias",
    ".attention.masked_bias",
    ".position_ids",
    ".final_logits_bias",
)


class TensorName(NamedTuple):
    """A name, taken apart.

    Attributes:
        module: Without layer and expert number: ``self_attn.q_proj``.
        kind: The last part: ``weight``, ``bias``, ``qweight``, ``weight_scale``.
        layer: The layer's number, or None; in a draft branch, the number of the module.
        draft: It belongs to such a branch.
        tower: It belongs to a tower or its projector.
        loaded: An engine loads it.
    """

    module: str
    kind: str
    layer: int | None
    draft: bool
    tower: bool
    loaded: bool

    @property
    def local(self) -> str:
        """Module and kind: the name of an entry of the inventory."""
        return f"{self.module}.{self.kind}" if self.module else self.kind


def parse_name(name: str) -> TensorName:
    """Takes a name apart.

    >>> parse_name("model.layers.7.mlp.experts.3.up_proj.weight")[:3]
    ('mlp.experts.up_proj', 'weight', 7)
    """
    draft = _DRAFT.search(name) if "mtp." in name else None
    layer = draft or _LAYER.search(name)
    head = name[: layer.start()] if layer else name
    local = name[layer.end() :] if layer else name
    if ".experts." in local or local.startswith("experts."):
        local = _EXPERT.sub(".experts.", f".{local}").removeprefix(".")
    module, kind = _module_and_kind(local)
    return TensorName(
        module,
        kind,
        int(layer[1] or 0) if layer else None,
        draft is not None,
        _is_tower(head),
        not f".{name}".endswith(_NEVER_LOADED),
    )


# The layers and experts of a model repeat the same few names.
@lru_cache(maxsize=1024)
def _module_and_kind(local: str) -> tuple[str, str]:
    fused = _FUSED_EXPERTS.fullmatch(local) if "experts." in local else None
    if fused and (fused[2] or "") in _GLUED:
        return fused[1], _GLUED[fused[2] or ""]
    if ".weight." in local:  # bitsandbytes: what belongs to a weight, below its name
        module, _, kind = local.partition(".weight.")
    else:
        module, _, kind = local.rpartition(".")
    return module, kind


@lru_cache(maxsize=1024)
def _is_tower(head: str) -> bool:
    return _TOWER.search(head) is not None
