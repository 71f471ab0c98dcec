"""LanceDB's client reads through a server what local LanceDB reads from the same folder.

Distances and scores may differ in their last bits. Known differences, which the tests avoid:

- columns by name to expression arrive in alphabetical order, because the client sorts them
- words in rows that no index covers: LanceDB weighs them without these rows, and fuzzy words do not find them
- `maximum_nprobes` above `minimum_nprobes`: LanceDB may search more partitions than needed for k rows
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import lancedb
import numpy as np
import pyarrow as pa
import pytest
from lancedb.query import BooleanQuery, BoostQuery, ColumnOrdering, MatchQuery, MultiMatchQuery, Occur, PhraseQuery

import lance_duck as ld
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.run import Server

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

DIMENSIONS = 8
QUERY = [0.5] * DIMENSIONS
OTHER = [0.1] * DIMENSIONS
ROWS = 400
WORDS = ("duck", "lake", "goose", "swan", "pond")


def rows(first: int, last: int) -> pa.Table:
    random = np.random.default_rng(first)
    numbers = range(first, last)
    vectors = random.random((last - first) * DIMENSIONS, dtype=np.float32)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "name": [f"{WORDS[i % 5]} {WORDS[i * 3 % 4]} n{i}" for i in numbers],
            "price": [None if i % 11 == 0 else (i * 37 % 101) / 2 for i in numbers],
            "vector": pa.FixedSizeListArray.from_arrays(vectors, DIMENSIONS),
        }
    )


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """Local LanceDB, a server and its client: `t` has deletions, indexes, and rows that no index covers."""
    folder = tmp_path_factory.mktemp("served")
    local = lancedb.connect(str(folder))
    table = local.create_table("t", rows(0, ROWS))
    table.create_index("l2", num_partitions=4, vector_column_name="vector", index_type="IVF_FLAT")
    table.create_scalar_index("id")
    table.tags.create("first", 1)
    words = local.create_table("words", rows(0, ROWS))
    words.create_fts_index("name", with_position=True)
    table.create_fts_index("name", with_position=True)
    table.add(rows(ROWS, ROWS + 40))
    table.delete("id % 7 = 0")
    with Server(ServeSettings(str(folder), port=0)) as server:
        remote = lancedb.connect("db://test", api_key="any", host_override=server.url)
        yield SimpleNamespace(
            folder=folder,
            url=server.url,
            local={"t": table, "words": words},
            remote={name: remote.open_table(name) for name in ("t", "words")},
            database=remote,
        )


def assert_equal_rows(found: pa.Table, expected: pa.Table) -> None:
    """Compare rows. Floats that a search computes may differ slightly."""
    assert found.schema == expected.schema
    computed = [name for name in expected.schema.names if name in ("_distance", "_score", "_relevance_score")]
    assert found.drop_columns(computed).equals(expected.drop_columns(computed))
    for name in computed:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5)


READS: dict[str, Callable[[Any], Any]] = {
    "head": lambda t: t.head(5),
    "scan": lambda t: t.search(),
    "limit and offset": lambda t: t.search().limit(7).offset(3),
    "an offset past the end": lambda t: t.search().offset(10_000).limit(5),
    "where": lambda t: t.search().where("id BETWEEN 10 AND 20"),
    "where without prefilter": lambda t: t.search().where("id > 5", prefilter=False).limit(5),
    "where with nulls": lambda t: t.search().where("price IS NULL OR price < 3"),
    "columns": lambda t: t.search().where("id < 20").select(["price", "id"]),
    "no columns": lambda t: t.search().select([]).limit(5),
    "expressions": lambda t: t.search().select({"a": "price * 2", "b": "upper(name)"}).limit(4),
    "row ids": lambda t: t.search().with_row_id(True).limit(4),
    "row ids by name": lambda t: t.search().select(["_rowid", "id"]).limit(4),
    "row offsets": lambda t: t.search().select(["_rowoffset", "id"]).limit(4),
    "order": lambda t: t.search().order_by(
        [ColumnOrdering(column_name="price", ascending=False), ColumnOrdering(column_name="id")]
    ),
    "order with nulls first": lambda t: t.search().order_by(
        [ColumnOrdering(column_name="price", nulls_first=True), ColumnOrdering(column_name="id")]
    ),
    "take_row_ids": lambda t: t.take_row_ids([1, 5, 9]),
    "take_offsets": lambda t: t.take_offsets([1, 5, 9]),
    "search": lambda t: t.search(QUERY).limit(5),
    "search without a limit": lambda t: t.search(QUERY),
    "search with a limit above all rows": lambda t: t.search(QUERY).limit(10**6).nprobes(4),
    "search columns": lambda t: t.search(QUERY).select(["_distance", "id"]).limit(5),
    "search without its distance": lambda t: t.search(QUERY).select(["id"]).limit(5),
    "search expressions": lambda t: t.search(QUERY).select({"x": "id + 1"}).limit(5),
    "search where": lambda t: t.search(QUERY).where("price > 10").limit(5),
    "search where, afterwards": lambda t: t.search(QUERY).where("price > 10", prefilter=False).limit(5),
    "search with row ids": lambda t: t.search(QUERY).with_row_id(True).limit(5),
    "search with an offset": lambda t: t.search(QUERY).offset(2).limit(5),
    "search in a range": lambda t: t.search(QUERY).distance_range(0.2, 0.5).limit(50),
    "search without the index": lambda t: t.search(QUERY).bypass_vector_index().limit(5),
    "search by cosine": lambda t: t.search(QUERY).distance_type("cosine").bypass_vector_index().limit(5),
    "search two partitions": lambda t: t.search(QUERY).nprobes(2).limit(5),
    "search and refine": lambda t: t.search(QUERY).refine_factor(3).limit(5),
    "search a named column": lambda t: t.search(QUERY, vector_column_name="vector").limit(5),
    "search and sort": lambda t: t.search(QUERY).order_by([ColumnOrdering(column_name="id")]).limit(5),
    "several vectors": lambda t: t.search([QUERY, OTHER]).limit(3),
    "several vectors where": lambda t: t.search([QUERY, OTHER]).where("price > 10").with_row_id(True).limit(3),
    "several vectors where, afterwards": lambda t: (
        t.search([QUERY, OTHER]).where("price > 10", prefilter=False).limit(3)
    ),
    "several vectors in a range": lambda t: t.search([QUERY, OTHER]).distance_range(0.1, 1.2).limit(3),
    "a list of one vector": lambda t: t.search([QUERY]).limit(3),
}


def table_of(query: Any) -> pa.Table:
    return query if isinstance(query, pa.Table) else query.to_arrow()


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_read_returns_the_rows_of_local_lancedb(both: SimpleNamespace, read: Callable[[Any], Any]) -> None:
    assert_equal_rows(table_of(read(both.remote["t"])), table_of(read(both.local["t"])))


def test_several_vectors_skip_their_own_rows(both: SimpleNamespace) -> None:
    """LanceDB returns the queries in any order."""
    found, expected = (
        t.search([QUERY, OTHER])
        .limit(3)
        .offset(2)
        .to_arrow()
        .sort_by([("query_index", "ascending"), ("_distance", "ascending")])
        for t in (both.remote["t"], both.local["t"])
    )
    assert_equal_rows(found, expected)


TEXTS: dict[str, Callable[[Any], Any]] = {
    "words": lambda t: t.search("duck lake", query_type="fts"),
    "words in a column": lambda t: t.search("duck", query_type="fts", fts_columns="name"),
    "match all": lambda t: t.search(MatchQuery("goose duck", "name", operator="AND")),
    "fuzzy": lambda t: t.search(MatchQuery("duxk", "name", fuzziness=1)),
    "fuzzy with a prefix": lambda t: t.search(MatchQuery("duxk", "name", fuzziness=1, prefix_length=2)),
    "phrase": lambda t: t.search(PhraseQuery("goose duck", "name")),
    "phrase with a gap": lambda t: t.search(PhraseQuery("duck n4", "name", slop=1)),
    "boolean": lambda t: t.search(
        BooleanQuery([(Occur.MUST, MatchQuery("duck", "name")), (Occur.MUST_NOT, MatchQuery("lake", "name"))])
    ),
    "nested boolean": lambda t: t.search(
        MatchQuery("duck", "name") & PhraseQuery("duck lake", "name") | MatchQuery("pond", "name")
    ),
    "boost": lambda t: t.search(BoostQuery(MatchQuery("duck", "name"), MatchQuery("lake", "name"), negative_boost=0.2)),
    "several columns": lambda t: t.search(MultiMatchQuery("duck goose", ["name"])),
    "weights": lambda t: t.search(MultiMatchQuery("duck goose", ["name"], boosts=[2.0])),
    "where": lambda t: t.search("duck", query_type="fts").where("id < 100"),
}


@pytest.mark.parametrize("search", TEXTS.values(), ids=TEXTS)
def test_a_text_search_returns_the_rows_and_scores_of_local_lancedb(
    both: SimpleNamespace, search: Callable[[Any], Any]
) -> None:
    found, expected = (
        search(t).select(["id", "_score"]).limit(1000).to_arrow().sort_by("id")
        for t in (both.remote["words"], both.local["words"])
    )
    assert expected.num_rows
    assert_equal_rows(found, expected)


def test_a_text_search_finds_words_that_no_index_covers(both: SimpleNamespace) -> None:
    found, expected = (
        t.search("duck", query_type="fts").select(["id"]).limit(1000).to_arrow()["id"].to_pylist()
        for t in (both.remote["t"], both.local["t"])
    )
    assert sorted(found) == sorted(expected)
    assert max(found) >= ROWS


def test_a_hybrid_search_returns_the_rows_of_local_lancedb(both: SimpleNamespace) -> None:
    def search(table: Any) -> pa.Table:
        return table.search(query_type="hybrid").vector(QUERY).text("n5").limit(20).to_arrow()

    assert_equal_rows(search(both.remote["words"]).sort_by("id"), search(both.local["words"]).sort_by("id"))


@pytest.mark.parametrize("condition", [None, "price > 10", "name LIKE '%duck%' AND id IN (1, 2, 8)", "_rowid < 9"])
def test_rows_are_counted(both: SimpleNamespace, condition: str | None) -> None:
    assert both.remote["t"].count_rows(condition) == both.local["t"].count_rows(condition)


def test_a_table_is_described(both: SimpleNamespace) -> None:
    remote, local = both.remote["t"], both.local["t"]
    assert remote.schema == local.schema
    assert remote.version == local.version
    assert remote.stats() == local.stats()
    assert remote.tags.list() == local.tags.list()
    assert remote.tags.get_version("first") == 1
    assert remote.uri == str(both.folder / "t.lance")


def test_versions_are_listed(both: SimpleNamespace) -> None:
    found, expected = both.remote["t"].list_versions(), both.local["t"].list_versions()
    for entry, other in zip(found, expected, strict=True):
        assert abs(entry.pop("timestamp") - other.pop("timestamp")) < timedelta(milliseconds=1)
        assert entry == other


@pytest.mark.parametrize("version", [1, 2, "first"])
def test_old_versions_are_read(both: SimpleNamespace, version: int | str) -> None:
    remote, local = both.database.open_table("t"), lancedb.connect(str(both.folder)).open_table("t")
    for table in (remote, local):
        table.checkout(version)
    assert remote.version == local.version
    assert remote.count_rows() == local.count_rows() == ROWS
    assert_equal_rows(remote.search(QUERY).limit(3).to_arrow(), local.search(QUERY).limit(3).to_arrow())


def test_missing_versions_and_tags_are_errors(both: SimpleNamespace) -> None:
    remote = both.database.open_table("t")
    for version in (99, "nope"):
        with pytest.raises(ValueError, match="not found"):
            remote.checkout(version)


def test_a_missing_table_is_an_error(both: SimpleNamespace) -> None:
    with pytest.raises(ValueError, match="Table 'nope' was not found"):
        both.database.open_table("nope").count_rows()


def test_tables_are_listed_in_pages(both: SimpleNamespace) -> None:
    assert both.database.table_names() == ["t", "words"]
    assert both.database.table_names(limit=1) == ["t"]
    assert both.database.table_names(page_token="t", limit=1) == ["words"]
    first = both.database.list_tables(limit=1)
    assert first.tables == ["t"]
    last = both.database.list_tables(limit=1, page_token=first.page_token)
    assert (last.tables, last.page_token) == (["words"], None)


def test_plans_are_explained(both: SimpleNamespace) -> None:
    search = both.remote["t"].search(QUERY).limit(3)
    assert "vector_idx (IVF_FLAT" in search.explain_plan(True)
    assert "read: " in search.analyze_plan()


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda t: t.search(QUERY).select(["nope"]), "no column 'nope'"),
        (lambda t: t.search().where("nope > 1"), "no column 'nope'"),
        (lambda t: t.search([1.0] * 5), "does not match"),
        (lambda t: t.search(QUERY, vector_column_name="price"), "must be a vector"),
        (lambda t: t.search("duck", query_type="fts", fts_columns="price"), "price"),
    ],
)
def test_errors_name_their_cause(both: SimpleNamespace, read: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(Exception, match="400 Bad Request") as caught:
        read(both.remote["t"]).limit(3).to_arrow()
    assert message in str(caught.value)


def test_words_need_a_column_if_several_columns_have_text_and_none_has_an_index(remote: Any) -> None:
    table = remote.create_table("notes", [{"title": "duck", "body": "pond"}])
    with pytest.raises(Exception, match="name a column, or create a full-text index"):
        table.search("duck", query_type="fts").to_arrow()
    assert table.search("duck", query_type="fts", fts_columns="title").to_arrow().num_rows == 1


def test_the_async_client_reads(both: SimpleNamespace) -> None:
    async def read(uri: str, **options: Any) -> list[Any]:
        database = await lancedb.connect_async(uri, **options)
        table = await database.open_table("t")
        return [
            await database.table_names(),
            await table.count_rows("price > 10"),
            await table.schema(),
            await table.version(),
            await table.query().where("id < 9").select(["id", "name"]).to_arrow(),
            await table.query().limit(4).offset(2).with_row_id().to_arrow(),
            await table.vector_search(QUERY).limit(3).select(["id"]).to_arrow(),
            await table.take_offsets([3, 4]).to_arrow(),
            await table.tags.list(),
            [each["version"] for each in await table.list_versions()],
        ]

    found = asyncio.run(read("db://test", api_key="any", host_override=both.url))
    for value, expected in zip(found, asyncio.run(read(str(both.folder))), strict=True):
        if isinstance(value, pa.Table):
            assert_equal_rows(value, expected)
        else:
            assert value == expected


def every_type() -> pa.Table:
    """Return a row with a column of each Arrow type that LanceDB can store."""
    moment = datetime(2026, 1, 2, 3, 4, 5)
    values: dict[pa.DataType, Any] = {
        pa.bool_(): True,
        **{getattr(pa, f"{sign}int{bits}")(): 1 for sign in ("", "u") for bits in (8, 16, 32, 64)},
        pa.float16(): np.float16(1.5),
        pa.float32(): 1.5,
        pa.float64(): 1.5,
        pa.string(): "a",
        pa.large_string(): "a",
        pa.binary(): b"a",
        pa.large_binary(): b"a",
        pa.binary(4): b"abcd",
        pa.date32(): date(2026, 1, 2),
        pa.date64(): date(2026, 1, 2),
        pa.time32("s"): moment.time(),
        pa.time32("ms"): moment.time(),
        pa.time64("us"): moment.time(),
        pa.time64("ns"): moment.time(),
        **{pa.timestamp(unit): moment for unit in ("s", "ms", "us", "ns")},
        pa.timestamp("us", "UTC"): moment.replace(tzinfo=UTC),
        pa.timestamp("ms", "Europe/Paris"): moment.replace(tzinfo=UTC),
        **{pa.duration(unit): timedelta(seconds=1) for unit in ("s", "ms", "us", "ns")},
        pa.decimal128(10, 2): Decimal("1.25"),
        pa.decimal256(40, 3): Decimal("1.125"),
        pa.list_(pa.int32()): [1],
        pa.large_list(pa.string()): ["a"],
        pa.list_(pa.float32(), 4): [1.0, 2.0, 3.0, 4.0],
        pa.list_(pa.float16(), 2): [np.float16(1), np.float16(2)],
        pa.struct([("a", pa.int32()), ("b", pa.list_(pa.string()))]): {"a": 1, "b": ["x"]},
        pa.list_(pa.struct([("a", pa.int32())])): [{"a": 1}],
        pa.list_(pa.list_(pa.int8())): [[1]],
        pa.dictionary(pa.int32(), pa.string()): "a",
    }
    fields = [pa.field(f"c{i}", type_, metadata={"number": str(i)}) for i, type_ in enumerate(values)]
    arrays = [pa.array([value], type_) for type_, value in values.items()]
    return pa.table(arrays, pa.schema([*fields[:-1], fields[-1].with_nullable(True)]))


def test_all_types_have_the_schema_and_values_of_local_lancedb(start: Callable[..., Server], tmp_path: Path) -> None:
    data = every_type()
    local = lancedb.connect(str(tmp_path)).create_table("types", data)
    remote = lancedb.connect("db://test", api_key="any", host_override=start(tmp_path).url).open_table("types")
    for found, expected in zip(remote.schema, local.schema, strict=True):
        assert found.equals(expected, check_metadata=True)
    rows = remote.search().to_arrow()
    assert rows.schema == local.search().to_arrow().schema
    assert rows.to_pylist() == local.search().to_arrow().to_pylist()


def test_vectors_of_several_kinds_are_searched(start: Callable[..., Server], tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    numbers = random.random((50, 4))
    data = pa.table(
        {
            "id": range(50),
            "double": pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), 4),
            "many": pa.array(
                [[row.tolist(), (row + 1).tolist()] for row in numbers], pa.list_(pa.list_(pa.float32(), 6 - 2))
            ),
            "other": pa.FixedSizeListArray.from_arrays(pa.array(random.random(100).astype(np.float32)), 2),
        }
    )
    local = lancedb.connect(str(tmp_path)).create_table("t", data)
    remote = lancedb.connect("db://test", api_key="any", host_override=start(tmp_path).url).open_table("t")
    for query, column in (([0.5] * 4, "double"), ([0.5] * 2, "other")):
        found, expected = (
            t.search(query, vector_column_name=column).select(["id"]).limit(5).to_arrow() for t in (remote, local)
        )
        assert_equal_rows(found, expected)
    ids = [
        t.search([[0.5] * 4, [1.5] * 4], vector_column_name="many")
        .distance_type("cosine")
        .select(["id"])
        .limit(5)
        .to_arrow()["id"]
        .to_pylist()
        for t in (remote, local)
    ]
    assert ids[0] == ids[1]


def test_an_empty_table_is_read(start: Callable[..., Server], tmp_path: Path) -> None:
    lancedb.connect(str(tmp_path)).create_table("t", rows(0, 0))
    remote = lancedb.connect("db://test", api_key="any", host_override=start(tmp_path).url).open_table("t")
    assert remote.count_rows() == 0
    assert remote.search().to_arrow().num_rows == 0
    assert remote.search(QUERY).limit(5).to_arrow().num_rows == 0
    assert remote.stats()["fragment_stats"]["lengths"]["max"] == 0


def test_an_answer_has_limits(start: Callable[..., Server], tmp_path: Path) -> None:
    ld.write_dataset(rows(0, 100), tmp_path / "t.lance")
    server = start(tmp_path, max_rows=50)
    remote = lancedb.connect("db://test", api_key="any", host_override=server.url).open_table("t")
    assert remote.search().limit(50).to_arrow().num_rows == 50
    for query in (remote.search(), remote.search(QUERY).limit(51), remote.search([QUERY, OTHER]).limit(26)):
        with pytest.raises(Exception, match="at most 50"):
            query.to_arrow()


def post(url: str, body: Any, **headers: str) -> tuple[int, Any, Any]:
    """Send JSON, and return the status, the headers and the JSON of the answer."""
    data = json.dumps(body).encode()
    try:
        with urlopen(Request(url, data, {"content-type": "application/json", **headers})) as answer:
            return answer.status, answer.headers, json.load(answer)
    except HTTPError as error:
        return error.code, error.headers, json.load(error)


def test_a_client_gets_the_version_that_it_has_seen(both: SimpleNamespace) -> None:
    url = f"{both.url}/v1/table/t/count_rows"
    newest = both.local["t"].version
    status, headers, _ = post(url, {}, **{"x-lancedb-min-version": str(newest)})
    assert (status, headers["x-lancedb-version"]) == (200, str(newest))
    status, _, answer = post(url, {}, **{"x-lancedb-min-read-version": str(newest + 1)})
    assert (status, answer["code"]) == (503, 17)
    assert post(url, {}, **{"x-lancedb-min-version": "x"})[0] == 400


def test_answers_announce_what_the_server_can(both: SimpleNamespace) -> None:
    _, headers, _ = post(f"{both.url}/v1/table/t/describe", {})
    assert headers["phalanx-version"] == "0.3.0"


def test_locations_can_be_hidden(start: Callable[..., Server], tmp_path: Path) -> None:
    ld.write_dataset(rows(0, 10), tmp_path / "t.lance")
    url = start(tmp_path, locations=False).url
    answers = [
        post(f"{url}/v1/table/t/describe", {"load_detailed_metadata": True, "with_table_uri": True}),
        post(f"{url}/v1/table/t/explain_plan", {"query": {"vector": QUERY, "k": 3}}),
        post(f"{url}/v1/table/t/analyze_plan", {"vector": QUERY, "k": 3}),
        post(f"{url}/v1/table/t/version/list", {}),
    ]
    assert [status for status, _, _ in answers] == [200] * 4
    answers += [post(f"{url}/v1/table/nope/describe", {}), post(f"{url}/v1/table/t/describe", {"version": 9})]
    for _, _, answer in answers:
        assert str(tmp_path) not in json.dumps(answer)
