"""Index scans return the same rows as full scans and DuckDB, for every combination of index kinds."""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.conditions import COLUMNS, TYPES, conditions
from properties.sample import CHOICES

import lance_duck as ld
from lance_duck.scan.predicate.tree import Predicate

KINDS = {
    "i": ("BTREE", "ZONEMAP"),
    "big": ("BTREE",),
    "u": ("BITMAP",),
    "f": ("BTREE", "BLOOMFILTER"),
    "g": ("ZONEMAP",),
    "s": ("BTREE", "BITMAP"),
    "b": ("BITMAP",),
    "d": ("BTREE",),
    "t": ("ZONEMAP", "BLOOMFILTER"),
    "m": ("BTREE",),
    "l": ("LABEL_LIST",),
    "n": ("BTREE",),
}
BATCH_ROWS = st.one_of(st.none(), st.integers(1, 50))
LISTS = [[], [None], [1], [1, 2], [2, None, 2], [3, 1, 2]]


def rows(start: int, count: int, seed: int) -> pa.Table:
    rng = random.Random(seed)
    columns = {
        name: pa.array([rng.choice([None, *CHOICES[name], *CHOICES[name]]) for _ in range(count)], TYPES[name])
        for name in COLUMNS
    }
    lists = pa.array([rng.choice([None, *LISTS]) for _ in range(count)], pa.list_(pa.int32()))
    return pa.table({"n": pa.array(range(start, start + count)), "l": lists, **columns})


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable"])
def indexed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    """Return segments over most fragments, with rows deleted and moved since, and later fragments."""
    uri = str(tmp_path_factory.mktemp("indexed") / "t.lance")
    dataset = ld.write_dataset(rows(0, 300, 1), uri, max_rows_per_file=80, enable_stable_row_ids=request.param)
    for column, kinds in KINDS.items():
        for kind in kinds:
            dataset.create_scalar_index(column, kind, name=f"{column}_{kind}", replace=False)
    dataset.delete("n % 9 = 2 OR n BETWEEN 100 AND 120")
    dataset.update({"i": "coalesce(i, 0) + 1", "s": "'bb'"}, where="n % 11 = 5")
    dataset.insert(rows(300, 60, 2))
    return dataset


@st.composite
def texts(draw: st.DrawFn) -> str:
    number = st.sampled_from(["1", "2", "3", "NULL", "7"])
    items = draw(st.lists(number, max_size=3))
    return draw(
        st.sampled_from(
            [
                f"list_contains(l, {draw(number)})",
                f"l && [{', '.join(items)}]::INTEGER[]",
                f"array_has_any(l, [{', '.join(i for i in items if i != 'NULL')}])",
                f"array_has_all(l, [{', '.join(i for i in items if i != 'NULL')}])",
                f"s LIKE '{draw(st.sampled_from(['b%', 'it_s', '%b', '', 'a', 'it%s%']))}'",
                f"starts_with(s, '{draw(st.sampled_from(['', 'b', 'ü']))}')",
                f"i > {draw(st.sampled_from(['0.5', '-1.5', '3000000000', '-3000000000']))}",
                f"u <= {draw(st.sampled_from(['300', '-1', '199.5']))}",
                f"n BETWEEN {draw(st.integers(0, 360))} AND {draw(st.integers(0, 360))}",
                "length(s) > 1",
                "n % 2 = 0",
                "l IS NULL",
            ]
        )
    )


def text_of(condition: tuple[str, Predicate]) -> str:
    return condition[0]


@st.composite
def mixes(draw: st.DrawFn) -> str:
    leaves = st.one_of(conditions().map(text_of), texts(), texts())
    parts = [f"({p})" for p in draw(st.lists(leaves, min_size=1, max_size=4))]
    parts = [f"NOT {p}" if draw(st.integers(0, 3)) == 0 else p for p in parts]
    return draw(st.sampled_from([" AND ", " OR "])).join(parts)


@settings(max_examples=max(20, settings.default.max_examples // 2))
@given(condition=mixes(), data=st.data())
def test_indexes_never_change_a_result(indexed: ld.LanceDataset, condition: str, data: st.DataObject) -> None:
    options = data.draw(
        st.sampled_from([{}, {"limit": 7, "offset": 3}, {"with_row_id": True, "with_row_address": True}])
    )
    plain = indexed.to_table(["n"], filter=condition, use_scalar_index=False, **options)
    assert indexed.to_table(["n"], filter=condition, **options) == plain
    assert indexed.scanner(["n"], filter=condition, **options).to_reader().read_all() == plain
    expected = ask(indexed, condition)
    assert sorted(indexed.to_table(["n"], filter=condition)["n"].to_pylist()) == expected
    assert indexed.count_rows(filter=condition) == len(expected)


@given(first=st.integers(0, 360), count=st.integers(0, 40), data=st.data())
def test_small_tables_and_streams_return_the_same_rows(
    indexed: ld.LanceDataset, first: int, count: int, data: st.DataObject
) -> None:
    columns = ["n", *data.draw(st.lists(st.sampled_from(["s", "_rowid", "_rowaddr", "_rowoffset"]), unique=True))]
    texts = [
        f"n = {first}",
        f"n = {first} AND i > 1",
        f"n BETWEEN {first} AND {first + count}",
        f"i = 2 AND n < {first}",
    ]
    scanner = indexed.scanner(columns, filter=data.draw(st.sampled_from(texts)), batch_size=data.draw(BATCH_ROWS))
    assert scanner.to_table() == scanner.to_reader().read_all()


@given(condition=conditions())
def test_expression_trees_return_the_same_rows_as_strings(
    indexed: ld.LanceDataset, condition: tuple[str, Predicate]
) -> None:
    found = indexed.to_table(["n"], filter=condition[1])
    assert found == indexed.to_table(["n"], filter=condition[1], use_scalar_index=False)


@given(data=st.data())
def test_arrow_expressions_keep_their_semantics(indexed: ld.LanceDataset, data: st.DataObject) -> None:
    leaves = []
    for _ in range(data.draw(st.integers(1, 3))):
        column = data.draw(st.sampled_from(["i", "f", "s", "u", "big"]))
        value = pa.scalar(data.draw(st.sampled_from(CHOICES[column])), TYPES[column])
        test = data.draw(st.sampled_from([pc.equal, pc.not_equal, pc.less, pc.greater_equal]))
        leaf = test(pc.field(column), value)
        leaves.append(~leaf if data.draw(st.booleans()) else leaf)
    expression = leaves[0]
    for leaf in leaves[1:]:
        expression = expression & leaf if data.draw(st.booleans()) else expression | leaf
    found = indexed.to_table(["n"], filter=expression)
    assert found == indexed.to_table(["n"], filter=expression, use_scalar_index=False)


@given(data=st.data())
def test_filters_on_row_ids_and_addresses_find_their_rows(indexed: ld.LanceDataset, data: st.DataObject) -> None:
    every = indexed.to_table(["n"], with_row_id=True, with_row_address=True)
    column = data.draw(st.sampled_from(["_rowid", "_rowaddr"]))
    names = data.draw(st.lists(st.sampled_from([*every[column].to_pylist(), 5, 2**40, (2 << 32) + 9]), min_size=1))
    text = f"{column} IN ({', '.join(map(str, names))})"
    if data.draw(st.booleans()):
        text += " AND n % 2 = 0"
    found = indexed.to_table(["n"], filter=text)
    assert found == indexed.to_table(["n"], filter=text, use_scalar_index=False)


def ask(dataset: ld.LanceDataset, condition: str) -> list[int]:
    """Return `n` of the rows that satisfy a condition in a native DuckDB table."""
    held = _HELD.get(dataset.uri)
    if held is None:
        held = _HELD[dataset.uri] = duckdb.connect()
        held.register("arrow", dataset.to_table())
        held.execute("CREATE MACRO array_has_any(a, b) AS list_has_any(a, b)")
        held.execute("CREATE MACRO array_has_all(a, b) AS list_has_all(a, b)")
        held.execute("CREATE TABLE rows_ AS FROM arrow")
    return [n for (n,) in held.execute(f"SELECT n FROM rows_ WHERE {condition} ORDER BY n").fetchall()]


_HELD: dict[str, duckdb.DuckDBPyConnection] = {}


def test_every_index_is_used(indexed: ld.LanceDataset) -> None:
    text = {
        "d": "d > DATE '2020-01-01'",
        "l": "list_contains(l, 1)",
        "b": "b",
        "s": "s = 'a'",
        "t": "t = TIMESTAMP '1970-01-01'",
    }
    for column in KINDS:
        plan = indexed.scanner(filter=text.get(column, f"{column} = 1")).explain_plan()
        assert f"ScalarIndexQuery: {column}" in plan, plan
