"""JOIN … NEAREST k BY is one search for all rows, and gives what DuckDB gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from sql.nearest_support import Pair, nearest_pair, vector_table

import lance_duck as ld
from lance_duck.duck.run import nearest_by
from lance_duck.duck.statement.edits import apply
from lance_duck.duck.statement.nearest_clause import nearest_clauses
from lance_duck.duck.statement.tokens import tokens_of

KNOWS_NEAREST = not duckdb.__version__.startswith("1.")
L2 = "array_distance(q.v, t.vec)"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """See `nearest_pair`; there are more tables of queries, some of them odd."""
    with nearest_pair(tmp_path_factory.mktemp("nearest")) as pair:
        for each in pair:
            each.execute("CREATE TABLE holes AS SELECT * FROM q UNION ALL SELECT 999, 0, NULL")
            each.execute("CREATE TABLE odd AS SELECT * FROM q UNION ALL SELECT 999, 0, ['nan'::FLOAT, 0, 0]::FLOAT[3]")
            each.execute("CREATE TABLE names AS SELECT range AS k, 'name ' || range AS name FROM range(3)")
        yield pair


@pytest.fixture
def joined(carried_out: Callable[[Callable[..., Any]], list[bool]]) -> list[bool]:
    return carried_out(nearest_by.run)


def expected(theirs: duckdb.DuckDBPyConnection, sql: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Return DuckDB's rows for native tables; DuckDB 1 uses LATERAL."""
    clauses = () if KNOWS_NEAREST else nearest_clauses(sql, tokens_of(sql))
    text = apply(sql, [edit for clause in clauses for edit in clause.as_lateral()])
    return theirs.execute(text, parameters).fetchall()


STATEMENTS = [
    f"SELECT n, id FROM q JOIN t NEAREST 3 BY DISTANCE {L2} ORDER BY ALL",
    f"SELECT n, id, {L2} FROM q INNER JOIN t APPROX NEAREST BY DISTANCE {L2} ORDER BY ALL",
    "SELECT * FROM q LEFT JOIN t a EXACT NEAREST 2 BY SIMILARITY array_cosine_similarity(a.vec, v) ORDER BY ALL",
    "SELECT n, id FROM q LEFT OUTER JOIN t NEAREST 4 BY SIMILARITY -array_distance(v, vec) WHERE l = 1 ORDER BY ALL",
    f"SELECT n, id FROM q JOIN t NEAREST 4 BY DISTANCE {L2} WHERE q.n < 5 AND t.label = 1 ORDER BY ALL",
    f"SELECT n, id FROM holes q LEFT JOIN t NEAREST 2 BY DISTANCE {L2} ORDER BY ALL",
    f"SELECT n, id FROM holes q JOIN t NEAREST 2 BY DISTANCE {L2} ORDER BY ALL",
    "SELECT lq.id, b.id FROM lq JOIN t AS b NEAREST 2 BY SIMILARITY array_inner_product(lq.vec, b.vec) ORDER BY ALL",
    "SELECT a.id, b.id FROM t a JOIN t b NEAREST 2 BY DISTANCE array_distance(a.vec, b.vec) "
    "WHERE a.id < 9 ORDER BY ALL",
    "SELECT n, t.id FROM q JOIN (SELECT * FROM t WHERE label = 1 AND id > 50) t "
    f"NEAREST 2 BY DISTANCE {L2} ORDER BY ALL",
    f"SELECT n, t.* FROM q JOIN (SELECT vec, id FROM t) t NEAREST 2 BY DISTANCE {L2} ORDER BY ALL",
    f"SELECT n, name FROM q JOIN t NEAREST 2 BY DISTANCE {L2} JOIN names ON names.k = t.label ORDER BY ALL",
    f"SELECT n, name FROM names JOIN q ON k = q.l JOIN t NEAREST 2 BY DISTANCE {L2} WHERE k = 1 ORDER BY ALL",
    f"SELECT n, t.id, u.id FROM q JOIN t NEAREST 2 BY DISTANCE {L2} "
    "LEFT JOIN t u EXACT NEAREST BY SIMILARITY array_cosine_similarity(q.v, u.vec) ORDER BY ALL",
    f"WITH r AS (SELECT n, id FROM q JOIN t NEAREST 2 BY DISTANCE {L2}) "
    "SELECT l, r.* FROM q JOIN r USING (n) ORDER BY ALL",
    f"SELECT k, (SELECT sum(id) FROM q JOIN t NEAREST 2 BY DISTANCE {L2} WHERE l = k) AS s FROM names ORDER BY ALL",
    f"SELECT label, count(*) FROM q JOIN t NEAREST 5 BY DISTANCE {L2} GROUP BY ALL ORDER BY ALL",
    f"FROM q JOIN t NEAREST BY DISTANCE {L2} SELECT n, id ORDER BY ALL",
    f"SELECT n, id FROM q JOIN t NEAREST BY DISTANCE {L2} UNION ALL SELECT 1, 2 ORDER BY ALL",
]


@pytest.mark.parametrize("sql", STATEMENTS)
@pytest.mark.parametrize("mode", ["auto", "exact", "off"])
def test_results_equal_those_of_duckdb(pair: tuple[Any, Any], joined: list[bool], sql: str, mode: str) -> None:
    ours, theirs = pair
    ours.execute(f"SET lance_nearest = {mode}")
    try:
        found = ours.execute(sql)
        assert found.fetchall() == expected(theirs, sql)
        assert joined == [mode != "off"]
        assert [column[0] for column in found.description] == [column[0] for column in theirs.description]
        assert ours.sql(sql).fetchall() == expected(theirs, sql)
    finally:
        ours.execute("RESET lance_nearest")


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT n, id FROM odd q JOIN t NEAREST 2 BY DISTANCE {L2} WHERE n < 999 OR true ORDER BY n, id",
        "SELECT n, id FROM q JOIN small NEAREST 9 BY DISTANCE array_distance(q.v, small.vec) ORDER BY ALL",
        f"SELECT n, id FROM q JOIN t NEAREST 2 BY DISTANCE {L2} + t.id ORDER BY ALL",
        f"SELECT k, (SELECT sum(id) FROM q JOIN t NEAREST 2 BY DISTANCE {L2} WHERE l = k) FROM names ORDER BY ALL",
        "SELECT n, id FROM q JOIN t NEAREST 2 BY DISTANCE n - id WHERE t.id > 0 ORDER BY ALL",
        f"SELECT n, id FROM (SELECT * FROM q WHERE l = 1) q JOIN t NEAREST 2 BY DISTANCE {L2} ORDER BY ALL",
        f"SELECT n, count(*) FROM q JOIN t NEAREST 600 BY DISTANCE {L2} GROUP BY n ORDER BY n",
        f"SELECT n, t.id, u.id FROM q JOIN t NEAREST BY DISTANCE {L2} "
        "JOIN t u NEAREST 2 BY DISTANCE array_distance(t.vec, u.vec) ORDER BY ALL",
    ],
)
def test_duckdb_runs_joins_that_a_search_cannot_answer(pair: tuple[Any, Any], sql: str) -> None:
    ours, theirs = pair
    if "odd" in sql:  # any rows will do for NaN
        sql = sql.replace("SELECT n, id", "SELECT n, id * (n < 999)::INT").replace("ORDER BY n, id", "ORDER BY ALL")
    assert ours.execute(sql).fetchall() == expected(theirs, sql)
    if KNOWS_NEAREST:
        assert ours.execute(sql).description == theirs.execute(sql).description


def test_equal_distances_return_exactly_k_rows(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    vectors = pa.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], None] * 5, pa.list_(pa.float32(), 2))
    ld.write_dataset(pa.table({"id": range(25), "v": vectors}), tmp_path / "t.lance")
    con = connect(tmp_path)
    con.execute("CREATE TABLE q AS SELECT [0, 0]::FLOAT[2] AS v")
    sql = "SELECT array_distance(q.v, t.v) AS d FROM q JOIN t NEAREST 8 BY DISTANCE array_distance(q.v, t.v) ORDER BY d"
    assert con.execute(sql).fetchall() == [(0.0,)] * 5 + [(1.0,)] * 3
    sql = "SELECT count(*), count(DISTINCT id) FROM q JOIN t NEAREST 25 BY DISTANCE array_distance(q.v, t.v)"
    assert con.execute(sql).fetchall() == [(20, 20)]


def test_parameters_are_accepted_wherever_values_are(pair: tuple[Any, Any], joined: list[bool]) -> None:
    ours, theirs = pair
    sql = (
        "SELECT ?, n, t.id FROM q JOIN (SELECT * FROM t WHERE label = ?) t NEAREST 3 BY DISTANCE "
        f"{L2} WHERE q.n < ? AND t.id > ? ORDER BY ALL"
    )
    values = ["x", 1, 6, 20]
    assert ours.execute(sql, values).fetchall() == expected(theirs, sql, values)
    named = sql.replace("?", "{}").format("$a", "$b", "$c", "$d")
    by_name = dict(zip("abcd", values, strict=True))
    assert ours.execute(named, by_name).fetchall() == expected(theirs, named, by_name)
    assert joined == [True, True]


def test_explain_shows_the_search(pair: tuple[Any, Any]) -> None:
    ours, _ = pair
    sql = f"EXPLAIN SELECT n, id FROM q JOIN t NEAREST 3 BY DISTANCE {L2} WHERE q.n < 5"
    text = ours.execute(sql).fetchall()[-1][1]
    assert "to 5 queries, metric l2" in text
    assert "VectorIndexQuery" in text
    text = ours.execute(sql.replace("NEAREST", "EXACT NEAREST")).fetchall()[-1][1]
    assert "without an index" in text


def test_paths_versions_and_new_tables(pair: tuple[Any, Any], tmp_path: Path) -> None:
    ours, theirs = pair
    ld.write_dataset(vector_table(40, 4), tmp_path / "x.lance")
    sql = (
        f"SELECT n, x.id FROM q JOIN '{tmp_path}/x.lance' NEAREST 2 BY DISTANCE array_distance(q.v, x.vec) ORDER BY ALL"
    )
    theirs.register("x", vector_table(40, 4))
    plain = "SELECT n, x.id FROM q JOIN x NEAREST 2 BY DISTANCE array_distance(q.v, x.vec) ORDER BY ALL"
    assert ours.execute(sql).fetchall() == expected(theirs, plain)
    sql = f"SELECT n, t.id FROM q JOIN t AT (VERSION => 1) NEAREST 2 BY DISTANCE {L2} ORDER BY ALL"
    plain = f"SELECT n, t.id FROM q JOIN (SELECT * FROM t WHERE id < 400) t NEAREST 2 BY DISTANCE {L2} ORDER BY ALL"
    assert ours.execute(sql).fetchall() == expected(theirs, plain)
    ours.execute(f"CREATE TEMP TABLE made AS SELECT n, t.id FROM q JOIN t NEAREST 2 BY DISTANCE {L2}")
    assert ours.execute("SELECT count(*) FROM made").fetchall() == [(24,)]
    ours.execute("DROP TABLE made")


def test_the_join_reads_changes_of_the_transaction(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    rows = vector_table(30, 5)
    ld.write_dataset(rows, tmp_path / "t.lance")
    con = connect(tmp_path)
    con.execute("CREATE TABLE q AS SELECT id AS n, vec AS v FROM rows WHERE id < 5")
    sql = f"SELECT n, id FROM q JOIN t NEAREST BY DISTANCE {L2} ORDER BY ALL"
    assert con.execute(sql).fetchall() == [(i, i) for i in range(5)]
    con.execute("BEGIN")
    con.execute("DELETE FROM t WHERE id = 2")
    found = con.execute(sql).fetchall()
    con.execute("ROLLBACK")
    assert [n for n, _ in found] == list(range(5))
    assert (2, 2) not in found
    assert con.execute(sql).fetchall() == [(i, i) for i in range(5)]


@pytest.mark.parametrize("kind", ["RIGHT", "FULL", "SEMI", "CROSS"])
def test_unsupported_join_kinds_raise_the_duckdb_error(pair: tuple[Any, Any], kind: str) -> None:
    with pytest.raises(duckdb.ParserException):
        pair[0].execute(f"SELECT * FROM q {kind} JOIN t NEAREST 2 BY DISTANCE {L2}")


MEASURES = {
    "DISTANCE": [
        "array_distance({a}, {b})",
        "array_cosine_distance({b}, {a})",
        "array_negative_inner_product({a}, {b})",
    ],
    "SIMILARITY": ["-array_distance({b}, {a})", "array_cosine_similarity({a}, {b})", "array_inner_product({a}, {b})"],
}


def _random_statement(rng: np.random.Generator) -> str:
    def choose(*texts: str) -> str:
        return texts[int(rng.integers(len(texts)))]

    def clause(vector: str, column: str) -> str:
        by = choose("DISTANCE", "SIMILARITY")
        measure = choose(*MEASURES[by]).format(a=vector, b=column)
        return f"{choose('', 'APPROX ', 'EXACT ')}NEAREST {choose('', '1', '2', '7')} BY {by} {measure}"

    other = choose("q", "holes AS q", "q AS q")
    table = choose(
        "t", "t a", "t AS a", "(SELECT * FROM t WHERE label <> 1) a", "(SELECT id, vec FROM t WHERE id < 90) AS a"
    )
    alias = "t" if table == "t" else "a"
    sql = f"FROM {other} {choose('', 'LEFT ')}JOIN {table} {clause(choose('q.v', 'v'), choose(alias + '.vec', 'vec'))}"
    if rng.random() < 0.4:
        sql += f" {choose('', 'LEFT ')}JOIN t u {clause('q.v', 'u.vec')}"
    if rng.random() < 0.3:
        sql += " JOIN names ON names.k = q.l"
    if rng.random() < 0.6:
        sql += f" WHERE {choose('q.n < 7', f'{alias}.id > 40', 'q.l = 1 AND q.n <> 3', 'n IN (1, 2, 999)')}"
    select = choose("*", "q.n, " + alias + ".id", "count(*)", f"{alias}.*, q.n")
    return choose(f"SELECT {select} {sql} ORDER BY ALL", f"WITH r AS (SELECT {select} {sql}) FROM r ORDER BY ALL")


@pytest.mark.parametrize("seed", range(60))
def test_random_statements_equal_those_of_duckdb(pair: tuple[Any, Any], joined: list[bool], seed: int) -> None:
    ours, theirs = pair
    sql = _random_statement(np.random.default_rng(seed))
    assert ours.execute(sql).fetchall() == expected(theirs, sql), sql
    assert joined, sql


JOINS = [
    "SELECT q.n AS id, t.s FROM q JOIN t NEAREST 1 BY DISTANCE array_distance(t.v, q.v)",
    "WITH w AS (FROM q) SELECT w.n AS id, t.s FROM w JOIN t NEAREST 1 BY DISTANCE array_distance(t.v, w.v)",
]


@pytest.fixture
def changed(tmp_path: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    """`t` with vectors named a and b, and `q` with a query near to each."""
    for name, columns in (("t", {"id": [1, 2], "s": ["a", "b"]}), ("q", {"n": [8, 9]})):
        vectors = pa.FixedSizeListArray.from_arrays(pa.array([0, 0, 5, 5], pa.float32()), 2)
        ld.write_dataset(pa.table({**columns, "v": vectors}), tmp_path / f"{name}.lance")
    return connect(tmp_path)


@pytest.mark.parametrize("sql", JOINS)
def test_a_prepared_join_reads_current_rows(changed: ld.Connection, sql: str) -> None:
    changed.execute(f"PREPARE p AS {sql}")
    assert sorted(changed.execute("EXECUTE p").fetchall()) == [(8, "a"), (9, "b")]
    changed.execute("UPDATE t SET s = 'z' WHERE id = 2")
    assert sorted(changed.execute("EXECUTE p").fetchall()) == [(8, "a"), (9, "z")]


@pytest.mark.parametrize("sql", JOINS)
@pytest.mark.parametrize(
    ("change", "left"),
    [
        ("INSERT INTO t (id, s) {sql}", [(1, "a"), (2, "b"), (8, "a"), (9, "b")]),
        ("PREPARE c AS INSERT INTO t (id, s) {sql}; EXECUTE c", [(1, "a"), (2, "b"), (8, "a"), (9, "b")]),
        ("UPDATE t SET id = x.id FROM ({sql}) AS x WHERE x.s = t.s", [(8, "a"), (9, "b")]),
        ("DELETE FROM t USING ({sql}) AS x WHERE x.s = t.s AND x.id = 8", [(2, "b")]),
        ("MERGE INTO t USING ({sql}) AS x ON x.s = t.s WHEN MATCHED AND x.id = 9 THEN DELETE", [(1, "a")]),
        ("CREATE OR REPLACE TABLE lance.t AS SELECT * FROM ({sql})", [(8, "a"), (9, "b")]),
    ],
)
def test_changes_can_use_nearest_joins(
    changed: ld.Connection, sql: str, change: str, left: list[tuple[int, str]]
) -> None:
    changed.execute(change.format(sql=sql))
    assert changed.execute("SELECT id, s FROM t ORDER BY id").fetchall() == left
