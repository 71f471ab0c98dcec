"""Tables with a write-ahead log that LanceDB or pylance wrote: the view has the rows that LanceDB reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import lancedb
import pyarrow as pa
import pytest
from lancedb import LsmWriteSpec
from lancedb.index import FTS, BTree

import lance_duck as ld
from lance_duck.errors import UnsupportedError

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), False),
        pa.field("k", pa.string(), False),
        pa.field("x", pa.int64()),
        pa.field("s", pa.struct([("a", pa.int64()), ("b", pa.string())])),
        pa.field("v", pa.list_(pa.float32(), 2)),
        pa.field("t", pa.string()),
        pa.field("l", pa.list_(pa.struct([("n", pa.int8())]))),
    ]
)


def rows(ids: list[int], x: int) -> pa.Table:
    made = [
        {
            "id": i,
            "k": f"k{i}",
            "x": None if i % 7 == 5 else x * i,
            "s": {"a": i, "b": None},
            "v": [float(i), x],
            "t": f"duck {x} {'lake' * (i % 2)}",
            "l": [{"n": i % 5}] * (i % 3),
        }
        for i in ids
    ]
    return pa.Table.from_pylist(made, SCHEMA)


def put(table: Any, *batches: pa.Table) -> None:
    for batch in batches:
        table.merge_insert(KEYS[table.name]).when_matched_update_all().when_not_matched_insert_all().execute(batch)


SHARD = "00000000-0000-4000-8000-000000000001"
KEYS = {"t": "id", "by_text": "k"}


@pytest.fixture(params=KEYS)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A table of LanceDB with two SSTables and an entry that is not in an SSTable."""
    table = lancedb.connect(tmp_path).create_table(request.param, rows([*range(20)], 1))
    table.set_unenforced_primary_key(KEYS[table.name])
    for column, kind in {"id": BTree(), "x": BTree(), "t": FTS()}.items():
        table.create_index(column, config=kind)
    table.set_lsm_write_spec(LsmWriteSpec.unsharded())
    put(table, rows([3, 4, 30], 10), rows([3, 31], 20))
    table.close_lsm_writers()
    put(table, rows([4, 8, 31], 30))
    table.close_lsm_writers()
    put(table, rows([8, 9, 40], 40))
    return table


def key(position: int) -> dict[str, str]:
    return {"lance-schema:unenforced-primary-key:position": str(position)}


def path_of(table: Any) -> str:
    return str(table.to_lance().uri)


def by_id(rows: pa.Table) -> list[dict[str, Any]]:
    return rows.sort_by("id").to_pylist()


def test_a_fresh_view_has_the_rows_that_lancedb_reads(table: Any) -> None:
    view = ld.dataset(path_of(table), log="fresh")
    expected = by_id(table.to_arrow())
    assert by_id(view.to_table()) == expected
    assert view.to_table().schema == ld.dataset(path_of(table)).schema
    for filter_ in ("id = 3", "id IN (4, 8, 31)", "x = 320", "x > 100", "x IS NULL", "s.a < 5"):
        found = by_id(view.to_table(filter=filter_))
        assert found == by_id(table.search().where(filter_).to_arrow())
        assert view.count_rows(filter_) == len(found) > 0  # LanceDB counts rows of the main table alone


def test_a_flushed_view_has_the_rows_of_sstables(table: Any) -> None:
    view = ld.dataset(path_of(table), log="flushed")
    before = by_id(view.to_table())
    assert len(before) == 22
    assert {each["id"]: each["x"] for each in before}[9] == 9
    table.close_lsm_writers()
    assert by_id(view.to_table()) == before
    view.checkout_latest()
    assert by_id(view.to_table()) == by_id(table.to_arrow())
    assert view.to_table() == ld.dataset(path_of(table), log="fresh").to_table()


def test_a_view_uses_the_btrees_of_sstables(table: Any) -> None:
    view = ld.dataset(path_of(table), log="flushed")
    plan = view.scanner(filter="id = 31").explain_plan()
    assert "fragments: 3 through indexes, 0 scanned" in plan
    assert "with rows of the write-ahead log: flushed" in plan
    plan = ld.dataset(path_of(table)).scanner(filter="id = 31").explain_plan()
    assert "(index __lance_mem_wal): 8 in SSTables (2), 3 in newer entries" in plan


def test_a_view_follows_changes_of_the_main_table(table: Any) -> None:
    main = lance.dataset(path_of(table))
    main.delete("id = 0")
    main.insert(rows([50], 5))
    main.optimize.compact_files()
    view = ld.dataset(path_of(table), log="fresh")
    table.checkout_latest()
    assert by_id(view.to_table()) == by_id(table.to_arrow())
    ld.dataset(path_of(table)).alter_columns({"path": "x", "name": "y"})
    ld.dataset(path_of(table)).drop_columns(["t"])
    ld.dataset(path_of(table)).add_columns(pa.field("z", pa.bool_()))  # perhaps with the field id of `_tombstone`
    view.checkout_latest()
    table.close_lsm_writers()
    found = by_id(view.to_table())
    assert found == by_id(lancedb.connect(Path(path_of(table)).parent).open_table(table.name).to_arrow())
    assert {each["z"] for each in found} == {None}


def test_shards_of_buckets_are_read_together(tmp_path: Path) -> None:
    table = lancedb.connect(tmp_path).create_table("t", rows([*range(20)], 1))
    table.set_unenforced_primary_key("id")
    table.set_lsm_write_spec(LsmWriteSpec.bucket("id", 4))
    for number in (2, 21, 3, 22, 2, 21):
        put(table, rows([number], number))
        table.close_lsm_writers()
    assert by_id(ld.dataset(path_of(table), log="flushed").to_table()) == by_id(table.to_arrow())


def test_deletes_in_the_log_hide_rows(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    schema = pa.schema([pa.field("id", pa.int64(), False, key(1)), pa.field("v", pa.string(), False)])
    dataset = lance.write_dataset(pa.table({"id": range(5), "v": [*"abcde"]}, schema), path)
    dataset.initialize_mem_wal(unsharded=True)
    with lance.dataset(path).mem_wal_writer(SHARD, durable_write=True) as writer:
        writer.put(pa.table({"id": [1, 7], "v": ["new", "more"]}, schema))
        writer.delete(pa.table({"id": [7, 2]}, schema=pa.schema([schema.field("id")])))
    view = ld.dataset(path, log="flushed")
    assert view.to_table().sort_by("id").to_pydict() == {"id": [0, 1, 3, 4], "v": ["a", "new", "d", "e"]}
    assert view.count_rows() == view.count_rows("id >= 0") == 4


def test_keys_of_several_columns_replace_rows_with_the_same_key(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    fields = [pa.field("a", pa.int32(), False, key(1)), pa.field("b", pa.string(), False, key(2))]
    schema = pa.schema([*fields, pa.field("x", pa.int64())])
    dataset = lance.write_dataset(pa.table({"a": [1, 1, 2, 2], "b": [*"uvuv"], "x": range(4)}, schema), path)
    dataset.initialize_mem_wal(unsharded=True)
    for x, (a, b) in enumerate([([1, 2], "vu"), ([2, 3], "uv"), ([1, 3], "wv")], 1):
        with lance.dataset(path).mem_wal_writer(SHARD, durable_write=True) as writer:
            writer.put(pa.table({"a": a, "b": [*b], "x": [10 * x, 10 * x + 1]}, schema))
    found = ld.dataset(path, log="flushed").to_table().sort_by([("a", "ascending"), ("b", "ascending")])
    assert list(zip(*found.to_pydict().values(), strict=True)) == [
        *((1, "u", 0), (1, "v", 10), (1, "w", 30)),
        *((2, "u", 20), (2, "v", 3), (3, "v", 31)),
    ]


def test_tables_without_a_key_or_without_a_log_are_concatenated(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    dataset = lance.write_dataset(pa.table({"id": [1, 2]}), path)
    assert ld.dataset(path, log="fresh").to_table() == ld.dataset(path).to_table()
    dataset.initialize_mem_wal(unsharded=True)
    with lance.dataset(path).mem_wal_writer(SHARD, durable_write=True) as writer:
        writer.put(pa.table({"id": [2, 3]}))
    assert ld.dataset(path, log="flushed").to_table()["id"].to_pylist() == [1, 2, 2, 3]


def test_branches_have_their_own_log(table: Any) -> None:
    ld.dataset(path_of(table)).create_branch("b")
    view = ld.dataset(path_of(table), ("b", None), log="fresh")
    assert (view.count_rows(), view.handle.snapshot.branch) == (20, "b")
    main = ld.dataset(path_of(table), log="fresh")
    assert (main.count_rows(), main.checkout_version(("b", None)).count_rows()) == (23, 20)
    with pytest.raises(UnsupportedError, match=r"has only its newest version.*without log"):
        ld.dataset(path_of(table), 1, log="fresh")
