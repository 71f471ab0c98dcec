"""Each row change by this package, and by pylance on a copy: equal results and tables that pylance reads."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_duck

LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
Verb = Callable[[Any], Any]


def rows(keys: list[int | None], **columns: list[Any]) -> pa.Table:
    types = {"a": pa.int64(), "b": pa.string(), "c": pa.float64()}
    return pa.table({name: pa.array(values, types[name]) for name, values in {"a": keys, **columns}.items()})


START = rows(list(range(20)), b=[f"s{i}" for i in range(20)], c=[i / 2 for i in range(20)])
NEW = rows([25, 7, 3, 21, 4], b=["k25", "k7", "k3", "k21", "k4"], c=[0.0, 1.0, None, 3.0, 4.0])
PART = NEW.select(["a", "c"])
WITH_NULL = rows([None, 5, None], b=["n", "k5", "m"], c=[1.0, 2.0, 3.0])


def upsert(source: Any, **conditions: str) -> Verb:
    return lambda ds: (
        ds.merge_insert("a").when_matched_update_all(**conditions).when_not_matched_insert_all().execute(source)
    )


VERBS: dict[str, Verb] = {
    "delete some": lambda ds: ds.delete("a % 3 = 1"),
    "delete none": lambda ds: ds.delete("a > 100"),
    "delete a fragment": lambda ds: ds.delete("a < 10"),
    "delete all": lambda ds: ds.delete("true"),
    "delete by expression": lambda ds: ds.delete(pc.field("b") == "s7"),
    "update where": lambda ds: ds.update({"b": "b || '!'", "c": "c * 2"}, where="a IN (3, 12)"),
    "update all": lambda ds: ds.update({"c": "c + 1"}),
    "update none": lambda ds: ds.update({"c": "c + 1"}, where="a > 100"),
    "update to null": lambda ds: ds.update({"b": "NULL"}, where="a = 5"),
    "update by expression": lambda ds: ds.update({"b": "'x'"}, where=pc.field("a") < 2),
    "update all of a fragment": lambda ds: ds.update({"b": "'x'"}, where="a < 7"),
    "upsert": upsert(NEW),
    "upsert of a reader": lambda ds: upsert(NEW.to_reader())(ds),
    "upsert if": upsert(NEW, condition="source.c > target.c"),
    "upsert of some columns": upsert(PART),
    "upsert with null keys": upsert(WITH_NULL),
    "upsert by two keys": lambda ds: (
        ds.merge_insert(["a", "b"])
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(rows([7, 3], b=["s7", "other"], c=[9.0, 8.0]))
    ),
    "insert if not there": lambda ds: ds.merge_insert("a").when_not_matched_insert_all().execute(NEW),
    "update if there": lambda ds: ds.merge_insert("a").when_matched_update_all().execute(NEW),
    "update some columns": lambda ds: ds.merge_insert("a").when_matched_update_all().execute(PART),
    "update none there": lambda ds: ds.merge_insert("a").when_matched_update_all().execute(NEW.slice(0, 1)),
    "columns in place": lambda ds: (
        ds.merge_insert("a").when_matched_update_all().write_mode("rewrite_columns").execute(PART)
    ),
    "delete if there": lambda ds: ds.merge_insert("a").when_matched_delete().execute(NEW.select(["a"])),
    "delete and insert": lambda ds: (
        ds.merge_insert("a").when_matched_delete().when_not_matched_insert_all().execute(NEW)
    ),
    "delete what the source lacks": lambda ds: (
        ds.merge_insert("a").when_not_matched_by_source_delete().execute(NEW.select(["a"]))
    ),
    "delete some that the source lacks": lambda ds: (
        ds.merge_insert("a").when_not_matched_by_source_delete("c < 4 AND b != 's1'").execute(NEW.select(["a"]))
    ),
    "replace": lambda ds: (
        ds.merge_insert("a")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .when_not_matched_by_source_delete()
        .execute(NEW)
    ),
    "fail if there, none is": lambda ds: (
        ds.merge_insert("a").when_matched_fail().when_not_matched_insert_all().execute(NEW.slice(0, 1))
    ),
    "insert": lambda ds: ds.insert(NEW),
    "truncate": lambda ds: ds.truncate_table(),
    "one after the other": lambda ds: (
        ds.delete("a = 3"),
        ds.update({"c": "a"}, where="a < 9"),
        upsert(NEW)(ds),
        ds.delete("a IN (4, 25)"),
        ds.update({"b": "'last'"}, where="c > 5"),
    ),
}


def shown(ds: Any, *, stable: bool) -> pa.Table:
    columns = ["a", "b", "c", *(LINEAGE if stable else [])]
    return ds.scanner(columns=columns).to_table().sort_by([("a", "ascending"), ("b", "ascending")])


def without_new_ids(table: pa.Table) -> pa.Table:
    """New rows may get new ids in another order."""
    new = pc.greater_equal(table["_rowid"], START.num_rows)
    return table.set_column(3, "_rowid", pc.if_else(new, pa.scalar(None, pa.uint64()), table["_rowid"]))


@pytest.mark.parametrize("stable", [False, True], ids=["plain", "stable"])
@pytest.mark.parametrize("verb", VERBS)
def test_row_changes_have_the_same_effect_as_in_pylance(verb: str, stable: bool, tmp_path: Path) -> None:
    lance.write_dataset(START, tmp_path / "ours", max_rows_per_file=7, enable_stable_row_ids=stable)
    shutil.copytree(tmp_path / "ours", tmp_path / "theirs")
    ours, theirs = lance_duck.dataset(tmp_path / "ours"), lance.dataset(tmp_path / "theirs")
    assert VERBS[verb](ours) == VERBS[verb](theirs)
    found, expected = shown(lance.dataset(tmp_path / "ours"), stable=stable), shown(theirs, stable=stable)
    assert shown(ours, stable=stable).equals(found)
    if stable:
        ids = found["_rowid"].to_pylist()
        assert len(set(ids)) == len(ids)
        found, expected = without_new_ids(found), without_new_ids(expected)
    assert found.equals(expected), verb
    lance.dataset(tmp_path / "ours").validate()
    assert ours.version == theirs.version
    theirs_on_ours = lance.dataset(tmp_path / "ours")
    theirs_on_ours.update({"c": "-1.0"}, where="a = 7")
    theirs_on_ours.validate()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_new_files_keep_the_file_version_of_the_table_by_default(version: str, tmp_path: Path) -> None:
    lance.write_dataset(START, tmp_path / "t", data_storage_version="2.1")
    ds = lance_duck.dataset(tmp_path / "t")
    ds.update({"c": "1"}, where="a = 1")
    ds.update({"c": "1"}, where="a = 2", data_storage_version=version)
    ds.merge_insert("a").when_matched_update_all().data_storage_version(version).execute(NEW)
    theirs = lance.dataset(tmp_path / "t")
    found = [f"{f.file_major_version}.{f.file_minor_version}" for p in theirs.get_fragments() for f in p.data_files()]
    assert found == ["2.1", "2.1", version, version]
    assert theirs.data_storage_version == "2.1"
    assert theirs.count_rows() == 20


def test_updates_of_all_types(tmp_path: Path) -> None:
    types: dict[str, tuple[Any, Any, str, Any]] = {
        "int8": (pa.int8(), 1, "2", 2),
        "uint64": (pa.uint64(), 1, "18446744073709551615", 2**64 - 1),
        "string": (pa.string(), "foo", "'bar'", "bar"),
        "large_string": (pa.large_string(), "foo", "'bar'", "bar"),
        "binary": (pa.binary(), b"x", "X'616263'", b"abc"),
        "float32": (pa.float32(), 1.0, "2.5", 2.5),
        "float16": (pa.float16(), 1.0, "2.5", 2.5),
        "bool": (pa.bool_(), True, "false", False),
        "date32": (pa.date32(), date(2021, 1, 1), "DATE '2021-01-02'", date(2021, 1, 2)),
        "ts_ns": (pa.timestamp("ns"), datetime(2021, 1, 1), 'TIMESTAMP "2021-01-02 00:00:00"', datetime(2021, 1, 2)),
        "ts_ms": (pa.timestamp("ms"), datetime(2021, 1, 1), "'2021-01-02 00:00:00'", datetime(2021, 1, 2)),
        "vec": (pa.list_(pa.float32(), 2), [1.0, 2.0], "[3.0, 4.0]", [3.0, 4.0]),
        "list": (pa.list_(pa.int32()), [1], "[7, 8, NULL]", [7, 8, None]),
        "struct": (
            pa.struct([("x", pa.int64()), ("y", pa.string())]),
            {"x": 1, "y": "p"},
            "{'x': struct.x + 1, 'y': 'q'}",
            {"x": 2, "y": "q"},
        ),
        "dict": (pa.dictionary(pa.int32(), pa.string()), "p", "'q'", "q"),
        "map": (pa.map_(pa.string(), pa.int32()), [("p", 1)], "MAP {'q': 2}", [("q", 2)]),
    }
    schema = pa.schema([(name, type_) for name, (type_, *_) in types.items()])
    table = pa.table([pa.array([value] * 2, type_) for type_, value, *_ in types.values()], schema=schema)
    lance.write_dataset(table, tmp_path / "t")
    ds = lance_duck.dataset(tmp_path / "t")
    ds.update({name: text for name, (_, _, text, _) in types.items()})
    theirs = lance.dataset(tmp_path / "t")
    theirs.validate()
    assert theirs.schema == schema
    expected = {name: value for name, (*_, value) in types.items()}
    assert theirs.to_table().to_pylist() == [expected] * 2
    assert ds.to_table().to_pylist() == [expected] * 2


def test_kept_columns_of_every_type_survive_updates_and_merges(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": pa.array(range(6), pa.int64()),
            "json": pa.array([f'{{"x":{i}}}' for i in range(6)], pa.json_()),
            "blob": lance.blob_array([b"one", None, b"x" * 100_000, b"", b"five", b"six"]),
            "n": pa.array(range(6), pa.int32()),
        },
        schema=pa.schema(
            [("id", pa.int64()), ("json", pa.json_()), lance.blob_field("blob"), pa.field("n", pa.int32())]
        ),
    )
    lance.write_dataset(table, tmp_path / "t", data_storage_version="2.2")
    ds = lance_duck.dataset(tmp_path / "t")
    ds.update({"n": "n + 10"}, where="id < 3")
    part = pa.table({"id": pa.array([2, 4], pa.int64()), "n": pa.array([7, 8], pa.int32())})
    ds.merge_insert("id").when_matched_update_all().execute(part)
    theirs = lance.dataset(tmp_path / "t")
    found = theirs.to_table(blob_handling="all_binary").sort_by("id")
    assert found["n"].to_pylist() == [10, 11, 7, 3, 8, 5]
    assert found["blob"].to_pylist() == [b"one", None, b"x" * 100_000, b"", b"five", b"six"]
    assert [str(v).replace(" ", "") for v in found["json"].to_pylist()] == [f'{{"x":{i}}}' for i in range(6)]
    assert found.equals(ds.to_table(blob_handling="all_binary").sort_by("id"))


@pytest.mark.parametrize("kind", ["branch", "clone"])
def test_changes_of_branches_and_clones_do_not_affect_the_table(kind: str, tmp_path: Path) -> None:
    theirs = lance.write_dataset(START, tmp_path / "t", max_rows_per_file=7)
    theirs.delete("a = 1")
    if kind == "branch":
        theirs.create_branch("other")
        ours = lance_duck.dataset(tmp_path / "t", version=("other", None))
    else:
        theirs.shallow_clone(tmp_path / "other", 2)
        ours = lance_duck.dataset(tmp_path / "other")
    ours.delete("a = 2")
    ours.update({"c": "-1"}, where="a = 3")
    upsert(NEW)(ours)
    again = theirs.checkout_version(("other", None)) if kind == "branch" else lance.dataset(tmp_path / "other")
    again.validate()
    assert shown(again, stable=False).equals(shown(ours, stable=False))
    assert again.count_rows() == 20
    again.delete("a = 5")
    again.validate()
    assert lance.dataset(tmp_path / "t").count_rows() == 19
