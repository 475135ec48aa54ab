"""Text from the outside world made harmless to a terminal, a spreadsheet and a page."""

from __future__ import annotations

import re
import unicodedata

# Control, format (bidirectional overrides, zero-width), surrogate and private characters, and
# the two Unicode line breaks: none of them is text, and a terminal may obey some of them.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_ASCII_FOR = str.maketrans(
    {"×": "x", "–": "-", "−": "-", "·": "-", "…": ".", "≤": "<", "≥": ">", "→": ">"}
)


def clean(text: str) -> str:
    r"""One line of ``text`` in which every unsafe character is spelt out.

    >>> clean("a\x1b[2Jb\nc")
    'a\\x1b[2Jb c'
    """
    if text.isprintable():
        return text
    return "".join(_spell(character) for character in text)


def _spell(character: str) -> str:
    if character in "\n\r\t":
        return " "
    if unicodedata.category(character) not in _UNSAFE:
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def ascii_text(text: str) -> str:
    """``text`` in ASCII, character for character, so that a layout keeps its columns."""
    return text.translate(_ASCII_FOR).encode("ascii", "replace").decode("ascii")


def inert_cell(text: str) -> str:
    """``text`` as a spreadsheet cell that is not taken for a formula.

    >>> inert_cell("=1+1"), inert_cell("weights.mlp")
    ("'=1+1", 'weights.mlp')
    """
    safe = clean(text)
    return f"'{safe}" if safe.lstrip().startswith(("=", "+", "-", "@")) else safe


def markdown_text(text: str) -> str:
    r"""``text`` as prose in a Markdown table or paragraph: no markup, no link, no mention.

    >>> markdown_text("a|b *c* @team")
    'a\\|b \\*c\\* @<!-- -->team'
    """
    escaped = re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", clean(text))
    return re.sub(r"(?<!\w)@(?=\w)", "@<!-- -->", escaped)


def markdown_code(text: str) -> str:
    """``text`` as a code span, whatever it contains, safe within a table cell."""
    safe = clean(text).replace("|", "\\|")
    longest = max((len(run) for run in re.findall(r"`+", safe)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if longest else ""
    return f"{fence}{padding}{safe}{padding}{fence}"
