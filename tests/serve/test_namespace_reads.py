"""Clients of the Lance namespace specification: pylance's, with its own server as the oracle, and ours."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import lance
import lance.namespace
import lance_namespace_urllib3_client.models as m
import numpy as np
import pyarrow as pa
import pytest
from lance_namespace import (
    CountTableRowsRequest,
    DescribeTableRequest,
    ListTablesRequest,
    ListTableVersionsRequest,
    TableExistsRequest,
)
from lance_namespace.errors import (
    NamespaceNotFoundError,
    TableColumnNotFoundError,
    TableNotFoundError,
    TableTagNotFoundError,
    TableVersionNotFoundError,
)

import lance_duck as ld
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.run import Server

QUERY = [0.5] * 4
OTHER = [0.1] * 4


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    """A folder with tables in two namespaces, served by pylance and by us."""
    folder = tmp_path_factory.mktemp("with space")
    namespace = ld.connect_namespace("dir", {"root": str(folder), "manifest_enabled": "true"})
    vectors = np.random.default_rng(0).random(200, dtype=np.float32)
    rows = pa.table(
        {
            "id": range(50),
            "name": [f"{'duck' if i % 2 else 'lake'} n{i}" for i in range(50)],
            "vector": pa.FixedSizeListArray.from_arrays(vectors, 4),
        }
    )
    namespace.create_namespace("inner")
    for name in ("t", "u", "inner$t"):
        table = namespace.create_table(name, rows)
        table.create_scalar_index("name", "INVERTED")
        table.tags.create("first", 1)
        table.delete("id = 3")
    namespace.declare_table("declared")
    with (
        Server(ServeSettings(str(folder), port=0)) as server,
        lance.namespace.RestAdapter("dir", {"root": str(folder)}, port=0) as adapter,
    ):
        yield SimpleNamespace(
            folder=folder,
            url=server.url,
            ours=lance.namespace.RestNamespace(uri=server.url),
            theirs=lance.namespace.RestNamespace(uri=f"http://127.0.0.1:{adapter.port}"),
        )


def without_context(answer: Any) -> dict[str, Any]:
    return {name: value for name, value in answer.to_dict().items() if name != "context"}


def assert_same_answer(both: SimpleNamespace, call: Callable[[Any], Any]) -> dict[str, Any]:
    found = without_context(call(both.ours))
    assert found == without_context(call(both.theirs))
    return found


@pytest.mark.parametrize(
    "fields", [{}, {"limit": 2}, {"limit": 2, "page_token": "t"}, {"include_declared": False}], ids=str
)
def test_tables_are_listed(both: SimpleNamespace, fields: dict[str, Any]) -> None:
    assert_same_answer(both, lambda client: client.list_tables(ListTablesRequest(id=[], **fields)))


def test_tables_of_a_namespace_are_listed(both: SimpleNamespace) -> None:
    found = assert_same_answer(both, lambda client: client.list_tables(ListTablesRequest(id=["inner"])))
    assert found["tables"] == ["t"]


def test_all_tables_are_listed_with_their_whole_names(both: SimpleNamespace) -> None:
    answer = both.ours.list_all_tables(ListTablesRequest(id=[]))
    assert answer.tables == ["declared", "inner$t", "t", "u"]


@pytest.mark.parametrize("name", [["t"], ["inner", "t"]], ids=str)
@pytest.mark.parametrize("version", [None, 1])
def test_a_table_is_described(both: SimpleNamespace, name: list[str], version: int | None) -> None:
    request = DescribeTableRequest(id=name, version=version, load_detailed_metadata=True, with_table_uri=True)
    found, expected = (without_context(client.describe_table(request)) for client in (both.ours, both.theirs))
    for field in ("table", "namespace", "version", "is_only_declared"):
        assert found[field] == expected[field]
    assert found["stats"] == {"num_deleted_rows": int(version is None), "num_fragments": 1}
    types = [field["type"]["type"] for field in found["schema"]["fields"]]
    assert types == ["int64", "string", "fixed_size_list"]  # pylance's server says utf8
    for place in (found["table_uri"], found["location"]):
        assert lance.dataset(place, version=version).count_rows() == (49 if version is None else 50)


def test_a_declared_table_is_described_without_a_version(both: SimpleNamespace) -> None:
    request = DescribeTableRequest(id=["declared"], check_declared=True)
    found, expected = (client.describe_table(request) for client in (both.ours, both.theirs))
    assert found.is_only_declared
    assert (found.version, found.location) == (expected.version, expected.location)
    with pytest.raises(TableNotFoundError):
        both.ours.count_table_rows(CountTableRowsRequest(id=["declared"]))


def test_missing_names_have_their_own_errors(both: SimpleNamespace) -> None:
    client = both.ours
    calls: list[tuple[type[Exception], Callable[[], Any]]] = [
        (TableNotFoundError, lambda: client.describe_table(DescribeTableRequest(id=["nope"]))),
        (TableNotFoundError, lambda: client.table_exists(TableExistsRequest(id=["nope"]))),
        (TableNotFoundError, lambda: client.count_table_rows(CountTableRowsRequest(id=["inner", "nope"]))),
        (TableVersionNotFoundError, lambda: client.describe_table(DescribeTableRequest(id=["t"], version=9))),
        (TableTagNotFoundError, lambda: client.get_table_tag_version(m.GetTableTagVersionRequest(id=["t"], tag="x"))),
        (NamespaceNotFoundError, lambda: client.list_tables(ListTablesRequest(id=["nope"]))),
        (TableColumnNotFoundError, lambda: client.query_table(query(filter="nope = 1"))),
    ]
    for error, call in calls:
        with pytest.raises(error):
            call()


def test_a_table_exists(both: SimpleNamespace) -> None:
    both.ours.table_exists(TableExistsRequest(id=["inner", "t"]))
    both.ours.table_exists(TableExistsRequest(id=["declared"]))


@pytest.mark.parametrize("fields", [{}, {"predicate": "id > 4"}, {"version": 1}], ids=str)
def test_rows_are_counted(both: SimpleNamespace, fields: dict[str, Any]) -> None:
    assert_same_answer(both, lambda client: client.count_table_rows(CountTableRowsRequest(id=["t"], **fields)))


def test_versions_are_listed_in_pages(both: SimpleNamespace) -> None:
    def listed(client: Any, **fields: Any) -> list[tuple[int, int]]:
        answer = client.list_table_versions(ListTableVersionsRequest(id=["t"], **fields))
        return [(each.version, each.manifest_size) for each in answer.versions]

    for fields in ({}, {"descending": True}, {"descending": True, "limit": 2}):
        assert listed(both.ours, **fields) == listed(both.theirs, **fields)
    first = both.ours.list_table_versions(ListTableVersionsRequest(id=["t"], limit=2))
    rest = listed(both.ours, page_token=first.page_token)
    assert [*(each.version for each in first.versions), *(version for version, _ in rest)] == [1, 2, 3]


def test_a_version_is_described(both: SimpleNamespace) -> None:
    found, expected = (
        client.describe_table_version({"id": ["t"], "version": 1})["version"] for client in (both.ours, both.theirs)
    )
    assert (found["version"], found["manifest_size"]) == (expected["version"], expected["manifest_size"])
    assert Path(found["manifest_path"]).stat().st_size == found["manifest_size"]


def test_tags_are_listed(both: SimpleNamespace) -> None:
    assert_same_answer(both, lambda client: client.list_table_tags(m.ListTableTagsRequest(id=["t"])))
    assert_same_answer(
        both, lambda client: client.get_table_tag_version(m.GetTableTagVersionRequest(id=["t"], tag="first"))
    )


def test_a_table_has_statistics(both: SimpleNamespace) -> None:
    found, expected = (client.get_table_stats(m.GetTableStatsRequest(id=["t"])) for client in (both.ours, both.theirs))
    assert found.fragment_stats == expected.fragment_stats
    assert found.num_indices == expected.num_indices
    assert found.num_rows == 49  # pylance's server counts deleted rows


def query(**fields: Any) -> m.QueryTableRequest:
    return m.QueryTableRequest(**{"id": ["t"], "k": 3, "vector": m.QueryTableRequestVector(), **fields})


def vector(**fields: Any) -> m.QueryTableRequestVector:
    return m.QueryTableRequestVector(**fields)


def words(text: str) -> m.QueryTableRequestFullTextQuery:
    return m.QueryTableRequestFullTextQuery(string_query=m.StringFtsQuery(query=text))


def tree(**fields: Any) -> m.QueryTableRequestFullTextQuery:
    return m.QueryTableRequestFullTextQuery(structured_query=m.StructuredFtsQuery(query=m.FtsQuery(**fields)))


QUERIES = {
    "vector": query(vector=vector(single_vector=QUERY)),
    "columns and row ids": query(
        vector=vector(single_vector=QUERY),
        columns=m.QueryTableRequestColumns(column_names=["id"]),
        with_row_id=True,
        filter="id > 5",
        prefilter=True,
    ),
    "range": query(vector=vector(single_vector=QUERY), lower_bound=0.05, upper_bound=0.4, k=20),
    "metric": query(vector=vector(single_vector=QUERY), distance_type="cosine"),
    "column": query(vector=vector(single_vector=QUERY), vector_column="vector"),
    "scan": query(),
    "filter": query(filter="id > 40", offset=2, k=5),
    "aliases": query(columns=m.QueryTableRequestColumns(column_aliases={"x": "id"})),
    "old version": query(version=1, k=50),
    "words": query(full_text_query=words("n5")),
    "match": query(full_text_query=tree(match=m.MatchQuery(terms="n5", column="name"))),
    "boolean": query(
        full_text_query=tree(
            boolean=m.BooleanQuery(
                must=[m.FtsQuery(match=m.MatchQuery(terms="n5", column="name"))],
                must_not=[m.FtsQuery(match=m.MatchQuery(terms="lake", column="name"))],
                should=[],
            )
        )
    ),
}


@pytest.mark.parametrize("request_", QUERIES.values(), ids=QUERIES)
def test_a_query_returns_an_arrow_file(both: SimpleNamespace, request_: m.QueryTableRequest) -> None:
    found, expected = (
        pa.ipc.open_file(io.BytesIO(client.query_table(request_).data)).read_all()
        for client in (both.ours, both.theirs)
    )
    assert found.schema.names == expected.schema.names
    assert found.schema.types == expected.schema.types
    computed = [name for name in found.schema.names if name in ("_distance", "_score")]
    assert found.drop_columns(computed).to_pylist() == expected.drop_columns(computed).to_pylist()
    for name in computed:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-4)


def test_a_limit_and_an_offset_apply_to_a_search(both: SimpleNamespace) -> None:
    """pylance's server subtracts the offset from the limit, and takes a limit of 0 for none."""

    def ids(**fields: Any) -> list[int]:
        request = query(vector=vector(single_vector=QUERY), **fields)
        return pa.ipc.open_file(io.BytesIO(both.ours.query_table(request).data)).read_all()["id"].to_pylist()

    assert ids(k=3, offset=2) == ids(k=5)[2:]
    assert ids(k=0) == []


def test_several_vectors_return_their_own_rows(both: SimpleNamespace) -> None:
    """pylance's server searches for the first vector only."""
    rows = pa.ipc.open_file(
        io.BytesIO(both.ours.query_table(query(vector=vector(multi_vector=[QUERY, OTHER]))).data)
    ).read_all()
    assert rows["query_index"].to_pylist() == [0, 0, 0, 1, 1, 1]


def test_a_vector_and_words_are_a_hybrid_search(both: SimpleNamespace) -> None:
    """pylance's server refuses it."""
    request = query(vector=vector(single_vector=QUERY), full_text_query=words("n5"))
    rows = pa.ipc.open_file(io.BytesIO(both.ours.query_table(request).data)).read_all()
    assert rows.schema.names[-3:] == ["_distance", "_score", "_hybrid_score"]
    assert 5 in rows["id"].to_pylist()


def test_plans_are_explained(both: SimpleNamespace) -> None:
    search = query(vector=vector(single_vector=QUERY))
    plan = both.ours.explain_table_query_plan(m.ExplainTableQueryPlanRequest(id=["t"], query=search, verbose=True))
    assert "3 nearest of vector" in str(plan)
    analyzed = both.ours.analyze_table_query_plan(
        m.AnalyzeTableQueryPlanRequest(id=["t"], k=3, vector=vector(single_vector=QUERY))
    )
    assert "read: " in str(analyzed)


def test_another_delimiter_is_accepted(both: SimpleNamespace) -> None:
    client = lance.namespace.RestNamespace(uri=both.url, delimiter="/")
    assert client.list_tables(ListTablesRequest(id=["inner"])).tables == ["t"]
    assert client.count_table_rows(CountTableRowsRequest(id=["inner", "t"])).count == 49


def test_our_client_opens_tables(both: SimpleNamespace) -> None:
    namespace = ld.connect_namespace("rest", {"uri": both.url})
    assert namespace.list_tables() == ["declared", "t", "u"]
    assert namespace.list_tables("inner") == ["t"]
    assert namespace.table_exists("inner$t")
    assert not namespace.table_exists("nope")
    assert namespace.open_table("inner$t", 1).count_rows() == 50
    assert namespace.open_table("t").to_table(filter="id < 5")["id"].to_pylist() == [0, 1, 2, 4]


def test_pylance_opens_a_table_by_its_name(both: SimpleNamespace) -> None:
    table = lance.dataset(namespace_client=both.ours, table_id=["inner", "t"])
    assert table.count_rows() == 49


def test_dictionaries_fit_into_a_file(start: Callable[..., Server], tmp_path: Path) -> None:
    """Batches of a file share their dictionaries, and the fragments of this table do not."""
    for words_ in (["a", "b"], ["c", "a"]):
        column = pa.array(words_).dictionary_encode()
        ld.write_dataset(pa.table({"x": column, "y": pa.array([{"z": None}] * 2)}), tmp_path / "t.lance", mode="append")
    client = lance.namespace.RestNamespace(uri=start(tmp_path).url)
    rows = pa.ipc.open_file(io.BytesIO(client.query_table(query()).data)).read_all()
    assert rows["x"].to_pylist() == ["a", "b", "c"]


def status_of(url: str, body: Any = None) -> tuple[int, int | None]:
    """Return the status and the error code of a POST request."""
    try:
        with urlopen(Request(url, json.dumps(body or {}).encode())) as answer:
            return answer.status, None
    except HTTPError as error:
        return error.code, json.load(error)["code"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("table/$$t/describe", (400, 13)),
        ("table/a%24b%2F..%2F..%2Ft/describe", (404, 4)),
        ("table/..%2F..%2Fetc/describe", (404, 4)),
        ("table/%00/describe", (400, 13)),
        ("table/$/describe", (404, 4)),
        ("table/t/describe?delimiter=", (400, 13)),
        ("table/inner$t/describe?delimiter=.", (400, 13)),
        ("table/batch-commit", (406, 0)),
        ("table/t/clone", (406, 0)),
        ("transaction/x/describe", (406, 0)),
        ("table/t/nope", (404, 4)),
    ],
)
def test_strange_paths_are_refused(both: SimpleNamespace, path: str, expected: tuple[int, int]) -> None:
    assert status_of(f"{both.url}/v1/{path}") == expected
