"""Qwen's wrappers, and those that took over their towers: vision, sound, and both."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.fields import Fields
from kvplan.architectures.towers.glm import glm4v_vit
from kvplan.architectures.towers.qwen import (
    exaone4_5_vit,
    omni_vit,
    qwen2_5_vit,
    qwen2_vit,
    qwen3_vit,
)
from kvplan.architectures.towers.whisper import (
    audio_linear,
    omni3_encoder,
    omni_encoder,
    whisper_encoder,
)
from kvplan.architectures.wrappers.parts import Beside, part

_THINKER_ONLY = (
    "Only the thinker is counted: talker and vocoder are not loaded to serve text"
    " (vLLM v0.33.0 vllm/model_executor/models/{}.py)."
)


def qwen2_vl(fields: Fields, _: Anatomy) -> Beside:
    """Qwen2-VL."""
    return Beside(qwen2_vit(part(fields, "vision_config", "qwen2_vl")))


def qwen2_5_vl(fields: Fields, _: Anatomy) -> Beside:
    """Qwen2.5-VL."""
    return Beside(qwen2_5_vit(part(fields, "vision_config", "qwen2_5_vl")))


def qwen3_vl(fields: Fields, _: Anatomy) -> Beside:
    """Qwen3-VL, dense or with experts."""
    return Beside(qwen3_vit(part(fields, "vision_config", "qwen3_vl")))


def qwen3_5(fields: Fields, _: Anatomy) -> Beside:
    """Qwen 3.5 and 3.6: Qwen3-VL's tower with one merger."""
    return Beside(qwen3_vit(part(fields, "vision_config", "qwen3_5"), deepstack=()))


def qwen2_5_omni(fields: Fields, _: Anatomy) -> Beside:
    """Qwen2.5-Omni."""
    thinker = part(fields, "thinker_config", "qwen2_5_omni")
    eye = omni_vit(part(thinker, "vision_config", "qwen2_5_omni"))
    ear = omni_encoder(part(thinker, "audio_config", "qwen2_5_omni"))
    return Beside(ear + eye, notes=_thinker_only("qwen2_5_omni_thinker"))


def qwen3_omni(fields: Fields, _: Anatomy) -> Beside:
    """Qwen3-Omni."""
    thinker = part(fields, "thinker_config", "qwen3_omni_moe")
    eye = qwen3_vit(part(thinker, "vision_config", "qwen3_omni_moe"), merger_mlp=True)
    ear = omni3_encoder(part(thinker, "audio_config", "qwen3_omni_moe"))
    return Beside(ear + eye, notes=_thinker_only("qwen3_omni_moe_thinker"))


def qwen2_audio(fields: Fields, text: Anatomy) -> Beside:
    """Qwen2-Audio: Whisper's encoder and one matrix."""
    ear, width = whisper_encoder(part(fields, "audio_config", "qwen2_audio"))
    return Beside(ear + audio_linear("linear", (text.hidden_size, width), bias=True))


def voxtral(fields: Fields, text: Anatomy) -> Beside:
    """Voxtral: Whisper's encoder, four steps merged into one."""
    config = part(fields, "audio_config", "voxtral")
    names = ("hidden_size", "intermediate_size", "num_hidden_layers")
    ear, _ = whisper_encoder(config, names=names)
    merged = config.integer("intermediate_size", default=5120)
    projector = audio_linear("linear_1", (text.hidden_size, merged))
    return Beside(ear + projector + audio_linear("linear_2", (text.hidden_size, text.hidden_size)))


def exaone4_5(fields: Fields, _: Anatomy) -> Beside:
    """EXAONE 4.5: Qwen2.5-VL's tower with fewer key and value heads."""
    return Beside(exaone4_5_vit(part(fields, "vision_config", "exaone4_5")))


def glm4v(fields: Fields, _: Anatomy) -> Beside:
    """GLM-4.1V to 4.6V, dense or with experts."""
    return Beside(glm4v_vit(part(fields, "vision_config", "glm4v")))


def _thinker_only(module: str) -> tuple[str, ...]:
    return (_THINKER_ONLY.format(module),)
