"""Deterministic SQL expressions: only their results may be cached."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_duck.scan.sql.vet import parse_sql

SCHEMA = pa.schema(
    {"i": pa.int64(), "x": pa.float64(), "t": pa.string(), "d": pa.date32(), "l": pa.list_(pa.int64())},
)


@pytest.mark.parametrize(
    "text",
    [
        "i % 10 = 3",
        "t LIKE 'a%' OR lower(t) = 'b'",
        "l[1] = 3 AND NOT list_contains(l, i)",
        "CASE WHEN i > 3 THEN x ELSE 1 END > 2",
        "d BETWEEN '2020-01-01' AND '2021-01-01' AND i % 2 = 0",
    ],
)
def test_columns_constants_and_pure_functions_are_stable(text) -> None:
    assert parse_sql(text, SCHEMA, "filter").is_stable


@pytest.mark.parametrize(
    "text",
    [
        "random() < x",
        "i % 2 = 0 AND uuid() <> t",
        "len(list_filter(l, lambda y: y > random())) > 0",
        "d < current_date",
        "d < now()",
        "d = 'today'",
        "d > 'Tomorrow'",
        "regexp_like(t, 'a')",
        "CAST(i AS VARCHAR) = t",
    ],
)
def test_volatile_and_unknown_functions_are_not_stable(text) -> None:
    assert not parse_sql(text, SCHEMA, "filter").is_stable
