"""docs/architectures.md lists exactly what is read.

To bring it up to date: python tests/test_architectures_page.py, then read the difference.
"""

from __future__ import annotations

from pathlib import Path

from kvplan.architectures.images.table import RULES
from kvplan.architectures.table import FAMILIES
from kvplan.architectures.wrappers.table import WRAPPERS

PAGE = Path(__file__).parents[1] / "docs" / "architectures.md"
_DECODERS, _WRAPPERS, _END = "## Decoders\n", "## Wrappers\n", "## Images\n"
_IMAGES, _AFTER = "Types with a rule:\n", "## Not read\n"


def listed(names: set[str]) -> str:
    """The names as one paragraph."""
    return "\n" + ", ".join(f"`{name}`" for name in sorted(names, key=str.lower)) + "\n\n"


def page(text: str) -> str:
    """The page with its lists as the tables have them."""
    head, rest = text.split(_DECODERS)
    images, end = rest.split(_END)[1].split(_AFTER)
    images = images.split(_IMAGES)[0] + _IMAGES + listed(set(RULES))
    decoders = _DECODERS + listed(set(FAMILIES))
    wrappers = _WRAPPERS + listed(set(WRAPPERS))
    return head + decoders + wrappers + _END + images + _AFTER + end


def test_every_type_that_is_read_is_listed_and_no_other() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page(text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
