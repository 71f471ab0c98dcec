"""Logs that pylance and LanceDB write, merged into the main table: all readers see the same rows afterwards."""

from __future__ import annotations

import json
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import lancedb
import pyarrow as pa
import pytest
from support.write_ahead_log import KEY, ShardWriter, create_log

import lance_duck as ld
from lance_duck.errors import IncompatibleError, UnsupportedError
from lance_duck.optimize import log_compaction
from lance_duck.snapshot import open_snapshot
from lance_duck.snapshot.shards import merged_generations

SCHEMA = pa.schema([pa.field("id", pa.int64(), False, KEY), pa.field("x", pa.int64()), pa.field("s", pa.string())])
SHARD = "00000000-0000-4000-8000-000000000001"


def rows(ids: list[int], factor: int) -> pa.Table:
    return pa.table([ids, [i * factor for i in ids], [f"row {i}" for i in ids]], schema=SCHEMA)


def ids(dataset: Any) -> list[tuple[int, int]]:
    table = dataset.to_table()
    return sorted(zip(table["id"].to_pylist(), table["x"].to_pylist(), strict=True))


def with_log(path: str, *, stable: bool = False) -> None:
    """Write rows 0 to 9. The log updates 1 and 2, inserts 20 and 21, deletes 3 and 20, and inserts and deletes 30."""
    dataset = lance.write_dataset(rows([*range(10)], 1), path, max_rows_per_file=4, enable_stable_row_ids=stable)
    dataset.create_scalar_index("id", "BTREE")
    dataset.initialize_mem_wal(unsharded=True)
    for changed, deleted in (([1, 20, 30], [3]), ([2, 21], [20, 30])):
        with lance.dataset(path).mem_wal_writer(SHARD) as writer:
            writer.put(rows(changed, 100))
            writer.delete(pa.table({"id": pa.array(deleted, pa.int64())}))


EXPECTED = [(0, 0), (1, 100), (2, 200), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8), (9, 9), (21, 2100)]


@pytest.mark.parametrize("stable", [False, True])
def test_the_log_of_pylance_is_merged_in_one_version(stable: bool, tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    with_log(path, stable=stable)
    dataset = ld.dataset(path)
    before = dataset.version
    assert ids(ld.dataset(path, log="flushed")) == EXPECTED
    metrics = dataset.optimize.compact_log(commit_message="merged")
    assert vars(metrics) == {"sstables_merged": 2, "rows_inserted": 1, "rows_updated": 2, "rows_deleted": 1}
    assert dataset.version == before + 1
    assert ids(dataset) == ids(lance.dataset(path)) == ids(ld.dataset(path, log="flushed")) == EXPECTED
    assert lance.dataset(path).to_table(filter="id = 2")["x"].to_pylist() == [200]
    assert merged_generations(open_snapshot(path)) == {SHARD: 2}
    again = dataset.optimize.compact_log()
    assert (again.sstables_merged, dataset.version) == (0, before + 1)
    lance.dataset(path).validate()
    assert dataset.find_problems() == []


def test_lancedb_reads_the_same_rows_after_a_merge_and_goes_on_writing(tmp_path: Path) -> None:
    table = lancedb.connect(tmp_path).create_table("t", rows([*range(6)], 1))
    table.set_lsm_write_spec(lancedb.LsmWriteSpec.bucket("id", 2))
    path = tmp_path / "t.lance"

    def put(key: int, factor: int) -> None:
        table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows([key], factor))
        table.close_lsm_writers()

    for key in (1, 10, 3, 12, 2):
        put(key, 100)
    before = ids(ld.dataset(path, log="flushed"))
    assert before == sorted(zip(*table.to_arrow().select(["id", "x"]).to_pydict().values(), strict=True))
    assert ld.dataset(path).optimize.compact_log().sstables_merged == 5
    table = lancedb.connect(tmp_path).open_table("t")
    assert ids(ld.dataset(path)) == before == ids(lance.dataset(path))
    assert table.to_arrow().num_rows == table.count_rows() == len(before)
    put(1, 7)
    assert sorted(table.to_arrow()["x"].to_pylist()) == [0, 4, 5, 7, 200, 300, 1000, 1200]
    assert ld.dataset(path).optimize.compact_log().rows_updated == 1
    assert ids(ld.dataset(path))[1] == (1, 7)


def test_rows_that_are_not_in_an_sstable_stay_in_the_log(tmp_path: Path) -> None:
    path = logged(tmp_path)
    shard = ShardWriter(path)
    shard.put(rows([1, 7], 10))
    shard.flush()
    shard.put(rows([2], 10))
    assert ld.dataset(path).optimize.compact_log().sstables_merged == 1
    assert ids(ld.dataset(path)) == [(1, 10), (2, 2), (7, 70)]
    assert ids(ld.dataset(path, log="fresh")) == [(1, 10), (2, 20), (7, 70)]


def logged(folder: Path) -> str:
    path = str(folder / "t.lance")
    ld.write_dataset(rows([1, 2], 1), path)
    create_log(path)
    return path


def test_a_table_without_a_log_stays_at_its_version(tmp_path: Path) -> None:
    dataset = ld.write_dataset(rows([1], 1), tmp_path / "t.lance")
    assert vars(dataset.optimize.compact_log())["sstables_merged"] == 0
    assert dataset.version == 1


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (lambda dataset: dataset.optimize.compact_log(), "merged the same rows|is incompatible"),
        (lambda dataset: dataset.drop_index("__lance_mem_wal"), "was removed"),
    ],
)
def test_a_merge_fails_if_another_writer_was_first(
    first: Callable[[Any], object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = logged(tmp_path)
    shard = ShardWriter(path)
    shard.put(rows([1, 7], 10))
    shard.flush()
    real = log_compaction.commit_merge

    def late(*args: Any) -> Any:
        monkeypatch.setattr(log_compaction, "commit_merge", real)
        first(ld.dataset(path))
        return real(*args)

    monkeypatch.setattr(log_compaction, "commit_merge", late)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.MemWalWarning)
        with pytest.raises(IncompatibleError, match=message):
            ld.dataset(path).optimize.compact_log()
    named = {file.path for fragment in open_snapshot(path).fragments for file in fragment.files}
    assert {file.name for file in (Path(path) / "data").iterdir()} == named


def test_a_merge_runs_again_after_a_change_of_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = logged(tmp_path)
    shard = ShardWriter(path)
    shard.put(rows([1, 7], 10))
    shard.flush()
    real = log_compaction.commit_merge

    def late(*args: Any) -> Any:
        monkeypatch.setattr(log_compaction, "commit_merge", real)
        ld.dataset(path).optimize.compact_files()
        ld.write_dataset(rows([7], 5), path, mode="append")
        return real(*args)

    monkeypatch.setattr(log_compaction, "commit_merge", late)
    ld.dataset(path).optimize.compact_log()
    assert ids(ld.dataset(path)) == [(1, 10), (2, 2), (7, 70)]


def test_rows_without_a_primary_key_are_appended(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    table = pa.table({"x": [1, 2]})
    ld.write_dataset(table, path)
    create_log(path)
    shard = ShardWriter(path, keys=())
    shard.put(pa.table({"x": [2, 3]}))
    shard.flush()
    metrics = ld.dataset(path).optimize.compact_log()
    assert (metrics.rows_inserted, ld.dataset(path).to_table()["x"].to_pylist()) == (2, [1, 2, 2, 3])
    assert ld.dataset(path, log="flushed").count_rows() == 4


def test_a_key_in_two_shards_is_refused(tmp_path: Path) -> None:
    path = logged(tmp_path)
    for name in (SHARD, str(uuid.UUID(int=5, version=4))):
        shard = ShardWriter(path, name)
        shard.put(rows([7], 10))
        shard.flush()
    with pytest.raises(ld.DataMismatchError, match="id = 7"):
        ld.dataset(path).optimize.compact_log()


def test_a_nested_primary_key_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    schema = pa.schema([pa.field("s", pa.struct([pa.field("id", pa.int64(), False, KEY)]), False)])
    ld.write_dataset(pa.table({"s": pa.array([{"id": 1}], schema.field("s").type)}, schema), path)
    create_log(path)
    shard = ShardWriter(path, keys=())
    shard.put(pa.table({"s": pa.array([{"id": 2}], schema.field("s").type)}, schema))
    shard.flush()
    with pytest.raises(UnsupportedError, match=r"nested primary key.*s\.id"):
        ld.dataset(path).optimize.compact_log()


def test_sql_merges_the_log(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    with_log(path)
    with ld.connect(tmp_path) as connection:
        ((operation, target, figures),) = connection.execute("CALL lance_compact_log('t')").fetchall()
        assert (operation, target) == ("compact_log", path)
        assert json.loads(figures)["sstables_merged"] == 2
        assert connection.execute("SELECT count(*), sum(x) FROM t").fetchall() == [(10, sum(x for _, x in EXPECTED))]
        connection.execute("BEGIN")
        with pytest.raises(ld.LanceDuckError, match="transaction"):
            connection.execute("CALL lance_compact_log('t')")
