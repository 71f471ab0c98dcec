"""`lance_fts`: full-text search in SQL."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_duck as ld
from lance_duck.duck.tables.matches import MatchingRows

TEXTS = [
    "a small duck by the lake",
    "the lake",
    "duck, duck, goose",
    None,
    "ducks on a lake: duck lake",
    "sail the lake of ducks",
    "stones",
    "a lake",
]
DUCKS = [2, 4, 0, 5]
"""Rows with the word, best first."""


@pytest.fixture(scope="module", params=["no index", "part of an index", "index"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `notes.lance`: eight texts, one deleted row that has all words."""
    folder = tmp_path_factory.mktemp("notes")
    table = pa.table(
        {
            "id": pa.array([*range(8), 99], pa.int64()),
            "body": [*TEXTS, "duck lake goose"],
            "price": pa.array([Decimal(i) for i in range(9)], pa.decimal128(12, 2)),
        }
    )
    dataset = ld.write_dataset(table[:4], folder / "notes.lance")
    if request.param == "part of an index":
        dataset.create_scalar_index("body", "INVERTED", with_position=True)
    dataset.insert(table[4:])
    dataset.delete("id = 99")
    if request.param == "index":
        dataset.create_scalar_index("body", "INVERTED", with_position=True)
    return folder


@pytest.fixture
def con(folder: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    return connect(folder)


def ids(con: ld.Connection, sql: str, *parameters: object) -> list[int]:
    return [row[0] for row in con.execute(sql, *parameters).fetchall()]


def test_matching_rows_are_ordered_by_score(con: ld.Connection, folder: Path) -> None:
    found = con.execute("FROM lance_fts('notes', 'body', 'duck')")
    assert [name for name, *_ in found.description] == ["id", "body", "price", "_score"]
    rows = found.fetchall()
    assert [row[0] for row in rows] == DUCKS
    assert all(row[:3] == (row[0], TEXTS[row[0]], Decimal(row[0])) for row in rows)
    query = {"query": "duck", "columns": ["body"]}
    assert [row[3] for row in rows] == ld.dataset(folder / "notes.lance").to_table(full_text_query=query)[
        "_score"
    ].to_pylist()


@pytest.mark.parametrize("method", ["execute", "sql"])
def test_arguments_are_named_like_in_the_lance_extension(con: ld.Connection, folder: Path, method: str) -> None:
    run = getattr(con, method)
    assert run("SELECT id FROM lance_fts('notes', 'body', 'duck', k = 2)").fetchall() == [(2,), (4,)]
    assert run("SELECT count(*) FROM lance_fts('notes', 'body', 'duck', k => 3)").fetchall() == [(3,)]
    path = f"{folder}/notes.lance"
    assert run(f"SELECT id FROM lance_fts('{path}', 'body', 'duck', filter = 'id < 2')").fetchall() == [(0,)]
    both = f"SELECT id FROM lance_fts('{path}', 'body', 'duck', k = 1, prefilter = true, filter = 'id > 2')"
    assert run(both).fetchall() == [(4,)]


def test_filter_applies_before_the_search_and_where_after_it(con: ld.Connection) -> None:
    call = "SELECT id FROM lance_fts('notes', 'body', 'duck', k := 2{})"
    assert ids(con, call.format(", filter := 'id <> 2'")) == [4, 0]
    assert ids(con, call.format(", filter := 'id <> 2', prefilter := false")) == [4]
    assert ids(con, f"{call.format('')} WHERE id <> 2") == [4]
    assert ids(con, f"{call.format(', prefilter := true')} WHERE id <> 2 AND _score > 0") == [4, 0]
    assert ids(con, f"{call.format(', prefilter := true')} f WHERE f.id <> 2") == [4, 0]
    assert ids(con, f"{call.format(', prefilter := false')} WHERE id <> 2") == [4]


def test_a_query_is_words_or_a_phrase_or_a_form(con: ld.Connection) -> None:
    call = "SELECT id FROM lance_fts('notes', 'body', ?) ORDER BY id"
    assert ids(con, call, ["goose stones"]) == [2, 6]
    assert ids(con, call, ['"duck lake"']) == [4]
    assert ids(con, call, ['{"match": {"terms": "duck lake", "operator": "AND"}}']) == [0, 4, 5]
    assert ids(con, call, ['{"phrase": {"terms": "duck lake", "column": "body"}}']) == [4]
    form = '{"boolean": {"must": [{"match": {"terms": "lake"}}], "must_not": [{"match": {"terms": "duck"}}]}}'
    assert ids(con, call, [form]) == [1, 7]
    assert ids(con, call, ["whale"]) == ids(con, call, [""]) == []


def test_lance_fts_works_in_joins_views_and_subqueries(con: ld.Connection) -> None:
    joined = "SELECT n.id FROM notes n JOIN lance_fts('notes', 'body', 'goose stones') f USING (id) ORDER BY id"
    assert ids(con, joined) == [2, 6]
    con.execute("CREATE TABLE lance.ducks AS SELECT id, _score FROM lance_fts('notes', 'body', 'duck', k = 2)")
    try:
        assert ids(con, "SELECT id FROM ducks ORDER BY _score DESC") == DUCKS[:2]
    finally:
        con.execute("DROP TABLE lance.ducks")
    assert ids(con, "SELECT id FROM lance_fts('notes', 'body', 'duck', version := 1)") == [2, 0]
    inner = "WITH f AS (FROM lance_fts('notes', 'body', ?, k := ?)) SELECT max(id) FROM f"
    assert ids(con, inner, ["duck", 2]) == [4]


def test_explain_names_the_index_or_the_reason_for_a_scan(con: ld.Connection, folder: Path) -> None:
    sql = "SELECT id FROM lance_fts('notes', 'body', 'duck', k := 2)"
    plan = con.execute(f"EXPLAIN {sql}").fetchall()[-1][1]
    is_indexed = bool(ld.dataset(folder / "notes.lance").list_indices())
    assert "MatchQuery 'duck' in body" in plan
    assert ("InvertedIndexQuery: body_idx" in plan) == is_indexed
    assert ("without an index: no index" in plan) != is_indexed
    assert "returned: 2 rows" in con.execute(f"EXPLAIN ANALYZE {sql}").fetchall()[-1][1]
    assert '"Lance Search Mode": "fts"' in con.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchall()[-1][1]


def test_lance_fts_accepts_paths_on_a_plain_connection(plain: duckdb.DuckDBPyConnection, folder: Path) -> None:
    sql = "SELECT id FROM lance_fts(?, 'body', 'duck', k := 1)"
    assert plain.execute(sql, [f"{folder}/notes.lance"]).fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'notes', 'nope', 'duck'", "nope"),
        ("'notes', 'id', 'duck'", "must contain strings"),
        ("'nosuch', 'body', 'duck'", "nosuch: no such table"),
        ("NULL, 'body', 'duck'", "needs a table"),
        ("'notes', NULL, 'duck'", "needs a column"),
        ("'notes', 'body', NULL", "needs a query"),
        ("'notes', 'body', 'duck', k := 0", "k: expected 1 or more, found 0"),
        ("'notes', 'body', 'duck', k := NULL", "needs a k"),
        ("'notes', 'body', 'duck', filter := 'nope = 1'", "no column 'nope'"),
        ("'notes', 'body', '{duck'", "expected the JSON form of a query, found {duck"),
        ("""'notes', 'body', '{"match": {"terms": "duck", "fuzzy": 1}}'""", "fuzzy"),
    ],
)
def test_invalid_arguments_raise_clear_errors(con: ld.Connection, arguments: str, message: str) -> None:
    with pytest.raises(ld.LanceDuckError, match=message):
        con.execute(f"FROM lance_fts({arguments})").fetchall()


def test_a_runtime_join_filter_does_not_change_the_search_result(folder: Path) -> None:
    rows = MatchingRows(ld.dataset(folder / "notes.lance"), "body", "duck", 1, {})
    found = rows.scanner(columns=["id"], filter=pc.field("id").isin([0])).to_reader().read_all()
    assert found.to_pydict() == {"id": [2]}
