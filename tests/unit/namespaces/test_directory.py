"""A folder of tables as a namespace."""

from __future__ import annotations

import json
import os
import re
import shutil
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import (
    AlreadyExistsError,
    CorruptError,
    DataMismatchError,
    IncompatibleError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    ReferencedError,
    UnsupportedError,
)
from lance_duck.namespaces.listing import SCHEMA, Listing, NamedObject

ROWS = {"x": [1, 2]}


@pytest.fixture
def namespace(tmp_path: Path) -> ld.DirectoryNamespace:
    return ld.DirectoryNamespace(str(tmp_path))


def test_root_tables_are_folders_without_a_manifest(namespace: ld.DirectoryNamespace, tmp_path: Path) -> None:
    assert namespace.list_tables() == []
    namespace.create_table("b", ROWS)
    ld.write_dataset(ROWS, tmp_path / "a.lance")
    assert namespace.list_tables() == ["a", "b"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.lance", "b.lance"]
    assert namespace.open_table("b").to_table().to_pydict() == ROWS
    assert namespace.describe_table("b").location == str(tmp_path / "b.lance")


def test_namespace_tables_have_manifest_rows_and_random_folders(
    namespace: ld.DirectoryNamespace, tmp_path: Path
) -> None:
    namespace.create_namespace("a", {"owner": "ann"})
    namespace.create_namespace("a$b")
    namespace.create_table(["a", "b", "t"], ROWS)
    assert namespace.list_namespaces() == ["a"]
    assert namespace.list_namespaces("a") == ["b"]
    assert namespace.list_tables("a$b") == ["t"]
    assert namespace.list_tables() == namespace.list_tables("a") == []
    assert namespace.describe_namespace("a") == {"owner": "ann"}
    assert namespace.describe_namespace("") == {}
    assert Path(namespace.describe_table("a$b$t").location).name.endswith("_a$b$t")
    assert namespace.open_table("a$b$t").to_table().to_pydict() == ROWS


def test_create_table_accepts_the_options_of_write_dataset(namespace: ld.DirectoryNamespace) -> None:
    namespace.create_table("t", ROWS, data_storage_version="2.1")
    namespace.create_table("t", ROWS, mode="append")
    assert namespace.open_table("t").count_rows() == 4
    assert namespace.open_table("t", 1).count_rows() == 2
    assert namespace.create_table("t", {"y": [1]}, mode="overwrite").schema.names == ["y"]
    with pytest.raises(AlreadyExistsError, match="t: the table already exists"):
        namespace.create_table("t", ROWS)
    with pytest.raises(InvalidInputError, match="mode"):
        namespace.create_table("t", ROWS, mode="upsert")


def test_missing_and_existing_names_are_reported(namespace: ld.DirectoryNamespace) -> None:
    namespace.create_namespace("a")
    namespace.create_table("a$t", ROWS)
    missing = [
        lambda: namespace.open_table("t"),
        lambda: namespace.describe_namespace("b"),
        lambda: namespace.list_tables("a$t"),
        lambda: namespace.create_table("b$t", ROWS),
        lambda: namespace.create_namespace("b$c"),
        lambda: namespace.drop_table("a$u"),
        lambda: namespace.rename_table("a$t", "b$t"),
        lambda: namespace.register_table("a$u", "nowhere.lance"),
    ]
    for call in missing:
        with pytest.raises(NotFoundError):
            call()
    for call in (lambda: namespace.create_namespace("a"), lambda: namespace.rename_table("a$t", "a$t")):
        with pytest.raises(AlreadyExistsError):
            call()
    namespace.create_namespace("a", exist_ok=True)
    with pytest.raises(ReferencedError, match=r"not empty.*a\$t"):
        namespace.drop_namespace("a")
    with pytest.raises(UnsupportedError, match="cannot move into or out of the root"):
        namespace.rename_table("a$t", "t")
    assert namespace.table_exists("a$t")
    assert not namespace.table_exists("a$u")
    assert namespace.namespace_exists("a")
    assert not namespace.namespace_exists("b")


def test_a_declared_table_is_written_later(namespace: ld.DirectoryNamespace) -> None:
    namespace.create_namespace("a")
    for name in ("t", "a$t"):
        place = namespace.declare_table(name)
        assert namespace.list_tables(name.rpartition("$")[0]) == ["t"]
        with pytest.raises(AlreadyExistsError):
            namespace.declare_table(name)
        with pytest.raises(NotFoundError):
            namespace.open_table(name)
        assert namespace.create_table(name, ROWS).uri == place.location


def test_a_failed_write_leaves_no_name(namespace: ld.DirectoryNamespace, tmp_path: Path) -> None:
    namespace.create_namespace("a")
    for name in ("t", "a$t"):
        with pytest.raises(LanceDuckError):
            namespace.create_table(name, {"x": [1]}, data_storage_version="9.9")
        assert not namespace.table_exists(name)
    assert [path.name for path in tmp_path.iterdir() if path.name != "__manifest" and any(path.iterdir())] == []


def test_names_can_be_deregistered_and_registered_again(namespace: ld.DirectoryNamespace) -> None:
    namespace.create_namespace("a")
    namespace.create_table("t", ROWS)
    namespace.deregister_table("t")
    assert namespace.list_tables() == []
    with pytest.raises(NotFoundError):
        namespace.describe_table("t")
    namespace.register_table("t", "t.lance")
    namespace.register_table("a$same", "t.lance")
    assert namespace.open_table("a$same").to_table().to_pydict() == ROWS
    assert namespace.list_tables() == ["t"]
    for place in ("/etc", "../t.lance", "s3://b/t.lance"):
        with pytest.raises(InvalidInputError):
            namespace.register_table("a$u", place)


def test_tables_and_empty_namespaces_are_dropped(namespace: ld.DirectoryNamespace, tmp_path: Path) -> None:
    namespace.create_namespace("a")
    for name in ("t", "a$t"):
        namespace.create_table(name, ROWS)
        folder = Path(namespace.describe_table(name).location)
        namespace.drop_table(name)
        assert not folder.exists()
    namespace.declare_table("a$u")
    namespace.drop_table("a$u")
    namespace.drop_namespace("a")
    assert namespace.list_namespaces() == namespace.list_tables() == []


def test_a_renamed_table_keeps_its_folder(namespace: ld.DirectoryNamespace) -> None:
    namespace.create_namespace("a")
    namespace.create_namespace("b")
    before = namespace.create_table("a$t", ROWS)
    namespace.rename_table("a$t", "b$u")
    assert namespace.describe_table("b$u").location == before.uri
    assert namespace.list_tables("a") == []


@pytest.mark.parametrize("has_row", [False, True])
def test_a_table_of_the_root_is_renamed_with_its_folder(tmp_path: Path, *, has_row: bool) -> None:
    namespace = ld.DirectoryNamespace(str(tmp_path), manifest_enabled=has_row or None)
    namespace.create_table("t", {"x": [1]})
    namespace.create_table("taken", {"x": [2]})
    with pytest.raises(AlreadyExistsError):
        namespace.rename_table("t", "taken")
    namespace.rename_table("t", "u")
    assert namespace.list_tables() == ["taken", "u"]
    assert namespace.open_table("u").uri == str(tmp_path / "u.lance")
    assert namespace.open_table("u").to_table().to_pydict() == {"x": [1]}


def test_concurrent_writers_lose_no_name(tmp_path: Path) -> None:
    ld.DirectoryNamespace(str(tmp_path)).create_namespace("a")

    def create(i: int) -> None:
        ld.DirectoryNamespace(str(tmp_path)).create_table(f"a$t{i}", {"x": [i]})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(create, range(8)))
    namespace = ld.DirectoryNamespace(str(tmp_path))
    assert namespace.list_tables("a") == [f"t{i}" for i in range(8)]
    assert [namespace.open_table(f"a$t{i}").to_table()["x"].to_pylist() for i in range(8)] == [[i] for i in range(8)]


def test_one_of_several_writers_of_a_name_wins(tmp_path: Path) -> None:
    ld.DirectoryNamespace(str(tmp_path)).create_namespace("a")

    def create(i: int) -> int | None:
        try:
            ld.DirectoryNamespace(str(tmp_path)).create_namespace("a$n", {"i": str(i)})
        except AlreadyExistsError:
            return None
        return i

    with ThreadPoolExecutor(4) as pool:
        (winner,) = [i for i in pool.map(create, range(6)) if i is not None]
    assert ld.DirectoryNamespace(str(tmp_path)).describe_namespace("a$n") == {"i": str(winner)}


def test_unknown_manifest_columns_are_preserved(tmp_path: Path) -> None:
    row = NamedObject("a", "namespace").row(SCHEMA).append_column("theirs", pa.array([7]))
    ld.write_dataset(row, tmp_path / "__manifest")
    ld.DirectoryNamespace(str(tmp_path)).create_namespace("b")
    assert ld.dataset(tmp_path / "__manifest").to_table(columns=["object_id", "theirs"]).to_pydict() == {
        "object_id": ["a", "b"],
        "theirs": [7, None],
    }


@pytest.mark.parametrize("metadata", ["{", "[1]", "[" * 100_000])
def test_invalid_metadata_affects_only_its_row(metadata: str, tmp_path: Path) -> None:
    rows = [
        NamedObject("a", "namespace", None, metadata),
        NamedObject("b", "namespace"),
        NamedObject("t", "table", "t"),
    ]
    ld.write_dataset(pa.concat_tables([row.row(SCHEMA) for row in rows]), tmp_path / "__manifest")
    namespace = ld.DirectoryNamespace(str(tmp_path))
    assert (namespace.list_namespaces(), namespace.list_tables()) == (["a", "b"], ["t"])
    assert namespace.describe_namespace("b") == {}
    with pytest.raises(CorruptError, match="row metadata"):
        namespace.describe_namespace("a")
    namespace.create_namespace("c")
    ld.write_dataset({"x": [1]}, tmp_path / "__manifest", mode="overwrite")
    with pytest.raises(CorruptError, match="columns"):
        Listing(str(tmp_path)).objects()


def test_one_invalid_row_does_not_hide_other_tables(tmp_path: Path) -> None:
    root = tmp_path / "root"
    ld.DirectoryNamespace(str(root)).create_table("t", ROWS)
    rows = [
        *(NamedObject(f"bad{i}", "table", place) for i, place in enumerate(["../t.lance", "__manifest", "/etc"])),
        NamedObject("odd", "table", "t.lance", "{"),
        NamedObject("nameless$", "table", "t.lance"),
        NamedObject("other", "view", "t.lance"),
        NamedObject("same", "table", "t.lance"),
    ]
    ld.write_dataset(pa.concat_tables([row.row(SCHEMA) for row in rows]), root / "__manifest")
    with pytest.warns(ld.TableWarning) as warned:
        places = ld.DirectoryNamespace(str(root)).describe_tables()
    assert set(places) == {"t", "same"}
    assert len(warned) == 4
    con = ld.connect()
    with warnings.catch_warnings(record=True, action="always") as again:
        con.execute(f"ATTACH '{root}' AS ns (TYPE lance, NAMESPACE '$')")
        assert con.execute("SELECT count(*) FROM ns.same").fetchall() == [(2,)]
    assert re.match("table bad0 is skipped: .*outside the table's folder", str(again[0].message))


@pytest.mark.parametrize("moment", ["before it is written", "while it is written", "once it is written"])
def test_dropping_a_table_during_its_creation_leaves_nothing(moment: str, tmp_path: Path) -> None:
    writer, other = ld.DirectoryNamespace(str(tmp_path)), ld.DirectoryNamespace(str(tmp_path))
    writer.create_namespace("a")

    def rows() -> Iterator[pa.RecordBatch]:
        batch = pa.record_batch({"x": range(1000)})
        if moment == "before it is written":
            other.drop_table("a$t")
        yield batch
        if moment == "while it is written":
            other.drop_table("a$t")
            shutil.rmtree(tmp_path / next(name for name in os.listdir(tmp_path) if name.endswith("_a$t")))
        yield batch
        if moment == "once it is written":
            other.drop_table("a$t")

    stream = pa.RecordBatchReader.from_batches(pa.schema({"x": pa.int64()}), rows())
    with pytest.raises(IncompatibleError, match=r"a\$t: the table was dropped"):
        writer.create_table("a$t", stream, max_rows_per_file=1000)
    assert writer.list_tables("a") == []
    assert [path.name for path in tmp_path.iterdir() if any(path.iterdir())] == ["__manifest"]


def test_a_row_that_points_outside_the_root_is_rejected(tmp_path: Path) -> None:
    ld.write_dataset(ROWS, tmp_path / "t.lance")
    ld.write_dataset(NamedObject("t", "table", "../t.lance").row(SCHEMA), tmp_path / "root" / "__manifest")
    with pytest.raises(InvalidInputError, match="outside the table's folder"):
        ld.DirectoryNamespace(str(tmp_path / "root")).open_table("t")


def test_with_and_without_a_manifest(tmp_path: Path) -> None:
    without = ld.connect_namespace("dir", {"root": str(tmp_path), "manifest_enabled": "false"})
    with pytest.raises(UnsupportedError, match="manifest_enabled"):
        without.create_namespace("a")
    without.create_table("t", ROWS)
    rows = ld.connect_namespace("dir", {"root": str(tmp_path), "manifest_enabled": "true"})
    rows.create_table("u", ROWS)
    listed = ld.connect_namespace("dir", {"root": str(tmp_path), "dir_listing_enabled": "false"})
    assert (listed.list_tables(), rows.list_tables()) == (["u"], ["t", "u"])
    assert json.loads(json.dumps(sorted(Listing(str(tmp_path)).objects()))) == ["u"]


def test_properties_are_validated_and_storage_options_are_passed_on() -> None:
    namespace = ld.connect_namespace("dir", {"root": "memory://ns-options", "storage.checksums": "false"})
    namespace.create_table("t", ROWS)
    assert namespace.describe_table("t").storage_options == {"checksums": "false"}
    assert {file.checksums for file in namespace.open_table("t").check_files() if file.kind == "data"} == {"none"}
    for impl, properties, match in (
        ("dir", {}, "'root' of the namespace is missing"),
        ("dir", {"root": "x", "roots": "y"}, "did you mean 'root'"),
        ("rest", {"uri": "http://x", "token": "y"}, "expected one of uri, delimiter, header.NAME, storage.NAME"),
        ("dir", {"root": "x", "manifest_enabled": "maybe"}, "true or false"),
        ("rest", {"uri": "ftp://x"}, "http://"),
        ("glue", {"root": "x"}, 'expected "dir" or "rest"'),
    ):
        with pytest.raises((InvalidInputError, UnsupportedError), match=match):
            ld.connect_namespace(impl, properties)


@pytest.mark.parametrize("name", ["../other", "below/t", "a\\b", "a\0b"])
def test_names_cannot_leave_the_root(tmp_path: Path, name: str) -> None:
    for place in ("other", "root/below/t"):
        ld.write_dataset(ROWS, tmp_path / f"{place}.lance")
    namespace = ld.DirectoryNamespace(str(tmp_path / "root"))
    assert not namespace.table_exists(name)
    with pytest.raises(NotFoundError):
        namespace.drop_table(name)
    assert ld.dataset(tmp_path / "other.lance").count_rows() == ld.dataset(tmp_path / "root/below/t.lance").count_rows()


def test_the_manifest_table_cannot_be_registered(tmp_path: Path) -> None:
    namespace = ld.DirectoryNamespace(str(tmp_path))
    namespace.create_namespace("a")
    for location in ("__manifest", "./__manifest/data"):
        with pytest.raises(InvalidInputError, match="__manifest"):
            namespace.register_table("t", location)
    assert namespace.list_namespaces() == ["a"]


def test_dropping_a_name_keeps_a_table_that_reused_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, quick = ld.DirectoryNamespace(str(tmp_path)), ld.DirectoryNamespace(str(tmp_path))
    quick.create_namespace("a")
    quick.create_table("a$t", ROWS)
    before = slow.describe_table("a$t")
    quick.drop_table("a$t")
    with monkeypatch.context() as patch:
        patch.setattr(slow, "describe_table", lambda name: before)
        with pytest.raises(NotFoundError):
            slow.drop_table("a$t")
        quick.create_table("a$t", ROWS)
        for change in (slow.drop_table, slow.deregister_table):
            with pytest.raises(NotFoundError):
                change("a$t")
    assert slow.open_table("a$t").count_rows() == 2


HELLO: Final = [
    {"vector": [3.1, 4.1], "item": "foo", "price": 10.0},
    {"vector": [5.9, 26.5], "item": "bar", "price": 20.0},
]


@pytest.mark.parametrize("is_declared", [False, True])
@pytest.mark.parametrize("mode", ["create", "append", "overwrite"])
def test_lists_named_vector_become_vectors_of_a_new_table(
    mode: str, is_declared: bool, namespace: ld.DirectoryNamespace
) -> None:
    if is_declared:
        namespace.declare_table("t")
    ds = namespace.create_table("t", HELLO, mode=mode)
    assert ds.schema.field("vector").type == pa.list_(pa.float32(), 2)
    found = ds.search([100.0, 100.0], k=1)
    assert isinstance(found, pa.Table)
    assert found["item"].to_pylist() == ["bar"]


def test_rows_are_added_to_vectors_and_vector_columns_replaces_the_rule(namespace: ld.DirectoryNamespace) -> None:
    namespace.create_table("t", HELLO)
    ds = namespace.create_table("t", HELLO, mode="append")
    assert ds.count_rows() == 4
    lists = namespace.create_table("l", HELLO, vector_columns=[])
    assert lists.schema.field("vector").type == pa.list_(pa.float64())
    assert namespace.create_table("l", HELLO, mode="append").count_rows() == 4
    half = namespace.create_table("h", HELLO, vector_columns={"vector": "float16[2]"})
    assert half.schema.field("vector").type == pa.list_(pa.float16(), 2)


def test_vectors_of_different_lengths_are_rejected_and_leave_no_name(
    namespace: ld.DirectoryNamespace, tmp_path: Path
) -> None:
    with pytest.raises(DataMismatchError, match=r"column 'vector', row 1: .*expected 2, found 1"):
        namespace.create_table("t", [{"vector": [1.0, 2.0]}, {"vector": [1.0]}])
    assert namespace.list_tables() == []
