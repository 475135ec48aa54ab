"""The licence that a model's card states."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvplan.models.facts import ModelFacts
from kvplan.sources.card import card_license, with_local_license


@pytest.mark.parametrize(
    ("card", "tags", "wanted"),
    [
        ({"license": "mit"}, [], "mit"),
        ({"license": "mit"}, ["license:apache-2.0"], "mit"),
        ({"license": "other", "license_name": "llama3.1"}, [], "llama3.1"),
        ({"license": "other"}, [], "other"),
        ({"license": "mit", "license_name": "mine"}, [], "mit"),
        ({}, ["license:apache-2.0", "region:us"], "apache-2.0"),
        (None, ["license:apache-2.0"], "apache-2.0"),
        (None, ["license:a", "license:b"], None),
        ({"license": ["mit", "gpl"]}, None, None),
        ({"license": "a\nb"}, [], None),
        ({"license": "x" * 101}, [], None),
        ({"license": " "}, [], None),
        (None, None, None),
    ],
)
def test_card_and_tags(
    card: dict[str, object] | None, tags: list[str] | None, wanted: str | None
) -> None:
    assert card_license(card, tags) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("---\nlicense: mit\n---\n", "mit"),
        ("---\r\nlicense: 'mit'\r\n---\r\n", "mit"),
        ('---\ntags: [a]\nlicense: other\nlicense_name: "my own"\n---\n', "my own"),
        ("---\nlicense:\n- mit\n---\n", None),
        ("---\n  license: nested\n---\n", None),
        ("---\nlicense: mit\n", None),
        ("# Title\n---\nlicense: mit\n---\n", None),
        ("", None),
    ],
)
def test_the_head_of_a_readme(tmp_path: Path, text: str, wanted: str | None) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "README.md").write_bytes(text.encode())
    facts = ModelFacts(id="m", source=str(tmp_path / "config.json"), config={})
    found = with_local_license(facts)
    assert found.license == wanted
    assert found.license_source == ("README.md of the folder" if wanted else None)


def test_a_known_licence_stays(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n")
    facts = ModelFacts(
        id="m", source=str(tmp_path / "config.json"), config={}, license="x", license_source="y"
    )
    assert with_local_license(facts) is facts
    elsewhere = ModelFacts(id="m", source="https://a.b/config.json", config={})
    assert with_local_license(elsewhere) is elsewhere


def test_a_readme_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    facts = ModelFacts(id="m", source=str(tmp_path / "config.json"), config={})
    assert with_local_license(facts).license is None
    (tmp_path / "README.md").write_bytes(b"---\nlicense: \xff\xfe\n---\n")
    assert with_local_license(facts).license == "\ufffd\ufffd"
    (tmp_path / "README.md").write_bytes(b"x" * (2**20 + 1))
    assert with_local_license(facts).license is None
