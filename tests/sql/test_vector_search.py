"""`lance_vector_search`: nearest neighbours in SQL."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_duck as ld
from lance_duck.duck import binder
from lance_duck.duck.rules import vector_call
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.tables.nearest import NearestRows

DIM = 8
VECTORS = np.random.default_rng(0).standard_normal((300, DIM)).astype(np.float32)


def fixed(numbers: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), DIM)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `photos.lance`: 300 vectors, an index over all but the last 50 rows, some rows deleted."""
    folder = tmp_path_factory.mktemp("photos")
    table = pa.table(
        {
            "id": pa.array(range(300), pa.int64()),
            "label": pa.array([i % 3 for i in range(300)], pa.int32()),
            "vec": fixed(VECTORS),
            "half": fixed(VECTORS.astype(np.float16)),
            "price": pa.array([None if i == 9 else Decimal(i) for i in range(300)], pa.decimal128(12, 2)),
        }
    )
    dataset = ld.write_dataset(table[:250], folder / "photos.lance", max_rows_per_file=100)
    dataset.create_index("vec", "IVF_FLAT", num_partitions=4)
    dataset.insert(table[250:])
    dataset.delete("id = 11")
    return folder


@pytest.fixture
def con(photos: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    return connect(photos)


def nearest(query: np.ndarray, k: int, wanted: np.ndarray | None = None) -> list[tuple[int, float]]:
    """Ids and distances, by numpy."""
    distances = ((VECTORS.astype(np.float64) - query) ** 2).sum(axis=1)
    distances[11] = np.inf
    if wanted is not None:
        distances[~wanted] = np.inf
    order = np.argsort(distances, kind="stable")[:k]
    return [(int(i), pytest.approx(float(distances[i]), abs=1e-4)) for i in order if np.isfinite(distances[i])]


def test_rows_are_ordered_by_distance(con: ld.Connection) -> None:
    for i in (11, 120, 275):
        found = con.execute(
            "SELECT id, _distance FROM lance_vector_search('photos', 'vec', ?, k := 7, nprobes := 4, ef := NULL)",
            [VECTORS[i].tolist()],
        ).fetchall()
        assert found == nearest(VECTORS[i], 7)


@pytest.mark.parametrize("text", ["{}::FLOAT[]", "{}::DOUBLE[]", f"{{}}::FLOAT[{DIM}]", "{}"])
def test_a_query_is_a_list_of_any_numbers(con: ld.Connection, text: str) -> None:
    query = text.format(VECTORS[5].tolist())
    assert con.sql(f"SELECT id FROM lance_vector_search('photos', 'vec', {query}, k := 1)").fetchall() == [(5,)]


def test_a_search_returns_ten_rows_and_all_columns_by_default(con: ld.Connection, photos: Path) -> None:
    found = con.execute("FROM lance_vector_search(?, 'vec', ?)", [f"{photos}/photos.lance", [0.0] * DIM])
    assert [name for name, *_ in found.description] == ["id", "label", "vec", "half", "price", "_distance"]
    assert len(found.fetchall()) == 10


def test_filter_applies_before_the_search_and_where_after_it(con: ld.Connection) -> None:
    query, labels = VECTORS[5].tolist(), np.arange(300) % 3
    call = "lance_vector_search('photos', 'vec', ?, k := 6, nprobes := 4, filter := 'label = 1'{})"
    before = con.execute(f"SELECT id, _distance FROM {call.format('')}", [query]).fetchall()
    assert before == nearest(VECTORS[5], 6, labels == 1)
    ids = [i for i, _ in nearest(VECTORS[5], 6)]
    after = con.execute(f"SELECT id FROM {call.format(', prefilter := false')}", [query]).fetchall()
    assert after == [(i,) for i in ids if i % 3 == 1]
    where = "SELECT id FROM lance_vector_search('photos', 'vec', ?, k := 6, nprobes := 4) WHERE label = 1"
    assert con.execute(where, [query]).fetchall() == after


def test_metric_and_use_index_can_be_set(con: ld.Connection) -> None:
    query = VECTORS[30]
    cosine = 1 - (VECTORS @ query) / np.linalg.norm(VECTORS, axis=1) / np.linalg.norm(query)
    cosine[11] = np.inf
    sql = "SELECT id, _distance FROM lance_vector_search('photos', 'vec', ?, k := 4, metric := 'cosine')"
    found = con.execute(sql, [query.tolist()]).fetchall()
    assert [i for i, _ in found] == np.argsort(cosine)[:4].tolist()
    assert [d for _, d in found] == pytest.approx(np.sort(cosine)[:4].tolist(), abs=1e-5)
    exact = "SELECT id FROM lance_vector_search('photos', 'vec', ?, k := 400, use_index := false)"
    assert len(con.execute(exact, [query.tolist()]).fetchall()) == 299


def test_columns_with_a_different_duckdb_type_are_returned(con: ld.Connection) -> None:
    sql = "SELECT price, half, id, _distance FROM lance_vector_search('photos', 'half', ?, k := 2)"
    (price, half, row, distance), _ = con.execute(sql, [VECTORS[9].tolist()]).fetchall()
    assert (price, row) == (None, 9)
    assert half == tuple(VECTORS[9].astype(np.float16).tolist())
    assert distance == pytest.approx(0, abs=1e-4)


def test_lance_vector_search_works_in_joins_views_and_subqueries(con: ld.Connection) -> None:
    con.execute("CREATE TABLE names AS SELECT range AS id, 'n' || range AS name FROM range(300)")
    con.execute("PREPARE p AS SELECT id FROM lance_vector_search('photos', 'vec', $1::FLOAT[], k := 1)")
    for i in (3, 260):
        query = VECTORS[i].tolist()
        assert con.execute(f"EXECUTE p({query})").fetchall() == [(i,)]
        join = "SELECT name FROM lance_vector_search('photos', 'vec', ?, k := 1) JOIN names USING (id)"
        assert con.execute(join, [query]).fetchall() == [(f"n{i}",)]
    con.execute(f"CREATE VIEW v AS FROM lance_vector_search('photos', 'vec', {VECTORS[3].tolist()}, k := 2)")
    assert con.execute("SELECT count(*), min(_distance) FROM v").fetchall() == [(2, 0.0)]
    assert con.sql("FROM v").filter("id = 3").aggregate("count(*)").fetchall() == [(1,)]


def test_several_queries_can_be_searched_in_one_call(con: ld.Connection) -> None:
    queries = VECTORS[[5, 260]]
    sql = "SELECT query_index, id, _distance FROM lance_vector_search('photos', 'vec', ?, k := 3, nprobes := 4)"
    found = con.execute(sql, [queries.tolist()]).fetchall()
    assert found == [(i, *row) for i in range(2) for row in nearest(queries[i], 3)]
    whole = con.execute("FROM lance_vector_search('photos', 'vec', ?, k := 2)", [queries[:1].tolist()])
    assert whole.description[0][0] == "query_index"
    assert len(whole.fetchall()) == 2
    price = "SELECT query_index, price FROM lance_vector_search('photos', 'vec', ?, k := 1)"
    assert con.execute(price, [[*queries.tolist(), VECTORS[5].tolist()]]).fetchall() == [(0, 5), (1, 260), (2, 5)]


def test_older_versions_and_tags_can_be_searched(con: ld.Connection, photos: Path) -> None:
    sql = "SELECT id FROM lance_vector_search('photos', 'vec', ?, k := 1, nprobes := 4, {})"
    newest = ld.dataset(photos / "photos.lance").version
    for i, version, there in ((11, newest - 1, True), (11, newest, False), (260, 1, False)):
        rows = con.execute(sql.format(f"version := {version}"), [VECTORS[i].tolist()]).fetchall()
        assert (rows == [(i,)]) == there
    with pytest.raises(ld.NotFoundError):
        con.execute(sql.format("tag := 'nope'"), [VECTORS[0].tolist()])


def test_explain_shows_the_search(con: ld.Connection) -> None:
    sql = "SELECT id FROM lance_vector_search('photos', 'vec', ?, k := 2)"
    assert "VectorIndexQuery" in con.execute(f"EXPLAIN {sql}", [VECTORS[0].tolist()]).fetchall()[-1][1]
    assert "returned: 2 rows" in con.execute(f"EXPLAIN ANALYZE {sql}", [VECTORS[0].tolist()]).fetchall()[-1][1]


def test_recall_can_be_set_by_name(con: ld.Connection) -> None:
    call = "FROM lance_vector_search('photos', 'vec', [1, 0, 0, 0, 0, 0, 0, 0], k := 5{})"
    for more, wanted in ("", "recall 0.95"), (", recall := 0.7", "recall 0.7:"), (", recall := NULL", "recall 0.95"):
        assert wanted in con.execute("EXPLAIN " + call.format(more)).fetchall()[-1][1]
        assert con.execute("SELECT count(*) " + call.format(more)).fetchall() == [(5,)]
    assert "recall" not in con.execute("EXPLAIN " + call.format(", nprobes := 2")).fetchall()[-1][1]
    with pytest.raises(ld.errors.InvalidInputError, match="recall"):
        con.execute(call.format(", recall := 2")).fetchall()


def test_lance_vector_search_accepts_paths_on_a_plain_connection(
    plain: duckdb.DuckDBPyConnection, photos: Path
) -> None:
    sql = "SELECT id FROM lance_vector_search(?, 'vec', ?, k := 1)"
    assert plain.execute(sql, [f"{photos}/photos.lance", VECTORS[8].tolist()]).fetchall() == [(8,)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'photos', 'vec', [1.0]", "size 1 does not match"),
        ("'photos', 'vec', []::FLOAT[]", "query vector"),
        ("'photos', 'vec', NULL", "needs a query vector"),
        ("'photos', 'id', {q}", "must be a vector"),
        ("'photos', 'nope', {q}", "nope"),
        ("'nosuch', 'vec', {q}", "nosuch: no such table"),
        ("'photos', 'vec', {q}, k := 0", "must be > 0"),
        ("'photos', 'vec', {q}, k := NULL", "needs a k"),
        ("'photos', 'vec', {q}, metric := 'far'", "far"),
        ("'photos', 'vec', {q}, filter := 'nope = 1'", "no column 'nope'"),
    ],
)
def test_invalid_arguments_raise_clear_errors(con: ld.Connection, arguments: str, message: str) -> None:
    with pytest.raises(ld.LanceDuckError, match=message):
        con.execute(f"FROM lance_vector_search({arguments.format(q=VECTORS[0].tolist())})").fetchall()


CALLS = [
    "SELECT id, _distance FROM lance_vector_search('photos', 'vec', {q}, k := 7, nprobes := 4, ef := NULL)",
    "FROM lance_vector_search('photos', 'vec', {q})",
    "SELECT * FROM lance_vector_search('photos', 'vec', {q}::FLOAT[], k => 3) AS f WHERE label = 1 ORDER BY id",
    "SELECT count(*) FROM lance_vector_search('photos', 'vec', {q}, k := 5, filter := 'label = 2 AND id <> 3')",
    "SELECT id FROM lance_vector_search('photos', 'vec', {q}, k := 1, version := 1)",
    "SELECT f FROM lance_vector_search('photos', 'vec', {q}, k := 2, use_index := false) f",
    "SELECT max(id) m FROM lance_vector_search('photos', 'vec', {q}, metric := 'cosine') GROUP BY label, id ORDER BY m",
    "SELECT a, b FROM (FROM lance_vector_search('photos', 'vec', {q}, k := 2) SELECT id, label) f(a, b)",
    "SELECT id FROM lance_vector_search('photos', 'half', {q}, filter := 'id < 0')",
]


@pytest.mark.parametrize("sql", CALLS)
def test_prefetched_rows_equal_those_of_the_duckdb_scan(con: ld.Connection, sql: str) -> None:
    query = VECTORS[8].tolist()
    found = con.execute(sql.format(q="?"), [query])
    names, rows = found.description, found.fetchall()
    general = con.sql(sql.format(q=query))
    expected = con.native.execute(sql.format(q=query))
    assert names == expected.description
    assert rows == expected.fetchall() == general.fetchall()
    assert con.execute(sql.format(q="$q"), {"q": query}).fetchall() == rows
    assert con.execute(sql.format(q=query)).fetchall() == rows


def test_parameters_around_a_call_keep_their_order(con: ld.Connection) -> None:
    sql = "SELECT ? AS a, id, {} AS b FROM lance_vector_search(?, 'vec', ?, k := ?) WHERE label <> ? LIMIT ?"
    given = ["x", "photos", VECTORS[8].tolist(), 9, 1, 3]
    found = con.execute(sql.format("'?'"), given).fetchall()
    assert found == con.native.execute(sql.format("'?'"), given).fetchall()
    assert [row[0] for row in found] == ["x"] * 3
    named = "SELECT $n AS n, id FROM lance_vector_search('photos', 'vec', $q, k := $n)"
    assert len(con.execute(named, {"n": 4, "q": VECTORS[8].tolist()}).fetchall()) == 4


def test_calls_with_constants_are_recognised(monkeypatch: pytest.MonkeyPatch, con: ld.Connection) -> None:
    assert all(vector_call.find(Statement.of(sql.format(q="?"))) for sql in CALLS[:7])
    for sql in ("lance_vector_search('photos', 'vec', x.v) FROM x", "lance_vector_search('photos', 'vec', ?), y"):
        assert vector_call.find(Statement.of(f"SELECT * FROM {sql}")) == ()
    monkeypatch.setattr(binder, "NearestRows", None)  # uses the general path
    assert con.execute(CALLS[0].format(q="?"), [VECTORS[8].tolist()]).fetchall()[0] == (8, 0.0)


def test_distances_are_exact_even_if_the_index_stores_codes(
    tmp_path: Path, connect: Callable[..., ld.Connection]
) -> None:
    table = pa.table({"id": pa.array(range(300), pa.int64()), "vec": fixed(VECTORS)})
    ld.write_dataset(table, tmp_path / "t.lance").create_index("vec", "IVF_SQ", num_partitions=1)
    found = connect(tmp_path).execute("FROM lance_vector_search('t', 'vec', ?, k := 5)", [VECTORS[7].tolist()])
    rows = [(row[0], row[-1]) for row in found.fetchall()]
    distances = ((VECTORS.astype(np.float64) - VECTORS[7]) ** 2).sum(axis=1)
    assert rows == [(i, pytest.approx(distances[i], abs=1e-6)) for i, _ in rows]
    assert rows == sorted(rows, key=lambda row: row[1])
    assert rows[0][0] == 7


def test_arguments_are_named_like_in_the_lance_extension(tmp_path: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.0, 0, 1, 0, 5, 5], pa.float32()), 2)
    ld.write_dataset(pa.table({"id": [0, 1, 2], "v": vectors}), tmp_path / "t.lance")
    options = "k = 2, use_index = false, nprobs = 1, explain_verbose = true"
    with ld.connect(tmp_path) as con:
        sql = f"SELECT id FROM lance_vector_search('t', 'v', [0.9, 0]::FLOAT[], {options})"
        assert con.execute(sql).fetchall() == [(1,), (0,)]
        assert con.sql(f"{sql} WHERE id = 1").fetchall() == [(1,)]
        con.execute(f"CREATE TABLE lance.found AS {sql}")
        assert con.execute("FROM found").fetchall() == [(1,), (0,)]
        sql = "SELECT count(*) FROM lance_scan('t', version = ?)"
        assert con.execute(sql, [1]).fetchall() == [(3,)]


def test_a_runtime_join_filter_does_not_change_the_search_result(tmp_path: Path) -> None:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.0, 0, 1, 0, 5, 5], pa.float32()), 2)
    table = ld.write_dataset(pa.table({"id": [0, 1, 2], "v": vectors}), tmp_path / "t.lance")
    rows = NearestRows(table, {"column": "v", "q": [0.9, 0.0], "k": 2}, {})
    found = rows.scanner(columns=["id"], filter=pc.field("id").isin([2])).to_reader().read_all()
    assert found.to_pydict() == {"id": [1, 0]}


@pytest.mark.parametrize("method", ["execute", "sql"])
def test_where_with_prefilter_selects_among_all_rows(con: ld.Connection, method: str) -> None:
    call = f"lance_vector_search('photos', 'vec', {VECTORS[5].tolist()}, k := 4, nprobes := 4, prefilter := true)"
    wanted = np.arange(300) % 3 == 1
    for sql in (
        f"SELECT id, _distance FROM {call} WHERE label = 1",
        f"SELECT r.* EXCLUDE (label) FROM (SELECT id, label, _distance FROM {call} AS x WHERE x.label = 1) AS r",
    ):
        assert sorted(getattr(con, method)(sql).fetchall()) == sorted(nearest(VECTORS[5], 4, wanted))
        afterwards = sql.replace("prefilter := true", "prefilter := false")
        assert len(getattr(con, method)(afterwards).fetchall()) < 4
    con.execute("SET default_collation = 'nocase'")  # which does not concern numbers
    rows = getattr(con, method)(f"SELECT id, _distance FROM {call} WHERE label = 1").fetchall()
    assert sorted(rows) == sorted(nearest(VECTORS[5], 4, wanted))
