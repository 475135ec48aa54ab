"""Tables of lengths by window, as ServeGen has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kvplan.errors import InputError, UsageError
from kvplan.sources.length_tables import check_not_table, length_table


def table(tmp_path: Path, windows: dict[str, object]) -> str:
    path = tmp_path / "dataset.json"
    path.write_text(json.dumps(windows, indent=2))
    return str(path)


def test_windows_count_alike_and_empty_ones_not_at_all(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        {
            "0": {"input_tokens": "{}", "output_tokens": "{}"},
            "600": {"input_tokens": "{100: 0.5, 200: 0.5}", "output_tokens": "{30: 1.0}"},
            "1200": {"input_tokens": "{800: 1.0}", "output_tokens": "{5: 0.25, 7: 0.75}"},
        },
    )
    found = length_table(path)
    assert found is not None
    assert {(p, o): pytest.approx(s) for p, o, s in found.pairs()} == {
        (100, 30): 0.25,
        (200, 30): 0.25,
        (800, 5): 0.125,
        (800, 7): 0.375,
    }


def test_parts_of_a_multimodal_prompt_are_added(tmp_path: Path) -> None:
    path = table(
        tmp_path,
        {"0": {
            "text_tokens": "{10: 0.5, 20: 0.5}",
            "image_tokens": "{0: 0.5, 1000: 0.5}",
            "audio_tokens": "{0: 1.0}",
            "video_tokens": "{0: 1.0}",
            "output_tokens": "{4: 1.0}",
        }},
    )  # fmt: skip
    found = length_table(path)
    assert found is not None
    assert sorted(pair[0] for pair in found.pairs()) == [10, 20, 1010, 1020]


@pytest.mark.parametrize(
    "window",
    [
        {"input_tokens": "{100: -1}", "output_tokens": "{3: 1}"},
        {"input_tokens": "__import__('os')", "output_tokens": "{3: 1}"},
        {"input_tokens": "{100: 1}", "output_tokens": "[3]"},
        {"output_tokens": "{3: 1}"},
        {"input_tokens": "{}", "output_tokens": "{}"},
        {"input_tokens": "{0: 1.0}", "output_tokens": "{0: 1.0}"},
    ],
)
def test_a_broken_table_is_one_sentence(tmp_path: Path, window: dict[str, object]) -> None:
    with pytest.raises(InputError):
        length_table(table(tmp_path, {"0": window}))


def test_anything_else_is_no_table(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text('{"input_length": 1, "output_length": 2}\n')
    assert length_table(str(path)) is None
    assert length_table(str(tmp_path / "none")) is None
    check_not_table(str(path))


def test_a_table_says_nothing_of_when_requests_come(tmp_path: Path) -> None:
    path = table(tmp_path, {"0": {"input_tokens": "{9: 1}", "output_tokens": "{3: 1}"}})
    with pytest.raises(UsageError, match="table of lengths"):
        check_not_table(path)


def test_the_published_tables_are_read(shared: Path) -> None:
    found = {
        path.name: length_table(str(path))
        for path in sorted((shared / "traces").glob("servegen_*-dataset.json"))
    }
    assert len(found) == 5
    for name, lengths in found.items():
        assert lengths is not None, name
        assert sum(pair[2] for pair in lengths.pairs()) == pytest.approx(1.0)
