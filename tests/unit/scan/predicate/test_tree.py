from __future__ import annotations

import math
import operator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import InvalidInputError
from lance_duck.scan.predicate.evaluate import evaluate, mask
from lance_duck.scan.predicate.tree import (
    And,
    Compare,
    ConstantCondition,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    all_of,
    any_of,
    conjuncts,
)

NAN = math.nan
PLAIN = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def ask(predicate: Predicate, **columns: pa.Array) -> list[bool | None]:
    n = len(next(iter(columns.values()))) if columns else 2
    return evaluate(predicate, columns, n).to_pylist()


def key(value: Any) -> Any:
    """Order of DuckDB: NaN is the greatest float."""
    return (value != value, 0.0 if value != value else value) if isinstance(value, float) else value


def plain_compare(op: str, value: Any, constant: Any) -> bool | None:
    return None if value is None or constant is None else PLAIN[op](key(value), key(constant))


def test_comparison_with_null_is_null() -> None:
    a = pa.array([1, None, 3])
    assert ask(Compare(">", ("a",), pa.scalar(2)), a=a) == [False, None, True]
    assert ask(Compare("=", ("a",), pa.scalar(None, pa.int64())), a=a) == [None, None, None]


def test_nan_is_the_greatest_number_and_equal_to_nan() -> None:
    a = pa.array([1.0, NAN, None])
    assert ask(Compare(">", ("a",), pa.scalar(5.0)), a=a) == [False, True, None]
    assert ask(Compare("=", ("a",), pa.scalar(NAN)), a=a) == [False, True, None]
    assert ask(Compare("<=", ("a",), pa.scalar(NAN)), a=a) == [True, True, None]
    assert ask(Compare(">", ("a",), pa.scalar(NAN)), a=a) == [False, False, None]


def test_negative_zero_equals_zero() -> None:
    a = pa.array([-0.0, 0.0])
    assert ask(Compare("=", ("a",), pa.scalar(0.0)), a=a) == [True, True]
    assert ask(In(("a",), pa.array([0.0])), a=a) == [True, True]


def test_in_with_a_null_constant_is_true_or_null() -> None:
    a = pa.array([1, 2, None])
    assert ask(In(("a",), pa.array([1, None])), a=a) == [True, None, None]
    assert ask(In(("a",), pa.array([1])), a=a) == [True, False, None]


def test_three_valued_and_or_not() -> None:
    a = pa.array([True, False, None])
    is_a = Compare("=", ("a",), pa.scalar(True))
    unknown = ConstantCondition(None)
    assert ask(And((is_a, unknown)), a=a) == [None, False, None]
    assert ask(Or((is_a, unknown)), a=a) == [True, None, None]
    assert ask(Not(is_a), a=a) == [False, True, None]
    assert ask(And(()), a=a) == [True, True, True]
    assert ask(Or(()), a=a) == [False, False, False]


def test_a_mask_counts_null_as_false() -> None:
    a = pa.array([1, None])
    assert mask(Compare("=", ("a",), pa.scalar(1)), {"a": a}, 2).to_pylist() == [True, False]


def test_field_of_a_null_struct_is_null() -> None:
    s = pa.array([{"x": {"y": 1}}, {"x": None}, None])
    path = ("s", "x", "y")
    assert ask(Compare("=", path, pa.scalar(1)), s=s) == [True, None, None]
    assert ask(IsNull(path), s=s) == [False, True, True]
    assert ask(IsNull(("s",)), s=s) == [False, False, True]


def test_a_dictionary_is_compared_by_value() -> None:
    d = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 0], pa.int32()), pa.array(["a", "b", None]))
    assert ask(Compare("=", ("d",), pa.scalar("a")), d=d) == [True, False, None, None, True]
    assert ask(In(("d",), pa.array(["b"])), d=d) == [False, True, None, None, False]
    assert ask(IsNull(("d",)), d=d) == [False, False, True, True, False]


@pytest.mark.parametrize("type_", [pa.string_view(), pa.large_string(), pa.string()])
def test_every_string_type_can_be_compared(type_: pa.DataType) -> None:
    a = pa.array(["a", "b", None], type_)
    assert ask(Compare("<", ("a",), pa.scalar("b")), a=a) == [True, False, None]
    assert ask(In(("a",), pa.array(["b"])), a=a) == [False, True, None]


def test_float16_and_narrow_decimals_compare() -> None:
    half = pa.array([1.0, 2.0], pa.float16())
    assert ask(Compare(">", ("a",), pa.scalar(1.5, pa.float32())), a=half) == [False, True]
    narrow = pa.array([1, 2], pa.int32()).cast(pa.decimal64(12, 2))
    assert ask(In(("a",), pa.array([2], pa.int32()).cast(pa.decimal64(12, 2))), a=narrow) == [False, True]


def test_unknown_columns_and_mismatched_constants_are_invalid_input() -> None:
    with pytest.raises(InvalidInputError, match="does not exist"):
        ask(IsNull(("b",)), a=pa.array([1]))
    with pytest.raises(InvalidInputError, match="does not exist"):
        ask(IsNull(("a", "x")), a=pa.array([1]))
    with pytest.raises(InvalidInputError, match="does not fit"):
        ask(Compare("=", ("a",), pa.scalar("x")), a=pa.array([1]))
    with pytest.raises(InvalidInputError, match="unknown comparison"):
        Compare("~", ("a",), pa.scalar(1))  # type: ignore[arg-type]


def test_columns_of_a_predicate_are_listed_once_in_order() -> None:
    one, two = IsNull(("s", "x")), Compare("=", ("a",), pa.scalar(1))
    both = all_of(one, all_of(two, Not(one)))
    assert both.paths() == (("s", "x"), ("a",))
    assert both.columns() == ("s", "a")
    assert len(conjuncts(both)) == 3
    assert any_of(any_of(one, two), two) == Or((one, two, two))
    assert all_of(one) is one


def test_predicates_print_as_sql() -> None:
    p = all_of(Compare(">", ("a b",), pa.scalar("it's")), Not(IsNull(("s", "x"))), In(("i",), pa.array([1, None])))
    assert str(p) == "(\"a b\" > 'it''s' AND NOT (s.x IS NULL) AND i IN (1, NULL))"


numbers = st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.0, NAN, math.inf, -math.inf]), st.floats(width=64))


@given(st.lists(numbers, max_size=8), st.sampled_from(sorted(PLAIN)), numbers)
def test_float_comparison_equals_the_plain_one(values: list[float | None], op: Any, constant: float | None) -> None:
    found = ask(Compare(op, ("a",), pa.scalar(constant, pa.float64())), a=pa.array(values, pa.float64()))
    assert found == [plain_compare(op, v, constant) for v in values]


@given(st.lists(numbers, max_size=8), st.lists(numbers, max_size=4))
def test_float_in_equals_the_plain_one(values: list[float | None], constants: list[float | None]) -> None:
    def plain(value: float | None) -> bool | None:
        answers = [plain_compare("=", value, c) for c in constants]
        if any(answers):
            return True
        return None if value is None or None in constants else False

    found = ask(In(("a",), pa.array(constants, pa.float64())), a=pa.array(values, pa.float64()))
    assert found == [plain(v) for v in values]
