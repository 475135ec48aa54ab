"""What a model's folder or repository holds, when it isn't what kvplan reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

# Files that say what kind of repository this is, in the order they are looked for.
_TELLING = (
    ("adapter_config.json", "a LoRA adapter", "Plan the base model that the adapter is for."),
    ("model_index.json", "a diffusers pipeline", "kvplan plans language models."),
    (
        "params.json",
        "weights in their publisher's own layout",
        "Use the repository in Hugging Face layout.",
    ),
)
_GGUF_HINT = "Name one of the files on this machine, or the repository they were made from."


def without_config(names: Collection[str]) -> tuple[str, str]:
    """Says what is there instead of a ``config.json``, and what to do: (what, hint)."""
    for name, what, hint in _TELLING:
        if name in names:
            return what, hint
    if any(name.lower().endswith(".gguf") for name in names):
        return "GGUF files", _GGUF_HINT
    if not names:
        return "nothing", "Check the name."
    shown = ", ".join(sorted(names)[:3])
    return f"{len(names)} other files ({shown[:120]})", "Check the name."


def with_old_quantization(
    config: Mapping[str, Any], quantize_config: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Puts an old ``quantize_config.json`` where newer checkpoints keep it.

    AutoGPTQ wrote that file before transformers had ``quantization_config``. It names no method;
    ``desc_act`` is a field that only GPTQ has.
    """
    if quantize_config is None or config.get("quantization_config") is not None:
        return dict(config)
    stated = dict(quantize_config)
    if "desc_act" in stated:
        stated.setdefault("quant_method", "gptq")
    return {**config, "quantization_config": stated}
