"""pyarrow expressions on decimals and other types that pyarrow compares only with the same type."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import InvalidInputError
from lance_duck.scan.filters import make_filter

EXACT = Context(prec=400)
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")
}
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


@st.composite
def decimal_types(draw: st.DrawFn, most: int = 75) -> pa.DataType:
    """Return a decimal128 or decimal256 type; 76 digits are the maximum."""
    wide = draw(st.booleans())
    precision = draw(st.integers(1, most if wide else min(most, 38)))
    scale = draw(st.integers(0, precision))
    return pa.decimal256(precision, scale) if wide else pa.decimal128(precision, scale)


@st.composite
def columns(draw: st.DrawFn, most: int = 75) -> pa.Array:
    type_ = draw(decimal_types(most))
    limit = 10**type_.precision - 1
    near = st.integers(-min(limit, 300), min(limit, 300))
    unscaled = draw(st.lists(st.none() | near | st.integers(-limit, limit), min_size=1, max_size=12))
    values = [None if u is None else EXACT.scaleb(Decimal(u), -type_.scale) for u in unscaled]
    return pa.array(values, type_)


@st.composite
def literals(draw: st.DrawFn, column: pa.Array) -> int | Decimal:
    """Return integers and decimals, some equal or close to a value of the column."""
    valid = [value for value in column.to_pylist() if value is not None]
    near = st.sampled_from(valid or [Decimal(0)])
    beside = st.builds(
        lambda value, by: EXACT.add(value, Decimal(by).scaleb(-column.type.scale - 2)), near, st.integers(-150, 150)
    )
    any_ = st.builds(lambda u, s: Decimal(u).scaleb(-s), st.integers(-(10**20), 10**20), st.integers(0, 12))
    whole = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300)
    value = draw(near | beside | any_ | whole | st.builds(int, near).filter(lambda v: abs(v) < 2**63))
    return value if isinstance(value, int) or len(value.as_tuple().digits) <= 76 else Decimal(1)


def answer(column: pa.Array, expression: pc.Expression) -> list[bool]:
    """Return the passing rows after checking that pyarrow agrees, if it supports the expression."""
    table = pa.table({"d": column})
    condition = make_filter(expression, table.schema)
    assert condition is not None
    found: list[bool] = condition.mask({"d": column}, len(column)).to_pylist()
    try:
        theirs = table.append_column("row", [np.arange(len(table))]).filter(expression)["row"].to_pylist()
    except pa.ArrowException:
        return found
    assert [row for row, passes in enumerate(found) if passes] == theirs
    return found


def expected(column: pa.Array, passes: Callable[[Fraction], Any]) -> list[bool]:
    return [value is not None and bool(passes(Fraction(value))) for value in column.to_pylist()]


@given(st.data())
def test_comparisons_with_numbers_are_exact(data: st.DataObject) -> None:
    column = data.draw(columns())
    literal = data.draw(literals(column))
    name = data.draw(st.sampled_from(sorted(COMPARISONS)))
    compare = COMPARISONS[name]
    wanted = expected(column, lambda value: compare(value, Fraction(literal)))
    assert answer(column, compare(pc.field("d"), pc.scalar(literal))) == wanted
    mirrored = expected(column, lambda value: compare(Fraction(literal), value))
    assert answer(column, compare(pc.scalar(literal), pc.field("d"))) == mirrored


@given(st.data())
def test_membership_and_ranges_are_exact(data: st.DataObject) -> None:
    column = data.draw(columns())
    many = data.draw(st.lists(literals(column), min_size=1, max_size=5))
    whole = [value for value in many if isinstance(value, int)]
    decimals = [value for value in many if isinstance(value, Decimal)]
    among: Sequence[int | Decimal] = decimals or whole
    try:
        values = pa.array(among)
    except pa.ArrowInvalid:  # of no common decimal type
        return
    wanted = expected(column, lambda value: value in {Fraction(v) for v in among})
    assert answer(column, pc.field("d").isin(values)) == wanted
    low, high = sorted((many[0], many[-1]))
    between = (pc.field("d") >= pc.scalar(low)) & (pc.field("d") <= pc.scalar(high))
    assert answer(column, between) == expected(column, lambda value: Fraction(low) <= value <= Fraction(high))


@given(st.data())
def test_sums_and_products_with_integers_are_exact(data: st.DataObject) -> None:
    column = data.draw(columns(most=30))
    by = data.draw(st.integers(-1000, 1000))
    most = data.draw(st.integers(-100_000, 100_000))
    compute = ARITHMETIC[data.draw(st.sampled_from(sorted(ARITHMETIC)))]
    wanted = expected(column, lambda value: compute(value, by) > most)
    assert answer(column, compute(pc.field("d"), pc.scalar(by)) > pc.scalar(most)) == wanted


@given(st.data())
def test_results_equal_those_of_duckdb(data: st.DataObject) -> None:
    column = data.draw(columns(most=18))
    literal = data.draw(st.decimals(-(10**6), 10**6, places=3) | st.integers(-(10**6), 10**6))
    name, sign = data.draw(st.sampled_from([("eq", "="), ("ne", "<>"), ("lt", "<"), ("ge", ">=")]))
    table = pa.table({"d": column.cast(pa.decimal128(column.type.precision, column.type.scale))})
    with duckdb.connect() as connection:
        connection.register("t", table)
        rows = connection.execute(f"SELECT coalesce(d {sign} {literal}, false) FROM t").fetchall()
    assert answer(table["d"].chunk(0), COMPARISONS[name](pc.field("d"), pc.scalar(literal))) == [row[0] for row in rows]


DECIMALS = pa.array([Decimal("1.50"), Decimal("99.00"), None, Decimal("100.25")], pa.decimal128(9, 2))
FIELD = pc.field("d")


@pytest.mark.parametrize(
    ("expression", "rows"),
    [
        (FIELD > 99, [3]),
        (99 <= FIELD, [1, 3]),  # noqa: SIM300 - the mirrored form
        (pa.scalar(99, pa.uint8()) == FIELD, [1]),
        (FIELD > 10**18, []),
        (pa.scalar(2**64 - 1, pa.uint64()) < FIELD, []),
        (FIELD > 98.5, [1, 3]),
        (pa.scalar(98.5, pa.float32()) < FIELD, [1, 3]),
        (Decimal("99.001") == FIELD, []),
        (Decimal("99.001") != FIELD, [0, 1, 3]),
        (FIELD.isin([99, 7]), [1]),
        (FIELD.isin([99, None]), [1, 2]),
        (FIELD.isin([1.5]), [0]),
        (FIELD / 2 > 49, [1, 3]),
        (pc.negate(FIELD) < -99, [3]),
        (FIELD.cast(pa.float64()) > 99, [3]),
        (FIELD.cast(pa.decimal128(20, 4)) > 99, [3]),
        (pa.scalar(None, pa.int64()) == FIELD, []),
        (FIELD > FIELD - 1, [0, 1, 3]),
        (pc.if_else(FIELD > 99, True, False), [3]),
        (~(FIELD > 99), [0, 1]),
    ],
    ids=str,
)
def test_decimal_expressions_equal_those_of_duckdb(expression: pc.Expression, rows: list[int]) -> None:
    assert np.flatnonzero(answer(DECIMALS, expression)).tolist() == rows


def test_large_decimals_are_found_in_sets_of_decimals() -> None:
    column = pa.array([Decimal("999999999999999999999999999950000")], pa.decimal128(33, 0))
    assert answer(column, FIELD.isin(column.to_pylist())) == [True]


def test_integers_match_whole_decimals_in_a_set() -> None:
    column = pa.array([1, 2, None, -128], pa.int8())
    among = [Decimal("1.5"), Decimal("2.0"), Decimal("-128"), Decimal(500)]
    assert np.flatnonzero(answer(column, FIELD.isin(among))).tolist() == [1, 3]
    assert np.flatnonzero(answer(column, FIELD.isin([Decimal("1.0"), None]))).tolist() == [0, 2]


def test_a_literal_of_another_type_is_rejected_by_name() -> None:
    with pytest.raises(InvalidInputError, match="decimal128"):
        answer(DECIMALS, pc.field("d") > "99")


ZONES = ["UTC", "Europe/Berlin", "Asia/Tokyo", "America/New_York"]


@given(st.data())
def test_timestamps_compare_across_time_zones_and_units(data: st.DataObject) -> None:
    unit, other = (data.draw(st.sampled_from(["s", "ms", "us"])) for _ in range(2))
    zone, others = (data.draw(st.sampled_from(ZONES)) for _ in range(2))
    start = datetime(2024, 3, 31, tzinfo=UTC)
    moments = [start + timedelta(hours=hours) for hours in data.draw(st.lists(st.integers(-9, 9), min_size=1))]
    literal = (start + timedelta(hours=data.draw(st.integers(-9, 9)))).astimezone(ZoneInfo(others))
    column = pa.array(moments, pa.timestamp(unit, zone))
    compare = COMPARISONS[data.draw(st.sampled_from(sorted(COMPARISONS)))]
    found = answer(column, compare(pc.field("d"), pa.scalar(literal, pa.timestamp(other, others))))
    assert found == [compare(moment, literal) for moment in moments]
    member = answer(column, pc.field("d").isin(pa.array([literal], pa.timestamp(unit, others))))
    assert member == [moment == literal for moment in moments]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_strings_compare_in_every_string_type(type_: pa.DataType) -> None:
    column = pa.array(["a", "b", None, "ab"]).cast(type_)
    for form in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        value = pa.array(["a"]).cast(form)
        assert answer(column, pc.field("d") == value[0]) == [True, False, False, False]
        assert answer(column, pc.field("d").isin(value)) == [True, False, False, False]
    assert answer(column, pc.starts_with(pc.field("d"), "a")) == [True, False, False, True]


@given(st.lists(st.none() | st.floats(width=16), min_size=1, max_size=8), st.floats(width=16))
def test_half_floats_compare_as_floats(values: list[float | None], literal: float) -> None:
    column = pa.array([None if value is None else np.float16(value) for value in values], pa.float16())
    for compare in COMPARISONS.values():
        wanted = [value is not None and bool(compare(value, literal)) for value in values]
        for scalar in (pa.scalar(literal), pa.scalar(np.float16(literal), pa.float16())):
            assert answer(column, compare(pc.field("d"), scalar)) == wanted
    struct = pa.StructArray.from_arrays([column], ["h"])
    assert answer(struct, pc.field("d", "h") > 1) == [value is not None and value > 1 for value in values]
