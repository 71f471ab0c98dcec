"""Random conditions, as SQL text and as predicate trees that mean the same."""

from __future__ import annotations

import datetime
import decimal

import pyarrow as pa
from hypothesis import strategies as st

from lance_duck.scan.predicate.tree import OPS, And, Compare, In, IsNull, Not, Or, Predicate

Condition = tuple[str, Predicate]

TYPES: dict[str, pa.DataType] = {
    "i": pa.int32(),
    "big": pa.int64(),
    "u": pa.uint8(),
    "f": pa.float64(),
    "g": pa.float32(),
    "s": pa.string(),
    "b": pa.bool_(),
    "d": pa.date32(),
    "t": pa.timestamp("us"),
    "m": pa.decimal128(8, 2),
    "c": pa.dictionary(pa.int8(), pa.string()),
}

VALUES: dict[str, st.SearchStrategy[object]] = {
    "i": st.sampled_from([-3, -1, 0, 1, 2, 7]),
    "big": st.sampled_from([-(2**40), 0, 5, 2**53 + 1]),
    "u": st.sampled_from([0, 1, 200, 255]),
    "f": st.sampled_from([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.5, -2.25]),
    "g": st.sampled_from([float("nan"), float("inf"), 0.0, -0.0, 0.5, -2.25]),
    "s": st.sampled_from(["", "a", "b", "bb", "it's", "ü"]),
    "b": st.booleans(),
    "d": st.sampled_from([datetime.date(1969, 12, 31), datetime.date(2020, 2, 29), datetime.date(2021, 1, 1)]),
    "t": st.sampled_from([datetime.datetime(1970, 1, 1), datetime.datetime(2020, 2, 29, 12, 0, 0, 1)]),
    "m": st.sampled_from([decimal.Decimal("-1.50"), decimal.Decimal("0.00"), decimal.Decimal("99999.99")]),
    "c": st.sampled_from(["", "a", "b", "zz"]),
}

COLUMNS = tuple(VALUES)


def rows(column: str) -> st.SearchStrategy[object]:
    """Draw a value of the column, or None."""
    return st.one_of(st.none(), VALUES[column])


def literal(column: str, value: object) -> str:
    """Write a value as SQL of exactly the column's type."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        return f"'{value}'::{'DOUBLE' if column == 'f' else 'FLOAT'}"
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP '{value}'"
    if isinstance(value, datetime.date):
        return f"DATE '{value}'"
    return f"{value}::DECIMAL(8, 2)" if isinstance(value, decimal.Decimal) else str(value)


def _scalar(column: str, value: object) -> pa.Scalar:
    type_ = TYPES[column]
    return pa.scalar(value, type_.value_type if pa.types.is_dictionary(type_) else type_)


@st.composite
def comparisons(draw: st.DrawFn) -> Condition:
    column, op = draw(st.sampled_from(COLUMNS)), draw(st.sampled_from(OPS))
    value = draw(st.one_of(VALUES[column], VALUES[column], st.none()))
    return f"{column} {op} {literal(column, value)}", Compare(op, (column,), _scalar(column, value))


@st.composite
def memberships(draw: st.DrawFn) -> Condition:
    column = draw(st.sampled_from(COLUMNS))
    values = draw(st.lists(st.one_of(VALUES[column], VALUES[column], st.none()), min_size=1, max_size=4))
    type_ = TYPES[column]
    array = pa.array(values, type_.value_type if pa.types.is_dictionary(type_) else type_)
    return f"{column} IN ({', '.join(literal(column, v) for v in values)})", In((column,), array)


@st.composite
def null_tests(draw: st.DrawFn) -> Condition:
    column, positive = draw(st.sampled_from(COLUMNS)), draw(st.booleans())
    test = IsNull((column,))
    return f"{column} IS {'' if positive else 'NOT '}NULL", test if positive else Not(test)


def conditions() -> st.SearchStrategy[Condition]:
    """Draw a condition of any depth."""
    leaves = st.one_of(comparisons(), memberships(), null_tests())
    return st.recursive(leaves, _combined, max_leaves=6)


def _combined(parts: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
    several = st.lists(parts, min_size=2, max_size=3)
    return st.one_of(
        several.map(lambda p: ("(" + " AND ".join(t for t, _ in p) + ")", And(tuple(c for _, c in p)))),
        several.map(lambda p: ("(" + " OR ".join(t for t, _ in p) + ")", Or(tuple(c for _, c in p)))),
        parts.map(lambda p: (f"(NOT {p[0]})", Not(p[1]))),
    )
