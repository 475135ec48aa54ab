"""Encoders of sound: Whisper's, alone and as the ear of a language model.

Shapes: transformers v5.24.0 src/transformers/models/{whisper,qwen2_audio,qwen2_5_omni,
qwen3_omni_moe,voxtral}/modeling_*.py.
"""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.fields import Fields
from kvplan.architectures.towers.parts import (
    MAX_CHANNELS,
    LayerForm,
    TowerSizes,
    layers,
    read_sizes,
    tower_linear,
    tower_norm,
)

_FORM = LayerForm(
    ups=("fc1",),
    down="fc2",
    norms=("self_attn_layer_norm", "final_layer_norm"),
    key_bias=False,
)
_NAMES = ("d_model", "encoder_ffn_dim", "encoder_layers")
_TAPS = 3  # width of the convolutions


def whisper_encoder(fields: Fields, *, names: tuple[str, str, str] = _NAMES) -> tuple[Weights, int]:
    """Whisper's encoder and its width. Defaults: Qwen2AudioEncoderConfig.

    Args:
        fields: The encoder's configuration.
        names: What the class calls width, feed-forward and number of layers.
    """
    sizes = read_sizes(fields, hidden=1280, width=5120, depth=32, names=names)
    positions = fields.integer("max_source_positions", default=1500)
    return (
        _convolutions(fields, sizes)
        + _linear("embed_positions", (positions, sizes.hidden))
        + layers(sizes, _FORM, component="audio")
        + audio_norm("layer_norm", sizes.hidden),
        sizes.hidden,
    )


def omni_encoder(fields: Fields) -> Weights:
    """The ear of Qwen2.5-Omni, with its projection. Defaults: Qwen2_5OmniAudioEncoderConfig."""
    sizes = read_sizes(fields, hidden=1280, width=5120, depth=32, names=_NAMES)
    out = fields.integer("output_dim", default=3584)
    return (
        _convolutions(fields, sizes)
        + _linear("audio_bos_eos_token", (2, out))
        + layers(sizes, _FORM, component="audio")
        + audio_norm("ln_post", sizes.hidden)
        + _linear("proj", (out, sizes.hidden), bias=True)
    )


def omni3_encoder(fields: Fields) -> Weights:
    """The ear of Qwen3-Omni, with its projection. Defaults: Qwen3OmniMoeAudioEncoderConfig."""
    sizes = read_sizes(fields, hidden=1280, width=5120, depth=32, names=_NAMES)
    narrow = fields.integer("downsample_hidden_size", default=480)
    bands = fields.integer("num_mel_bins", default=128, most=MAX_CHANNELS)
    out = fields.integer("output_dim", default=3584)
    for _ in range(3):  # each convolution halves the bands, rounding up
        bands = (bands + 1) // 2
    weights = _linear("conv2d1", (narrow, _TAPS * _TAPS), bias=True)
    for name in ("conv2d2", "conv2d3"):
        weights += _linear(name, (narrow, narrow * _TAPS * _TAPS), bias=True)
    return (
        weights
        + _linear("conv_out", (sizes.hidden, narrow * bands))
        + layers(sizes, _FORM.model_copy(update={"key_bias": True}), component="audio")
        + audio_norm("ln_post", sizes.hidden)
        + _linear("proj1", (sizes.hidden, sizes.hidden), bias=True)
        + _linear("proj2", (out, sizes.hidden), bias=True)
    )


def audio_linear(name: str, shape: tuple[int, int], *, bias: bool = False) -> Weights:
    """One matrix of a projector from sound to text."""
    return _linear(name, shape, bias=bias)


def audio_norm(name: str, size: int, *, bias: bool = True) -> Weights:
    """One normalization beside the layers of an encoder of sound."""
    return tower_norm(name, size, bias=bias, component="audio")


def _convolutions(fields: Fields, sizes: TowerSizes) -> Weights:
    bands = fields.integer("num_mel_bins", default=128, most=MAX_CHANNELS)
    return _linear("conv1", (sizes.hidden, _TAPS * bands), bias=True) + _linear(
        "conv2", (sizes.hidden, _TAPS * sizes.hidden), bias=True
    )


def _linear(name: str, shape: tuple[int, int], *, bias: bool = False) -> Weights:
    return tower_linear(name, shape, bias=bias, component="audio")
