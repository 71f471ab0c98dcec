"""Each change of tables by us, and the same by pylance on a copy: one manifest, one transaction; each reads both."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import lance
import pyarrow as pa
import pytest
from google.protobuf.message import Message
from oracle.compare import assert_tables_same

import lance_duck
from lance_duck.snapshot import Snapshot, open_snapshot

Verb = Callable[[Any, ModuleType], Any]

START = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5], pa.int64()),
        "b": ["v", "w", None, "y", "z"],
        "s": [{"p": 1, "q": 0.5}, {"p": 2, "q": None}, None, {"p": 4, "q": 2.0}, {"p": 5, "q": 2.5}],
        "l": [[1, 2], [], None, [3], [4, None]],
        "v": pa.array([[i, i / 2] for i in range(5)], pa.list_(pa.float32(), 2)),
    },
    schema=pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False, metadata={"about": "key"}),
            pa.field("b", pa.string()),
            pa.field("s", pa.struct([("p", pa.int64()), ("q", pa.float64())])),
            pa.field("l", pa.list_(pa.int32())),
            pa.field("v", pa.list_(pa.float32(), 2)),
        ],
        metadata={"made": "by hand"},
    ),
)


def append(part: pa.Table, **options: Any) -> Verb:
    return lambda ds, lib: lib.write_dataset(part, ds, mode="append", **options)


def doubled(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch({"twice": pa.array([2 * i.as_py() for i in batch["id"]])})


def alter(*alterations: dict[str, Any]) -> Verb:
    return lambda ds, _: ds.alter_columns(*alterations)


VERBS: dict[str, Verb] = {
    "append": append(START.slice(1, 3)),
    "append in another order": append(START.select(["v", "id", "b", "l", "s"])),
    "append some columns": append(START.slice(0, 2).select(["id", "s"])),
    "append nothing": append(START.slice(0, 0)),
    "append small files": append(START, max_rows_per_file=2),
    "append another version": append(START, data_storage_version="2.1"),
    "append with a message": append(START, commit_message="why", transaction_properties={"who": "me"}),
    "overwrite": lambda ds, lib: lib.write_dataset(START.slice(2), ds, mode="overwrite"),
    "overwrite with other columns": lambda ds, lib: lib.write_dataset(
        pa.table({"b": [1, 2], "new": ["x", "y"]}), ds, mode="overwrite"
    ),
    "overwrite with nothing": lambda ds, lib: lib.write_dataset(START.slice(0, 0), ds, mode="overwrite"),
    "add by SQL": lambda ds, _: ds.add_columns({"n": "s.p * 2", "t": "b"}),
    "add nulls": lambda ds, _: ds.add_columns(pa.field("n", pa.int32())),
    "add nested nulls": lambda ds, _: ds.add_columns(
        pa.schema([pa.field("n", pa.struct([("x", pa.list_(pa.int8()))])), pa.field("m", pa.float16())])
    ),
    "add a member of nulls": lambda ds, _: ds.add_columns(pa.field("s", pa.struct([("r", pa.string())]))),
    "add by function": lambda ds, _: ds.add_columns(doubled, read_columns=["id"]),
    "add by decorated function": lambda ds, lib: ds.add_columns(
        lib.batch_udf(output_schema=pa.schema([("twice", pa.int64())]))(doubled)
    ),
    "add by reader": lambda ds, _: ds.add_columns(pa.table({"r": list(range(ds.count_rows()))}).to_reader()),
    "add a member by reader": lambda ds, _: ds.add_columns(pa.table({"s": [{"r": i} for i in range(ds.count_rows())]})),
    "merge": lambda ds, _: ds.merge(pa.table({"id": [4, 2, 2, 9], "m": ["four", "first", "two", "nine"]}), "id"),
    "merge by another name": lambda ds, _: ds.merge(pa.table({"k": ["w", None], "m": [1, 2]}), "b", "k"),
    "rename": alter({"path": "b", "name": "bb"}, {"path": "s.p", "name": "pp"}),
    "allow nulls": alter({"path": "id", "nullable": True}),
    "forbid nulls": lambda ds, _: (ds.delete("b IS NULL"), ds.alter_columns({"path": "b", "nullable": False})),
    "cast": alter({"path": "b", "data_type": pa.large_string()}),
    "cast a vector": alter({"path": "v", "data_type": pa.list_(pa.float16(), 2), "name": "half"}),
    "cast a list": alter({"path": "l", "data_type": pa.large_list(pa.int64())}),
    "cast in a list": alter({"path": "l.item", "data_type": pa.int8()}),
    "cast in a struct": alter({"path": "s.p", "data_type": pa.int16()}),
    "cast twice": lambda ds, _: [
        ds.alter_columns({"path": "l", "data_type": t}) for t in (pa.list_(pa.int64()), pa.list_(pa.int16()))
    ],
    "alter nothing": alter(),
    "drop": lambda ds, _: ds.drop_columns(["b", "s.q"]),
    "drop all members": lambda ds, _: ds.drop_columns(["s.p", "s.q"]),
    "drop what was added": lambda ds, _: (ds.add_columns({"n": "b"}), ds.drop_columns(["n"])),
    "add, drop, add": lambda ds, _: (
        ds.add_columns({"n": "b"}),
        ds.drop_columns(["n"]),
        ds.add_columns({"n": "b"}),
    ),
    "config": lambda ds, _: ds.update_config({"k": "v", "lance.x": "1"}),
    "config away": lambda ds, _: (ds.update_config({"k": "v", "j": "w"}), ds.delete_config_keys(["k", "none"])),
    "config anew": lambda ds, _: (ds.update_config({"k": "v"}), ds.update_config({"j": "w"}, replace=True)),
    "table metadata": lambda ds, _: (ds.update_metadata({"k": "v", "j": "w"}), ds.update_metadata({"k": None})),
    "schema metadata": lambda ds, _: ds.update_schema_metadata({"k": "v", "made": None}),
    "schema metadata anew": lambda ds, _: ds.replace_schema_metadata({"k": "v"}),
    "field metadata": lambda ds, _: ds.update_field_metadata({"id": {"about": None, "x": "y"}, "s.p": {"z": "1"}}),
    "field metadata anew": lambda ds, _: ds.replace_field_metadata("id", {"x": "y"}),
    "primary key": lambda ds, _: ds.update_field_metadata({"id": {"lance-schema:unenforced-primary-key": "true"}}),
    "restore": lambda ds, _: (
        ds.drop_columns(["b"]),
        ds.update_config({"k": "v"}),
        ds.checkout_version(ds.version - 2).restore(),
    ),
    "bases": lambda ds, lib: (
        ds.add_bases([lib.DatasetBasePath(f"{ds.uri}-a", name="a"), lib.DatasetBasePath(f"{ds.uri}-b", name="b")]),
        ds.add_bases([lib.DatasetBasePath(f"{ds.uri}-c", is_dataset_root=True)], {"who": "me"}),
        lib.write_dataset(START, ds, mode="append", target_bases=["b", f"{ds.uri}-c"], max_rows_per_file=2),
        lib.write_dataset(START, ds, mode="append", target_all_bases=True, max_rows_per_file=1),
    ),
}
# Row ids and row versions are touched, or might be.
LINEAGE = [
    "append some columns",
    "append small files",
    "overwrite",
    "add by SQL",
    "add nulls",
    "merge",
    "cast",
    "drop",
    "restore",
]
GO_ON = [
    "append some columns",
    "overwrite with other columns",
    "add by SQL",
    "cast in a struct",
    "drop",
    "restore",
    "bases",
]
HASTY = {"fsync": "false"}
STARTS: dict[str, dict[str, Any]] = {
    "plain": {"max_rows_per_file": 3},
    "stable": {"max_rows_per_file": 3, "enable_stable_row_ids": True},
}


@pytest.mark.parametrize(("name", "start"), [(v, "plain") for v in VERBS] + [(v, "stable") for v in LINEAGE])
def test_both_libraries_create_the_same_table(name: str, start: str, tmp_path: Path) -> None:
    verb = VERBS[name]
    theirs = start_with(tmp_path / "theirs" / "t", start)
    shutil.copytree(theirs.uri, tmp_path / "ours" / "t")
    ours = lance_duck.dataset(tmp_path / "ours" / "t", storage_options=HASTY)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        verb(theirs, lance)
        verb(ours, lance_duck)
    assert_same_table(ours.uri, theirs.uri, tmp_path, go_on=name in GO_ON)


@pytest.mark.parametrize("version", ["2.0", "2.1"])
@pytest.mark.parametrize("name", ["append some columns", "add by SQL", "cast a vector", "drop"])
def test_older_file_versions_are_changed_like_pylance(name: str, version: str, tmp_path: Path) -> None:
    rows = START.slice(0, 2) if version == "2.0" else START  # 2.0 does not store null structs
    theirs = lance.write_dataset(rows, tmp_path / "theirs" / "t", data_storage_version=version)
    shutil.copytree(theirs.uri, tmp_path / "ours" / "t")
    ours = lance_duck.dataset(tmp_path / "ours" / "t", storage_options=HASTY)
    VERBS[name](theirs, lance)
    VERBS[name](ours, lance_duck)
    assert_same_table(ours.uri, theirs.uri, tmp_path, go_on=False)


CREATIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "stable": {"enable_stable_row_ids": True},
    "old names": {"enable_v2_manifest_paths": False},
    "2.0": {"data_storage_version": "2.0"},
    "2.1": {"data_storage_version": "2.1", "max_rows_per_file": 2},
    "append": {"mode": "append"},
    "overwrite": {"mode": "overwrite"},
    "cleanup": {"auto_cleanup_options": {"interval": 3, "older_than_seconds": 176_461}},
    "message": {"commit_message": "why", "transaction_properties": {"a": "b"}},
}


@pytest.mark.parametrize("rows", [2, 0])
@pytest.mark.parametrize("name", CREATIONS)
def test_both_create_the_same_table(name: str, rows: int, tmp_path: Path) -> None:
    for folder, lib in {"ours": lance_duck, "theirs": lance}.items():
        lib.write_dataset(START.slice(0, rows), str(tmp_path / folder / "t"), **CREATIONS[name])
    assert_same_table(str(tmp_path / "ours" / "t"), str(tmp_path / "theirs" / "t"), tmp_path, go_on=rows > 0)
    ours, theirs = (
        sorted(p.name for p in (tmp_path / f / "t" / "_versions").glob("*.manifest")) for f in ("ours", "theirs")
    )
    assert ours == theirs


def test_base_paths_of_a_new_table(tmp_path: Path) -> None:
    for folder, lib in {"ours": lance_duck, "theirs": lance}.items():
        root = tmp_path / folder
        bases = [
            lib.DatasetBasePath(str(root / "a"), name="a"),
            lib.DatasetBasePath(str(root / "b"), name="b", is_dataset_root=True),
        ]
        options = {"initial_bases": bases, "target_bases": ["b", str(root / "a")], "max_rows_per_file": 2}
        ds = lib.write_dataset(START, str(root / "t"), **options)
        lib.write_dataset(START, ds, mode="overwrite")
    assert_same_table(str(tmp_path / "ours" / "t"), str(tmp_path / "theirs" / "t"), tmp_path)


def test_tags_and_branches_of_pylance_with_letters_beyond_ascii(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    theirs = lance.write_dataset(START, uri)
    theirs = lance.write_dataset(START, uri, mode="append")
    theirs.tags.create("größe", 1)
    theirs.create_branch("zweig-ä")
    ours = lance_duck.dataset(uri)
    assert ours.tags.list()["größe"]["version"] == lance_duck.dataset(uri, version="größe").version == 1
    assert ours.find_problems() == []
    tags = (
        lance_duck.connect(tmp_path)
        .execute("SELECT version, tags FROM lance_versions('t') ORDER BY version")
        .fetchall()
    )
    assert tags == [(1, ["größe"]), (2, [])]
    assert ours.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False).old_versions == 0
    ours.tags.update("größe", 2)
    assert theirs.tags.get_version("größe") == 2
    ours.tags.delete("größe")
    assert theirs.tags.list() == {}
    branch = lance_duck.write_dataset(START, ours.checkout_version(("zweig-ä", None)), mode="append")
    assert theirs.checkout_version(("zweig-ä", None)).count_rows() == branch.count_rows() == 3 * START.num_rows
    ours.branches.delete("zweig-ä")
    assert theirs.branches.list() == {}
    assert not any((tmp_path / "t.lance/tree").rglob("*.lance"))


@pytest.mark.parametrize("start", ["stable"])
def test_both_libraries_create_the_same_branches_and_clones(start: str, tmp_path: Path) -> None:
    theirs = start_with(tmp_path / "theirs" / "t", start)
    theirs.delete("id = 2")
    theirs.create_scalar_index("id", "BTREE")
    theirs.update_config({"k": "v"})
    shutil.copytree(theirs.uri, tmp_path / "ours" / "t")
    ours = lance_duck.dataset(tmp_path / "ours" / "t", storage_options=HASTY)
    for ds, lib in ((theirs, lance), (ours, lance_duck)):
        root = Path(ds.uri).parent
        ds.tags.create("first", 1)
        branch = ds.create_branch("dev")
        branch = lib.write_dataset(START, branch, mode="append")
        branch.add_columns({"n": "b"})
        branch.create_branch("dev/deep", ("dev", None)).delete("id = 3")
        ds.create_branch("old", "first").restore()
        branch.tags.create("there")
        ds.shallow_clone(str(root / "shallow"), ds.version)
        ds.deep_clone(str(root / "deep"), "there")
        copy = branch.shallow_clone(str(root / "copy"), ("dev", 5))
        copy.deep_clone(str(root / "copied"), copy.version)
        lib.write_dataset(START, copy, mode="append")
    for place in ("t", "t/tree/dev", "t/tree/dev/deep", "t/tree/old", "shallow", "deep", "copy", "copied"):
        assert_same_table(
            str(tmp_path / "ours" / place), str(tmp_path / "theirs" / place), tmp_path, go_on=place != "t"
        )
    assert _refs(lance.dataset(ours.uri)) == _refs(theirs) == _refs(lance_duck.dataset(theirs.uri))


def test_both_libraries_delete_and_move_each_others_references(tmp_path: Path) -> None:
    for maker, other in ((lance_duck, lance), (lance, lance_duck)):
        uri = str(tmp_path / maker.__name__)
        ds = maker.write_dataset(START, uri)
        ds.tags.create("t", 1)
        ds.create_branch("a/b").create_branch("c", ("a/b", 1))
        ds.update_config({"k": "v"})
        second = other.dataset(uri)
        with pytest.raises(OSError, match="c"):
            second.branches.delete("a/b")
        second.tags.update("t", 2)
        second.branches.delete("c")
        second.branches.delete("a/b")
        assert ds.tags.get_version("t") == 2
        assert ds.branches.list() == {}
        second.tags.delete("t")
        assert ds.tags.list() == {}
        other.LanceDataset.drop(uri)
        assert not Path(uri).exists()


def test_rows_written_by_pylance_during_a_column_change_are_kept(tmp_path: Path) -> None:
    ds = lance_duck.write_dataset(START, tmp_path / "t", storage_options=HASTY)
    stale = lance.dataset(ds.uri)
    ds.add_columns({"n": "b"})
    lance.write_dataset(START, stale, mode="append")
    stale = lance.dataset(ds.uri)
    ds.alter_columns({"path": "b", "data_type": pa.large_string()})
    with pytest.raises(OSError, match="Retryable commit conflict"):
        lance.write_dataset(START, stale, mode="append")
    assert lance.dataset(ds.uri).to_table(columns=["b", "n"]).to_pydict() == {
        "b": ["v", "w", None, "y", "z"] * 2,
        "n": ["v", "w", None, "y", "z", *[None] * 5],
    }


def test_manifest_names_are_migrated_like_pylance(tmp_path: Path) -> None:
    ds = lance.write_dataset(START, tmp_path / "t", enable_v2_manifest_paths=False)
    ds.update_config({"k": "v"})
    ours = lance_duck.dataset(tmp_path / "t")
    ours.migrate_manifest_paths_v2()
    names = sorted(p.name for p in (tmp_path / "t" / "_versions").glob("*.manifest"))
    assert names == ["18446744073709551613.manifest", "18446744073709551614.manifest"]
    assert lance.dataset(tmp_path / "t").version == ours.version == 2
    ours.update_config({"k": "w"})
    assert lance.dataset(tmp_path / "t").config() == {"k": "w"}


def start_with(path: Path, start: str) -> lance.LanceDataset:
    return lance.write_dataset(START, str(path), **STARTS[start])


def assert_same_table(ours: str, theirs: str, root: Path, *, go_on: bool = True) -> None:
    """Check that both tables have the same contents.

    Both libraries must read them equally, and each must be able to change the other's table.
    """
    found, expected = open_snapshot(ours), open_snapshot(theirs)
    assert described(found, root / "ours") == described(expected, root / "theirs")
    assert_read_alike(ours, theirs)
    if go_on:
        for uri, lib in ((ours, lance), (theirs, lance_duck)):
            ds = lib.dataset(uri)
            ds.add_columns(pa.field("later", pa.int8()))
            ds.delete(f'"{ds.schema.names[0]}" IS NULL' if lib is lance_duck else f"`{ds.schema.names[0]}` IS NULL")
            lib.write_dataset(ds.to_table(), uri, mode="append")
        assert_read_alike(ours, theirs)


def assert_read_alike(ours: str, theirs: str) -> None:
    checked = lance.dataset(ours)
    checked.validate()
    expected = lance.dataset(theirs).to_table()
    assert_tables_same(expected, checked.to_table())
    assert_tables_same(expected, lance_duck.dataset(ours).to_table())
    assert_tables_same(expected, lance_duck.dataset(theirs).to_table())


def described(snapshot: Snapshot, root: Path) -> dict[str, Any]:
    """Return the contents of a version without file names, times and location."""
    manifest = snapshot.manifest.proto
    transaction = snapshot.transaction()
    assert transaction is not None
    assert transaction.message is not None
    names = ("version", "reader_feature_flags", "writer_feature_flags", "branch", "next_row_id")
    return {
        **{name: getattr(manifest, name) for name in names},
        "max_fragment_id": snapshot.manifest.max_fragment_id,
        "fields": list(manifest.fields),
        "maps": [dict(m) for m in (manifest.schema_metadata, manifest.config, manifest.table_metadata)],
        "format": str(manifest.data_format),
        "bases": {b.id: (b.name, b.is_dataset_root, _relative(b.path, root)) for b in manifest.base_paths},
        "indices": [(i.name, i.fields, i.base_id) for i in snapshot.indices],
        "fragments": [dict(_fragment(snapshot, i)) for i in range(len(snapshot.fragments))],
        "operation": transaction.operation,
        "properties": dict(transaction.transaction_properties),
        "changes": _message(transaction.message, root),
    }


def _fragment(snapshot: Snapshot, place: int) -> Iterator[tuple[str, Any]]:
    fragment = snapshot.fragments[place]
    yield "id", fragment.id
    yield "rows", (fragment.physical_rows, fragment.num_deletions)
    yield "files", [(sorted(f.fields), sorted(f.column_indices), f.file_version, f.base_id) for f in fragment.files]
    deletion = fragment.deletion_file
    yield "deletion", deletion and (deletion.read_version, deletion.suffix, deletion.base_id)
    ids = snapshot.row_ids(fragment)
    yield "row ids", None if ids is None else ids.slice(0, len(ids)).tolist()
    for versions in (snapshot.created_at(fragment), snapshot.last_updated_at(fragment)):
        yield "versions", None if versions is None else versions.slice(0, len(versions)).tolist()


def _message(message: Message, root: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field, value in message.ListFields():
        if field.name == "schema_metadata":  # pylance leaves it out of the transaction
            continue
        if field.name == "preserves_nullability" and message.DESCRIPTOR.name == "Merge":  # pylance sets it for casts
            continue
        if field.name in ("fragments", "updated_fragments"):
            found[field.name] = [[sorted(f.fields) for f in fragment.files] for fragment in value]
        elif field.name in ("new_bases", "initial_bases"):
            found[field.name] = [(b.id, b.name, b.is_dataset_root, _relative(b.path, root)) for b in value]
        elif field.name == "ref_path":
            found[field.name] = _relative(value, root)
        elif field.name.endswith("updates"):
            found[field.name] = sorted(str(value).splitlines())
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            found[field.name] = {key: str(entry) for key, entry in value.items()}
        else:
            found[field.name] = str(value)
    return found


def _relative(path: str, root: Path) -> str:
    return path.replace(str(root), "").removeprefix("/")


def _refs(ds: Any) -> dict[str, Any]:
    tags = {name: (tag["branch"], tag["version"], tag["metadata"]) for name, tag in ds.tags.list().items()}
    branches = {
        name: (b["parent_branch"], b["parent_version"], [version for version, _ in b["branch_identifier"]])
        for name, b in ds.branches.list().items()
    }
    return {"tags": tags, "branches": branches}
