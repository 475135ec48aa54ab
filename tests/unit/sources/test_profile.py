"""Host profiles as YAML: there and back, and what is wrong with a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.errors import InputError
from kvplan.host_profile import Factor, HostProfile, Offset
from kvplan.sources.profile import profile_text, read_profile
from kvplan.sources.yaml_reader import parse_yaml

FIGURE = st.integers(1, 100_000).map(lambda value: value / 10_000)
NAME = st.text(
    st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_categories=("C",)), min_size=1
).map(lambda text: f"x{text[:50]}")
FACTOR = st.builds(Factor, value=FIGURE, starts=st.integers(0, 99))
PROFILES = st.builds(
    HostProfile,
    name=NAME,
    engine=st.just("vllm"),
    versions=st.lists(NAME, max_size=3).map(tuple),
    gpus=st.lists(NAME, min_size=1, max_size=3).map(tuple),
    starts=st.integers(1, 99),
    weights=FACTOR,
    activation=FACTOR,
    non_torch=st.builds(Offset, gib=FIGURE, starts=st.integers(0, 9)),
    graphs=FACTOR,
)
PROFILE = HostProfile(
    engine="vllm", gpus=("L4-24GB",), starts=2, graphs=Factor(value=0.5, starts=2)
)


@given(profile=PROFILES)
def test_what_is_written_reads_back_the_same(profile: HostProfile) -> None:
    data = parse_yaml(profile_text(profile), "host.yaml").data
    assert data.pop("schema") == "kvplan.host/1"
    assert HostProfile.model_validate(data) == profile


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "host.yaml"
    path.write_text(profile_text(PROFILE), encoding="utf-8")
    assert read_profile(path) == PROFILE


@pytest.mark.parametrize(
    ("change", "place", "words"),
    [
        (("schema: kvplan.host/1", "schema: kvplan.gpu/1"), ":1:", "not a host profile"),
        (("gpus: [L4-24GB]", "gpus: []"), ":5:", "gpus"),
        (("starts: 2\n", "starts: none\n"), ":6:", "starts"),
        (("value: 0.5", "value: 0"), ":10:", "value"),
        (("engine:", "motor:"), ":3:", "motor"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, change: tuple[str, str], place: str, words: str
) -> None:
    path = tmp_path / "host.yaml"
    text = profile_text(PROFILE)
    assert change[0] in text
    path.write_text(text.replace(*change, 1), encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_profile(path)
    assert place in str(raised.value)
    assert words in str(raised.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="can't be read"):
        read_profile(tmp_path / "none.yaml")
