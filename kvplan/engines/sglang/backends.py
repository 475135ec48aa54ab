"""The tokens of a page, which the attention backend of the device decides.

Source: SGLang 0.5.23, sglang/srt/arg_groups/overrides.py, model_override_base.py
get_default_attn_backend and arg_groups/model_overrides.
"""

from __future__ import annotations

_BLACKWELL = 10
SPARSE_PAGE = 64
_TRTLLM_PAGE = 64
_UNEQUAL_PAGE = 128
# MLA classes that take trtllm_mla on data-centre Blackwell; others take FlashInfer.
_TRTLLM_LATENT = frozenset(
    {
        "DeepseekV3ForCausalLM",
        "KimiK25ForConditionalGeneration",
        "MistralLarge3ForCausalLM",
        "PixtralForConditionalGeneration",
        "LongcatFlashForCausalLM",
        "Dots3NoteForCausalLM",
    }
)
# Classes with a backend of their own there, all with pages of one token.
_TRITON_ON_BLACKWELL = frozenset({"FalconH1ForCausalLM", "GraniteMoeHybridForCausalLM"})
# Given backends that allow no other page.
_PAGES = {"flashmla": 64, "trtllm_mla": 64, "cutedsl_mla": 64, "trtllm_mha": 64, "hpc_ops": 64}


def page_tokens(
    architecture: str,
    sm: tuple[int, int],
    *,
    asked: int | None,
    backend: str | None,
    latent: bool,
    sparse: bool,
    unequal: bool,
    one_token_states: bool,
    branches: int | None,
) -> int:
    """Tokens of a page.

    Args:
        architecture: The model's class.
        sm: Compute capability.
        asked: The user's page_size, or None.
        backend: The user's attention_backend, or None.
        latent: The model's attention is MLA.
        sparse: It is read through an indexer.
        unequal: Keys and values differ in size.
        one_token_states: Recurrent states are cached without additional slots, which only works
            with pages of one token.
        branches: Branches of a draft, or None.
    """
    if sparse:
        return SPARSE_PAGE
    if backend is not None:
        return _fitting(asked, _PAGES.get(backend, 1))
    if sm[0] != _BLACKWELL:
        return asked or 1
    if latent:
        return _fitting(asked, _TRTLLM_PAGE if architecture in _TRTLLM_LATENT else 1)
    if (branches or 1) > 1 or one_token_states or architecture in _TRITON_ON_BLACKWELL:
        return asked or 1
    return _UNEQUAL_PAGE if unequal else _fitting(asked, _TRTLLM_PAGE)


def _fitting(asked: int | None, page: int) -> int:
    """The user's page where the backend takes it."""
    if page == 1 or asked in (16, 32, 64, 128):
        return asked or page
    return page
