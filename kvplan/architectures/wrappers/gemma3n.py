"""Gemma 3n with its eye and its ear."""

from __future__ import annotations

from kvplan.architectures.anatomy import Anatomy
from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.towers.gemma3n import embedder, gemma3n_audio
from kvplan.architectures.towers.mobilenet import NAME, WIDTH, mobilenet_v5
from kvplan.architectures.wrappers.parts import Beside, part


def gemma3n(fields: Fields, text: Anatomy) -> Beside:
    """Gemma 3n. Defaults: Gemma3nVisionConfig, Gemma3nAudioConfig."""
    weights: Weights = ()
    unsized = None
    if fields.has("vision_config"):
        eye = part(fields, "vision_config", "gemma3n")
        if (eye.optional_text("architecture") or NAME) == NAME:
            weights += mobilenet_v5()
        else:
            unsized = "vision tower"
        width = eye.integer("hidden_size", default=WIDTH)
        weights += embedder(eye, width, text.hidden_size, "vision")
    if fields.has("audio_config"):
        config = part(fields, "audio_config", "gemma3n")
        ear, width = gemma3n_audio(config)
        weights += ear + embedder(config, width, text.hidden_size, "audio")
    return Beside(weights, unsized)
