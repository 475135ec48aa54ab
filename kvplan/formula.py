"""Ledger formulas: short arithmetic over named inputs, the same string computed and shown.

A formula may use ``+ - * / // ( )``, ``min max ceil floor``, decimal numbers and its inputs'
names; nothing else. The text is checked piece by piece, then over Python's own ``ast``, and
compiled once.

Integers stay integers: ``/`` of two integers is an exact fraction, so that
``ceil(total / 3)`` is right to the last byte however large ``total`` is. A float input
(a utilization, a fitted constant) makes float arithmetic exactly as the engines do it.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from types import CodeType
from typing import Any

from kvplan.errors import InputError, InternalError

Number = int | float | Fraction

MAX_LENGTH = 1_000
MAX_DEPTH = 40
MAX_LITERAL = 2**63
MAX_NAME = 64

# What a formula is written with. Python would accept more and read some of it otherwise than it
# looks (comments, 0x10, letters that it folds into ASCII), so the text itself is held to this.
_PIECE = re.compile(
    r"(?P<name>[a-z][a-z0-9_]*)"
    r"|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?(?![a-z0-9_.])"
    r"|[-+*/(), ]",
    re.ASCII,
)


def _divide(left: Number, right: Number) -> Number:
    if isinstance(left, float) or isinstance(right, float):
        return left / right
    exact = Fraction(left) / right
    return exact.numerator if exact.denominator == 1 else exact


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": min,
    "max": max,
    "ceil": math.ceil,
    "floor": math.floor,
}
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv)
_GLOBALS: dict[str, Any] = {"__builtins__": {}, "__divide": _divide, **_FUNCTIONS}


class _ExactDivision(ast.NodeTransformer):
    """Turns ``a / b`` into a call of `_divide`; names starting with _ can't be inputs."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        call = ast.Call(ast.Name("__divide", ast.Load()), [node.left, node.right], [])
        return ast.copy_location(call, node)


def _walk(node: ast.AST, depth: int, text: str) -> Iterator[str]:
    """Yields the input names below ``node``; raises on anything that is not arithmetic."""
    if depth > MAX_DEPTH:
        raise InputError(f"The formula {text[:60]!r} is nested too deeply.")
    match node:
        case ast.Expression(body=body):
            yield from _walk(body, depth + 1, text)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            yield from _walk(left, depth + 1, text)
            yield from _walk(right, depth + 1, text)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            yield from _walk(operand, depth + 1, text)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if (
            name in _FUNCTIONS and (len(args) == 1) == (name in ("ceil", "floor")) and args
        ):
            for argument in args:
                yield from _walk(argument, depth + 1, text)
        case ast.Constant(value=int(value) | float(value)):
            if not abs(value) < MAX_LITERAL:
                raise InputError(f"The formula {text[:60]!r} has a number that is too large.")
        case ast.Name(id=name) if len(name) <= MAX_NAME and name not in _FUNCTIONS:
            yield name
        case _:
            raise _not_arithmetic(text, type(node).__name__)


def _not_arithmetic(text: str, what: str) -> InputError:
    return InputError(
        f"The formula {text[:60]!r} has something that is not arithmetic ({what}).",
        hint="Only + - * / // ( ), min max ceil floor, decimal numbers and input names.",
    )


def _parse(text: str) -> ast.Expression:
    if len(text) > MAX_LENGTH:
        raise InputError(f"A formula has at most {MAX_LENGTH} characters.")
    checked = 0
    for piece in _PIECE.finditer(text):
        if piece.start() != checked:
            break
        checked = piece.end()
    if checked != len(text):
        raise _not_arithmetic(text, repr(text[checked : checked + 10]))
    try:
        return ast.parse(text.strip(), mode="eval")
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise InputError(f"The formula {text[:60]!r} can't be read.") from error


class Formula:
    """A checked and compiled formula. Make one with `compile_formula`, which caches.

    Attributes:
        text: The string as written.
        names: The inputs it needs, in order of first use.
    """

    __slots__ = ("_code", "names", "text")

    def __init__(self, text: str) -> None:
        tree = _parse(text)
        self.text: str = text
        self.names: tuple[str, ...] = tuple(dict.fromkeys(_walk(tree, 0, text)))
        exact = ast.fix_missing_locations(_ExactDivision().visit(tree))
        self._code: CodeType = compile(exact, "<formula>", "eval")

    def evaluate(self, inputs: Mapping[str, Number]) -> Number:
        """Computes the value.

        Raises:
            InternalError: an input is missing, or a division by zero.
        """
        try:
            needed = {name: inputs[name] for name in self.names}
            # Safe: the tree was checked node by node, and no builtins are in reach.
            value: Number = eval(self._code, _GLOBALS, needed)  # noqa: S307
        except KeyError as error:
            raise InternalError(f"The formula {self.text!r} lacks an input: {error}.") from error
        except (ZeroDivisionError, OverflowError, ValueError) as error:
            raise InternalError(f"The formula {self.text!r} can't be computed: {error}.") from error
        return value

    def evaluate_bytes(self, inputs: Mapping[str, Number]) -> int:
        """Computes the value, which must be a whole number.

        Raises:
            InternalError: as `evaluate`, or the value is not whole.
        """
        value = self.evaluate(inputs)
        if isinstance(value, int):
            return value
        if (isinstance(value, float) and not math.isfinite(value)) or value != int(value):
            raise InternalError(f"The formula {self.text!r} gives {value}, not whole bytes.")
        return int(value)

    def render(self, inputs: Mapping[str, Number]) -> str:
        """The formula with its numbers filled in, as an expression that still evaluates.

        >>> compile_formula("ceil(total * share)").render({"total": 85017493504, "share": 0.92})
        'ceil(85_017_493_504 * 0.92)'
        """

        def fill(match: re.Match[str]) -> str:
            known = match["name"] in self.names and match[0] in inputs
            return _written(inputs[match[0]]) if known else match[0]

        return _PIECE.sub(fill, self.text)


def _written(value: Number) -> str:
    if isinstance(value, int):
        return f"{value:_}" if value >= 0 else f"({value:_})"
    # In brackets, or 6 / 1/2 would be read as (6 / 1) / 2.
    return f"({value})" if value < 0 or isinstance(value, Fraction) else str(value)


@lru_cache(maxsize=1024)
def compile_formula(text: str) -> Formula:
    """Checks and compiles ``text``, once.

    Raises:
        InputError: the text is not a formula.
    """
    return Formula(text)
