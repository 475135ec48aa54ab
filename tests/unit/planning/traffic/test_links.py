"""Links by name and by rate."""

from __future__ import annotations

import pytest

from kvplan.errors import UsageError
from kvplan.planning.traffic.links import NAMES, link_of
from kvplan.sources.gpus import find_gpu

H100 = find_gpu("H100-SXM-80GB")


@pytest.mark.parametrize(
    ("text", "giga"),
    [
        ("nvlink", 450),
        ("pcie", 63),
        ("pcie-4", 31),
        ("ib-400", 50),
        ("NDR", 50),
        ("hdr", 25),
        ("100GbE", 12.5),
        ("eth-200", 25),
        ("400Gb", 50),
        ("400 Gbps", 50),
        ("1.6Tb/s", 200),
        ("25GB", 25),
        ("25GB/s", 25),
    ],
)
def test_a_link_has_its_one_way_rate_and_a_source(text: str, giga: float) -> None:
    link = link_of(text, H100)
    assert link.bytes_per_s == pytest.approx(giga * 1e9)
    assert link.source


@pytest.mark.parametrize("text", ["400gb", "400gbps"])
def test_bits_and_bytes_are_never_guessed(text: str) -> None:
    with pytest.raises(UsageError, match="bits or bytes"):
        link_of(text, H100)


@pytest.mark.parametrize("text", ["ib-300", "pcie-9", "token ring", "", "0GB"])
def test_there_are_no_other_links(text: str) -> None:
    with pytest.raises(UsageError, match="There is no link"):
        link_of(text, H100)


def test_a_device_without_a_link_says_so() -> None:
    with pytest.raises(UsageError, match="No link of"):
        link_of("nvlink", find_gpu("L4-24GB"))


def test_every_name_is_a_link() -> None:
    assert all(link_of(name, H100).bytes_per_s > 1e10 for name in NAMES)
