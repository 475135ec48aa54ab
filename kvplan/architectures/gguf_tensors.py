"""The weight inventory of a GGUF file: exact bytes, and what each tensor is by its name.

The names are the same for all architectures: ggml-org/llama.cpp@0c1e57098
gguf-py/gguf/constants.py ``TENSOR_NAMES``. What no rule knows is kept as ``other`` and named.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from kvplan.architectures.blocks import Weights
from kvplan.models.facts import TensorHeader
from kvplan.models.ggml_types import GGML_FORMATS
from kvplan.models.weights import Component, Place, Sharding, Weight

_LAYER = re.compile(r"blk\.(\d{1,6})\.", re.ASCII)


class _Rule(NamedTuple):
    """What tensors of a name are; the first that matches counts."""

    pattern: re.Pattern[str]
    component: Component
    sharding: Sharding = "replicated"


def _rule(pattern: str, component: Component, sharding: Sharding = "replicated") -> _Rule:
    return _Rule(re.compile(pattern, re.ASCII), component, sharding)


_WHOLE = (
    _rule(r"(per_layer_)?token_embd\.", "embedding", "vocab"),
    _rule(r"(position_embd|token_types)\.", "embedding"),
    _rule(r"output\.", "lm_head", "vocab"),
    _rule(r"\w*norm\.", "norms"),
    _rule(r"(v|mm)\.", "vision"),
    _rule(r"a\.", "audio"),
    _rule(r"(rope|altup|per_layer)_", "other"),
)
_IN_LAYER = (
    _rule(r"nextn\.", "mtp"),
    _rule(r"attn_[qk]_norm\.", "attention"),
    _rule(r"\w*norm(_exps)?\.", "norms"),
    _rule(r"ffn_gate_inp|exp_probs_b|ffn_exp_probs_b", "router"),
    _rule(r"ffn_(gate|up|gate_up)_exps\.", "experts", "column"),
    _rule(r"ffn_down_exps\.", "experts", "row"),
    _rule(r"ffn_(gate|up)_shexp\.", "shared_experts", "column"),
    _rule(r"ffn_down_shexp\.", "shared_experts", "row"),
    _rule(r"ffn_(gate|up|gate_up)\.", "mlp", "column"),
    _rule(r"ffn_down\.", "mlp", "row"),
    _rule(r"attn_(q|qkv|q_b|k_b|v_b|kv_b|gate)\.", "attention", "column"),
    _rule(r"attn_[kv]\.", "attention", "kv_heads"),
    _rule(r"attn_output\.", "attention", "row"),
    _rule(r"(attn|indexer)_|indexer\.", "attention"),
    _rule(r"(ssm|shortconv|time_mix|channel_mix)[._]", "recurrent"),
    _rule(r"(altup|laurel|per_layer|inp_gate|proj|layer_output|post)", "other"),
)
_TABLES = ("rope_freqs.", "rope_factors_")  # computed, so no parameters


class _Kind(NamedTuple):
    """Tensors that differ in their layer only."""

    name: str
    shape: tuple[int, ...]
    dtype: str


def layer_of(name: str) -> int:
    """The layer that a tensor belongs to; -1: to none.

    >>> layer_of("blk.12.attn_q.weight"), layer_of("output.weight")
    (12, -1)
    """
    layer = _LAYER.match(name)
    return int(layer[1]) if layer else -1


def gguf_inventory(
    tensors: Iterable[TensorHeader], *, layers: int, kv_heads: int, active: int
) -> tuple[Weights, tuple[str, ...]]:
    """The inventory, and the names of tensors that no rule knows.

    Args:
        tensors: All headers.
        layers: Decoder layers; those beyond are modules for multi-token prediction.
        kv_heads: KV heads of a layer, which tensor parallelism keeps whole.
        active: Routed experts that a token goes through.
    """
    at: defaultdict[tuple[_Kind, bool], list[int]] = defaultdict(list)
    unknown: list[str] = []
    for tensor in tensors:
        layer = _LAYER.match(tensor.name)
        number = int(layer[1]) if layer else -1
        local = tensor.name[layer.end() :] if layer else tensor.name
        at[_Kind(local, tensor.shape, tensor.dtype), number >= layers].append(number)
        if _found(local, in_layer=layer is not None) is None:
            unknown.append(tensor.name)
    weights = tuple(
        _weight(kind, tuple(sorted(numbers)), ahead=ahead, kv_heads=kv_heads, active=active)
        for (kind, ahead), numbers in at.items()
    )
    return weights, tuple(unknown)


def _found(local: str, *, in_layer: bool) -> _Rule | None:
    rules = _IN_LAYER if in_layer else _WHOLE
    return next((rule for rule in rules if rule.pattern.match(local)), None)


def _weight(
    kind: _Kind, numbers: tuple[int, ...], *, ahead: bool, kv_heads: int, active: int
) -> Weight:
    in_layer = numbers[0] >= 0
    rule = _found(kind.name, in_layer=in_layer)
    component: Component = "mtp" if ahead else rule.component if rule else "other"
    experts = component == "experts" and len(kind.shape) > 1
    copies = kind.shape[0] if experts else 1
    shape = kind.shape[1:] if experts else kind.shape
    sharding = _possible(rule.sharding if rule else "replicated", shape, kv_heads)
    return Weight(
        name=kind.name,
        component=component,
        shape=shape or (1,),
        place="layers" if in_layer else _place(component, kind.name),
        layers=numbers if in_layer else (),
        copies=copies,
        active_copies=min(active, copies) if experts else copies,
        sharding=sharding,
        heads=kv_heads if sharding == "kv_heads" else 1,
        format=GGML_FORMATS[kind.dtype],
        elements=0 if kind.name.startswith(_TABLES) else None,
    )


def _place(component: Component, name: str) -> Place:
    if component == "lm_head" or name.startswith("output_norm"):
        return "head"
    return "tower" if component in ("vision", "audio") else "embedding"


def _possible(sharding: Sharding, shape: tuple[int, ...], kv_heads: int) -> Sharding:
    """Row biases are added once; rows that are no whole KV heads are not cut."""
    if sharding == "row" and len(shape) == 1:
        return "replicated"
    if sharding == "kv_heads" and (not kv_heads or shape[0] % kv_heads):
        return "replicated"
    return sharding
