"""Formulas: the text computes what it says, exactly, and nothing but arithmetic gets in."""

from __future__ import annotations

import math
import operator
import time
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan import formula as module
from kvplan.errors import InputError, InternalError
from kvplan.formula import (
    MAX_LENGTH,
    MAX_LITERAL,
    Number,
    compile_formula,
)

# ---------------------------------------------------------------- an independent evaluation
#
# A tree is a number, a name, or (operator or function, operands...). It is written out with as
# few brackets as arithmetic allows, and computed by walking the tree: nothing is shared with the
# module under test, so that neither precedence nor exactness can be wrong on both sides.

Tree = object

_BINARY = {"+": 1, "-": 1, "*": 2, "/": 2, "//": 2}
_NAMES = ("a", "b", "block_size", "x9")


def written(tree: Tree, above: int = 0) -> str:
    """The tree as text, bracketed where the operator above binds tighter."""
    if not isinstance(tree, tuple):
        return str(tree)
    head, *operands = tree
    if head in _BINARY:
        mine = _BINARY[head]
        text = f"{written(operands[0], mine)} {head} {written(operands[1], mine + 1)}"
        return f"({text})" if mine < above else text
    if head == "neg":
        return f"-{written(operands[0], 3)}"
    return f"{head}({', '.join(written(operand) for operand in operands)})"


def computed(tree: Tree, inputs: dict[str, Number]) -> Number:
    """The tree's value; whole numbers and their quotients are exact."""
    if isinstance(tree, str):
        return inputs[tree]
    if not isinstance(tree, tuple):
        assert isinstance(tree, int | float)
        return tree
    head, *below = tree
    values = [computed(operand, inputs) for operand in below]
    if head == "/" and not any(isinstance(value, float) for value in values):
        return Fraction(values[0]) / Fraction(values[1])
    functions = {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": operator.truediv,
        "//": operator.floordiv,
        "neg": operator.neg,
        "min": min,
        "max": max,
        "ceil": math.ceil,
        "floor": math.floor,
    }
    value: Number = functions[head](*values)
    return value


def trees(numbers: st.SearchStrategy[Number]) -> st.SearchStrategy[Tree]:
    """Trees of up to a dozen nodes over the four names and ``numbers``."""
    return st.recursive(
        st.sampled_from(_NAMES) | numbers,
        lambda below: (
            st.tuples(st.sampled_from(sorted(_BINARY)), below, below)
            | st.tuples(st.just("neg"), below)
            | st.tuples(st.sampled_from(("ceil", "floor")), below)
            | st.tuples(st.sampled_from(("min", "max")), below, below)
            | st.tuples(st.sampled_from(("min", "max")), below, below, below)
        ),
        max_leaves=8,
    )


whole = st.integers(0, 2**20) | st.integers(0, MAX_LITERAL - 1)
signed = st.integers(-(2**60), 2**60)
all_whole = st.fixed_dictionaries(dict.fromkeys(_NAMES, signed))
fractional = st.floats(0, 1e15, allow_subnormal=False)
anything = st.fixed_dictionaries(
    dict.fromkeys(_NAMES, signed | fractional | fractional.map(float.__neg__))
)


@given(trees(whole), all_whole)
def test_whole_numbers_are_computed_exactly(tree: Tree, inputs: dict[str, Number]) -> None:
    try:
        expected = computed(tree, inputs)
    except ZeroDivisionError:
        with pytest.raises(InternalError):
            compile_formula(written(tree)).evaluate(inputs)
        return
    value = compile_formula(written(tree)).evaluate(inputs)
    assert not isinstance(value, float)
    assert value == expected


@given(trees(whole | fractional), anything)
def test_floats_are_computed_as_python_does(tree: Tree, inputs: dict[str, Number]) -> None:
    try:
        expected = computed(tree, inputs)
    except (ZeroDivisionError, OverflowError, ValueError):
        return
    assert repr(float(compile_formula(written(tree)).evaluate(inputs))) == repr(float(expected))


@given(trees(whole | fractional), anything)
def test_the_rendered_text_computes_the_same_value(tree: Tree, inputs: dict[str, Number]) -> None:
    formula = compile_formula(written(tree))
    try:
        value = formula.evaluate(inputs)
    except InternalError:
        return
    rendered = formula.render(inputs)
    assert len(rendered) <= MAX_LENGTH
    again = compile_formula(rendered)
    assert again.names == ()
    assert again.evaluate({}) == value


def leaves(tree: Tree) -> list[str]:
    """The names in the tree, from left to right."""
    if isinstance(tree, tuple):
        return [name for operand in tree[1:] for name in leaves(operand)]
    return [tree] if isinstance(tree, str) else []


@given(trees(whole))
def test_names_are_the_inputs_in_order_of_first_use(tree: Tree) -> None:
    formula = compile_formula(written(tree))
    assert formula.names == tuple(dict.fromkeys(leaves(tree)))
    assert formula.text == written(tree)


# ---------------------------------------------------------------- exactness, by hand


@given(st.integers(2**53, 2**60), st.integers(1, 2**20))
def test_products_stay_whole_beyond_what_floats_hold(count: int, size: int) -> None:
    value = compile_formula("count * size + 1").evaluate_bytes({"count": count, "size": size})
    assert value == count * size + 1


@pytest.mark.parametrize(
    ("text", "inputs", "value"),
    [
        ("ceil(total / 3)", {"total": 2**60}, 384_307_168_202_282_326),
        ("ceil(total / 3)", {"total": 9}, 3),
        ("floor(total / 3)", {"total": 2**60 + 1}, 384_307_168_202_282_325),
        ("total / 3 * 3", {"total": 2**60 + 1}, 2**60 + 1),
        ("1 / 3 + 2 / 3", {}, 1),
        ("7 // 2", {}, 3),
        ("-7 // 2", {}, -4),
        ("7 / 2 // 1", {}, 3),
        ("ceil(7 / 2) + floor(7 / 2)", {}, 7),
        ("2 + 3 * 4", {}, 14),
        ("(2 + 3) * 4", {}, 20),
        ("10 - 3 - 2", {}, 5),
        ("48 / 4 / 2", {}, 6),
        ("min(3, 1, 2) + max(3, 1, 2)", {}, 4),
        ("--3", {}, 3),
        ("  1_000 + a ", {"a": 1}, 1_001),
        ("ceil(85017493504 * 0.92)", {}, 78_216_094_024),
        ("ceil(1e3 / 7.0)", {}, 143),
        ("2.5e-1 * 8", {}, 2),
    ],
)
def test_values_by_hand(text: str, inputs: dict[str, Number], value: int) -> None:
    computed_bytes = compile_formula(text).evaluate_bytes(inputs)
    assert computed_bytes == value
    assert type(computed_bytes) is int


@given(st.integers(1, 2**45), st.floats(0.01, 1.0))
def test_a_share_of_memory_is_rounded_as_the_engines_do(total: int, share: float) -> None:
    formula = compile_formula("ceil(total * share)")
    assert formula.evaluate_bytes({"total": total, "share": share}) == math.ceil(total * share)


def test_division_by_a_float_is_a_float_division() -> None:
    formula = compile_formula("a / b")
    assert repr(formula.evaluate({"a": 10**17 + 1, "b": 3.0})) == repr((10**17 + 1) / 3.0)
    assert repr(formula.evaluate({"a": 1.0, "b": 3})) == repr(1 / 3)
    assert formula.evaluate({"a": 1, "b": 3}) == Fraction(1, 3)


def test_a_whole_quotient_is_an_integer() -> None:
    value = compile_formula("a / b").evaluate({"a": 12, "b": 4})
    assert (type(value), value) == (int, 3)


def test_inputs_that_the_formula_does_not_name_have_no_effect() -> None:
    inputs: dict[str, Number] = {"a": 5, "b": 2, "max": 9, "ceil": 9, "__divide": 9}
    assert compile_formula("ceil(max(a, 1) / b)").evaluate(inputs) == 3


# ---------------------------------------------------------------- what can't be computed


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        ("a / b", {"a": 1, "b": 0}),
        ("a // b", {"a": 1, "b": 0}),
        ("a / b", {"a": 1.5, "b": 0}),
        ("a / b", {"a": 1, "b": 0.0}),
        ("a * b", {"a": 10**400, "b": 0.5}),
        ("ceil(a)", {"a": math.inf}),
        ("ceil(a)", {"a": math.nan}),
        ("a / (b - b)", {"a": 1, "b": 7}),
    ],
)
def test_what_has_no_value_is_a_bug_report_not_a_traceback(
    text: str, inputs: dict[str, Number]
) -> None:
    with pytest.raises(InternalError, match=r"^The formula '.+' can't be computed: .+\.$"):
        compile_formula(text).evaluate(inputs)


def test_a_missing_input_is_named() -> None:
    with pytest.raises(
        InternalError, match=r"^The formula 'a \+ missing' lacks an input: 'missing'\.$"
    ):
        compile_formula("a + missing").evaluate({"a": 1})


@pytest.mark.parametrize(
    ("text", "inputs"),
    [
        ("a / 2", {"a": 3}),
        ("a", {"a": 1.5}),
        ("a", {"a": math.inf}),
        ("a", {"a": math.nan}),
        ("1 / 3 + a", {"a": 10**400}),
    ],
)
def test_bytes_are_whole(text: str, inputs: dict[str, Number]) -> None:
    with pytest.raises(InternalError, match=r"^The formula '.+' gives .+, not whole bytes\.$"):
        compile_formula(text).evaluate_bytes(inputs)


@given(st.integers(-(2**53), 2**53))
def test_a_whole_float_is_whole_bytes(count: int) -> None:
    value = compile_formula("a").evaluate_bytes({"a": float(count)})
    assert (type(value), value) == (int, count)


def test_whole_fractions_are_whole_bytes_however_large() -> None:
    value = compile_formula("a / 3 * 3").evaluate_bytes({"a": 10**400 + 1})
    assert value == 10**400 + 1


# ---------------------------------------------------------------- rendering


@pytest.mark.parametrize(
    ("text", "inputs", "rendered"),
    [
        (
            "ceil(total * share)",
            {"total": 85_017_493_504, "share": 0.92},
            "ceil(85_017_493_504 * 0.92)",
        ),
        ("a - b", {"a": 1, "b": -2}, "1 - (-2)"),
        ("a - b", {"a": 0, "b": -1}, "0 - (-1)"),
        ("a - b", {"a": 1, "b": -2.5}, "1 - (-2.5)"),
        ("a - b", {"a": 0.0, "b": -0.5}, "0.0 - (-0.5)"),
        ("a - b", {"a": 0, "b": 1e-7}, "0 - 1e-07"),
        ("6 / a", {"a": Fraction(1, 2)}, "6 / (1/2)"),
        ("a + ab + b", {"a": 1, "ab": 2, "b": 3}, "1 + 2 + 3"),
        ("1e3 + e3", {"e3": 7}, "1e3 + 7"),
        ("max(a, min(b, 9))", {"a": 1, "b": 2, "max": 5, "min": 6}, "max(1, min(2, 9))"),
        ("a + missing", {"a": 1}, "1 + missing"),
    ],
)
def test_rendered_by_hand(text: str, inputs: dict[str, Number], rendered: str) -> None:
    assert compile_formula(text).render(inputs) == rendered


# ---------------------------------------------------------------- hostile text

HOSTILE = [
    "",
    " ",
    "a.b",
    "a.__class__",
    "().__class__.__bases__[0]",
    "__import__('os')",
    "__divide(1, 2)",
    "__builtins__",
    "_private",
    "open('x')",
    "print(1)",
    "eval(1)",
    "exec(1)",
    "round(1.5)",
    "abs(1)",
    "[x for x in a]",
    "{x for x in a}",
    "(x for x in a)",
    "[1]",
    "{1}",
    "{1: 2}",
    "(1, 2)",
    "1,",
    "(a := 1)",
    "lambda: 1",
    "(lambda: 1)()",
    "a if b else c",
    "a and b",
    "not a",
    "a < b",
    "a == b",
    "a is b",
    "a in b",
    "await a",
    "(yield)",
    "(yield a)",
    "2 ** 9",
    "9 ** 9 ** 9 ** 9",
    "2**63",
    "1 << 999999999",
    "8 >> 1",
    "a | b",
    "a & b",
    "a ^ b",
    "~a",
    "+a",
    "a % b",
    "a @ b",
    "'a'",
    '"a"',
    "'a' * 999999999",
    "f'{a}'",
    "b'a'",
    "'''a'''",
    "...",
    "None",
    "True",
    "False",
    "1j",
    "1.5j",
    "0x10",
    "0b11",
    "0o17",
    "0x10 + x10",
    "007",
    "1.",
    ".5",
    "1.e3",
    "1__0",
    "1_",
    "1e",
    "1e400",
    "9" * 20,
    "9" * 900,
    "1e19",
    str(MAX_LITERAL),
    "max",
    "max + 1",
    "max()",
    "max(1)",
    "min(a)",
    "ceil()",
    "ceil(1, 2)",
    "floor(1, 2)",
    "max(*a)",
    "max(1, *a)",
    "max(**a)",
    "max(1, 2, key=a)",
    "max(1, 2, default=0)",
    "(max)(1, 2)()",
    "max(1, 2)(3)",
    "a(1)",
    "1(2)",
    "a[0]",
    "a[0:1]",
    "a; b",
    "a\nb",
    "a\n+ b",
    "(a\n+ b)",
    "a\\\n+ b",
    "a\t+ b",
    "a # b",
    "a = 1",
    "import os",
    "a\x00",
    "\x00",
    "\ufeffa",
    "a\N{NO-BREAK SPACE}+ b",
    "\N{FULLWIDTH LATIN SMALL LETTER M}ax(1, 2)",
    "\N{LATIN SMALL LIGATURE FI}le",
    "\N{MATHEMATICAL ITALIC SMALL A} + 1",
    "\N{CYRILLIC SMALL LETTER A} + 1",
    "a\N{COMBINING ACUTE ACCENT}",
    "\N{ARABIC-INDIC DIGIT THREE}",
    "\N{FULLWIDTH DIGIT THREE}",
    "a \N{MULTIPLICATION SIGN} b",
    "a \N{MINUS SIGN} b",
    "\ud800",
    "Total",
    "aB",
    "a" * 65,
    "a a",
    "1 a",
    "1if 2else 3",
    "1or 2",
    "(",
    ")",
    "((a)",
    "a +",
    "* a",
    "a + * b",
    "//",
    "(" * 300 + "1" + ")" * 300,
    "(" * 499 + "1" + ")" * 499,
    "-" * 999 + "1",
    "ceil(" * 100 + "1" + ")" * 100,
    "max(1, " * 100 + "1" + ")" * 100,
    "+".join(["a"] * 400),
    "a" * 999 + "!",
    "a+" * 499 + "!",
    "1" * 999 + "x",
    "1_" * 499 + "x",
    "a" * MAX_LENGTH + "a",
    "1+" * 500_000 + "1",
    "(" * 1_000_000,
    "\x00" * 1_000_000,
]


def _named(text: str) -> str:
    return ascii(text[:20])


@pytest.mark.parametrize("text", HOSTILE, ids=_named)
def test_anything_else_is_refused_at_once(text: str) -> None:
    start = time.process_time()
    with pytest.raises(InputError) as raised:
        compile_formula(text)
    assert time.process_time() - start < 0.1
    assert len(raised.value.message) < 500


@given(st.text(max_size=60) | st.text("()+-*/,. _abemx19'\"[]:=", max_size=60))
def test_any_text_is_a_formula_or_refused(text: str) -> None:
    try:
        formula = compile_formula(text)
    except InputError:
        return
    assert set(text) <= set("abcdefghijklmnopqrstuvwxyz_0123456789+-*/(),. ")
    try:
        formula.evaluate(dict.fromkeys(formula.names, 1))
    except InternalError:
        assert "/" in text


def test_what_is_not_arithmetic_is_named_with_what_is() -> None:
    with pytest.raises(InputError) as raised:
        compile_formula("a % b")
    assert str(raised.value) == (
        "The formula 'a % b' has something that is not arithmetic ('% b')."
    )
    assert raised.value.hint == (
        "Only + - * / // ( ), min max ceil floor, decimal numbers and input names."
    )
    with pytest.raises(InputError, match=r"'a if b else c' .* \(IfExp\)"):
        compile_formula("a if b else c")
    with pytest.raises(InputError, match=r"^The formula 'a \+' can't be read\.$"):
        compile_formula("a +")


@pytest.mark.parametrize(
    "text",
    [
        "a" * 70 + "!",
        "a" * 70 + " a",
        "9" * 70,
        "a" * 70,
        "-" * 70 + "a",
    ],
)
def test_only_the_start_of_a_long_text_is_repeated(text: str) -> None:
    with pytest.raises(InputError) as raised:
        compile_formula(text)
    assert f"'{text[:60]}'" in raised.value.message


def test_what_can_not_be_read_is_shown_from_there_in_short() -> None:
    with pytest.raises(InputError, match=r"\('% 23456789'\)\.$"):
        compile_formula("a % 234567890")


def test_limits_are_inclusive() -> None:
    assert compile_formula("a" * 64).names == ("a" * 64,)
    assert compile_formula(str(MAX_LITERAL - 1)).evaluate({}) == MAX_LITERAL - 1
    assert compile_formula("1" + " " * (MAX_LENGTH - 1)).evaluate({}) == 1
    assert (MAX_LITERAL, MAX_LENGTH) == (2**63, 1_000)
    assert compile_formula("-" * 39 + "a").evaluate({"a": 1}) == -1
    assert compile_formula("+".join(["a"] * 40)).evaluate({"a": 1}) == 40
    with pytest.raises(InputError, match=r"^The formula '.{41,60}' is nested too deeply\.$"):
        compile_formula("-" * 40 + "a")
    with pytest.raises(InputError, match=r"^The formula '.{41,60}' is nested too deeply\.$"):
        compile_formula("+".join(["a"] * (41)))
    assert compile_formula("a-(" * 39 + "a" + ")" * 39).evaluate({"a": 1}) == 0
    assert compile_formula("ceil(" * 39 + "a" + ")" * 39).evaluate({"a": 1.5}) == 2
    for too_deep in ("a-(" * 40 + "a" + ")" * 40, "ceil(" * 40 + "a" + ")" * 40):
        with pytest.raises(InputError, match="nested too deeply"):
            compile_formula(too_deep)
    with pytest.raises(InputError, match=r"^The formula '\d+' has a number that is too large\.$"):
        compile_formula(str(MAX_LITERAL))
    with pytest.raises(InputError, match=r"^A formula has at most 1000 characters\.$"):
        compile_formula("1" + " " * MAX_LENGTH)


def test_the_largest_product_that_can_be_written_is_small_enough_to_compute() -> None:
    text = "*".join(["9223372036854775807"] * 39)
    start = time.process_time()
    assert compile_formula(text).evaluate_bytes({}) == (2**63 - 1) ** 39
    assert time.process_time() - start < 0.1


def test_no_builtins_are_in_reach_of_a_formula() -> None:
    compile_formula("a").evaluate({"a": 1})
    assert module._GLOBALS["__builtins__"] == {}


def test_a_formula_is_compiled_once() -> None:
    assert compile_formula("a + 1") is compile_formula("a + 1")
