"""Which function reads which class of draft: one literal table.

A draft's ``model_type`` is that of the layers it borrows; its class says what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kvplan.architectures.table import Family

_EAGLE3 = (
    "LlamaForCausalLMEagle3",
    "Eagle3LlamaForCausalLM",
    "Eagle3MiniMaxM2ForCausalLM",
    "Eagle3Qwen2_5vlForCausalLM",
    "Eagle3Qwen3vlForCausalLM",
)
_PEAGLE = ("PEagleDraftModel", "PeagleLlamaForCausalLM")
_DFLASH = ("DFlashDraftModel", "QwenDFlashDraftModel")

DRAFTS: Mapping[str, Family] = MappingProxyType(
    dict.fromkeys(_EAGLE3, Family("drafts.eagle3:eagle3", "llama", _EAGLE3, 2048))
    | dict.fromkeys(_PEAGLE, Family("drafts.eagle3:peagle", "llama", _PEAGLE, 2048))
    | dict.fromkeys(_DFLASH, Family("drafts.dflash:dflash", "qwen3", _DFLASH, 32_768))
    | {
        name: Family(build, "qwen3", (name,), 32_768)
        for name, build in (
            ("DSparkDraftModel", "drafts.dflash:dspark"),
            ("Qwen3DSparkModel", "drafts.dflash:dspark"),
            ("DominoDraftModel", "drafts.dflash:domino"),
            ("Eagle3Qwen3ForCausalLM", "drafts.eagle3:eagle3_qwen3"),
        )
    }
)
"""By the name in ``architectures``."""

REFUSED_DRAFTS: Mapping[str, str] = MappingProxyType(
    {
        "MedusaModel": "its heads are for one target each, and engines have dropped it",
        "QwenDFlareDraftModel": "each layer has projections for the target's states of its own",
        "Eagle3DeepseekV2ForCausalLM": "drafts with latent attention were not read",
        "Eagle3DeepseekV3ForCausalLM": "drafts with latent attention were not read",
    }
)
"""Classes that are known and not modelled, and why."""


def find_draft(classes: tuple[str, ...], *, narrowed: bool) -> tuple[str, Family] | None:
    """The class of a draft and how it is read, or None if it is none.

    Args:
        classes: The configuration's ``architectures``.
        narrowed: It states ``draft_vocab_size``: older EAGLE-3 drafts name Llama's own class.
    """
    for name in classes:
        if name in DRAFTS:
            return name, DRAFTS[name]
        if narrowed and name == "LlamaForCausalLM":
            return name, DRAFTS[_EAGLE3[0]]
    return None
