"""Folders with views, macros and types that pylance and LanceDB change: the objects stay, and tables stay readable."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import lance
import lancedb
import pyarrow as pa
import pytest
from lance import namespace as theirs
from versions.environments import VERSIONS, python_of

import lance_duck as ld
from lance_duck.errors import UnsupportedError
from lance_duck.namespaces import CatalogDraft, CatalogObject, MacroDefinition, TypeDefinition, ViewDefinition
from lance_duck.namespaces.listing import Listing, ListingChange, NamedObject

ROWS: Final = {"x": [1, 2]}
OBJECTS: Final[tuple[CatalogObject, ...]] = (
    ViewDefinition(name="v", query="SELECT x -- 'ä'\nFROM t", uuid="u", created_ms=1, comment="a\tb"),
    ViewDefinition(name="s$v", query="FROM t", uuid="w", created_ms=2, schema=(("x", "BIGINT"),)),
    MacroDefinition(name="m", definitions="(a, b := 2) AS a + b, (a) AS a"),
    TypeDefinition(name="s$mood", definition="ENUM ('ok', 'größer')"),
)


def folder(place: Path, *, table: bool = True) -> ld.DirectoryNamespace:
    """A folder with a table in the root and, in schema s, all objects and another table."""
    namespace = ld.DirectoryNamespace(str(place))
    if table:
        namespace.create_table("t", ROWS)

    def edit(draft: CatalogDraft) -> None:
        draft.create_namespace("s", {"comment": "sales"})
        for each in OBJECTS:
            draft.put(each)

    namespace.change_catalog(edit)
    if table:
        namespace.create_table("s$u", ROWS)
    return namespace


def stream() -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema({"x": pa.int64()})) as writer:
        writer.write_table(pa.table(ROWS))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def tables_of(namespace: Any, *name: str) -> list[str]:
    return sorted(namespace.list_tables(theirs.ListTablesRequest(id=[*name])).tables)


def namespaces_of(namespace: Any, *name: str) -> list[str]:
    return sorted(namespace.list_namespaces(theirs.ListNamespacesRequest(id=[*name])).namespaces)


def with_pylance(place: Path) -> None:
    pylance = theirs.DirectoryNamespace(root=str(place))
    assert tables_of(pylance) == ["t"]
    assert tables_of(pylance, "s") == ["u"]
    shown = pylance.describe_namespace(theirs.DescribeNamespaceRequest(id=["s"])).properties
    assert shown == {"comment": "sales"}
    for name in (["a"], ["s", "b"]):
        pylance.create_table(theirs.CreateTableRequest(id=name), stream())
    pylance.create_namespace(theirs.CreateNamespaceRequest(id=["n"], properties={"k": "v"}))
    pylance.declare_table(theirs.DeclareTableRequest(id=["n", "later"]))
    pylance.deregister_table(theirs.DeregisterTableRequest(id=["n", "later"]))
    pylance.drop_table(theirs.DropTableRequest(id=["s", "u"]))
    pylance.drop_namespace(theirs.DropNamespaceRequest(id=["n"]))
    location = pylance.describe_table(theirs.DescribeTableRequest(id=["s", "b"])).location
    assert lance.dataset(location).count_rows() == 2


def with_lancedb(place: Path) -> None:
    db = lancedb.connect(str(place))
    assert (db.list_tables().tables, db.list_tables(namespace_path=["s"]).tables) == (["t"], ["u"])
    db.create_table("a", pa.table(ROWS))
    db.create_table("b", pa.table(ROWS), namespace_path=["s"])
    db.create_namespace(["n"])
    db.drop_namespace(["n"])
    db.drop_table("u", namespace_path=["s"])
    assert db.open_table("b", namespace_path=["s"]).to_arrow().to_pydict() == ROWS


@pytest.mark.parametrize("change", [with_pylance, with_lancedb])
def test_objects_stay_when_another_library_changes_the_folder(change: Callable[[Path], None], tmp_path: Path) -> None:
    ours = folder(tmp_path)
    change(tmp_path)
    catalog = ours.catalog()
    assert {each.key: each for each in OBJECTS} == catalog.objects
    assert catalog.broken == {}
    assert list(catalog.tables) == [("a",), ("s", "b"), ("t",)]
    assert catalog.namespaces == {(): {}, ("s",): {"comment": "sales"}}
    ours.drop_namespace("s", cascade=True)
    assert sorted(lancedb.connect(str(tmp_path)).list_tables().tables) == ["a", "t"]


def test_a_namespace_that_pylance_drops_leaves_objects_until_it_is_created_again(tmp_path: Path) -> None:
    ours = folder(tmp_path, table=False)
    theirs.DirectoryNamespace(root=str(tmp_path)).drop_namespace(theirs.DropNamespaceRequest(id=["s"]))
    left = {OBJECTS[0].key: OBJECTS[0], OBJECTS[2].key: OBJECTS[2]}
    assert (ours.catalog().objects, ours.catalog().broken) == (left, {})
    assert [(problem.where, problem.is_damage) for problem in ours.find_problems()] == [
        ("type s$mood", False),
        ("view s$v", False),
    ]
    ours.create_namespace("s")
    assert (ours.catalog().objects, ours.find_problems()) == (left, [])


def test_repair_removes_the_rows_with_which_pylance_refuses_changes(tmp_path: Path) -> None:
    ours = folder(tmp_path)
    row = NamedObject("t$00000000000000000001", "table_version", None, '{"manifest_path":"t.lance/_versions/1"}')
    Listing(str(tmp_path)).change(lambda names: ListingChange(added=[row]))
    pylance: Any = theirs.DirectoryNamespace(root=str(tmp_path))
    with pytest.raises(Exception, match="Invalid object type: table_version"):
        pylance.create_namespace(theirs.CreateNamespaceRequest(id=["n"]))
    assert [problem.is_damage for problem in ours.find_problems()] == [False]
    assert len(ours.repair()) == 1
    pylance.create_namespace(theirs.CreateNamespaceRequest(id=["n"]))
    assert (namespaces_of(pylance), tables_of(pylance)) == (["n", "s"], ["t"])
    assert ours.find_problems() == []
    assert ours.catalog().objects == {each.key: each for each in OBJECTS}


@pytest.mark.slow
def test_an_older_pylance_keeps_objects(tmp_path: Path) -> None:
    ours = folder(tmp_path)
    script = """
import sys
from lance import namespace as theirs

pylance = theirs.DirectoryNamespace(root=sys.argv[1])
assert sorted(pylance.list_tables(theirs.ListTablesRequest(id=["s"])).tables) == ["u"]
pylance.create_namespace(theirs.CreateNamespaceRequest(id=["n"]))
pylance.drop_table(theirs.DropTableRequest(id=["s", "u"]))
"""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run([python_of(VERSIONS[-1]), "-c", script, tmp_path], check=True, env=environment)
    catalog = ours.catalog()
    assert (list(catalog.namespaces), list(catalog.tables)) == ([(), ("n",), ("s",)], [("t",)])
    assert catalog.objects == {each.key: each for each in OBJECTS}


def test_a_manifest_that_only_stores_objects_is_open_to_other_libraries(tmp_path: Path) -> None:
    ours = ld.DirectoryNamespace(str(tmp_path))
    ours.change_catalog(lambda draft: draft.put(OBJECTS[0]))
    pylance = theirs.DirectoryNamespace(root=str(tmp_path))
    assert tables_of(pylance) == []
    pylance.create_table(theirs.CreateTableRequest(id=["t"]), stream())
    lancedb.connect(str(tmp_path)).create_table("u", pa.table(ROWS))
    assert (ours.list_tables(), ours.objects()) == (["t", "u"], {OBJECTS[0].key: OBJECTS[0]})


def test_a_table_of_another_library_hides_a_view(tmp_path: Path) -> None:
    ours = folder(tmp_path)
    lancedb.connect(str(tmp_path)).create_table("v", pa.table(ROWS), namespace_path=["s"])
    catalog = ours.catalog()
    assert OBJECTS[1].key not in catalog.objects
    assert catalog.broken == {OBJECTS[1].key: "another table or object has this name, compared without case"}
    assert ours.open_table("s$v").count_rows() == 2


def test_concurrent_changes_of_pylance_and_this_package_lose_nothing(tmp_path: Path) -> None:
    ours = folder(tmp_path)
    each_count = 12

    def put(number: int) -> None:
        view = ViewDefinition(name=f"s$v{number}", query="SELECT 1")
        ld.DirectoryNamespace(str(tmp_path)).change_catalog(lambda draft: draft.put(view))

    def create(number: int) -> None:
        pylance: Any = theirs.DirectoryNamespace(root=str(tmp_path))
        pylance.create_namespace(theirs.CreateNamespaceRequest(id=[f"n{number}"]))

    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(call, number) for number in range(each_count) for call in (put, create)]
    for each in done:
        each.result()
    assert sorted(ours.list_namespaces()) == sorted(["s", *(f"n{number}" for number in range(each_count))])
    views = {("s", "v"), *(("s", f"v{number}") for number in range(each_count))}
    assert {key.name for key in ours.objects("s") if key.kind == "view"} == views


def test_a_rest_service_has_a_catalog_of_tables(tmp_path: Path) -> None:
    folder(tmp_path)
    with theirs.RestAdapter("dir", {"root": str(tmp_path)}, port=0) as adapter:
        rest = ld.connect_namespace("rest", {"uri": f"http://127.0.0.1:{adapter.port}"})
        catalog = rest.catalog()
        assert catalog.namespaces == {(): {}, ("s",): {"comment": "sales"}}
        assert (sorted(catalog.tables), catalog.objects, catalog.broken) == ([("s", "u"), ("t",)], {}, {})
        assert rest.objects("s") == {}
        with pytest.raises(UnsupportedError, match="does not store views"):
            rest.change_catalog(lambda draft: draft.put(OBJECTS[0]))
        with pytest.raises(ld.LanceDuckError):
            rest.drop_namespace("s", cascade=True)
