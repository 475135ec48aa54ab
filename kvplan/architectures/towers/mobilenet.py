"""Gemma 3n's eye: MobileNetV5 as timm builds it, all sizes fixed by its name.

Shapes: timm 1.0.24 timm/models/mobilenetv5.py ``mobilenetv5_300m_enc``,
timm/models/_efficientnet_blocks.py, timm/layers/attention2d.py. vLLM keeps the tower whole on
every rank.
"""

from __future__ import annotations

from kvplan.architectures.blocks import Weights
from kvplan.architectures.towers.parts import repeated, tower_linear, tower_norm, tower_vector

NAME = "mobilenetv5_300m_enc"
WIDTH = 2048
_COLOURS, _STEM = 3, 64
# Blocks of the last two stages: attention and feed-forward take turns.
_PAIRS_640, _PAIRS_1280 = 14, 19


def mobilenet_v5() -> Weights:
    """The tower; what it puts out is `WIDTH` wide."""
    return (
        _conv("conv_stem", _STEM, _COLOURS, 3)
        + tower_vector("conv_stem.conv.bias", _STEM)
        + _edge(_STEM, 128)
        + repeated(_edge(128, 128), 2)
        + _inverted(128, 256, start=3, middle=5, expand=6)
        + repeated(_inverted(256, 256, start=5, expand=4), 2)
        + repeated(_inverted(256, 256, start=3, expand=4), 2)
        + _inverted(256, 640, start=5, middle=5, expand=6)
        + repeated(_inverted(640, 640, start=5, expand=4), 7)
        + _inverted(640, 640, expand=1)
        + repeated(_attention(640, heads=12, head_dim=64, shrunk=True), _PAIRS_640)
        + repeated(_inverted(640, 640, expand=2), _PAIRS_640)
        + _inverted(640, 1280, start=5, middle=5, expand=6)
        + repeated(_attention(1280, heads=16, head_dim=96, shrunk=False), _PAIRS_1280)
        + repeated(_inverted(1280, 1280, expand=2), _PAIRS_1280)
        + _fusion(640 + 1280)
    )


def _edge(inputs: int, out: int) -> Weights:
    wide = 4 * inputs
    return (
        _plain("conv_exp", wide, 9 * inputs)
        + tower_norm("bn1", wide)
        + _plain("conv_pwl", out, wide)
        + tower_norm("bn2", out)
    )


def _inverted(
    inputs: int, out: int, *, start: int = 0, middle: int = 0, expand: int, scaled: bool = True
) -> Weights:
    """An inverted residual; ``start`` and ``middle`` are kernels of convolutions by channel."""
    wide = expand * inputs
    weights = _conv("dw_start", inputs, 1, start) if start else ()
    weights += _conv("pw_exp", wide, inputs, 1)
    weights += _conv("dw_mid", wide, 1, middle) if middle else ()
    weights += _conv("pw_proj", out, wide, 1)
    return weights + (tower_vector("layer_scale.gamma", out) if scaled else ())


def _attention(size: int, *, heads: int, head_dim: int, shrunk: bool) -> Weights:
    """Many heads of queries on one of keys and values, which a convolution may shrink first."""
    weights = tower_norm("norm", size) + _plain("attn.query.proj", heads * head_dim, size)
    for name in ("attn.key", "attn.value"):
        if shrunk:
            weights += _plain(f"{name}.down_conv", size, 9) + tower_norm(f"{name}.norm", size)
        weights += _plain(f"{name}.proj", head_dim, size)
    weights += _plain("attn.output.proj", size, heads * head_dim)
    return weights + tower_vector("layer_scale.gamma", size)


def _fusion(inputs: int) -> Weights:
    return _inverted(inputs, WIDTH, expand=2, scaled=False) + tower_norm("msfa.norm", WIDTH)


def _conv(name: str, out: int, inputs: int, kernel: int) -> Weights:
    return _plain(f"{name}.conv", out, kernel * kernel * inputs) + tower_norm(f"{name}.bn", out)


def _plain(name: str, out: int, inputs: int) -> Weights:
    return tower_linear(name, (out, inputs))
