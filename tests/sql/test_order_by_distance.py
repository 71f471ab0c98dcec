"""ORDER BY distance LIMIT k through `connect` equals DuckDB on a native table."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.rules import order_by_distance
from lance_duck.duck.run import order_by_search
from lance_duck.duck.statement.lifted import LiftedText
from lance_duck.duck.statement.text import Statement

STATEMENTS = 3000 if os.environ.get("LANCE_DUCK_PROFILE") == "full" else 120
DIM = 3
NAN = float("nan")
TABLES = ("plain", "indexed", "odd", "double", "tiny")


def _table(vectors: list[list[float] | None], seed: int, type_: pa.DataType | None = None) -> pa.Table:
    rng = random.Random(seed)
    rows = len(vectors)
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "label": pa.array([rng.choice([0, 1, 2, None]) for _ in range(rows)], pa.int32()),
            "name": pa.array([rng.choice(["a", "b", None]) for _ in range(rows)], pa.string()),
            "vec": pa.array(vectors, pa.list_(type_ or pa.float32(), DIM)),
        }
    )


def _data() -> dict[str, pa.Table]:
    rng = np.random.default_rng(3)
    grid = rng.integers(-2, 3, (400, DIM)).astype(np.float32)
    smooth = rng.standard_normal((600, DIM)).astype(np.float32)
    odd: list[list[float] | None] = [row.tolist() for row in grid[:120]]
    odd[3], odd[50], odd[7], odd[60] = None, None, [0.0] * DIM, [0.0] * DIM
    odd[9], odd[70], odd[11] = [NAN, 1.0, 2.0], [math.inf, 0.0, 1.0], [-math.inf, 1.0, 1.0]
    odd[13], odd[14] = [1e30, 1e30, 0.0], [1e-30, 0.0, 1e-30]
    some: list[list[float] | None] = [row.tolist() for row in grid]
    for i in range(0, 400, 37):
        some[i] = None
    nonzero = [row if row is None or any(row) else [1.0, 1.0, 1.0] for row in some]
    return {
        "plain": _table(nonzero, 1),
        "indexed": _table(smooth.tolist(), 2),
        "odd": _table(odd, 3),
        "double": _table(rng.standard_normal((200, DIM)).tolist(), 4, pa.float64()),
        "tiny": _table([[1.0, 2.0, 3.0], None], 5),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ordered")
    for name, table in _data().items():
        dataset = ld.write_dataset(table, path / f"{name}.lance", max_rows_per_file=150)
        if name == "indexed":
            dataset.delete("id >= 500")
            dataset.create_index("vec", "IVF_FLAT", num_partitions=4)
            dataset.create_scalar_index("label", "BITMAP")
            dataset.insert(table[500:])
    return path


@pytest.fixture(scope="module")
def pair(folder: Path) -> Iterator[tuple[ld.Connection, duckdb.DuckDBPyConnection]]:
    """Lance tables, and the same as tables of DuckDB."""
    with ld.connect(folder) as ours, duckdb.connect() as theirs:
        for name, table in _data().items():
            theirs.register("source", table)
            theirs.execute(f"CREATE TABLE {name} AS FROM source")
            theirs.unregister("source")
        for connection in (ours, theirs):
            connection.execute("CREATE TABLE q AS SELECT range AS n, [range, 1.5, -1]::FLOAT[3] AS v FROM range(3)")
        yield ours, theirs


@pytest.fixture
def con(pair: tuple[ld.Connection, duckdb.DuckDBPyConnection]) -> Iterator[ld.Connection]:
    yield pair[0]
    pair[0].execute("RESET lance_nearest")
    pair[0].execute("RESET lance_nprobes")


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the row counts of tables that replace another in the statement."""
    seen: list[int] = []
    candidates = order_by_search.candidates

    def noted(*arguments: Any) -> pa.Table:
        found = candidates(*arguments)
        seen.append(found.num_rows)
        return found

    monkeypatch.setattr(order_by_search, "candidates", noted)
    return seen


def same(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> bool:
    return repr(found) == repr(expected)


MEASURES = [
    "array_distance(vec, {a}) {o}",
    "list_distance(vec, {l}) {o}",
    "vec <-> {l} {o}",
    "array_cosine_distance({a}, vec) {o}",
    "vec <=> {l}",
    "1 - array_cosine_similarity(vec, {a})",
    "array_cosine_similarity(vec, {a}) DESC",
    "array_inner_product(vec, {a}) DESC",
    "array_negative_inner_product(vec, {a})",
    "-list_dot_product(vec, {l})",
    "list_inner_product({l}, vec) DESC NULLS LAST",
]
CONDITIONS = [
    "",
    "",
    "WHERE label = 1",
    "WHERE label IN (0, 2) AND name = 'a'",
    "WHERE name IS NULL OR id < 40",
    "WHERE id BETWEEN 20 AND {n}",
    "WHERE NOT (label = 1)",
    "WHERE id = 5",
]


def _statement(rng: random.Random, table: str) -> str:
    vector = rng.choice(["[1, 2, -1]", "[0.5, 0.25, 2.5]", "[0, 0, 1]", "[1e-3, 7.5, -2]", "[0, 0, 0]"])
    kind = "DOUBLE" if table == "double" else "FLOAT"
    array = rng.choice([f"{vector}::{kind}[3]", f"CAST({vector} AS {kind}[3])", "(SELECT v FROM q WHERE n = 2)"])
    measure = rng.choice(MEASURES).format(a=array, l=f"{vector}::{kind}[]", o=rng.choice(["", "ASC"]))
    where = rng.choice(CONDITIONS).format(n=rng.randrange(30, 300))
    key = measure.removesuffix(" NULLS LAST").removesuffix(" ASC").removesuffix(" DESC").strip()
    tail = measure.strip()[len(key) :]
    columns = rng.choice(["id", "*", "t.id, label", f"id, {key} AS d", "id, vec"])
    order = f"d{tail}" if "AS d" in columns and rng.random() < 0.5 else measure
    limit = rng.choice(["LIMIT 1", "LIMIT 5", "LIMIT 7 OFFSET 3", "LIMIT 300", "LIMIT 0"])
    return f"SELECT {columns} FROM {table} AS t {where} ORDER BY {order}, id {limit}"


@pytest.mark.parametrize("mode", ["exact", "auto", "off"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_equal_those_of_duckdb(
    con: ld.Connection, pair: tuple[Any, duckdb.DuckDBPyConnection], mode: str, searches: list[int]
) -> None:
    con.execute(f"SET lance_nearest = {mode}")
    con.execute("SET lance_nprobes = 1000")  # all partitions, so that the result is exact
    rng = random.Random(mode)
    for i in range(STATEMENTS):
        sql = _statement(rng, TABLES[i % len(TABLES)])
        try:
            expected = pair[1].execute(sql).fetchall()
        except duckdb.InvalidInputException:
            continue  # lists with null vectors are always rejected
        method = con.execute if i % 4 else con.sql
        found = method(sql).fetchall()
        assert same(found, expected), sql
    assert bool(searches) == (mode != "off")


def test_parameters_of_all_kinds(con: ld.Connection, pair: tuple[Any, Any], searches: list[int]) -> None:
    vector = [0.5, -1.0, 2.0]
    cases: list[tuple[str, Any, Any]] = [
        ("SELECT id FROM indexed ORDER BY array_distance(vec, ?::FLOAT[3]), id LIMIT ?", [vector, 4], None),
        ("SELECT id FROM indexed WHERE label = ? ORDER BY vec <-> ?, id LIMIT 3", [1, vector], None),
        (
            "SELECT id FROM indexed WHERE id > $low ORDER BY array_distance(vec, $v::FLOAT[3]), id LIMIT $k OFFSET $o",
            {"v": vector, "k": 2, "o": 3, "low": 10},
            None,
        ),
        ("SELECT id FROM plain ORDER BY array_distance(vec, (SELECT v FROM q WHERE n = ?)), id LIMIT ?", [1, 4], None),
        (
            "SELECT id FROM indexed ORDER BY array_distance(vec, ?), id LIMIT 3",
            [np.array(vector, np.float32)],
            "SELECT id FROM indexed ORDER BY array_distance(vec, ?::FLOAT[3]), id LIMIT 3",
        ),
        (
            "SELECT id FROM double ORDER BY array_distance(vec, $v), id LIMIT 3",
            {"v": vector},
            "SELECT id FROM double ORDER BY array_distance(vec, $v::DOUBLE[3]), id LIMIT 3",
        ),
    ]
    con.execute("SET lance_nprobes = 1000")
    for n, (sql, parameters, theirs) in enumerate(cases, 1):
        expected = pair[1].execute(theirs or sql, parameters).fetchall()
        assert con.execute(sql, parameters).fetchall() == expected, sql
        assert len(searches) == n
        if "q WHERE" not in sql:
            assert con.sql(sql, params=parameters).fetchall() == expected


def test_a_bare_list_is_cast_to_an_array_without_an_index_too(con: ld.Connection) -> None:
    sql = "SELECT id FROM plain ORDER BY array_distance(vec, ?), id LIMIT 2"
    expected = con.execute(sql, [[1.0, 1.0, 1.0]]).fetchall()
    con.execute("SET lance_nearest = 'off'")
    assert con.execute(sql, [[1.0, 1.0, 1.0]]).fetchall() == expected
    assert (
        con.execute("SELECT id FROM plain ORDER BY array_distance(vec, [1, 1.0, 1]), id LIMIT 2").fetchall() == expected
    )


def test_search_settings_are_applied(con: ld.Connection, folder: Path) -> None:
    sql = "SELECT id FROM indexed ORDER BY array_distance(vec, [0.1, 0.2, 0.3]) LIMIT 5"
    plan = "EXPLAIN " + sql
    assert "VectorIndexQuery: vec_idx" in con.execute(plan).fetchall()[-1][1]
    assert "target recall 0.95" in con.execute(plan).fetchall()[-1][1]
    con.execute("SET lance_recall = 0.8")
    assert "target recall 0.8" in con.execute(plan).fetchall()[-1][1]
    con.execute("SET lance_nprobes = 3")
    assert "partitions probed: 3" in con.execute(plan).fetchall()[-1][1]
    con.execute("set LANCE_NEAREST to 'exact'")
    assert "use_index is false" in con.execute(plan).fetchall()[-1][1]
    assert "returned:" in con.execute(f"EXPLAIN ANALYZE {sql}").fetchall()[-1][1]
    con.execute("SET lance_nearest = off")
    assert "LanceNearest" not in con.execute(plan).fetchall()[-1][1]
    con.execute("RESET lance_nearest")
    assert "VectorIndexQuery" in con.cursor().execute(plan).fetchall()[-1][1]
    with ld.connect(folder, config={"lance_nearest": "exact", "threads": 1}) as other:
        assert "use_index is false" in other.execute(plan).fetchall()[-1][1]


def test_a_row_used_as_a_value_has_all_columns(con: ld.Connection, pair: tuple[Any, Any], searches: list[int]) -> None:
    for sql in (
        "SELECT plain FROM plain WHERE id < 60 ORDER BY array_distance(vec, [1, 2, 3]::FLOAT[3]), id LIMIT 2",
        "SELECT to_json(X) FROM plain AS x ORDER BY array_distance(x.vec, [1, 2, 3]::FLOAT[3]), id LIMIT 2",
    ):
        assert con.execute(sql).fetchall() == pair[1].execute(sql).fetchall()
    assert searches


STRANGE = {
    "infinite": [[math.inf, 1.0, 0.0], [-math.inf, 0.0, 1.0], [math.inf, -math.inf, 0.0], [1.0, 1.0, math.inf]],
    "long": [[2e38, 2e38, -3e38], [-3e38, 1e38, 3e38], [1e38, 1e38, 1e38], [0.0, 0.0, 3e38]],
    "nan": [[NAN, 1.0, 2.0], [NAN, math.inf, 1.0]],
}


@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_unindexable_vectors_are_ordered_as_in_duckdb(
    tmp_path: Path, connect: Callable[..., ld.Connection], searches: list[int], strange: str
) -> None:
    values = np.random.default_rng(5).standard_normal((300, DIM)).astype(np.float32)
    values[:8] = np.array(STRANGE[strange] * 4, np.float32)[:8]
    table = _table(values.tolist(), 5)
    dataset = ld.write_dataset(table, tmp_path / "t.lance")
    dataset.create_index("vec", "IVF_FLAT", num_partitions=2, metric="dot")
    con = connect({"t": dataset})
    con.execute("SET lance_nprobes = 1000")
    with duckdb.connect() as other:
        other.register("t", table)
        for vector in ("[1, 2, 3]", "[-1, 0, 2]"):
            for order in ("array_negative_inner_product(vec, {}) ASC", "array_inner_product(vec, {}) DESC"):
                for rows in (1, 12):
                    key = order.format(f"{vector}::FLOAT[3]")
                    sql = f"SELECT id FROM t ORDER BY {key}, id LIMIT {rows}"
                    assert con.execute(sql).fetchall() == other.execute(sql).fetchall(), sql
    assert len(searches) == (4 if strange == "nan" else 0)  # a product with NaN is never the smallest


NEAREST = "SELECT id, label FROM plain WHERE id > ? ORDER BY array_distance(vec, ?), id LIMIT 5"
PARTS: list[tuple[str, int]] = [
    (f"SELECT n.id, q.n FROM ({NEAREST}) n LEFT JOIN q ON n.label = q.n ORDER BY ALL", 1),
    (
        f"WITH near AS ({NEAREST}), far AS ({NEAREST.replace('plain', 'indexed')}) "
        "SELECT * FROM near UNION ALL SELECT * FROM far ORDER BY ALL",
        2,
    ),
    (f"SELECT count(*), min(id) FROM odd WHERE id IN (SELECT id FROM ({NEAREST}))", 1),
    (f"SELECT 1, 1 UNION ALL ({NEAREST}) UNION ALL ({NEAREST}) ORDER BY ALL LIMIT 7", 2),
    (f"WITH q AS (SELECT 7 AS n) SELECT n.*, q.n FROM ({NEAREST}) n, q ORDER BY ALL", 1),
    (f"WITH x AS (SELECT 1) {NEAREST}", 1),
    (
        "WITH q AS (SELECT [9, 9, 9]::FLOAT[3] AS v, ? AS n) SELECT id, ?::VARCHAR AS s FROM plain "
        "ORDER BY array_distance(vec, (SELECT v FROM q)), id LIMIT 3",
        0,
    ),
    (
        "WITH plain AS (SELECT * FROM tiny WHERE id >= ?) "
        "SELECT id FROM plain ORDER BY array_distance(vec, ?), id LIMIT 2",
        0,
    ),
    (
        "SELECT n, (SELECT id FROM plain p WHERE label = q.n AND id > ? ORDER BY array_distance(vec, ?), id LIMIT 1) "
        "FROM q ORDER BY ALL",
        0,
    ),
]


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize(("sql", "count"), PARTS)
def test_subqueries_are_answered_by_a_search(
    pair: tuple[ld.Connection, Any],
    carried_out: Callable[[Callable[..., Any]], list[bool]],
    sql: str,
    count: int,
    later: bool,
) -> None:
    carried = carried_out(order_by_search.run)
    ours, theirs = pair
    parameters: list[Any] = [3, [0.5, -1.0, 2.0]] * (sql.count("?") // 2)
    text = sql.replace("vec, ?", "vec, ?::FLOAT[3]")
    expected = theirs.execute(text, parameters).fetchall()
    answer = ours.sql(text, params=parameters) if later else ours.execute(text, parameters)
    assert same(answer.fetchall(), expected)
    assert carried[:count] == [True] * count
    assert sum(carried) == count


@pytest.mark.parametrize(
    "sql", ["SET lance_nearest = maybe", "SET lance_nprobes = 0", "SET lance_ef = 'x'", "SET lance_nope = 1"]
)
def test_invalid_settings_are_rejected(con: ld.Connection, sql: str) -> None:
    with pytest.raises(ld.InvalidInputError):
        con.execute(sql)


def test_relations_search_when_they_are_read(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    dataset = ld.write_dataset(_table([[5.0, 0.0, 0.0], [9.0, 0.0, 0.0]], 0), tmp_path / "t.lance")
    con = connect(tmp_path)
    relation = con.sql("SELECT vec[1] AS x FROM t ORDER BY array_distance(vec, [0, 0, 0]::FLOAT[3]) LIMIT 1")
    prepared = "SELECT vec[1] FROM t ORDER BY array_distance(vec, ?) LIMIT 1"
    assert relation.filter("x > 0").fetchall() == [(5.0,)]
    assert con.execute(prepared, [[0.0] * 3]).fetchall() == [(5.0,)]
    dataset.insert(_table([[2.0, 0.0, 0.0]], 0))
    assert con.execute(prepared, [[0.0] * 3]).fetchall() == [(2.0,)]
    con.execute("BEGIN")
    assert con.execute(prepared, [[0.0] * 3]).fetchall() == [(2.0,)]
    con.execute("ROLLBACK")


def test_redefined_names_and_unusual_null_orders_are_not_searched(
    folder: Path, connect: Callable[..., ld.Connection], searches: list[int]
) -> None:
    con = connect(folder)
    sql = "SELECT id FROM plain ORDER BY array_distance(vec, [1, 1, 1]::FLOAT[3]), id LIMIT 2"
    con.execute(sql)
    con.execute("CREATE TEMP TABLE plain AS SELECT 77 AS id, [0, 0, 0]::FLOAT[3] AS vec")
    assert con.execute(sql).fetchall() == [(77,)]
    con.execute("DROP TABLE temp.plain")
    con.native.execute("SET default_null_order = 'nulls_first'")
    assert con.execute(sql).fetchall() == [(0,), (37,)]
    assert len(searches) == 1


LEFT_ALONE = [
    "SELECT DISTINCT label FROM t ORDER BY array_distance(vec, {v}) LIMIT 2",
    "SELECT id, count(*) OVER () FROM t ORDER BY array_distance(vec, {v}) LIMIT 2",
    "SELECT id, row_number() OVER () AS n FROM t QUALIFY n > 3 ORDER BY array_distance(vec, {v}) LIMIT 2",
    "SELECT unnest([1, 2]) FROM t ORDER BY array_distance(vec, {v}) LIMIT 2",
    "SELECT max(id), array_distance(any_value(vec), {v}) AS d FROM t ORDER BY d LIMIT 2",
    "SELECT label FROM t GROUP BY ALL ORDER BY array_distance(any_value(vec), {v}) LIMIT 2",
    "SELECT id FROM t ORDER BY array_distance(vec, {v}) DESC LIMIT 2",
    "SELECT id FROM t ORDER BY array_distance(vec, {v}) NULLS FIRST LIMIT 2",
    "SELECT id FROM t ORDER BY array_cosine_similarity(vec, {v}) LIMIT 2",
    "SELECT id FROM t ORDER BY label, array_distance(vec, {v}) LIMIT 2",
    "SELECT id FROM t ORDER BY array_distance(vec, {v})",
    "SELECT id FROM t ORDER BY array_distance(vec, {v}) LIMIT 10%",
    "SELECT id FROM t ORDER BY array_distance(vec, vec) LIMIT 2",
    "SELECT id FROM t ORDER BY round(array_distance(vec, {v})) LIMIT 2",
    "SELECT id FROM t ORDER BY 1 - array_distance(vec, {v}) DESC LIMIT 2",
    "SELECT id, label AS vec FROM t ORDER BY array_distance(vec, {v}) LIMIT 2",
    "SELECT id, -label AS label FROM t WHERE label = 1 ORDER BY array_distance(vec, {v}) LIMIT 2",
    "SELECT id FROM t WHERE random() < 0.5 ORDER BY array_distance(vec, {v}) LIMIT 2",
    "SELECT id FROM t WHERE id IN (SELECT id FROM u) ORDER BY array_distance(vec, {v}) LIMIT 2",
    "SELECT id FROM t, u ORDER BY array_distance(vec, {v}) LIMIT 2",
    "SELECT id FROM t TABLESAMPLE 10% ORDER BY array_distance(vec, {v}) LIMIT 2",
    "SELECT id FROM t x(id, vec) ORDER BY array_distance(vec, {v}) LIMIT 2",
    "SELECT id FROM (SELECT * FROM t) ORDER BY array_distance(vec, {v}) LIMIT 2",
    "SELECT id FROM t ORDER BY array_distance(vec, {v}) LIMIT 2 UNION ALL SELECT 1",
    "WITH t AS (SELECT 1) SELECT id FROM t ORDER BY array_distance(vec, {v}) LIMIT 2",
    "SELECT id FROM t ORDER BY array_distance(vec, {v}) LIMIT 2; SELECT 1",
]


@pytest.mark.parametrize("sql", LEFT_ALONE)
def test_unsupported_orders_are_not_rewritten(sql: str) -> None:
    text = LiftedText.of(sql.format(v="[1, 2]::FLOAT[2]")).text
    assert order_by_distance.find(Statement.of(text)) == ()


def test_lists_in_strings_and_comments_are_not_vectors() -> None:
    for sql in ("SELECT '[1, 2]'", "SELECT 1 -- [1, 2]", 'SELECT "[1, 2]"', "SELECT ARRAY[1, 2]", "SELECT $$ [1, 2]$$"):
        assert LiftedText.of(sql).text == sql
    listed = LiftedText.of("SELECT '[1, 2]', [1,-2.5e3], 'x', [ 3 , 4 ]")
    assert listed.lists == ("[1,-2.5e3]", "[ 3 , 4 ]")
    assert listed.restored(listed.text) == "SELECT '[1, 2]', [1,-2.5e3], 'x', [ 3 , 4 ]"


def test_errors_equal_those_of_duckdb(con: ld.Connection) -> None:
    for sql in (
        "SELECT nope FROM plain ORDER BY array_distance(vec, [1, 2, 3]::FLOAT[3]) LIMIT 2",
        "SELECT id FROM plain ORDER BY array_distance(vec, [1, 2]::FLOAT[2]) LIMIT 2",
        "SELECT id FROM plain ORDER BY array_distance(vec, ?) LIMIT 2",
    ):
        with pytest.raises(duckdb.Error):
            con.execute(sql, [[1.0, 2.0]] if "?" in sql else None)
    con.execute("BEGIN")
    with pytest.raises(duckdb.BinderException, match="nope"):
        con.execute("SELECT nope FROM plain ORDER BY array_distance(vec, [1, 2, 3]::FLOAT[3]) LIMIT 2")
    con.execute("ROLLBACK")


JOINED = [
    "SELECT t.id, q.n FROM {t} AS t LEFT JOIN q ON q.n = t.label ORDER BY {e}, t.id, q.n LIMIT 7",
    "SELECT t.id, q.n, r.n FROM {t} AS t LEFT JOIN q ON q.n <= t.label LEFT JOIN q AS r ON r.n = q.n AND t.id > 3 "
    "WHERE t.name = 'a' ORDER BY {e}, r.n, q.n, t.id LIMIT 9 OFFSET 4",
    "SELECT count(*), min(n) FROM (SELECT t.*, n FROM {t} AS t LEFT JOIN q ON true ORDER BY {e}, t.id, n LIMIT 5)",
    "SELECT t FROM {t} AS t LEFT JOIN {t} AS u ON u.id = t.label ORDER BY {e}, t.id, u.id LIMIT 6",
]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("sql", JOINED)
def test_left_joins_after_the_nearest_rows_equal_those_of_duckdb(
    pair: tuple[ld.Connection, duckdb.DuckDBPyConnection], sql: str, table: str
) -> None:
    ours, theirs = pair
    type_ = "DOUBLE" if table == "double" else "FLOAT"
    text = sql.replace("{t}", table).replace("{e}", f"array_distance(t.vec, [1, 0, -1]::{type_}[3])")
    assert len(order_by_distance.find(Statement.of(LiftedText.of(text).text))) == 1
    ours.execute("SET lance_nearest = 'exact'")
    try:
        expected = list(map(repr, theirs.execute(text).fetchall()))
        assert list(map(repr, ours.execute(text).fetchall())) == expected
        assert list(map(repr, ours.sql(text).fetchall())) == expected
    finally:
        ours.execute("SET lance_nearest = 'auto'")


def test_joins_after_the_nearest_rows_do_not_change_which_rows_are_nearest(
    pair: tuple[ld.Connection, duckdb.DuckDBPyConnection],
) -> None:
    ours, theirs = pair
    nearest = "SELECT t.* FROM plain AS t ORDER BY array_distance(t.vec, [1, 0, -1]::FLOAT[3]), t.id LIMIT 5"
    sql = f"SELECT count(*) FROM ({nearest}) AS x JOIN (SELECT n + 100 AS n FROM q) AS few ON few.n = x.id"
    (expected,) = theirs.execute(f"SELECT count(*) FROM ({nearest}) WHERE id IN (100, 101, 102)").fetchall()
    assert {ours.execute(sql).fetchall()[0] for _ in range(40)} == {expected}
