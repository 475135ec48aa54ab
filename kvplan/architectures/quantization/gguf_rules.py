"""What llama.cpp chooses for a tensor of some role, file type by file type.

Rules, without importance matrix unless told otherwise: ggml-org/llama.cpp@0c1e57098
src/llama-quant.cpp (``llama_tensor_get_type_impl``, ``llama_ftype_get_default_type``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

Role = Literal[
    "head", "embedding", "value", "key", "query", "output", "down", "gate", "up", "other"
]


class Traits(NamedTuple):
    """What the rules look at beside the tensor itself.

    Attributes:
        architecture: The file's own name for it.
        layers: Decoder layers.
        shared_by: Query heads that share one KV head.
        experts: Routed experts of a layer, 0 for none.
        large: llama.cpp calls the model a 70B.
        imatrix: An importance matrix is used.
    """

    architecture: str
    layers: int
    shared_by: int
    experts: int = 0
    large: bool = False
    imatrix: bool = False


class Place(NamedTuple):
    """Which tensor of its role it is, and of how many."""

    nth: int
    total: int

    def among_first(self, share: int) -> bool:
        """Whether it is in the first one of ``share`` parts."""
        return self.nth < self.total // share

    @property
    def delicate(self) -> bool:
        """Whether it is in the first or last eighth, or every third between them."""
        eighth = self.total // 8
        outer = self.nth < eighth or self.nth >= 7 * self.total // 8
        return outer or (self.nth - eighth) % 3 == 2

    @property
    def middle(self) -> bool:
        """Whether it is in neither the first nor the last eighth."""
        return self.total // 8 <= self.nth < 7 * self.total // 8


_Rule = Callable[[Traits, Place], str | None]
_Rules = Mapping[str, _Rule]

BASES: Mapping[str, str] = MappingProxyType(
    {
        "F32": "f32",
        "F16": "f16",
        "BF16": "bf16",
        "Q1_0": "q1_0",
        "Q2_0": "q2_0",
        "Q4_0": "q4_0",
        "Q4_1": "q4_1",
        "Q5_0": "q5_0",
        "Q5_1": "q5_1",
        "Q8_0": "q8_0",
        "Q2_K": "q2_K",
        "Q2_K_S": "q2_K",
        "Q3_K_S": "q3_K",
        "Q3_K_M": "q3_K",
        "Q3_K_L": "q3_K",
        "Q4_K_S": "q4_K",
        "Q4_K_M": "q4_K",
        "Q5_K_S": "q5_K",
        "Q5_K_M": "q5_K",
        "Q6_K": "q6_K",
        "IQ1_S": "iq1_s",
        "IQ1_M": "iq1_m",
        "IQ2_XXS": "iq2_xxs",
        "IQ2_XS": "iq2_xs",
        "IQ2_S": "iq2_xs",
        "IQ2_M": "iq2_s",
        "IQ3_XXS": "iq3_xxs",
        "IQ3_XS": "iq3_s",
        "IQ3_S": "iq3_s",
        "IQ3_M": "iq3_s",
        "IQ4_NL": "iq4_nl",
        "IQ4_XS": "iq4_xs",
        "TQ1_0": "tq1_0",
        "TQ2_0": "tq2_0",
        "MXFP4_MOE": "mxfp4",
    }
)
"""The type that most tensors of a file type have."""

ALIASES: Mapping[str, str] = MappingProxyType(
    {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M"}  # tools/quantize/quantize.cpp
)
NEEDS_IMATRIX = frozenset({"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ3_XXS"})
"""File types that llama.cpp does not write without an importance matrix, whatever the model."""

TWO_BITS = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M")
_UPPER_TWO_BITS = ("IQ2_S", "IQ2_M")
_EIGHT_EXPERTS_OUTPUT = frozenset(
    {"Q2_K", "Q3_K_S", "Q3_K_M", "Q4_K_S", "Q4_K_M"}
    | {"IQ3_XXS", "IQ3_XS", "IQ3_S", "IQ3_M", "IQ4_NL", "IQ4_XS"}
)

_EMBEDDING: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("IQ2_XXS", "IQ2_XS", "IQ1_S", "IQ1_M"), "q2_K")
    | dict.fromkeys(("IQ2_S", "IQ2_M", "IQ3_XXS"), "iq3_s")
    | dict.fromkeys(("TQ1_0", "TQ2_0", "Q2_0"), "q4_K")
)
_VALUE: _Rules = MappingProxyType(
    {
        "Q2_K": lambda model, _: "q4_K" if model.shared_by >= 4 else "q3_K",
        "Q2_K_S": lambda model, _: "q4_K" if model.shared_by >= 4 else None,
        "Q3_K_M": lambda _, place: "q5_K" if place.nth < 2 else "q4_K",
        "Q3_K_L": lambda _model, _place: "q5_K",
        "Q4_K_S": lambda _, place: "q5_K" if place.nth < 4 else None,
        "Q4_K_M": lambda _, place: "q6_K" if place.delicate else None,
        "Q5_K_M": lambda _, place: "q6_K" if place.delicate else None,
        "IQ3_XXS": lambda model, _: (
            "q4_K" if model.shared_by >= 4 else "iq3_xxs" if model.imatrix else "iq3_s"
        ),
        "IQ3_XS": lambda model, _: "q4_K" if model.shared_by >= 4 else None,
        "IQ3_S": lambda model, _: "q4_K" if model.shared_by >= 4 else None,
        "IQ3_M": lambda _model, _place: "q4_K",
        "IQ4_NL": lambda model, _: "q5_K" if model.shared_by >= 4 else None,
        "IQ4_XS": lambda model, _: "q5_K" if model.shared_by >= 4 else None,
    }
)
_OUTPUT: Mapping[str, str] = MappingProxyType(
    {"Q2_K": "q3_K", "Q3_K_M": "q4_K", "Q3_K_L": "q5_K", "IQ3_XXS": "iq3_s", "IQ3_M": "q4_K"}
    | {"IQ1_S": "iq2_xxs", "IQ1_M": "iq2_xxs", "IQ2_S": "iq3_s", "IQ2_M": "iq3_s"}
)
_DOWN: _Rules = MappingProxyType(
    {
        "Q2_K": lambda _model, _place: "q3_K",
        "Q2_K_S": lambda _, place: "q4_K" if place.among_first(8) else None,
        "Q3_K_M": lambda _, place: "q5_K" if place.among_first(16) else "q4_K",
        "Q3_K_L": lambda _model, _place: "q5_K",
        "Q4_0": lambda model, place: "q4_1" if model.imatrix and place.among_first(8) else None,
        "Q5_0": lambda model, place: "q5_1" if model.imatrix and place.among_first(8) else None,
        "Q4_K_S": lambda _, place: "q5_K" if place.among_first(8) else None,
        "Q4_K_M": lambda _, place: "q6_K" if place.delicate else None,
        "Q5_K_M": lambda _, place: "q6_K" if place.delicate else None,
        "IQ3_XXS": lambda model, place: (
            None if model.imatrix else "q4_K" if place.among_first(8) else "q3_K"
        ),
        "IQ3_M": lambda model, place: (
            "q4_K" if place.among_first(8) or (model.experts == 8 and place.delicate) else None
        ),
        "IQ4_NL": lambda model, place: (
            "q5_K" if place.among_first(8) and not model.imatrix else None
        ),
        "IQ4_XS": lambda model, place: (
            "q5_K" if place.among_first(8) and not model.imatrix else None
        ),
    }
)
_FALCON_DOWN: _Rules = MappingProxyType(
    {
        **_DOWN,
        "Q3_K_M": lambda _, place: (
            "q5_K" if place.among_first(16) else "q4_K" if place.delicate else "q3_K"
        ),
        "Q3_K_L": lambda _model, _place: "q4_K",
        "Q4_K_S": lambda _model, _place: None,
        "Q4_K_M": lambda _, place: (
            "q6_K" if place.among_first(16) else "q5_K" if place.delicate else "q4_K"
        ),
    }
)


def chosen_type(role: Role, place: Place, model: Traits, file_type: str) -> str | None:
    """A type other than the base of the file type, or None.

    Args:
        role: Neither ``head``, nor the embedding where it is the head.
        place: Which one of its role it is.
        model: What else the rules look at.
        file_type: One of `BASES`, but no plain one and not ``MXFP4_MOE``.
    """
    if role == "embedding":
        return _EMBEDDING.get(file_type)
    if file_type in TWO_BITS:
        return _two_bits(role, place, model, file_type)
    choose = _CHOOSERS.get(role)
    return choose(place, model, file_type) if choose else None


def _value(place: Place, model: Traits, file_type: str) -> str | None:
    if model.experts == 8:
        return "q8_0"
    chosen = _apply(_VALUE, place, model, file_type) or BASES[file_type]
    return "q5_K" if model.large and chosen in ("q3_K", "q4_K") else chosen


def _key(place: Place, model: Traits, file_type: str) -> str | None:
    return "q8_0" if model.experts == 8 else _query(place, model, file_type)


def _query(_place: Place, _model: Traits, file_type: str) -> str | None:
    return {"IQ3_XS": "iq3_xxs", "IQ3_XXS": "iq2_s"}.get(file_type)


def _output(_place: Place, model: Traits, file_type: str) -> str | None:
    if model.architecture == "falcon":
        return "q4_K" if file_type == "Q3_K_L" else None
    if model.experts == 8:
        return "q5_K" if file_type in _EIGHT_EXPERTS_OUTPUT else None
    return _OUTPUT.get(file_type)


def _down(place: Place, model: Traits, file_type: str) -> str | None:
    rules = _FALCON_DOWN if model.architecture == "falcon" else _DOWN
    return _apply(rules, place, model, file_type)


def _widening(place: Place, _model: Traits, file_type: str) -> str | None:
    return "iq3_xxs" if file_type == "IQ3_XS" and place.middle else None


_CHOOSERS: Mapping[Role, Callable[[Place, Traits, str], str | None]] = MappingProxyType(
    {
        "value": _value,
        "key": _key,
        "query": _query,
        "output": _output,
        "down": _down,
        "gate": _widening,
        "up": _widening,
    }
)


def _two_bits(role: Role, place: Place, model: Traits, file_type: str) -> str | None:
    better = "iq3_s" if file_type in _UPPER_TWO_BITS else "q2_K"
    match role:
        case "value":
            return "q4_K" if model.shared_by >= 4 or model.experts >= 4 else better
        case "key":
            return "q4_K" if model.experts == 8 else None
        case "down":
            return better if place.among_first(8) else None
        case "output":
            return "q5_K" if model.experts == 8 else _OUTPUT.get(file_type)
    return None


def _apply(rules: _Rules, place: Place, model: Traits, file_type: str) -> str | None:
    rule = rules.get(file_type)
    return rule(model, place) if rule else None
