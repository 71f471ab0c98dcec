"""Changes of clients that speak the namespace dialect: pylance's, lance_duck's own, and the calls of lance-spark."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import lance
import lance.namespace
import lance_namespace as model
import lance_namespace.errors as failures
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client.models import AddColumnsEntry, AlterColumnsEntry

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, NotFoundError, ReferencedError
from lance_duck.serve.run import Server

ROWS = pa.table({"id": [1, 2, 3], "s": ["a", "b", "c"], "v": pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float32(), 2))})


def stream(rows: pa.Table) -> bytes:
    """Return rows as an Arrow IPC stream."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return sink.getvalue()


@pytest.fixture
def client(server: Server) -> Any:
    """pylance's client of the server."""
    return lance.namespace.RestNamespace(uri=server.url)


@pytest.fixture
def folder(tmp_path: Path) -> ld.DirectoryNamespace:
    """The names in the folder of the server."""
    return ld.DirectoryNamespace(str(tmp_path / "served"))


def test_pylance_changes_rows(client: Any, folder: ld.DirectoryNamespace) -> None:
    created = client.create_table(model.CreateTableRequest(id=["t"]), stream(ROWS))
    assert (created.version, created.location) == (1, folder.open_table("t").uri)
    added = client.insert_into_table(model.InsertIntoTableRequest(id=["t"], mode="append"), stream(ROWS))
    assert (added.version, added.num_inserted_rows) == (2, 3)
    request = model.UpdateTableRequest(id=["t"], predicate="id = 1", updates=[["s", "'x'"], ["id", "id + 10"]])
    assert client.update_table(request).updated_rows == 2
    assert client.delete_from_table(model.DeleteFromTableRequest(id=["t"], predicate="id = 2")).version == 4
    keys = {"on": ["id", "s"], "when_matched_update_all": True, "when_not_matched_insert_all": True}
    merged = client.merge_insert_into_table(
        model.MergeInsertIntoTableRequest(id=["t"], **keys, timeout="30s"), stream(ROWS.slice(0, 2))
    )
    assert (merged.num_inserted_rows, merged.num_updated_rows, merged.num_deleted_rows) == (2, 0, 0)
    assert sorted(folder.open_table("t").to_table()["id"].to_pylist()) == [1, 2, 3, 3, 11, 11]
    replaced = client.insert_into_table(model.InsertIntoTableRequest(id=["t"], mode="overwrite"), stream(ROWS))
    assert lance.dataset(folder.open_table("t").uri, replaced.version).to_table().equals(ROWS)


def test_pylance_changes_columns_versions_and_tags(client: Any, folder: ld.DirectoryNamespace) -> None:
    folder.create_table("t", ROWS)
    added = AddColumnsEntry(name="y", expression="id + 1")
    client.alter_table_add_columns(model.AlterTableAddColumnsRequest(id=["t"], new_columns=[added]))
    altered = AlterColumnsEntry(path="y", rename="z", data_type={"type": "int32"})
    client.alter_table_alter_columns(model.AlterTableAlterColumnsRequest(id=["t"], alterations=[altered]))
    assert folder.open_table("t").schema.field("z").type == pa.int32()
    client.alter_table_drop_columns(model.AlterTableDropColumnsRequest(id=["t"], columns=["z"]))
    request = model.UpdateTableSchemaMetadataRequest(id=["t"], metadata={"owner": "me"})
    assert client.update_table_schema_metadata(request).metadata == {"owner": "me"}
    client.create_table_tag(model.CreateTableTagRequest(id=["t"], tag="one", version=1))
    with pytest.raises(failures.TableTagAlreadyExistsError):
        client.create_table_tag(model.CreateTableTagRequest(id=["t"], tag="one", version=1))
    client.update_table_tag(model.UpdateTableTagRequest(id=["t"], tag="one", version=2))
    assert folder.open_table("t").tags.get_version("one") == 2
    client.delete_table_tag(model.DeleteTableTagRequest(id=["t"], tag="one"))
    with pytest.raises(failures.TableTagNotFoundError):
        client.delete_table_tag(model.DeleteTableTagRequest(id=["t"], tag="one"))
    with pytest.raises(failures.TableVersionNotFoundError):
        client.restore_table(model.RestoreTableRequest(id=["t"], version=99))
    client.restore_table(model.RestoreTableRequest(id=["t"], version=1))
    assert folder.open_table("t").version == 6
    assert folder.open_table("t").schema.equals(ROWS.schema)


def test_pylance_builds_and_drops_indexes(client: Any, folder: ld.DirectoryNamespace) -> None:
    folder.create_table("t", ROWS)
    vectors = {"column": "v", "index_type": "IVF_FLAT", "distance_type": "cosine", "num_partitions": 1}
    client.create_table_index(model.CreateTableIndexRequest(id=["t"], **vectors))
    texts = {"column": "s", "index_type": "INVERTED", "with_position": True, "stem": False}
    client.create_table_index(model.CreateTableIndexRequest(id=["t"], **texts))
    scalar = {"column": "id", "index_type": "BTREE", "name": "mine"}
    client.create_table_scalar_index(model.CreateTableIndexRequest(id=["t"], **scalar))
    found = client.list_table_indices(model.ListTableIndicesRequest(id=["t"])).indexes
    assert [(i.index_name, i.columns, i.index_type, i.status) for i in found] == [
        ("mine", ["id"], "BTREE", "done"),
        ("s_idx", ["s"], "FTS", "done"),
        ("v_idx", ["v"], "IVF_FLAT", "done"),
    ]
    stats = client.describe_table_index_stats(model.DescribeTableIndexStatsRequest(id=["t"], index_name="v_idx"))
    assert (stats.distance_type, stats.num_indexed_rows, stats.num_unindexed_rows) == ("cosine", 3, 0)
    client.drop_table_index(model.DropTableIndexRequest(id=["t"], index_name="mine"))
    with pytest.raises(failures.TableIndexNotFoundError):
        client.drop_table_index(model.DropTableIndexRequest(id=["t"], index_name="mine"))
    with pytest.raises(failures.TableColumnNotFoundError):
        client.create_table_index(model.CreateTableIndexRequest(id=["t"], column="nope", index_type="BTREE"))


@pytest.mark.parametrize("name", [["t"], ["a", "t"]])
def test_pylance_writes_a_table_by_its_name(client: Any, folder: ld.DirectoryNamespace, name: list[str]) -> None:
    client.create_namespace(model.CreateNamespaceRequest(id=["a"]))
    place = {"namespace_client": client, "table_id": name}
    lance.write_dataset(ROWS, **place)
    lance.write_dataset(ROWS, mode="append", **place)
    assert folder.open_table(name).count_rows() == lance.dataset(**place).count_rows() == 6
    lance.write_dataset(ROWS.select(["id"]), mode="overwrite", **place)
    assert folder.open_table(name).schema.names == ["id"]


def test_pylance_changes_names(client: Any, folder: ld.DirectoryNamespace) -> None:
    with pytest.raises(failures.NamespaceNotFoundError):
        client.create_table(model.CreateTableRequest(id=["a", "t"]), stream(ROWS))
    client.create_namespace(model.CreateNamespaceRequest(id=["a"], mode="Create", properties={"x": "y"}))
    with pytest.raises(failures.NamespaceAlreadyExistsError):
        client.create_namespace(model.CreateNamespaceRequest(id=["a"]))
    client.create_namespace(model.CreateNamespaceRequest(id=["a"], mode="ExistOk"))
    assert client.describe_namespace(model.DescribeNamespaceRequest(id=["a"])).properties == {"x": "y"}
    client.create_table(model.CreateTableRequest(id=["a", "t"]), stream(ROWS))
    with pytest.raises(failures.TableAlreadyExistsError):
        client.create_table(model.CreateTableRequest(id=["a", "t"]), stream(ROWS))
    client.rename_table(model.RenameTableRequest(id=["a", "t"], new_table_name="u"))
    gone = client.deregister_table(model.DeregisterTableRequest(id=["a", "u"]))
    assert (gone.id, folder.list_tables("a")) == (["a", "u"], [])
    client.register_table(model.RegisterTableRequest(id=["a", "v"], location=gone.location))
    assert folder.open_table("a$v").count_rows() == 3
    with pytest.raises(failures.NamespaceNotEmptyError):
        client.drop_namespace(model.DropNamespaceRequest(id=["a"], behavior="Restrict"))
    assert client.drop_table(model.DropTableRequest(id=["a", "v"])).location == gone.location
    client.drop_namespace(model.DropNamespaceRequest(id=["a"]))
    client.drop_namespace(model.DropNamespaceRequest(id=["a"], mode="Skip"))
    with pytest.raises(failures.NamespaceNotFoundError):
        client.drop_namespace(model.DropNamespaceRequest(id=["a"]))
    with pytest.raises(failures.TableNotFoundError):
        client.drop_table(model.DropTableRequest(id=["v"]))


def test_our_own_client_changes_tables_and_names(server: Server, folder: ld.DirectoryNamespace) -> None:
    rest = ld.connect_namespace("rest", {"uri": server.url})
    rest.create_namespace("a", {"owner": "ann"})
    assert rest.describe_namespace("a") == {"owner": "ann"}
    for name in ("t", "a$u"):
        assert rest.create_table(name, ROWS).count_rows() == 3
        assert rest.create_table(name, ROWS, mode="append").count_rows() == 6
        with pytest.raises(AlreadyExistsError):
            rest.create_table(name, ROWS)
    rest.rename_table("t", "s")
    rest.rename_table("a$u", "a$w")
    assert (rest.list_tables(), rest.list_tables("a"), rest.list_namespaces()) == (["s"], ["w"], ["a"])
    with pytest.raises(ReferencedError):
        rest.drop_namespace("a")
    with pytest.raises(NotFoundError):
        rest.drop_table("t")
    rest.deregister_table("a$w")
    rest.drop_namespace("a")
    rest.drop_table("s")
    assert folder.list_tables() == folder.list_namespaces() == []


def test_sql_changes_tables_of_an_attached_server(server: Server, folder: ld.DirectoryNamespace) -> None:
    folder.create_namespace("a")
    with ld.connect() as con:
        con.execute(f"ATTACH 'a' AS s (TYPE lance, ENDPOINT '{server.url}')")
        con.execute(f"ATTACH '$' AS root (TYPE lance, ENDPOINT '{server.url}')")
        con.execute("CREATE TABLE s.t AS SELECT 7 AS y")
        con.execute("CREATE TABLE root.r AS SELECT 8 AS y")
        con.execute("INSERT INTO s.t VALUES (9)")
        con.execute("UPDATE root.r SET y = 10")
        con.execute("ALTER TABLE s.t RENAME TO u")
        con.execute("DROP TABLE root.r")
        assert con.execute("FROM s.u").fetchall() == [(7,), (9,)]
    assert (folder.list_tables("a"), folder.list_tables()) == (["u"], [])


class Caller:
    """Sends requests as lance-spark's client does."""

    def __init__(self, server: Server) -> None:
        self._url = server.url

    def __call__(
        self, path: str, body: Any = None, method: str = "POST", key: str = "code", **fields: object
    ) -> tuple[int, Any]:
        """Return the status and the JSON value of an answer, or one of the keys of an error."""
        query = "".join(f"&{name}={value}" for name, value in fields.items())
        data = None if body is None else json.dumps(body).encode()
        url = f"{self._url}/v1/{path}?delimiter=%24{query}"
        request = Request(url, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(request) as answer:
                return answer.status, json.loads(answer.read() or b"{}")
        except HTTPError as error:
            return error.code, json.load(error)[key]


@pytest.fixture
def call(server: Server) -> Caller:
    """Sends requests to the server."""
    return Caller(server)


def test_the_calls_of_spark(call: Caller, folder: ld.DirectoryNamespace) -> None:
    assert call("namespace/%24/list", method="GET") == (200, {"namespaces": []})
    assert call("namespace/a/exists", {"id": ["a"]}) == (404, 1)
    assert call("namespace/a/describe", {"id": ["a"]}) == (404, 1)
    assert call("namespace/a/create", {"id": ["a"], "properties": {"x": "y"}})[0] == 200
    assert call("namespace/a/exists", {"id": ["a"]})[0] == 200
    assert call("table/a%24t/exists", {"id": ["a", "t"]}) == (404, 4)
    for name in ("t", "u", "w"):
        status, place = call(f"table/a%24{name}/declare", {"id": ["a", name]})
        assert status == 200
        ld.write_dataset(ROWS, place["location"])
    assert call("table/a%24t/exists", {"id": ["a", "t"]})[0] == 200
    assert call("table/a%24t/describe", {"id": ["a", "t"]})[1]["location"] == folder.open_table("a$t").uri
    pages, token = [], ""
    while token is not None:
        fields = {"limit": 2, **({"page_token": token} if token else {})}
        answer = call("namespace/a/table/list", method="GET", **fields)[1]
        pages.append(answer["tables"])
        token = answer.get("page_token")
    assert pages == [["t", "u"], ["w"]]
    renamed = {"id": ["a", "t"], "new_table_name": "s", "new_namespace_id": ["a"]}
    assert call("table/a%24t/rename", renamed)[0] == 200
    location = call("table/a%24s/deregister", {"id": ["a", "s"]})[1]["location"]
    assert call("table/a%24r/register", {"id": ["a", "r"], "location": location})[0] == 200
    assert call("table/a%24r/drop", {"id": ["a", "r"]})[0] == 200
    assert call("namespace/a/drop", {"id": ["a"], "behavior": "Restrict"}) == (400, 3)
    assert call("namespace/a/drop", {"id": ["a"], "behavior": "Cascade"})[0] == 200
    assert call("namespace/a/drop", {"id": ["a"]}) == (404, 1)
    assert folder.list_namespaces() == []


def test_a_folder_has_one_name(call: Caller, folder: ld.DirectoryNamespace) -> None:
    folder.create_table("t", ROWS)
    folder.create_namespace("a")
    folder.create_table("a$t", ROWS)
    inside = folder.open_table("a$t").uri.rpartition("/")[2]
    for location in ("t.lance", "./t.lance/", "t.lance/data", inside, folder.open_table("t").uri):
        assert call("table/alias/register", {"location": location}) == (400, 5)
    assert (folder.list_tables(), folder.list_tables("a")) == (["t"], ["t"])
    assert call("table/t/deregister", {})[0] == 200
    assert call("table/alias/register", {"location": "t.lance"})[0] == 200
    assert folder.list_tables() == ["alias"]
    assert folder.open_table("alias").count_rows() == 3


@pytest.mark.parametrize("is_sql", [False, True])
def test_a_drop_keeps_files_that_another_name_shares(call: Caller, folder: ld.DirectoryNamespace, is_sql: bool) -> None:
    folder.create_table("t", ROWS)
    folder.create_namespace("a")
    folder.register_table("a$t", "t.lance")
    if is_sql:
        with ld.connect(folder.root) as con:
            con.execute("DROP TABLE a.t")
    else:
        assert call("table/a%24t/drop", {})[0] == 200
    assert (folder.list_tables(), folder.list_tables("a")) == (["t"], [])
    assert folder.open_table("t").count_rows() == 3
    folder.register_table("a$t", "t.lance")
    assert call("table/t/drop", {})[0] == 200
    assert folder.list_tables() == []
    assert folder.open_table("a$t").count_rows() == 3
    assert call("table/a%24t/drop", {})[0] == 200
    with pytest.raises(NotFoundError):
        ld.dataset(f"{folder.root}/t.lance")


def test_a_server_keeps_locations_to_itself(start: Callable[..., Server], tmp_path: Path) -> None:
    call = Caller(start(tmp_path, write=True, locations=False))
    ld.write_dataset(ROWS, tmp_path / "t.lance")
    assert call("table/u/declare", {}) == (406, 0)
    assert call("table/u/register", {"location": "t.lance"}) == (406, 0)
    assert "location" not in call("table/t/describe", {})[1]
    assert str(tmp_path) not in call("table/nope/drop", {}, key="error")[1]
    assert call("table/t/drop", {}) == (200, {"id": ["t"]})


def test_a_reader_changes_nothing(start: Callable[..., Server], tmp_path: Path) -> None:
    ld.write_dataset(ROWS, tmp_path / "t.lance")
    call = Caller(start(tmp_path))
    paths = ("table/t/drop", "table/t/delete", "table/t/tags/create", "table/t/index/x/drop", "namespace/a/create")
    assert [call(path, {}) for path in paths] == [(403, 15)] * len(paths)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("table/t/update", {"updates": []}),
        ("table/t/update", {"updates": [["s"]]}),
        ("table/t/update", {"updates": [["s", "'a'"], ["s", "'b'"]]}),
        ("table/t/update", {"updates": [["s", "'a'"]], "unknown": 1}),
        ("table/t/update", {"updates": [["s", "(SELECT content FROM read_text('/etc/hostname'))"]]}),
        ("table/t/delete", {"predicate": ""}),
        ("table/t/delete", {"predicate": None}),
        ("table/t/delete", {"predicate": "true", "id": ["u"]}),
        ("table/t/delete", {"predicate": ["true"]}),
        ("table/t/delete", ["true"]),
        ("table/t/add_columns", {"new_columns": [{"name": "y"}]}),
        ("table/t/add_columns", {"new_columns": [{"name": "y", "computed": "id"}]}),
        ("table/t/add_columns", {"new_columns": [{"name": "y", "expression": "1"}] * 2}),
        ("table/t/alter_columns", {"alterations": [{"path": "id"}]}),
        ("table/t/alter_columns", {"alterations": [{"path": "id", "data_type": {"type": "nope"}}]}),
        ("table/t/alter_columns", {"alterations": [{"path": "id", "name": "x"}]}),
        ("table/t/drop_columns", {"columns": "id"}),
        ("table/t/drop_columns", {"columns": []}),
        ("table/t/drop_columns", {"columns": ["id", "s", "v"]}),
        ("table/t/restore", {"version": -1}),
        ("table/t/restore", {"version": True}),
        ("table/t/restore", {}),
        ("table/t/tags/create", {"tag": "../x", "version": 1}),
        ("table/t/tags/create", {"tag": "x", "version": "1"}),
        ("table/t/create_index", {"column": "id", "index_type": "BTREE", "num_partitions": 2}),
        ("table/t/create_index", {"column": "id", "index_type": "BTREE", "stem": True}),
        ("table/t/create_index", {"column": "v", "index_type": "IVF_FLAT", "num_partitions": -1}),
        ("table/t/create_index", {"column": "v", "index_type": "IVF_FLAT", "stem": True}),
        ("table/t/create_index", {"column": "s", "index_type": "FTS", "language": "Klingon"}),
        ("table/t/create_index", {"column": "s", "index_type": "NOPE"}),
        ("table/t/rename", {"new_table_name": "../u"}),
        ("table/t/rename", {"new_table_name": "t"}),
        ("table/t/rename", {"new_table_name": "u", "new_namespace_id": ["a"], "new_namespace": ["b"]}),
        ("table/u/register", {"location": "../t.lance"}),
        ("table/u/register", {"location": "/etc"}),
        ("table/u/register", {"location": "t.lance/data"}),
        ("table/u/register", {"location": "__manifest"}),
        ("table/u/declare", {"location": "/etc/u.lance"}),
        ("table/%2e%2e/declare", {}),
        ("table/a%2fb/declare", {}),
        (f"table/{'u' * 300}/declare", {}),
        ("table/%24%24t/drop", {}),
        ("namespace/a/create", {"mode": "nope"}),
        ("namespace/a/create", {"properties": {"x": 1}}),
        ("namespace/%24/drop", {}),
        ("namespace/a%2fb/create", {}),
        ("table/t/update_field_metadata", {"updates": [{"path": "id", "metadata": {"x": 1}}]}),
        ("table/t/schema_metadata/update", {"x": 1}),
    ],
)
def test_a_malformed_request_changes_nothing(
    call: Caller, folder: ld.DirectoryNamespace, path: str, body: object
) -> None:
    folder.create_table("t", ROWS)
    assert 400 <= call(path, body)[0] < 500
    assert (folder.list_tables(), folder.list_namespaces()) == (["t"], [])
    assert folder.open_table("t").version == 1
