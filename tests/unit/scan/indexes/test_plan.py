"""Index selection for the parts of a predicate."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from unit.scan.fake_index import FakeKind, Indexes
from unit.scan.fake_table import LOGICAL, FakeSnapshot

from lance_duck.index.query import HasPrefix as StartsWithQuery
from lance_duck.scan.filters import TreeFilter, make_filter
from lance_duck.scan.indexes.plan import IndexLeaf, plan_index
from lance_duck.scan.indexes.query import query_of
from lance_duck.scan.predicate.tree import Compare, HasAll, HasAny, In, IsNull, Not, Predicate, StartsWith, any_of
from lance_duck.scan.projection import readable_schema


@pytest.fixture
def snapshot(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(LOGICAL, pa.float32(), "float")
    numbers = np.arange(10)
    table = pa.table(
        {
            "i": numbers,
            "n": pa.array(numbers, pa.int32()),
            "f": pa.array(numbers, pa.float64()),
            "g": pa.array(numbers, pa.float32()),
            "s": numbers.astype(str),
            "free": numbers,
            "st": pa.array([{"x": 1}] * 10),
        }
    )
    found = FakeSnapshot({0: table})
    made = Indexes(found)
    for path in ("i", "n", "f", "g", "s", "st.x"):
        made.add(path, [[0]])
    return found


def planned(snapshot: Any, condition: str | Predicate) -> str:
    found = make_filter(condition, readable_schema(snapshot.schema))
    assert isinstance(found, TreeFilter)
    return str(plan_index(found.predicate, snapshot.catalog))


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("i = 1", "i: value in (1)"),
        ("1 = i", "i: value in (1)"),
        ("i <> 1", "i: not (value in (1))"),
        ("NOT i = 1", "i: not (value in (1))"),
        ("NOT i <> 1", "i: value in (1)"),
        ("i < 1", "i: value < 1"),
        ("NOT i < 1", "i: 1 <= value"),
        ("NOT i >= 1", "i: value < 1"),
        ("i BETWEEN 1 AND 3", "i: 1 <= value <= 3"),
        ("i > 1 AND i < 5 AND i <= 5 AND i >= 1", "i: 1 < value < 5"),
        ("NOT i BETWEEN 1 AND 3", "(i: value < 1 OR i: 3 < value)"),
        ("i IN (1, 2)", "i: value in (1, 2)"),
        ("i IN (1, NULL)", "i: value in (1)"),
        ("i NOT IN (1, 2)", "i: not (value in (1, 2))"),
        ("i NOT IN (1, NULL)", "no row"),
        ("i = NULL", "no row"),
        ("NOT i = NULL", "no row"),
        ("i IS NULL", "i: value is null"),
        ("i IS NOT NULL", "i: not (value is null)"),
        ("i = 1 OR i = 2 OR i IN (5, 6)", "i: value in (1, 2, 5, 6)"),
        ("i IN (1, 2, 3) AND i > 1", "i: value in (2, 3)"),
        ("i IN (1, 2) AND i = 3", "no row"),
        ("i > 5 AND i < 5", "no row"),
        ("i > 5 AND i <= 5", "no row"),
        ("i >= 5 AND i <= 5", "i: 5 <= value <= 5"),
        ("i = 1 AND s = 'a'", "(i: value in (1) AND s: value in (a))"),
        ("i = 1 OR s = 'a'", "(i: value in (1) OR s: value in (a))"),
        ("NOT (i = 1 AND s = 'a')", "(i: not (value in (1)) OR s: not (value in (a)))"),
        ("NOT (i > 1 OR s = 'a')", "(i: value <= 1 AND s: not (value in (a)))"),
        ("i = 1 AND free = 2", "(i: value in (1) AND without an index: no index on free)"),
        ("i = 1 OR free = 2", "without an index: no index on free"),
        ("s LIKE 'ab%'", "s: value starts with ab"),
        ("s NOT LIKE 'ab%'", "s: not (value starts with ab)"),
        ("s LIKE 'a'", "s: value in (a)"),
        ("st.x = 1", "st.x: value in (1)"),
        ("f = 'nan'::DOUBLE", "f: value in (nan)"),
        ("f > 1.5", "f: 1.5 < value"),
        ("n < 5000000000", "n: value <= 2147483647"),
        ("n = 1.5", "no row"),
        ("n > 1.5", "n: 1 < value"),
        ("_rowid = 5", "_rowid: value in (5)"),
        ("_rowaddr IN (5, 7)", "_rowaddr: value in (5, 7)"),
        ("_rowaddr >= 5 AND _rowaddr < 9", "(_rowaddr: 5 <= value AND _rowaddr: value < 9)"),
        ("_rowid <> 5", "without an index: _rowid not (value in (5)) would return most of the table"),
        ("_rowoffset = 5", "without an index: no index on _rowoffset"),
    ],
)
def test_filters_are_planned_over_indexes(snapshot: Any, text: str, plan: str) -> None:
    assert planned(snapshot, text) == plan


@pytest.mark.parametrize(
    ("predicate", "plan"),
    [
        (Compare("=", ("n",), pa.scalar(5, pa.int64())), "n: value in (5)"),
        (Compare("=", ("n",), pa.scalar(2**40)), "without an index: the constant 1099511627776 has no equal in int32"),
        (Compare("<", ("g",), pa.scalar(0.1)), "without an index: the constant 0.1 has no equal in float"),
        (Compare("<", ("g",), pa.scalar(0.5)), "g: value < 0.5"),
        (Compare("=", ("g",), pa.scalar(float("nan"))), "g: value in (nan)"),
        (In(("i",), pa.array([], pa.int64())), "no row"),
        (Not(In(("i",), pa.array([], pa.int64()))), "i: not (value in ())"),
        (any_of(*(Compare("=", ("i",), pa.scalar(k)) for k in range(3))), "i: value in (0, 1, 2)"),
    ],
)
def test_constants_are_cast_exactly_or_not_at_all(snapshot: Any, predicate: Predicate, plan: str) -> None:
    assert planned(snapshot, predicate) == plan


@pytest.mark.parametrize(
    ("value", "type_", "fits"),
    [
        (pa.scalar(dt.datetime(2020, 1, 1), pa.timestamp("us")), pa.timestamp("s"), True),
        (pa.scalar(dt.datetime(2020, 1, 1, 0, 0, 0, 5), pa.timestamp("us")), pa.timestamp("ms"), False),
        (pa.scalar(2**62, pa.timestamp("s")), pa.timestamp("ns"), False),
        (pa.scalar(Decimal("1.50")), pa.decimal128(10, 1), True),
        (pa.scalar(Decimal("1.55")), pa.decimal128(10, 1), False),
        (pa.scalar("a"), pa.dictionary(pa.int8(), pa.string()), True),
        (pa.scalar("a"), pa.large_string(), True),
        (pa.scalar(1.1, pa.float32()), pa.float64(), True),
        (pa.scalar(1.1, pa.float32()), pa.float16(), False),
    ],
)
def test_units_scales_and_dictionaries(value: pa.Scalar, type_: pa.DataType, fits: bool) -> None:
    condition = Compare("=", ("x",), value)
    if fits:
        query: Any = query_of(condition, type_)
        assert query.values.type == (type_.value_type if pa.types.is_dictionary(type_) else type_)
    else:
        with pytest.raises(ValueError, match="has no equal"):
            query_of(condition, type_)


@pytest.mark.parametrize(
    ("condition", "shown", "denied"),
    [
        (HasAny(("l",), pa.array([1, None])), "list has any of 1", "not (list has any of 1)"),
        (HasAll(("l",), pa.array([1, 2])), "list has all of 2", "not (list has all of 2)"),
        (IsNull(("l",)), "value is null", "not (value is null)"),
    ],
)
def test_list_conditions_become_index_queries(condition: Predicate, shown: str, denied: str) -> None:
    type_ = pa.list_(pa.int32())
    assert str(query_of(condition, type_)) == shown
    assert str(query_of(condition, type_, true=False)) == denied


def test_a_null_prefix_matches_nothing() -> None:
    assert query_of(StartsWith(("s",), pa.scalar(None, pa.string())), pa.string()) is None


def test_exact_indexes_are_preferred(snapshot: Any) -> None:
    made = Indexes(snapshot)
    made.made = list(snapshot.catalog.indexes)
    made.add("free", [[0]], FakeKind("ZoneMap", slack=1), "zones")
    made.add("free", [[0]], FakeKind("BTree"), "tree")
    made.add("s", [[0]], FakeKind("BloomFilter", slack=1, refuses=(StartsWithQuery,)), "bloom")
    found = plan_index(Compare("=", ("free",), pa.scalar(1)), snapshot.catalog)
    assert isinstance(found, IndexLeaf)
    assert [index.name for index in found.indexes] == ["tree", "zones"]
    found = plan_index(StartsWith(("s",), pa.scalar("a")), snapshot.catalog)
    assert isinstance(found, IndexLeaf)
    assert [index.name for index in found.indexes] == ["s_idx"]
