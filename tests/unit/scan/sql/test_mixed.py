"""Filter parts for DuckDB are combined with parts that indexes may answer."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from lance_duck.errors import InvalidInputError
from lance_duck.scan.evaluator import expressions
from lance_duck.scan.filters import Filter, SqlFilter, TreeFilter, make_filter
from lance_duck.scan.predicate.tree import And, Opaque, StartsWith
from lance_duck.scan.sql import mixed
from lance_duck.scan.sql.vet import operand_paths, parse_sql

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
def test_simple_conditions_are_split_from_others(text: str, shown: str | None) -> None:
    found = make_filter(text, SCHEMA)
    assert isinstance(found, TreeFilter)
    assert shown is None or str(found) == shown
    plain = SqlFilter(parse_sql(text, SCHEMA, "filter"))
    assert found.mask(COLUMNS, ROWS).to_pylist() == plain.mask(COLUMNS, ROWS).to_pylist()


def test_a_pattern_prefix_is_recognised_without_duckdb() -> None:
    found = make_filter("s LIKE 'a_c%'", SCHEMA)
    assert isinstance(found, TreeFilter)
    assert found.predicate == And((StartsWith(("s",), pa.scalar("a")), Opaque("(s LIKE 'a_c%'\n)", (("s",),))))
    assert make_filter("s LIKE '%a'", SCHEMA).__class__ is SqlFilter


@pytest.mark.parametrize("text", ["length(s) > 1", "x + 1 = 2 OR length(s) = 1", "NOT length(s) > 1"])
def test_filters_that_only_duckdb_can_evaluate_stay_whole(text: str) -> None:
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
def test_each_part_receives_its_parameters(text: str, parameters: Any) -> None:
    found = make_filter(text, SCHEMA, parameters)
    plain = SqlFilter(parse_sql(text, SCHEMA, "filter", parameters), parameters)
    assert found is not None
    assert found.mask(COLUMNS, ROWS).to_pylist() == plain.mask(COLUMNS, ROWS).to_pylist()


@pytest.mark.parametrize(
    "text",
    [
        "j -> '$.a' = x AND x = 1",  # an arrow binds looser than AND
        "x = 1 AND j ->> '$.a' = '1'",  # DuckDB 1.5 behaves the same here
        "x = 1 AND j ->> '$.a' = '1' OR length(s) = 3",
    ],
)
def test_filters_with_loosely_binding_operators_are_not_split(text: str) -> None:
    columns = {**COLUMNS, "j": column(['{"a": 1}', '{"a": 2}'], pa.string())}
    schema = pa.schema([(name, array.type) for name, array in columns.items()])

    def rows(filter_: Filter | None) -> list[bool]:
        assert filter_ is not None
        return filter_.mask(columns, ROWS).to_pylist()

    try:
        expected = rows(SqlFilter(parse_sql(text, schema, "filter")))
    except InvalidInputError:
        with pytest.raises(InvalidInputError):
            rows(make_filter(text, schema))
    else:
        assert rows(make_filter(text, schema)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "x\u00a0= 1 AND length(s) = 3 OR s <> 'ü' AND upper(s) = 'ABC'",
        "x = 1\u3000\u3000\u3000AND length(s) = 3 AND length(l) = 2",
        "s <> '\u00a0' AND length(s) = 3 -- it's\n AND\u00a0length(l) = 2",
    ],
)
def test_parameter_positions_match_the_filter(text: str) -> None:
    plain = SqlFilter(parse_sql(text, SCHEMA, "filter"))
    assert make_filter(text, SCHEMA).mask(COLUMNS, ROWS).equals(plain.mask(COLUMNS, ROWS))  # type: ignore[union-attr]


class Recorder:
    """A cursor of the evaluator that notes the texts that it is given."""

    def __init__(self, cursor: Any, texts: list[str]) -> None:
        self._cursor = cursor
        self._texts = texts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)

    def sql(self, text: str, **options: Any) -> Any:
        self._texts.append(text)
        return self._cursor.sql(text, **options)

    def execute(self, text: str, parameters: Any = None) -> Any:
        self._texts.append(" ".join([text, *map(str, parameters or ())]))
        return self._cursor.execute(text, parameters)


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What DuckDB is given to parse."""
    noted: list[str] = []
    cursor = expressions._cursor
    monkeypatch.setattr(expressions, "_cursor", lambda: Recorder(cursor(), noted))
    return noted


def test_a_mixed_filter_is_parsed_and_bound_once(texts: list[str]) -> None:
    make_filter("x = 11 AND length(s) > 11", SCHEMA)
    assert sum("x = 11 AND length(s) > 11" in text for text in texts) == 1
    assert sum("length(s) > 11" in text for text in texts) == 2
    texts.clear()
    make_filter("x = 11 AND length(s) > 11", SCHEMA)
    assert not texts


@pytest.mark.parametrize("text", ["x = 1 AND length(s) = ", "x = 1 AND none + 1 = 2", "x = 1 AND j -> 'a' AND b"])
def test_a_rejected_filter_is_parsed_once(text: str, texts: list[str]) -> None:
    with pytest.raises(InvalidInputError):
        make_filter(text, SCHEMA)
    assert sum("json_serialize_sql" in each for each in texts) == 1


def test_a_mixed_filter_with_other_parameters_is_bound_again(texts: list[str]) -> None:
    text = "x = ? AND length(s) > ? + 12"
    make_filter(text, SCHEMA, [1, 2])
    assert sum(text in each for each in texts) == 1
    texts.clear()
    again = make_filter(text, SCHEMA, [2, 1])
    assert len(texts) == 1
    assert text not in texts[0]
    assert isinstance(again, TreeFilter)
    assert [leaf.parameters for leaf in again.predicate.leaves() if isinstance(leaf, Opaque)] == [[1]]
    texts.clear()
    make_filter(text, SCHEMA, [1, 2])
    assert not texts


def test_equal_parameters_of_different_types_are_distinguished() -> None:
    text = "x > 0 AND CAST(? AS VARCHAR) = '1'"
    counts = [make_filter(text, SCHEMA, [value]).mask(COLUMNS, ROWS).true_count for value in (1, True, 1.0)]  # type: ignore[union-attr]
    assert counts[0] > 0
    assert counts[1:] == [0, 0]


def test_a_filter_keeps_a_copy_of_its_parameters() -> None:
    bound = ["a"]
    found = make_filter("length(s) > 0 AND s || 'x' = ? || 'x'", SCHEMA, bound)
    assert found is not None
    before = found.mask(COLUMNS, ROWS)
    bound[0] = "abc"
    assert found.mask(COLUMNS, ROWS).equals(before)
    assert before.true_count > 0


@pytest.mark.parametrize("parameters", [[1], [1, 2, 3], None, {"a": 1}])
def test_wrong_parameter_counts_are_rejected(parameters: Any) -> None:
    with pytest.raises(InvalidInputError, match="bad filter"):
        make_filter("x = ? AND length(s) = ?", SCHEMA, parameters)


def test_filters_that_differ_only_in_numbers_are_tokenized_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def cut(text: str, *rest: Any) -> Any:
        seen.append(text)
        return operand_paths(text, *rest)

    monkeypatch.setattr(mixed, "operand_paths", cut)
    texts = [f"(x = {x} OR x >= {x + 1}) AND y % 2 = 1 AND s <> 'a' AND x < {x + 90}" for x in (1, 2, 3)]
    for text in (*texts, "x = 7 AND y % 2 = 1", "x = 8 AND y % 3 = 1", "x = 9 AND y % 3 = 1"):
        found: Any = make_filter(text, SCHEMA)
        expected = SqlFilter(parse_sql(text, SCHEMA, "filter"))
        assert found.mask(COLUMNS, ROWS).to_pylist() == expected.mask(COLUMNS, ROWS).to_pylist()
    assert seen == [texts[0], "x = 7 AND y % 2 = 1", "x = 8 AND y % 3 = 1"]


@pytest.mark.parametrize("text", ["#1 = 1", "x = 1 AND #1 = 1", "abs(#2) = 1 OR x = 1"])
def test_columns_by_number_are_rejected(text: str) -> None:
    with pytest.raises(InvalidInputError, match="a column by its number instead of its name"):
        make_filter(text, SCHEMA)


def test_digits_of_other_scripts_are_names() -> None:
    columns = {"x": pa.array([1, 2, 3]), "٣": pa.array([3, 2, 1])}
    found = make_filter("x = ٣ AND x + 1 > 0", pa.schema([("x", pa.int64()), ("٣", pa.int64())]))
    assert found.mask(columns, 3).to_pylist() == [False, True, False]
    with pytest.raises(InvalidInputError, match="٣"):
        make_filter("x = ٣", SCHEMA)
