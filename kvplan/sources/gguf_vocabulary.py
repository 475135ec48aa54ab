"""Arrays of strings in a GGUF header: tokens and merges, which nobody here reads.

A string says where the next one starts, so the only sure way past an array goes through every
length: some 80 ns each in Python. Short arrays are passed that way. Of long ones the end is looked
for: the key of the pair that follows, which converters write in the tokenizer's own section, or
behind the last pair the first tensor. What stands there has to be a whole header's rest (pairs and
tensors in number, each tensor where the one before it ends); where it is not, the header is read
once more, string by string.
"""

from __future__ import annotations

from kvplan.sources.gguf_cursor import Cursor

MOST = 2**23
"""Strings of a header: eight times what the largest vocabularies have with their merges."""

WALKED = 2**17
"""Strings of a header that are passed one by one: 10 ms."""

# How keys that follow tokens and merges begin, and names of tensors; before each stand the upper
# bytes of its length, which are 0. Source: ggml-org/llama.cpp@0c1e57098
# gguf-py/gguf/constants.py (``Keys``, ``TENSOR_NAMES``).
_NEXT_KEY = (b"\0\0\0\0\0\0tokenizer.", b"\0\0\0\0\0\0general.")
_FIRST_TENSOR = tuple(
    b"\0\0\0\0\0\0" + name for name in (b"token_embd.", b"blk.", b"output", b"rope_")
)
_LENGTH_BYTES_BEFORE = 2
_SHORTEST = 8  # bytes of a string: its length
_USUAL = 64  # bytes that a token is shorter than on average; ends are looked for no farther


class Vocabulary:
    """Passes the arrays of one header.

    Args:
        cursor: Where the header is read.
        leap: Whether the end of long arrays may be looked for.

    Attributes:
        leapt: Whether it was.
        last: Whether the array is the last pair's, so that tensors follow.
    """

    def __init__(self, cursor: Cursor, *, leap: bool = True) -> None:
        self.leapt: bool = False
        self.last: bool = False
        self._cursor = cursor
        self._leap = leap
        self._walked = self._passed = 0

    def skip(self, count: int) -> None:
        """Steps over an array of so many strings.

        Raises:
            InputError: the file ends before, or there are more than any vocabulary has.
        """
        self._passed += count
        if self._passed > MOST:
            raise self._cursor.damaged(
                f"claims {self._passed:,} strings; at most {MOST:,} are read"
            )
        self._cursor.check_there(_SHORTEST * count)
        if not (self._leap and self._walked + count > WALKED and self._leap_over(count)):
            self._walked += count
            self._cursor.skip_strings(count)

    def _leap_over(self, count: int) -> bool:
        """Goes to what follows; False: nothing was found, and the cursor is where it was."""
        start = self._cursor.position
        self._cursor.skip(_SHORTEST * count)
        found = self._cursor.find(_FIRST_TENSOR if self.last else _NEXT_KEY, start + _USUAL * count)
        self._cursor.move(start if found is None else found - _LENGTH_BYTES_BEFORE)
        self.leapt = self.leapt or found is not None
        return found is not None
