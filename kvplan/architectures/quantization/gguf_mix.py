"""Which type each tensor gets in a GGUF file of a given file type.

A file type such as ``Q4_K_M`` is no single format: llama.cpp gives more bits to the tensors that
suffer most. What it looks at is a tensor's role, where its layer lies, how many query heads share
a KV head, and the number of experts. A row that is no whole number of blocks falls back to a type
with smaller ones.

The order of tensors and what is left alone are those of ggml-org/llama.cpp@0c1e57098
src/llama-quant.cpp; the choice by role is in `gguf_rules`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from kvplan.architectures.quantization.gguf_rules import (
    BASES,
    TWO_BITS,
    Place,
    Role,
    Traits,
    chosen_type,
)
from kvplan.models.ggml_types import GGML_TYPES


class GgufTensor(NamedTuple):
    """A tensor by its name in the file; the last dimension of the shape is a row."""

    name: str
    shape: tuple[int, ...]


_UNQUANTIZED = ("F32", "F16", "BF16")
# Rows that are no whole number of blocks; what does not fit the second type either is f16.
_FALLBACK: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(
        ("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq4_xs"), "iq4_nl"
    )
    | dict.fromkeys(("q2_0", "q2_K", "q3_K", "tq1_0", "tq2_0"), "q4_0")
    | {"q4_K": "q5_0", "q5_K": "q5_1", "q6_K": "q8_0"}
)

_LAYER = re.compile(r"blk\.(\d+)\.", re.ASCII)
# Small, or ruined by quantization: kept as they are.
_KEPT = re.compile(
    r"_norm\.weight|ffn_gate_inp\.weight|ffn_gate_tid2eid\.weight|altup|laurel"
    r"|per_layer_model_proj|^position_embd\.weight|^token_types\.weight|ssm_conv1d"
    r"|shortconv\.conv\.weight|indexer\.[kq]_proj\.weight|time_mix_first\.weight"
    r"|time_mix_[wvag][012]\.weight|time_mix_decay_w[12]\.weight|time_mix_lerp_fused\.weight"
    r"|attn_rel_b\.weight",
    re.ASCII,
)
_ROLES: tuple[tuple[str, Role], ...] = (
    ("attn_qkv.weight", "value"),
    ("attn_kv_b.weight", "value"),
    ("attn_v.weight", "value"),
    ("attn_k.weight", "key"),
    ("attn_q.weight", "query"),
    ("attn_output.weight", "output"),
    ("ffn_up", "up"),
    ("ffn_gate", "gate"),
    ("ffn_down", "down"),
)
_EMBEDDINGS = ("token_embd.weight", "per_layer_token_embd.weight")


def role_of(name: str) -> Role:
    """What a tensor is, as far as the rules tell tensors apart.

    >>> role_of("blk.0.attn_qkv.weight"), role_of("blk.3.ffn_down_exps.weight")
    ('value', 'down')
    """
    if name == "output.weight":
        return "head"
    if name in _EMBEDDINGS:
        return "embedding"
    return next((role for part, role in _ROLES if part in name), "other")


def is_quantized(tensor: GgufTensor) -> bool:
    """Whether a file type goes for the tensor at all; vectors and a few others it leaves alone."""
    dimensions = len(tensor.shape)
    while dimensions > 1 and tensor.shape[-dimensions] == 1:
        dimensions -= 1
    return dimensions > 1 and tensor.name.endswith("weight") and _KEPT.search(tensor.name) is None


def plan_types(tensors: Iterable[GgufTensor], model: Traits, file_type: str) -> dict[str, str]:
    """The type of every tensor that the file type goes for, by name.

    Args:
        tensors: All tensors of the model.
        model: What else the rules look at.
        file_type: One of `BASES`.
    """
    taken = sorted(filter(is_quantized, tensors), key=_order)
    tied = not any(role_of(tensor.name) == "head" for tensor in taken)
    roles = [(tensor, _tied(role_of(tensor.name), tied=tied)) for tensor in taken]
    counts = Counter(role for _, role in roles)
    seen: Counter[Role] = Counter()
    types: dict[str, str] = {}
    for tensor, role in roles:
        place = _place(tensor, Place(seen[role], counts[role]), role, model, file_type)
        types[tensor.name] = _type(tensor, role, place, model, file_type)
        seen[role] += 1
    return types


def _order(tensor: GgufTensor) -> tuple[int, str]:
    return _layer_of(tensor), tensor.name


def _layer_of(tensor: GgufTensor) -> int:
    layer = _LAYER.match(tensor.name)
    return int(layer[1]) if layer else -1


def _tied(role: Role, *, tied: bool) -> Role:
    """An embedding that is also the head is treated like one."""
    return "head" if tied and role == "embedding" else role


def _place(tensor: GgufTensor, seen: Place, role: Role, model: Traits, file_type: str) -> Place:
    """Where the tensor lies, as its role's rules count: ``seen`` counts tensors of the role."""
    if role not in ("down", "gate", "up"):
        return seen
    # With experts there may be several in a layer, so the layer is what counts.
    by_layer = model.experts > 1 and file_type not in TWO_BITS
    return Place(_layer_of(tensor) if by_layer else seen.nth, model.layers)


def _type(tensor: GgufTensor, role: Role, place: Place, model: Traits, file_type: str) -> str:
    base = BASES[file_type]
    if file_type in _UNQUANTIZED:
        return base
    row = tensor.shape[-1]
    if role == "head":
        return _fitting(_head(base, row, model, file_type), row)
    if file_type == "MXFP4_MOE":
        return _fitting("mxfp4" if len(tensor.shape) > 2 else "q8_0", row)
    return _fitting(chosen_type(role, place, model, file_type) or base, row)


def _head(base: str, row: int, model: Traits, file_type: str) -> str:
    if file_type == "MXFP4_MOE" or model.architecture == "falcon":
        return "q8_0"
    if row % GGML_TYPES[base].block or base == "q8_0":
        return "q8_0"
    return "q5_K" if file_type in TWO_BITS or file_type == "IQ3_XXS" else "q6_K"


def _fitting(wanted: str, row: int) -> str:
    """The type itself if the row is whole blocks of it, else what llama.cpp falls back to."""
    if row % GGML_TYPES[wanted].block == 0:
        return wanted
    second = _FALLBACK.get(wanted, wanted)
    return second if row % GGML_TYPES[second].block == 0 else "f16"
