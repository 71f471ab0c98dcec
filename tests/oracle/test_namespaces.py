"""Namespaces that pylance, LanceDB and this package change in turns, in a folder and through REST."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import lance_namespace
import lancedb
import pyarrow as pa
import pytest
from lance import namespace as theirs

import lance_duck as ld
from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    NotFoundError,
    ReferencedError,
    StoreError,
)

ROWS = {"x": [1, 2]}


@pytest.fixture
def rest(tmp_path: Path) -> Iterator[ld.RestNamespace]:
    with theirs.RestAdapter("dir", {"root": str(tmp_path)}, port=0) as adapter:
        namespace = ld.connect_namespace("rest", {"uri": f"http://127.0.0.1:{adapter.port}"})
        assert isinstance(namespace, ld.RestNamespace)
        yield namespace


def tables_of(namespace: Any, *name: str) -> list[str]:
    return sorted(namespace.list_tables(theirs.ListTablesRequest(id=[*name])).tables)


def namespaces_of(namespace: Any, *name: str) -> list[str]:
    return sorted(namespace.list_namespaces(theirs.ListNamespacesRequest(id=[*name])).namespaces)


def test_pylance_finds_and_extends_tables_of_a_directory_namespace(tmp_path: Path) -> None:
    ours = ld.DirectoryNamespace(str(tmp_path))
    ours.create_table("t", ROWS)
    ours.create_namespace("a", {"owner": "ann"})
    ours.create_table("a$u", ROWS)
    pylance = theirs.DirectoryNamespace(root=str(tmp_path))
    assert (tables_of(pylance), tables_of(pylance, "a"), namespaces_of(pylance)) == (["t"], ["u"], ["a"])
    assert pylance.describe_namespace(theirs.DescribeNamespaceRequest(id=["a"])).properties == {"owner": "ann"}
    place = pylance.describe_table(theirs.DescribeTableRequest(id=["a", "u"])).location
    assert place == f"file://{ours.describe_table('a$u').location}"
    pylance.create_namespace(theirs.CreateNamespaceRequest(id=["a", "b"], properties={"k": "v"}))
    assert ours.list_namespaces("a") == ["b"]
    assert ours.describe_namespace("a$b") == {"k": "v"}
    ours.rename_table("a$u", "a$b$w")
    assert tables_of(pylance, "a", "b") == ["w"]
    ours.deregister_table("t")
    assert tables_of(pylance) == []
    ours.register_table("t", "t.lance")
    assert tables_of(pylance) == ["t"]
    pylance.drop_table(theirs.DropTableRequest(id=["a", "b", "w"]))
    pylance.drop_namespace(theirs.DropNamespaceRequest(id=["a", "b"]))
    assert ours.list_namespaces("a") == []


def test_tables_of_pylance_are_found_and_opened(tmp_path: Path) -> None:
    pylance = theirs.DirectoryNamespace(root=str(tmp_path))
    pylance.create_namespace(theirs.CreateNamespaceRequest(id=["a"]))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema({"x": pa.int64()})) as stream:
        stream.write_table(pa.table(ROWS))
    for name in (["t"], ["a", "u"]):
        pylance.create_table(theirs.CreateTableRequest(id=name), sink.getvalue().to_pybytes())
    pylance.declare_table(theirs.DeclareTableRequest(id=["a", "later"]))
    ours = ld.DirectoryNamespace(str(tmp_path))
    assert (ours.list_tables(), ours.list_tables("a")) == (["t"], ["later", "u"])
    for name in ("t", "a$u"):
        assert ours.open_table(name).to_table().to_pydict() == ROWS
    assert ours.create_table("a$later", ROWS).count_rows() == 2
    pylance.deregister_table(theirs.DeregisterTableRequest(id=["a", "u"]))
    assert ours.list_tables("a") == ["later"]


def test_lancedb_lists_and_opens_our_tables(tmp_path: Path) -> None:
    ours = ld.DirectoryNamespace(str(tmp_path))
    ours.create_table("t", ROWS)
    ours.create_namespace("a")
    ours.create_table("a$u", ROWS)
    db = lancedb.connect(str(tmp_path))
    assert list(db.list_tables().tables) == ["t"]
    assert db.open_table("t").to_arrow().to_pydict() == ROWS
    assert list(db.list_tables(namespace_path=["a"]).tables) == ["u"]
    assert db.open_table("u", namespace_path=["a"]).to_arrow().to_pydict() == ROWS
    db.create_table("v", pa.table(ROWS), namespace_path=["a"])
    assert ours.list_tables("a") == ["u", "v"]


def test_a_rest_service_lists_creates_and_drops_tables(rest: ld.RestNamespace) -> None:
    rest.create_namespace("a", {"owner": "ann"})
    assert rest.describe_namespace("a") == {"owner": "ann"}
    for name in ("t", "a$u"):
        assert rest.create_table(name, ROWS).count_rows() == 2
        assert rest.create_table(name, ROWS, mode="append").count_rows() == 4
        assert rest.open_table(name, 1).to_table().to_pydict() == ROWS
    assert (rest.list_tables(), rest.list_tables("a"), rest.list_namespaces()) == (["t"], ["u"], ["a"])
    assert pickle.loads(pickle.dumps(rest)).list_tables() == ["t"]
    with pytest.raises(ReferencedError):
        rest.drop_namespace("a")
    rest.deregister_table("a$u")
    rest.drop_namespace("a")
    rest.drop_table("t")
    assert rest.list_tables() == rest.list_namespaces() == []


def test_rest_errors_become_lance_duck_errors(rest: ld.RestNamespace) -> None:
    rest.create_namespace("a")
    rest.create_table("a$t", ROWS)
    for call in (lambda: rest.create_namespace("a"), lambda: rest.create_table("a$t", ROWS)):
        with pytest.raises(AlreadyExistsError):
            call()
    for call in (lambda: rest.open_table("t"), lambda: rest.describe_namespace("b"), lambda: rest.drop_table("a$u")):
        with pytest.raises(NotFoundError):
            call()
    with pytest.raises(InvalidInputError):
        rest.create_table("a$t/u", ROWS)
    nobody = ld.RestNamespace("http://user:secret@127.0.0.1:9", headers={"Authorization": "Bearer hidden"})
    with pytest.raises(StoreError, match="does not respond") as caught:
        nobody.list_tables()
    assert "secret" not in f"{caught.value} {nobody!r}"


def test_namespaces_are_attached_in_sql(tmp_path: Path, rest: ld.RestNamespace) -> None:
    namespace = ld.DirectoryNamespace(str(tmp_path))
    namespace.create_namespace("a")
    namespace.create_table("a$t", ROWS)
    with ld.connect() as con:
        con.execute(f"ATTACH '{tmp_path}' AS f (TYPE lance, NAMESPACE 'a')")
        con.execute(f"ATTACH 'a' AS s (TYPE lance, ENDPOINT '{rest.uri}')")
        con.execute(f"ATTACH '$' AS root (TYPE lance, ENDPOINT '{rest.uri}')")
        assert con.execute("FROM f.t").fetchall() == con.execute("FROM s.t").fetchall() == [(1,), (2,)]
        con.execute("CREATE TABLE f.u AS SELECT 7 AS y")
        con.execute("CREATE TABLE root.r AS SELECT 8 AS y")
        con.execute("INSERT INTO s.u VALUES (9)")
        assert con.execute("SELECT sum(y) FROM f.u").fetchall() == [(16,)]
        con.execute("ALTER TABLE f.u RENAME TO v")
        assert con.execute("SHOW TABLES FROM s").fetchall() == [("t",), ("v",)]
        con.execute("DROP TABLE s.v")
        with pytest.raises(ld.LanceDuckError):
            con.execute("CREATE TABLE f.w AS SELECT INTERVAL 1 DAY AS i")
    assert (namespace.list_tables("a"), namespace.list_tables()) == (["t"], ["r"])


def test_a_deregistered_table_is_not_visible_in_sql(tmp_path: Path) -> None:
    namespace = ld.DirectoryNamespace(str(tmp_path))
    for name in ("t", "u"):
        namespace.create_table(name, ROWS)
    namespace.deregister_table("t")
    with ld.connect(tmp_path) as con:
        assert con.execute("SHOW TABLES FROM lance").fetchall() == [("u",)]


def test_a_client_and_a_name_are_accepted_to_write_and_open_tables(tmp_path: Path) -> None:
    client = lance_namespace.connect("dir", {"root": str(tmp_path)})
    table = ld.write_dataset(ROWS, namespace_client=client, table_id=["t"])
    table = ld.write_dataset(ROWS, namespace_client=client, table_id=["t"], mode="append")
    assert ld.dataset(namespace_client=client, table_id=["t"], version=1).count_rows() == 2
    assert lance.dataset(namespace_client=client, table_id=["t"]).count_rows() == table.count_rows() == 4
    ours = ld.connect_namespace("dir", {"root": str(tmp_path)})
    assert ld.write_dataset(ROWS, namespace_client=ours, table_id=["u"], mode="overwrite").count_rows() == 2
    assert lance.dataset(namespace_client=client, table_id=["u"]).count_rows() == 2
    with pytest.raises(AlreadyExistsError, match="t: the catalog refuses declare_table"):
        ld.write_dataset(ROWS, namespace_client=client, table_id=["t"])
    with pytest.raises(NotFoundError, match="none: the catalog refuses describe_table"):
        ld.dataset(namespace_client=client, table_id=["none"])
    with pytest.raises(InvalidInputError, match="uri and namespace_client exclude each other"):
        ld.dataset("t", namespace_client=client, table_id=["t"])
    with pytest.raises(InvalidInputError, match="expected a LanceNamespace"):
        ld.dataset(namespace_client=3, table_id=["t"])
