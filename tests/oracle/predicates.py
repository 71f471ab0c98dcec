"""Columns with awkward values, indexes over them, and random conditions as SQL that both readers understand."""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

Pick = Callable[[np.random.Generator], Any]

WORDS = ("", "a", "ab", "abc", "b", "it's", "ü", "übung", "日本", "zz", "a_b", "a%b", "A")
LABELS = ("x", "y", "z", "", "ü")
DATES = (
    *(datetime.date(1, 1, 1), datetime.date(1969, 12, 31), datetime.date(1970, 1, 1)),
    *(datetime.date(2020, 2, 29), datetime.date(9999, 12, 31)),
)
INSTANTS = (
    *(datetime.datetime(1700, 1, 1), datetime.datetime(1970, 1, 1), datetime.datetime(2020, 2, 29, 12, 0, 0, 1)),
    datetime.datetime(2262, 1, 1, 23, 59, 59, 999999),
)
MONEY = tuple(decimal.Decimal(m) for m in ("-999999.99", "-1.50", "0.00", "0.01", "1.50", "999999.99"))
FLOATS = (float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1.5, -2.25, 1e300, 5e-324)
ORDERED = ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER")


@dataclass(frozen=True)
class Column:
    """A column for conditions.

    Attributes:
        values: Its values, without nulls.
        sql: Converts a value to SQL.
        kinds: Possible index kinds.
    """

    name: str
    type: pa.DataType
    values: tuple[Any, ...]
    sql: Callable[[Any], str]
    kinds: tuple[str, ...] = ORDERED


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


COLUMNS = (
    Column("small", pa.int8(), (-128, -1, 0, 1, 127), str),
    Column("int", pa.int32(), tuple(range(-20, 60)), str),
    Column("big", pa.int64(), (1 - 2**63, -(2**40), -1, 0, 1, 5, 2**53 + 1, 2**63 - 1), str),
    Column("wide", pa.uint32(), (0, 1, 7, 2**31, 2**32 - 1), str),
    Column("double", pa.float64(), FLOATS, lambda v: f"CAST('{v}' AS DOUBLE)"),
    Column(
        "float", pa.float32(), (float("nan"), float("inf"), 0.0, -0.0, 0.5, -2.25), lambda v: f"CAST('{v}' AS FLOAT)"
    ),
    Column("word", pa.string(), WORDS, _text),
    Column("long", pa.large_string(), WORDS, _text, ("BTREE", "BITMAP", "ZONEMAP")),
    Column("day", pa.date32(), DATES, lambda v: f"DATE '{v.isoformat()}'"),
    Column("moment", pa.timestamp("us"), INSTANTS, lambda v: f"TIMESTAMP '{v.isoformat(' ')}'"),
    Column("yes", pa.bool_(), (True, False), lambda v: str(v).lower(), ("BTREE", "BITMAP", "ZONEMAP")),
    Column("money", pa.decimal128(12, 2), MONEY, lambda v: f"CAST({v} AS DECIMAL(12, 2))", ("BTREE", "BITMAP")),
    Column("labels", pa.list_(pa.string()), LABELS, _text, ("LABEL_LIST",)),
)
BY_NAME = {column.name: column for column in COLUMNS}


def random_columns(rng: np.random.Generator) -> list[Column]:
    """Draw some columns, the list among them more often than not."""
    places = rng.choice(len(COLUMNS) - 1, int(rng.integers(3, 6)), replace=False)
    return [COLUMNS[i] for i in places] + ([COLUMNS[-1]] if rng.random() < 0.6 else [])


def random_rows(rng: np.random.Generator, columns: Sequence[Column], keys: Sequence[int]) -> pa.Table:
    """Rows with these keys."""
    arrays = {"key": pa.array(keys, pa.int64())}
    for column in columns:
        arrays[column.name] = random_values(rng, column, len(keys))
    return pa.table(arrays)


def random_values(rng: np.random.Generator, column: Column, count: int) -> pa.Array:
    """Values of a column, some of them null, in runs or mixed."""
    pool = column.values if rng.random() < 0.7 else column.values[: int(rng.integers(1, len(column.values) + 1))]
    drawn: list[Any] = [pool[i] for i in rng.integers(0, len(pool), count)]
    if pa.types.is_list(column.type):
        drawn = [[pool[i] for i in rng.integers(0, len(pool), int(n))] for n in rng.integers(0, 4, count)]
        drawn = [[None, *v] if rng.random() < 0.1 else v for v in drawn]
    elif rng.random() < 0.4:
        drawn.sort(key=lambda v: (v != v, v))
    nulls = rng.random(count) < (0.0 if rng.random() < 0.3 else 0.15)
    return pa.array([None if null else v for v, null in zip(drawn, nulls, strict=True)], column.type)


def random_condition(rng: np.random.Generator, columns: Sequence[Column], depth: int = 3) -> str:
    """Draw a condition of at most this depth."""
    if depth == 0 or rng.random() < 0.4:
        return _leaf(rng, columns[int(rng.integers(0, len(columns)))])
    if rng.random() < 0.2:
        return f"(NOT {random_condition(rng, columns, depth - 1)})"
    word = " AND " if rng.random() < 0.55 else " OR "
    return "(" + word.join(random_condition(rng, columns, depth - 1) for _ in range(int(rng.integers(2, 4)))) + ")"


def is_fair(condition: str) -> bool:
    """Whether DataFusion and DuckDB mean the same by it.

    They differ on the order of zeros and on casts of NaN; and DataFusion takes `x IN (1) AND x IN (2)` for false where
    x is null.
    """
    again = any(len(re.findall(rf"\b{c.name} (NOT )?IN \(", condition)) > 1 for c in COLUMNS)
    return not again and not any(name in condition for name in ("double", "float"))


def _leaf(rng: np.random.Generator, column: Column) -> str:
    def value() -> str:
        return column.sql(column.values[int(rng.integers(0, len(column.values)))])

    name = column.name
    if rng.random() < 0.1:
        return f"{name} IS {'NOT ' if rng.random() < 0.5 else ''}NULL"
    if pa.types.is_list(column.type):
        some = ", ".join(value() for _ in range(int(rng.integers(1, 4))))
        forms = [
            f"array_has_any({name}, [{some}])",
            f"array_has_all({name}, [{some}])",
            f"array_has({name}, {value()})",
        ]
        return forms[int(rng.integers(0, 3))]
    choice = rng.random()
    if _is_text(column.type) and choice < 0.3:
        prefix = ("", "a", "ab", "ü", "it", "zzz", "日")[int(rng.integers(0, 7))].replace("'", "''")
        return [f"starts_with({name}, '{prefix}')", f"{name} LIKE '{prefix}%'", f"{name} LIKE '{prefix}_%'"][
            int(rng.integers(0, 3))
        ]
    if pa.types.is_boolean(column.type):
        return [name, f"NOT {name}", f"{name} = {value()}", f"{name} != {value()}"][int(rng.integers(0, 4))]
    if pa.types.is_signed_integer(column.type) and choice < 0.08:
        return f"{name} % 3 = 0"
    if choice < 0.45:
        some = ", ".join(value() for _ in range(int(rng.integers(1, 6))))
        return f"{name} {'NOT ' if rng.random() < 0.25 else ''}IN ({some})"
    if choice < 0.6:
        return f"{name} BETWEEN {value()} AND {value()}"
    op = ("=", "=", "!=", "<", "<=", ">", ">=")[int(rng.integers(0, 7))]
    return f"{name} {op} {value()}"


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))
