"""Links that a cache is moved over: what they are called and what they carry.

Rates are one way, of one port or one GPU, and theoretical; how much of it a transfer gets is
`LINK_EFFICIENCY`, or what the user says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kvplan.errors import UsageError, nearest, shown
from kvplan.hardware import GpuSpec
from kvplan.units import parse_bytes

LINK_EFFICIENCY = 0.9
"""Assumed. Measured between NIC and GPU: 49 of 50 GB/s (NDR; mlcommons/inference_results_v4.0,
closed/HPE, hpe-cray-xd670-h100.md), 22 of 25 GB/s (HDR; mlcommons/inference_results_v1.1,
closed/Inspur, Start_From_Device.md)."""

_GIGA = 10**9
_BITS = 8
_GUIDE = "github.com/stas00/ml-engineering@0030e63f5275 network/README.md"
_PCIE = {4: 31.0, 5: 63.0, 6: 121.0}
"""GB/s of 16 lanes by generation."""
# Gigabits a second; 4 lanes of EDR, HDR, NDR and XDR.
_PORTS = {"ib-100": 100, "ib-200": 200, "ib-400": 400, "ib-800": 800}
_PORTS |= {"eth-100": 100, "eth-200": 200, "eth-400": 400}
_ALIASES = {
    "infiniband-edr": "ib-100",
    "infiniband-hdr": "ib-200",
    "infiniband-ndr": "ib-400",
    "infiniband-xdr": "ib-800",
    "edr": "ib-100",
    "hdr": "ib-200",
    "ndr": "ib-400",
    "xdr": "ib-800",
    "100gbe": "eth-100",
    "200gbe": "eth-200",
    "400gbe": "eth-400",
}
GIVEN = "given"
"""The source of a rate that the user says."""
NAMES = ("nvlink", "pcie", *(f"pcie-{generation}" for generation in _PCIE), *_PORTS)
_BIT_RATE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*(G|T)b(?:ps|/s|it/s)?", re.ASCII)
_BITS_OR_BYTES = re.compile(r"[\d.]+\s*[gt]b(?:ps|/s)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Link:
    """A link as a plan has it.

    Attributes:
        name: As it was asked for, in its usual name.
        bytes_per_s: Of one GPU, one way.
        source: Where the figure is from.
    """

    name: str
    bytes_per_s: float
    source: str


def link_of(text: str, gpu: GpuSpec) -> Link:
    """A link by its name, or by its rate: ``400Gb`` are bits, ``50GB`` bytes, a second.

    Args:
        text: What the user says.
        gpu: Whose ``nvlink`` or ``pcie`` that is.

    Raises:
        UsageError: no such link, or one that this device has not.
    """
    name = _named(text)
    if name in _PORTS:
        standard = "rate of the standard" if name.startswith("eth") else _GUIDE
        return Link(name, _PORTS[name] * _GIGA / _BITS, standard)
    if name == "nvlink":
        return _of_device(gpu)
    if is_name(text):
        return _pcie(name, gpu)
    return Link(text.strip(), rate_of(text), GIVEN)


def is_name(text: str) -> bool:
    """Whether that is meant as a link's name, and not as a rate.

    >>> is_name("ib-400"), is_name("PCIe_5"), is_name("100GbE"), is_name("100Gb")
    (True, True, True, False)
    """
    name = _named(text)
    return name in _PORTS or name in ("nvlink", "pcie") or name.startswith("pcie-")


def _named(text: str) -> str:
    name = text.strip().lower().replace("_", "-")
    return _ALIASES.get(name, name)


def rate_of(text: str) -> float:
    """Bytes a second: ``400Gb`` are bits, ``50GB`` bytes.

    >>> rate_of("400Gb"), rate_of("50GB/s")
    (50000000000.0, 50000000000.0)

    Raises:
        UsageError: no rate, or one that can be either.
    """
    bits = _BIT_RATE.fullmatch(text.strip())
    if bits is not None:
        return float(bits[1]) * (_GIGA if bits[2] == "G" else 1000 * _GIGA) / _BITS
    if _BITS_OR_BYTES.fullmatch(text.strip()):
        raise UsageError(
            f"{shown(text)} can be bits or bytes.", hint="Write 400Gb for bits, 50GB for bytes."
        )
    try:
        rate = float(parse_bytes(text.strip().removesuffix("/s")))
    except UsageError:
        rate = 0.0
    if not rate:
        raise UsageError(
            f"There is no link {shown(text)}.",
            hint=nearest(text, NAMES) or f"Write {', '.join(NAMES)}, or a rate: 400Gb, 50GB.",
        )
    return rate


def _of_device(gpu: GpuSpec) -> Link:
    if gpu.link_gb_s is None:
        raise UsageError(
            f"No link of {gpu.id} to others of its node is known.",
            hint="Name another link, such as pcie, or its rate: 25GB.",
        )
    one_way = gpu.link_gb_s.value / 2 * _GIGA
    return Link("nvlink", one_way, f"half of both ways; {gpu.link_gb_s.source}")


def _pcie(name: str, gpu: GpuSpec) -> Link:
    if name == "pcie" and gpu.pcie_generation is None:
        raise UsageError(f"The PCIe generation of {gpu.id} is not known.", hint="Name one: pcie-5.")
    said = gpu.pcie_generation.value if name == "pcie" and gpu.pcie_generation else name[5:]
    generation = int(said) if str(said).removesuffix(".0").isdigit() else 0
    if generation not in _PCIE:
        raise UsageError(f"There is no link {shown(name)}.", hint="Write pcie-4, pcie-5 or pcie-6.")
    return Link(f"pcie-{generation}", _PCIE[generation] * _GIGA, f"16 lanes; {_GUIDE}")
