"""Data files of version 0.1: both libraries read and extend each other's files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle.cases import Cases
from oracle.compare import assert_fields_same, assert_same, assert_tables_same
from oracle.nested_random import types, values
from oracle.tables import KINDS, make_table

import lance_duck as ld
from lance_duck.cli.change import compact
from lance_duck.errors import LanceDuckError, UnsupportedError

ROWS, GROUP = 150, 47
LEGACY = {"data_storage_version": "legacy"}
NOT_READ = {("struct_deep", "sliced")}  # pylance 14.0.2 fails on its own
WORDS = pa.array(["x", "yy", "z"])


def nullable_items(type_: pa.DataType) -> pa.DataType:
    """Return the type with nullable list items: pylance cannot read others in structs."""
    if pa.types.is_struct(type_):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        return pa.struct([f.with_type(nullable_items(f.type)) for f in fields])
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        make = pa.list_ if pa.types.is_list(type_) else pa.large_list
        return make(pa.field("item", nullable_items(type_.value_type)))
    return type_


def sayable(table: pa.Table, folder: Path) -> pa.Table:
    """Return a table as pylance stores it in version 0.1: fixed-width nulls become zeros, for example."""
    place = str(folder / "sayable.lance")
    lance.write_dataset(table, place, mode="overwrite", max_rows_per_group=GROUP, **LEGACY)
    return lance.dataset(place).to_table()


@pytest.mark.parametrize("pattern", ["none", "nulls", "all_null", "sliced"])
def test_legacy_columns_of_every_type_are_written(pattern: str, tmp_path: Path, cases: Cases) -> None:
    kinds = [k for k in KINDS if pattern in k.patterns() and not k.is_refused("legacy", pattern) and not k.wide]
    kinds = [k for k in kinds if (k.name, pattern) not in NOT_READ]
    expected = sayable(make_table(kinds, pattern, ROWS), tmp_path)
    uri = str(tmp_path / "t.lance")
    ours = ld.write_dataset(expected, uri, max_rows_per_group=GROUP, max_rows_per_file=100, **LEGACY)
    theirs = lance.dataset(uri)
    assert ours.data_storage_version == theirs.data_storage_version == "0.1"
    rows = [0, 1, GROUP, 99, 100, ROWS - 1]
    tables = {"pylance": theirs.to_table(), "ours": ours.to_table()}
    taken = ours.take(rows)
    for field in expected.schema:
        for who, table in tables.items():
            with cases.case(f"{who}: {field.name}"):
                assert_fields_same(field, table.schema.field(field.name))
                assert_same(expected[field.name], table[field.name])
        assert_same(expected[field.name].take(rows), taken[field.name])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data(), seed=st.integers(0, 2**32 - 1), nulls=st.sampled_from([0.0, 0.3]), step=st.sampled_from([7, 60]))
def test_nested_types_drawn_at_random(tmp_path: Path, data: Any, seed: int, nulls: float, step: int) -> None:
    rng = np.random.default_rng(seed)
    type_ = nullable_items(data.draw(types(3, maps=False)))
    expected = sayable(pa.table({"x": values(type_, rng, 60, nulls)}), tmp_path)
    uri = str(tmp_path / "t.lance")
    batches = pa.RecordBatchReader.from_batches(expected.schema, expected.to_batches(step))
    ours = ld.write_dataset(batches, uri, mode="overwrite", max_rows_per_group=1 + seed % 29, **LEGACY)
    assert_tables_same(expected, lance.dataset(uri).to_table())
    assert_tables_same(expected, ours.to_table())
    rows = np.unique(rng.integers(0, 60, 9)).tolist()
    assert_tables_same(expected.take(rows), ours.take(rows))


def test_types_rejected_by_pylance_are_rejected_in_legacy_files(tmp_path: Path) -> None:
    for kind in KINDS:
        if kind.is_refused("legacy", "none"):
            with pytest.raises(LanceDuckError):
                ld.write_dataset(make_table([kind], "none", 5), str(tmp_path / kind.name), **LEGACY)
            assert not (tmp_path / kind.name).exists() or not [*(tmp_path / kind.name).rglob("*.lance")]


def rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "s": [None if i % 7 == 0 else f"s{i}" for i in numbers],
            "l": pa.array([[i] * (i % 3) for i in numbers], pa.list_(pa.int32())),
            "d": pa.DictionaryArray.from_arrays(pa.array([i % 3 for i in numbers], pa.int8()), WORDS),
        }
    )


def assert_as_pylance(uri: str, expected: list[dict[str, Any]] | None = None) -> None:
    theirs, ours = lance.dataset(uri), ld.dataset(uri)
    ours.validate()
    found = [ours.to_table(with_row_id=True).to_pylist(), theirs.to_table(with_row_id=True).to_pylist()]
    assert found[0] == found[1]
    assert ours.data_storage_version == theirs.data_storage_version == "0.1"
    if expected is not None:
        assert ours.to_table().to_pylist() == expected


@pytest.mark.parametrize("stable", [False, True])
def test_every_change_keeps_the_legacy_file_version(stable: bool, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    options: dict[str, Any] = {"max_rows_per_group": 16, "enable_stable_row_ids": stable, **LEGACY}
    ds = ld.write_dataset(rows(0, 50), uri, max_rows_per_file=40, **options)
    assert_as_pylance(uri, rows(0, 50).to_pylist())
    lance.write_dataset(rows(50, 60), uri, mode="append", max_rows_per_group=4)
    ds = ld.write_dataset(rows(60, 90), uri, mode="append", max_rows_per_group=13)
    assert_as_pylance(uri, rows(0, 90).to_pylist())
    ds.delete("id IN (3, 4, 5, 60, 61)")
    ds.update({"s": "'new'", "d": "'z'"}, where="id % 10 = 1")
    assert_as_pylance(uri)
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows(80, 100))
    assert_as_pylance(uri)
    ds.create_scalar_index("id", "BTREE")
    assert ld.dataset(uri).to_table(["s"], filter="id = 21").to_pylist() == [{"s": "new"}]
    ds = ld.dataset(uri)
    ds.add_columns({"twice": "id * 2"})
    ds.alter_columns({"path": "twice", "name": "double"})
    ds.drop_columns(["l"])
    assert_as_pylance(uri)
    whole = ds.to_table()
    ds.optimize.compact_files(data_storage_version="legacy")
    assert_as_pylance(uri, whole.to_pylist())
    assert len(ds.get_fragments()) == 1
    lance.dataset(uri).update({"s": "'theirs'"}, where="id = 30")
    assert_as_pylance(uri)
    lance.dataset(uri).optimize.compact_files()
    ld.dataset(uri).optimize.compact_files()
    assert ld.dataset(uri).data_storage_version == lance.dataset(uri).data_storage_version == "2.2"
    assert ld.dataset(uri).to_table() == lance.dataset(uri).to_table()
    ld.dataset(uri, version=3).restore()
    assert_as_pylance(uri, rows(0, 90).to_pylist())
    ds = ld.write_dataset(rows(0, 9).drop_columns(["d"]), uri, mode="overwrite")
    assert_as_pylance(uri, rows(0, 9).drop_columns(["d"]).to_pylist())


def test_file_versions_are_not_mixed(tmp_path: Path) -> None:
    old, new = str(tmp_path / "old.lance"), str(tmp_path / "new.lance")
    empty = ld.write_dataset(rows(0, 0).select(["id"]), str(tmp_path / "empty.lance"))
    ld.write_dataset(rows(0, 9), old, **LEGACY)
    ld.write_dataset(rows(0, 9), new)
    for uri, version in ((old, "2.2"), (new, "legacy"), (old, "stable")):
        with pytest.raises(UnsupportedError, match=r"mix data files of version 0\.1 and 2"):
            ld.write_dataset(rows(9, 12), uri, mode="append", data_storage_version=version)
    with pytest.raises(UnsupportedError, match=r"mix data files of version 0\.1 and 2"):
        ld.write_dataset(rows(9, 12).select(["id"]), empty, mode="append", **LEGACY)
    assert ld.write_dataset(rows(0, 9), new, mode="overwrite", **LEGACY).data_storage_version == "0.1"
    assert_as_pylance(new, rows(0, 9).to_pylist())
    assert ld.write_dataset(rows(0, 9), new, mode="overwrite", data_storage_version="2.0").to_table() == rows(0, 9)
    assert lance.dataset(new).data_storage_version == "2.0"


def test_appended_rows_use_the_dictionaries_of_the_legacy_table(tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ds = ld.write_dataset(rows(0, 9), uri, **LEGACY)
    for words in (["z", "x"], ["yy"]):
        more = pa.table({"id": [1] * len(words), "d": pa.array(words).dictionary_encode()})
        ds = ld.write_dataset(
            more.append_column("l", pa.array([[1]] * len(words), pa.list_(pa.int32()))), ds, mode="append"
        )
        assert lance.dataset(uri).to_table()["d"].to_pylist()[-len(words) :] == words
    files = {*Path(uri).rglob("*.lance")}
    with pytest.raises(UnsupportedError, match="'new'"):
        ds.update({"d": "'new'"}, where="id = 3")
    assert {*Path(uri).rglob("*.lance")} == files
    ds.delete("true")
    assert lance.dataset(uri).count_rows() == 0
    ld.write_dataset(rows(5, 9), uri, mode="append")
    assert_as_pylance(uri, rows(5, 9).to_pylist())


def test_a_shallow_clone_reads_the_dictionaries_of_its_source(tmp_path: Path) -> None:
    ds = ld.write_dataset(rows(0, 9), str(tmp_path / "t.lance"), **LEGACY)
    ds.tags.create("first", 1)
    clone = ds.shallow_clone(str(tmp_path / "clone.lance"), "first")
    clone.delete("id = 3")
    assert_as_pylance(clone.uri, [row for row in rows(0, 9).to_pylist() if row["id"] != 3])


def test_the_first_column_of_a_legacy_file_is_not_moved(tmp_path: Path) -> None:
    """Other readers count pages from the first id in the manifest: pylance cannot read what its own update gives."""
    ds = ld.write_dataset(rows(0, 9), str(tmp_path / "t.lance"), **LEGACY)
    fragment = ds.get_fragment(0)
    new = {"_rowid": pa.array(range(9), pa.uint64()), "id": pa.array(range(9))}
    files = {*Path(ds.uri).rglob("*.lance")}
    with pytest.raises(UnsupportedError, match="cannot rewrite this column in place"):
        fragment.update_columns(pa.table(new), left_on="_rowid", right_on="_rowid")
    assert {*Path(ds.uri).rglob("*.lance")} == files
    new["s"] = pa.array([f"n{i}" for i in range(9)])
    changed, fields = fragment.update_columns(pa.table({k: new[k] for k in ("_rowid", "s")}), "_rowid", "_rowid")
    operation = ld.LanceOperation.Update(updated_fragments=[changed], fields_modified=fields)
    ld.LanceDataset.commit(ds.uri, operation, read_version=ds.version)
    assert_as_pylance(ds.uri)
    assert lance.dataset(ds.uri).to_table()["s"].to_pylist() == new["s"].to_pylist()


@pytest.mark.parametrize("writer", ["ours", "pylance"])
def test_new_files_of_a_legacy_fragment_keep_its_batches(writer: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    data = pa.table({"id": np.arange(3_000), "y": np.arange(3_000) % 7})
    (ld if writer == "ours" else lance).write_dataset(
        data, uri, max_rows_per_group=GROUP, max_rows_per_file=2_000, **LEGACY
    )
    dataset = ld.dataset(uri)
    dataset.delete("id % 5 = 1")
    dataset.add_columns({"x": "id * 2"})
    dataset.alter_columns({"path": "y", "data_type": pa.int32()})
    dataset.merge(pa.table({"id": np.arange(3_000), "z": np.arange(3_000) * 3}), "id")
    dataset.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns").execute(
        pa.table({"id": [4, 2_500], "x": [-1, -2]})
    )
    theirs = lance.dataset(uri)
    assert theirs.to_table() == dataset.to_table()
    assert theirs.count_rows("x < 0") == 2
    theirs.delete("id = 7")
    assert ld.dataset(uri).count_rows("z >= 0 AND y < 7") == 2_399


def test_new_columns_without_values_are_rejected(tmp_path: Path) -> None:
    dataset = ld.write_dataset(pa.table({"id": [1, 2]}), tmp_path / "t.lance", **LEGACY)
    for columns in (pa.schema([pa.field("x", pa.int32())]), {"x": "CAST(NULL AS int)"}):
        with pytest.raises(UnsupportedError, match="cannot add columns without values"):
            dataset.add_columns(columns)
    assert lance.dataset(str(tmp_path / "t.lance")).to_table().column_names == ["id"]


@pytest.mark.parametrize("way", ["python", "plan", "sql", "command line"])
def test_compaction_writes_2_2_by_default(way: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    ds = ld.write_dataset(rows(0, 9), uri, **LEGACY)
    ds = ld.write_dataset(rows(9, 12), ds, mode="append")
    if way == "python":
        ds.optimize.compact_files()
    elif way == "plan":
        tasks = ld.optimize.Compaction.plan(ds).tasks
        ld.optimize.Compaction.commit(ds, [task.execute(ds) for task in tasks])
    elif way == "sql":
        ld.connect(str(tmp_path)).sql("OPTIMIZE t").fetchall()
    else:
        compact(uri)
    assert lance.dataset(uri).data_storage_version == ld.dataset(uri).data_storage_version == "2.2"
    assert lance.dataset(uri).to_table().to_pylist() == rows(0, 12).to_pylist()
