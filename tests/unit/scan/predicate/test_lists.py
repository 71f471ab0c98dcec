"""What lists have is what DuckDB finds in them."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from lance_duck.errors import InvalidInputError
from lance_duck.scan.predicate.evaluate import evaluate
from lance_duck.scan.predicate.tree import HasAll, HasAny

NAN = math.nan
ITEMS = [[1.0, None], [1.0], [], None, [None], [NAN, 2.0], [0.0, 2.0, 2.0, 1.0], [-0.0]]
CON = duckdb.connect()


def ask(function: str, lists: pa.Array, values: list[Any], kind: str) -> list[bool | None]:
    written = ", ".join("NULL" if v is None else f"'{v}'" for v in values)
    CON.register("lists", pa.table({"l": lists}))
    return [a for (a,) in CON.execute(f"SELECT {function}(l, [{written}]::{kind}[]) FROM lists").fetchall()]


@pytest.mark.parametrize("type_", [pa.list_(pa.float64()), pa.large_list(pa.float64())], ids=str)
@pytest.mark.parametrize(
    "values", [[1.0], [3.0], [], [None], [1.0, None], [3.0, None], [NAN], [0.0], [-0.0, 2.0], [2.0, 2.0], [2.0, 1.0]]
)
def test_lists_of_any_length(type_: pa.DataType, values: list[Any]) -> None:
    whole = pa.array(ITEMS, type_)
    cut = pa.concat_arrays([whole, whole]).slice(2, 11)
    for lists in (whole, cut, whole.slice(0, 0)):
        for function, condition in (("list_has_any", HasAny), ("list_has_all", HasAll)):
            found = evaluate(condition(("l",), pa.array(values, pa.float64())), {"l": lists}, len(lists))
            assert found.to_pylist() == ask(function, lists, values, "DOUBLE")


def test_fixed_size_and_dictionary_lists_are_searched() -> None:
    fixed = pa.array([[1, 2], None, [3, 1], [2, None]], pa.list_(pa.int32(), 2)).slice(1)
    words = pa.ListArray.from_arrays([0, 2, 2, 3], pa.array(["x", "y", "x"]).dictionary_encode())
    for lists, values, kind in ((fixed, [1], "INTEGER"), (fixed, [3, 1], "INTEGER"), (words, ["x", "y"], "VARCHAR")):
        for function, condition in (("list_has_any", HasAny), ("list_has_all", HasAll)):
            found = evaluate(condition(("l",), pa.array(values)), {"l": lists}, len(lists))
            assert found.to_pylist() == ask(function, lists, values, kind)


def test_list_predicates_require_list_columns() -> None:
    with pytest.raises(InvalidInputError, match="need a list column"):
        evaluate(HasAny(("x",), pa.array([1])), {"x": pa.array([1])}, 1)
