"""The cost of a statement before DuckDB runs it, rule composition, and access to tables and variables."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sqlglot

import lance_duck as ld
from lance_duck.duck.run import order_by_search, prefetch_rows, semi_join_pushdown
from lance_duck.duck.run.nearest_table import NearestTable
from lance_duck.duck.tables.table import DuckTable
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE

VECTORS = np.random.default_rng(7).standard_normal((64, 4)).astype(np.float32)
ANYWHERE = pa.table({"id": [3, 4]})
FAR = "SELECT id FROM photos ORDER BY array_distance(vec, ?::FLOAT[4]) LIMIT 3"

STATEMENTS: list[tuple[str, list[Any]]] = [
    ("SELECT id, label FROM photos WHERE id = ?", [7]),
    ("SELECT id FROM photos WHERE id IN (3, ?) ORDER BY array_distance(vec, ?) LIMIT 2", [5, VECTORS[3].tolist()]),
    (f"SELECT id FROM photos ORDER BY vec <-> {VECTORS[9].tolist()}::FLOAT[4] LIMIT 2", []),
    (
        "SELECT id,$2 AS two FROM photos WHERE id IN ($1,$2) ORDER BY array_distance(vec,$3) LIMIT 2",
        [5, 2, VECTORS[3].tolist()],
    ),
    ("SELECT id FROM lance_vector_search('photos', 'vec', ?, k := 2)", [VECTORS[3].tolist()]),
    ("SELECT n, m.id FROM q, LATERAL (SELECT id FROM photos p ORDER BY array_distance(p.vec, q.v) LIMIT 1) m", []),
    ("SELECT p.id FROM photos p JOIN q ON p.id = q.n WHERE q.n > ?", [0]),
    ("SELECT count(*) FROM photos AT (VERSION => 1)", []),
    ("EXPLAIN SELECT id FROM photos JOIN q ON id = n", []),
    ("SELECT count(*) FROM photos; SELECT max(id) FROM photos;", []),
]
FOREIGN = [
    "SELECT 42",
    "SELECT n, count(*) FROM q GROUP BY n",
    "SELECT a.n FROM q a JOIN q b USING (n) WHERE n IN (SELECT n FROM q) ORDER BY array_distance(a.v, b.v) LIMIT 1",
    "EXPLAIN SELECT n FROM q",
    "INSERT INTO q SELECT n, v FROM q LIMIT 0",
]


@pytest.fixture
def con(tmp_path: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), 4)
    rows = pa.table({"id": pa.array(range(64), pa.int64()), "label": ["x", "y"] * 32, "vec": vectors})
    ld.write_dataset(rows, tmp_path / "photos.lance").create_scalar_index("id", "BTREE")
    con = connect(tmp_path)
    con.execute("CREATE TABLE memory.q AS SELECT id AS n, vec AS v FROM photos WHERE id < 5")
    return con


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of any size are worth it."""
    for name in ("LARGE", "PER_KEY", "SMALLER", "SELECTIVE"):
        monkeypatch.setattr(semi_join_pushdown, name, 0)
    monkeypatch.setattr(ld.LanceDataset, "index_estimate", lambda *_: 1)


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a text was cut into tokens, and parsed."""
    counts: Counter[str] = Counter()

    def counted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def count(*arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            return function(*arguments, **options)

        return count

    for module, name in ((duckdb, "tokenize"), (sqlglot, "parse")):
        monkeypatch.setattr(module, name, counted(name, getattr(module, name)))
    return counts


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize(("sql", "parameters"), STATEMENTS)
@pytest.mark.parametrize("mode", ["auto", "off"])
def test_a_statement_is_tokenized_and_parsed_at_most_once(
    con: ld.Connection, readings: Counter[str], sql: str, parameters: list[Any], mode: str
) -> None:
    con.execute(f"SET lance_nearest = {mode}")
    text = f"{sql} -- {mode}"
    con.execute(text, parameters or None).fetchall()
    assert readings["tokenize"] == 1
    assert readings["parse"] <= 1
    readings.clear()
    con.execute(text, parameters or None).fetchall()
    con.sql(text, params=parameters or None)
    assert not readings


@pytest.mark.parametrize("sql", FOREIGN)
def test_a_statement_without_lance_tables_is_not_parsed(con: ld.Connection, readings: Counter[str], sql: str) -> None:
    con.execute(f"{sql} -- once").fetchall()
    con.sql(f"{sql} -- later")
    con.executemany("INSERT INTO q VALUES (?, NULL)", [[1]])
    assert not readings


def test_a_long_statement_without_lance_tables_is_not_parsed(con: ld.Connection, readings: Counter[str]) -> None:
    rows = ", ".join(f"({i}, [1, 2, 3, {i}]::FLOAT[4])" for i in range(5000))
    con.execute(f"INSERT INTO q SELECT * FROM (VALUES {rows}) r WHERE 'photos' <> ''")
    assert con.execute("SELECT count(*) FROM q").fetchall() == [(5005,)]
    assert not readings


def test_statements_that_differ_only_in_vectors_are_parsed_once(con: ld.Connection, readings: Counter[str]) -> None:
    for i in range(3):
        sql = f"SELECT id FROM photos ORDER BY array_distance(vec, {VECTORS[i].tolist()}::FLOAT[4]) LIMIT 1"
        assert con.execute(sql).fetchall() == [(i,)]
    assert readings == {"tokenize": 1, "parse": 1}


@pytest.mark.usefixtures("eager")
def test_planner_rules_compose(con: ld.Connection, carried_out: Callable[[Callable[..., Any]], list[bool]]) -> None:
    lookups, searches = carried_out(prefetch_rows.run), carried_out(order_by_search.run)
    con.execute("SET lance_nearest = 'off'")
    sql = "SELECT ? AS a, id, ? AS b FROM photos WHERE id IN (?, ?) ORDER BY array_distance(vec, ?) LIMIT ?"
    assert con.execute(sql, ["a", "b", 9, 8, VECTORS[8].tolist(), 2]).fetchall() == [("a", 8, "b"), ("a", 9, "b")]
    named = "SELECT id, $a AS a FROM photos WHERE id >= $a AND id <= $b ORDER BY array_distance(vec, $v) LIMIT 2"
    assert con.execute(named, {"a": 20, "b": 21, "v": VECTORS[21].tolist()}).fetchall() == [(21, 20), (20, 20)]
    assert (lookups, searches) == ([True, True], [True, True])


def test_new_tables_are_found_by_name(con: ld.Connection, tmp_path: Path) -> None:
    with pytest.raises(duckdb.CatalogException):
        con.execute("SELECT count(*) FROM later")
    ld.write_dataset(pa.table({"id": [1, 2]}), tmp_path / "later.lance")
    assert con.execute("SELECT count(*) FROM later").fetchall() == [(2,)]
    assert con.execute("SELECT count(*) FROM later AT (VERSION => 1)").fetchall() == [(2,)]


def test_tables_of_a_relation_live_as_long_as_its_rows_are_needed(con: ld.Connection) -> None:
    relation = con.sql(FAR, params=[VECTORS[5].tolist()])
    derived = relation.filter("id = 5").project("id + 1")
    del relation
    gc.collect()
    con.execute("SELECT 1").fetchall()
    assert derived.fetchall() == [(6,)]
    del derived
    tables = [weakref.ref(each) for each in gc.get_objects() if issubclass(type(each), NearestTable)]
    con.execute("SELECT 1").fetchall()
    gc.collect()
    assert [table() for table in tables if table() is not None] == []


@pytest.mark.skipif(not SPEAKS_SOURCE, reason="DuckDB 1.x keeps the variables that it has read")
@pytest.mark.usefixtures("eager")
def test_tables_of_a_statement_are_freed_with_its_result(con: ld.Connection) -> None:
    gc.collect()
    before = {id(each) for each in gc.get_objects() if issubclass(type(each), DuckTable)}
    con.execute("SELECT p.id FROM photos p JOIN q ON p.id = q.n").fetchall()
    con.sql("SELECT p.id FROM photos p JOIN q ON p.id = q.n").fetchall()
    con.execute("EXPLAIN SELECT id FROM photos ORDER BY vec <-> [1, 2, 3, 4]::FLOAT[4] LIMIT 1").fetchall()
    con.execute("SELECT 1").fetchall()
    gc.collect()
    assert {id(each) for each in gc.get_objects() if issubclass(type(each), DuckTable)} <= before


def test_many_relations_stay_readable(con: ld.Connection) -> None:
    relations = [con.sql(FAR, params=[VECTORS[i % 64].tolist()]) for i in range(300)]
    assert [relation.fetchall()[0] for relation in relations] == [(i % 64,) for i in range(300)]


def test_the_module_of_the_caller_is_not_changed(con: ld.Connection) -> None:
    before = set(globals())
    con.execute(FAR, [VECTORS[5].tolist()]).fetchall()
    con.sql(FAR, params=[VECTORS[5].tolist()]).fetchall()
    con.execute("SELECT count(*) FROM lance_scan('photos')").fetchall()
    assert set(globals()) == before


@pytest.fixture
def elsewhere() -> ModuleType:
    """Return a module that wraps `execute` and has a local table."""
    module = ModuleType("elsewhere")
    module.__dict__["there"] = pa.table({"id": [5]})
    code = "def run(con, *arguments):\n    inner = there\n    return con.execute(*arguments).fetchall()"
    exec(code, module.__dict__)  # a module of another file
    return module


@pytest.mark.parametrize("sql", [FAR, "SELECT id FROM photos WHERE id = ?"])
def test_a_wrapper_around_execute_changes_nothing(
    con: ld.Connection,
    elsewhere: ModuleType,
    carried_out: Callable[[Callable[..., Any]], list[bool]],
    monkeypatch: pytest.MonkeyPatch,
    sql: str,
) -> None:
    monkeypatch.setattr(ld.LanceDataset, "index_estimate", lambda *_: 1)
    carried = [carried_out(run) for run in (order_by_search.run, prefetch_rows.run)]
    parameters = [VECTORS[5].tolist() if sql is FAR else 5]
    assert elsewhere.run(con, sql, parameters)[0] == (5,)
    assert sum(map(len, carried)) == 1


VARIABLES = ["here", "ANYWHERE", "there", "inner", "pandas_frame", "opened", "nowhere", "Here"]


@pytest.mark.parametrize("scan_all", [False, True])
@pytest.mark.parametrize("name", VARIABLES)
def test_caller_variables_are_resolved_as_in_duckdb(
    con: ld.Connection, elsewhere: ModuleType, tmp_path: Path, name: str, scan_all: bool
) -> None:
    here, pandas_frame = pa.table({"id": [1]}), pd.DataFrame({"id": [2]})  # noqa: F841
    opened = ld.dataset(tmp_path / "photos.lance").checkout_version(1)  # noqa: F841
    with duckdb.connect() as theirs:
        for each in (con, theirs):
            each.execute(f"SET python_scan_all_frames = {scan_all}")
        sql = f"SELECT sum(id) FROM {name}"
        ways: list[Callable[[Any], Any]] = [
            lambda each: elsewhere.run(each, sql),
            lambda each: each.execute(sql).fetchall(),
            lambda each: each.sql(sql).fetchall(),
        ]
        for way in ways:
            assert _outcome(lambda way=way: way(con)) == _outcome(lambda way=way: way(theirs))  # type: ignore[misc]
        assert _outcome(lambda: con.execute(sql).fetchall()) == _outcome(lambda: theirs.execute(sql).fetchall())
        direct = [_outcome(each.execute, sql) for each in (con, theirs)]
        assert direct[0] == direct[1]


def _outcome(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a call, or the class of its error."""
    try:
        result = function(*arguments)
    except duckdb.Error as error:
        return type(error)
    return result if isinstance(result, list) else result.fetchall()
