"""Parts of a filter that only DuckDB evaluates stand beside those that indexes may answer."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from lance_duck.scan.filters import SqlFilter, TreeFilter, make_filter
from lance_duck.scan.predicate.tree import And, Opaque, StartsWith
from lance_duck.scan.sql.vet import parse_sql

RNG = random.Random(1)
ROWS = 200


def column(choices: list[Any], type_: pa.DataType) -> pa.Array:
    return pa.array([RNG.choice([None, *choices]) for _ in range(ROWS)], type_)


COLUMNS = {
    "x": column([1, 2, 3, 5], pa.int64()),
    "y": column([1, 2, 3, 10], pa.int32()),
    "s": column(["a", "abc", "axcd", "a'b and c"], pa.string()),
    "end": column([1, 2], pa.int32()),
    "b": column([True, False], pa.bool_()),
    "l": column([[], [1, 2], [None, 3]], pa.list_(pa.int32())),
}
SCHEMA = pa.schema([(name, array.type) for name, array in COLUMNS.items()])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x = 5 AND length(s) > 3", "(x = 5 AND (length(s) > 3))"),
        ("x = 5 AND (length(s) > 3 OR y = 2)", "(x = 5 AND (y = 2 OR (length(s) > 3)))"),
        ("(x + 1) * 2 = 4 OR x = 1", "(x = 1 OR ((x + 1) * 2 = 4))"),
        ("length(s) = 1 AND x = 1 AND upper(s) = 'A'", "(x = 1 AND ((length(s) = 1) AND (upper(s) = 'A')))"),
        ("NOT length(s) = 1 AND x = 1", "(x = 1 AND (NOT length(s) = 1))"),
        ("x = 1 AND CASE WHEN x = 1 AND y = 2 THEN b ELSE b OR b END", None),
        ("x IN (1, 2) AND y NOT BETWEEN x AND 5 AND x IS DISTINCT FROM y", None),
        ("y BETWEEN x AND 10 AND b", "(b = True AND (y BETWEEN x AND 10))"),
        ("list_filter(l, lambda e: e > 1 AND e < 4) = [3] AND x = 3", None),
        ("x = 3 -- one\n AND /* and */ length(s) = 3", "(x = 3 AND (length(s) = 3))"),
        ("x = 1 AND s = e'a\\'b and c'", None),
        ("x = 1 AND s = $$a'b and c$$", None),
        ('x = 1 AND "end" + 1 = 2', None),
        ("NOT (x = 1 OR NOT (length(s) = 2 AND b))", None),
        ("s LIKE '_x%' AND x = 1", "(x = 1 AND (s LIKE '_x%'))"),
    ],
)
def test_simple_conditions_are_found_beside_others(text: str, shown: str | None) -> None:
    found = make_filter(text, SCHEMA)
    assert isinstance(found, TreeFilter)
    assert shown is None or str(found) == shown
    plain = SqlFilter(parse_sql(text, SCHEMA, "filter"))
    assert found.mask(COLUMNS, ROWS).to_pylist() == plain.mask(COLUMNS, ROWS).to_pylist()


def test_what_begins_a_pattern_is_known_without_duckdb() -> None:
    found = make_filter("s LIKE 'a_c%'", SCHEMA)
    assert isinstance(found, TreeFilter)
    assert found.predicate == And((StartsWith(("s",), pa.scalar("a")), Opaque("(s LIKE 'a_c%'\n)", (("s",),))))
    assert make_filter("s LIKE '%a'", SCHEMA).__class__ is SqlFilter


@pytest.mark.parametrize("text", ["length(s) > 1", "x + 1 = 2 OR length(s) = 1", "NOT length(s) > 1"])
def test_text_that_is_all_for_duckdb_stays_whole(text: str) -> None:
    assert isinstance(make_filter(text, SCHEMA), SqlFilter)


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("x = ? AND length(s) = ? AND y = ? AND upper(s) <> ?", [1, 3, 2, "q"]),
        ("length(s) = ? AND x BETWEEN ? AND ?", [3, 1, 2]),
        ("x = $a AND length(s) = $b AND y <> $a", {"a": 1, "b": 3}),
        ("x = $1 AND length(s) = $2", [1, 3]),
    ],
)
def test_each_part_has_its_parameters(text: str, parameters: Any) -> None:
    found = make_filter(text, SCHEMA, parameters)
    plain = SqlFilter(parse_sql(text, SCHEMA, "filter", parameters), parameters)
    assert found is not None
    assert found.mask(COLUMNS, ROWS).to_pylist() == plain.mask(COLUMNS, ROWS).to_pylist()
