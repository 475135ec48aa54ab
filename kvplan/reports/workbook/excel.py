"""Ledger formulas as a spreadsheet writes them, exact for whole numbers below 2^52.

Quotients of such numbers are rounded down with INT, and up with -INT(-x): both are right to the
last unit, while CEILING and ROUNDUP differ between programs for negative numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from kvplan.errors import InternalError
from kvplan.formula import compile_formula

_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
}
_BINDS: dict[type[ast.operator], int] = {ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.Div: 2}


def in_cells(text: str, names: Mapping[str, str]) -> str:
    """The formula ``text`` with its inputs replaced by what a sheet calls them, without ``=``.

    >>> in_cells("ceil(total * share) // 16", {"total": "a", "share": "b"})
    'INT((-INT(-(a*b)))/16)'

    Raises:
        InternalError: an input has no cell.
    """
    compile_formula(text)  # refuses what is not arithmetic
    return _written(ast.parse(text.strip(), mode="eval").body, names, 0)


def _written(node: ast.expr, names: Mapping[str, str], outer: int) -> str:
    match node:
        case ast.Constant(value=value):
            return repr(value)
        case ast.Name(id=name):
            if name not in names:
                raise InternalError(f"No cell holds the formula's input {name}.")
            return names[name]
        case ast.UnaryOp(operand=operand):
            return f"(-{_written(operand, names, 3)})"
        case ast.Call(func=ast.Name(id=name), args=args):
            return _called(name, [_written(each, names, 0) for each in args])
        case ast.BinOp(left=left, op=ast.FloorDiv(), right=right):
            return f"INT({_written(left, names, 2)}/{_written(right, names, 3)})"
        case ast.BinOp(left=left, op=op, right=right):
            binds = _BINDS[type(op)]
            sides = _written(left, names, binds), _written(right, names, binds + 1)
            text = _OPERATORS[type(op)].join(sides)
            return f"({text})" if binds < outer else text
    raise InternalError(f"{type(node).__name__} is no arithmetic.")


def _called(name: str, arguments: list[str]) -> str:
    if name == "ceil":
        return f"(-INT(-({arguments[0]})))"
    if name == "floor":
        return f"INT({arguments[0]})"
    return f"{name.upper()}({','.join(arguments)})"


def cell_name(*parts: str) -> str:
    """A name for a cell from words with dots and dashes; never one that is read as a reference."""
    joined = "_".join(parts)
    return "".join(each if each.isascii() and each.isalnum() else "_" for each in joined)
