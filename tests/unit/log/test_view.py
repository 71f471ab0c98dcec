"""Views of a table and its write-ahead log: reads, limits, and SQL."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.write_ahead_log import KEY, ShardWriter, create_log

import lance_duck as ld
from lance_duck.errors import InvalidInputError, NotFoundError, UnsupportedError
from lance_duck.log.keys import KeySet

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), False, KEY), pa.field("x", pa.int64()), pa.field("v", pa.list_(pa.float32(), 2))]
)


def rows(ids: list[int], x: int) -> pa.Table:
    return pa.table([ids, [x * i for i in ids], [[float(i), x] for i in ids]], schema=SCHEMA)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> ShardWriter:
    """A table of rows 0 to 5. The log has new rows 1 and 7, deletes row 2, and has a newer entry with rows 3 and 7."""
    path = str(tmp_path_factory.mktemp("kept") / "t.lance")
    ld.write_dataset(rows([*range(6)], 1), path, max_rows_per_file=4)
    create_log(path)
    shard = ShardWriter(path)
    shard.put(rows([1, 7], 10))
    shard.put(rows([2], 0), deletes=True)
    shard.flush(indexes=("id",))
    shard.put(rows([3, 7], 100))
    return shard


@pytest.fixture
def shard(kept: ShardWriter, tmp_path: Path) -> ShardWriter:
    """A copy of `kept` that a test may change."""
    return kept.copied(str(tmp_path / "t.lance"))


FLUSHED = {0: 0, 1: 10, 3: 3, 4: 4, 5: 5, 7: 70}
FRESH = {**FLUSHED, 3: 300, 7: 700}


def values(table: pa.Table) -> dict[int, int]:
    return dict(zip(table["id"].to_pylist(), table["x"].to_pylist(), strict=True))


def test_rows_of_the_log_replace_rows_of_the_table(kept: ShardWriter) -> None:
    for log, expected in (("flushed", FLUSHED), ("fresh", FRESH), (None, {i: i for i in range(6)})):
        dataset = ld.dataset(kept.path, log=log)
        assert values(dataset.to_table()) == expected
        assert dataset.count_rows() == len(expected)
        assert dataset.count_rows("x >= 10") == sum(x >= 10 for x in expected.values())
        assert values(pickle.loads(pickle.dumps(dataset)).to_table()) == expected


def test_prepared_lookups_find_rows_of_the_log(shard: ShardWriter) -> None:
    main = ld.dataset(shard.path)
    main.create_scalar_index("id", "BTREE", name="id_idx")
    one = ld.dataset(shard.path, log="flushed").prepare("id = ?", columns=["x"])
    assert [one(key)["x"].to_pylist() for key in (1, 2, 3, 7)] == [[10], [], [3], [70]]
    near = ld.dataset(shard.path, log="fresh").prepare_search("v", 2, columns=["id"])
    assert near([7.0, 99.0])["id"].to_pylist() == [7, 3]


def test_a_table_of_sstables_alone_is_looked_up_by_their_index(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    ld.write_dataset(rows([0], 1), path).create_scalar_index("id", "BTREE", name="id_idx")
    ld.dataset(path).delete("true")
    create_log(path)
    shard = ShardWriter(path)
    shard.put(rows([1, 7], 10))
    shard.flush(indexes=("id",))
    view = ld.dataset(path, log="flushed")
    assert [view.prepare("id = ?")(key)["x"].to_pylist() for key in (0, 7)] == [[], [70]]
    assert (view.count_rows("id > 3"), view.to_table(filter="id IN (1, 2)")["x"].to_pylist()) == (1, [10])
    assert view.handle.table.extremes("id") == (pa.scalar(1), pa.scalar(7))


def test_a_view_stays_the_same_until_it_is_moved(shard: ShardWriter) -> None:
    view = ld.dataset(shard.path, log="fresh")
    before = view.handle.snapshot
    view.checkout_latest()
    assert view.handle.snapshot is before
    shard.put(rows([9], 1))
    assert values(view.to_table()) == FRESH
    view.checkout_latest()
    assert values(view.to_table()) == {**FRESH, 9: 9}
    assert view.handle.snapshot.log == "fresh"


def test_merged_sstables_are_left_out(shard: ShardWriter) -> None:
    with pytest.warns(ld.MemWalWarning):
        ld.dataset(shard.path).delete("id = 0")
    shard.merge()
    ld.dataset(shard.path).delete("id = 7")
    expected = {key: x for key, x in FLUSHED.items() if key not in (0, 7)}
    assert values(ld.dataset(shard.path, log="flushed").to_table()) == expected


CHANGES: dict[str, Callable[[Any], object]] = {
    "delete": lambda d: d.delete("id = 1"),
    "update": lambda d: d.update({"x": "1"}),
    "insert": lambda d: d.insert(rows([9], 1)),
    "overwrite": lambda d: ld.write_dataset(rows([9], 1), d, mode="overwrite"),
    "merge": lambda d: d.merge_insert("id").when_matched_update_all().execute(rows([1], 1)),
    "truncate": lambda d: d.truncate_table(),
    "add columns": lambda d: d.add_columns(pa.field("z", pa.int32())),
    "drop columns": lambda d: d.drop_columns(["x"]),
    "index": lambda d: d.create_scalar_index("x", "BTREE"),
    "optimize indices": lambda d: d.optimize.optimize_indices(),
    "compact": lambda d: d.optimize.compact_files(),
    "cleanup": lambda d: d.cleanup_old_versions(timedelta(0)),
    "restore": lambda d: d.restore(),
    "branch": lambda d: d.create_branch("b"),
    "clone": lambda d: d.shallow_clone(f"{d.uri}/../c.lance"),
    "config": lambda d: d.update_config({"a": "b"}),
    "manifest names": lambda d: d.migrate_manifest_paths_v2(),
    "repair": lambda d: d.repair(),
    "validate": lambda d: d.validate(),
    "fragment": lambda d: d.get_fragments()[0].delete("id = 0"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_rejected_and_write_nothing(name: str, kept: ShardWriter) -> None:
    dataset = ld.dataset(kept.path, log="flushed")
    before = sorted(Path(kept.path).parent.rglob("*"))
    with pytest.raises(UnsupportedError, match=r"write-ahead log.*cannot be changed or checked; open it without log"):
        CHANGES[name](dataset)
    assert sorted(Path(kept.path).parent.rglob("*")) == before


ROW_IDS: dict[str, Callable[[Any], object]] = {
    "with_row_id": lambda d: d.to_table(with_row_id=True),
    "column": lambda d: d.to_table(columns=["_rowid"]),
    "expression": lambda d: d.to_table(columns={"r": "_rowid + 1"}),
    "filter": lambda d: d.to_table(filter="_rowid = 1"),
    "take": lambda d: d.take_rows([1]),
    "version": lambda d: d.to_table(columns=["_row_last_updated_at_version"]),
    "search": lambda d: d.search([1.0, 1.0], 1, "v", with_row_id=True),
    "prepared": lambda d: d.prepare_search("v", 1).ids([1.0, 1.0]),
    "SQL": lambda d: ld.connect({"t": d}).sql("SELECT rowid FROM t").fetchall(),
}


@pytest.mark.parametrize("name", ROW_IDS)
def test_row_ids_are_rejected(name: str, kept: ShardWriter) -> None:
    with pytest.raises(
        UnsupportedError, match=r"does not have row ids.*use the primary key, or open the table without"
    ):
        ROW_IDS[name](ld.dataset(kept.path, log="fresh"))


def test_other_versions_and_modes_are_rejected(shard: ShardWriter) -> None:
    with pytest.raises(InvalidInputError, match="log: expected 'flushed' or 'fresh', found 'flash'"):
        ld.dataset(shard.path, log="flash")
    with pytest.raises(InvalidInputError, match="log: expected 'flushed' or 'fresh'"):
        ld.connect({}, log="all")
    for version in (1, "tag", ("main", 1)):
        with pytest.raises(UnsupportedError, match=r"has only its newest version.*open the version without log"):
            ld.dataset(shard.path, version, log="fresh")
    with pytest.raises(UnsupportedError, match="has only its newest version"):
        ld.dataset(shard.path, log="fresh").checkout_version(1)
    with pytest.raises(NotFoundError):
        ld.dataset(f"{shard.path}/none", log="fresh")


def test_the_plan_counts_rows_of_the_log(shard: ShardWriter) -> None:
    waiting = "only in the write-ahead log (index __lance_mem_wal): 3 in SSTables (1), 2 in newer entries (1)"
    nearest = {"column": "v", "q": [1.0, 2.0], "k": 1}
    assert waiting in ld.dataset(shard.path).scanner().explain_plan()
    assert waiting in ld.dataset(shard.path).scanner(nearest=nearest).explain_plan()
    with ld.connect({"t": shard.path}) as con:
        assert waiting in str(con.execute("EXPLAIN SELECT * FROM t").fetchall())
    assert "with rows of the write-ahead log: fresh" in ld.dataset(shard.path, log="fresh").scanner().explain_plan()
    shard.state.sstables[0].ClearField("num_rows")
    shard.publish()
    assert "3 in SSTables (1)" in ld.dataset(shard.path).scanner().explain_plan()


def test_sql_reads_rows_of_the_log(shard: ShardWriter) -> None:
    folder = str(Path(shard.path).parent)
    for tables in (folder, {"t": shard.path}):
        with ld.connect(tables, log="flushed") as con:
            assert dict(con.execute("SELECT id, x FROM t").fetchall()) == FLUSHED
            assert con.execute("SELECT count(*) FROM t").fetchall() == [(6,)]
            assert con.execute("SELECT x FROM t WHERE id = 7").fetchall() == [(70,)]
            assert con.execute("SELECT count(*) FROM t a JOIN t b ON a.id = b.x").fetchall() == [(4,)]
            near = "SELECT id FROM lance_vector_search('t', 'v', [7, 9]::FLOAT[2], k := 2)"
            assert con.execute(near).fetchall() == [(7,), (1,)]
            near = "SELECT id FROM t ORDER BY array_distance(v, [7, 9]::FLOAT[2]) LIMIT 2"
            assert con.execute(near).fetchall() == [(7,), (1,)]
            assert con.execute(f"SELECT count(*) FROM '{shard.path}'").fetchall() == [(6,)]
    with ld.connect(folder, log="fresh") as con:
        prepared = con.sql("SELECT sum(x) FROM t")
        assert prepared.fetchall() == [(sum(FRESH.values()),)]
        shard.put(rows([9], 1))
        assert con.sql("SELECT sum(x) FROM t").fetchall() == [(sum(FRESH.values()) + 9,)]
        con.execute("BEGIN")
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(7,)]
        shard.put(rows([10], 1))
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(7,)]
        con.execute("COMMIT")
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(8,)]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t SELECT * FROM t",
        "UPDATE t SET x = 1",
        "DELETE FROM t",
        "MERGE INTO t USING (SELECT 1 AS id) u USING (id) WHEN MATCHED THEN DELETE",
        "CREATE INDEX i ON t (x)",
        "OPTIMIZE t",
        "ALTER TABLE t DROP COLUMN x",
        "DROP TABLE t",
    ],
)
def test_sql_cannot_change_tables_that_are_read_with_their_log(statement: str, kept: ShardWriter) -> None:
    with ld.connect(str(Path(kept.path).parent), log="fresh") as con:
        with pytest.raises(UnsupportedError, match="the connection is read-only; open the connection without log"):
            con.execute(statement)
        assert con.execute("SELECT count(*) FROM t").fetchall() == [(6,)]


@pytest.mark.parametrize("statement", ["UPDATE t SET x = 1", "INSERT INTO t SELECT * FROM t", "DELETE FROM t"])
def test_sql_cannot_change_a_given_view(statement: str, kept: ShardWriter) -> None:
    with ld.connect({"t": ld.dataset(kept.path, log="fresh")}) as con:
        with pytest.raises(UnsupportedError, match="cannot be changed or checked; open it without log"):
            con.execute(statement)
        assert dict(con.execute("SELECT id, x FROM t").fetchall()) == FRESH


def test_sql_reads_only_the_newest_version_of_a_log(kept: ShardWriter) -> None:
    with ld.connect({"t": kept.path}, log="fresh") as con, pytest.raises(UnsupportedError, match="newest version"):
        con.execute("SELECT * FROM t AT (VERSION => 1)")


def test_key_sets_compare_all_columns() -> None:
    keys = KeySet(pa.table({"a": [1, 1, 2, 1], "b": ["u", "v", "u", "u"], "c": [0, 0, 1, 0]}))
    asked = pa.table({"a": [1, 2, 2, 1, 3], "b": ["v", "u", "v", "w", "u"], "c": [0, 1, 0, 0, 0]})
    assert keys.contains(asked).tolist() == [True, True, False, False, False]
    assert keys.replaced().tolist() == [True, False, False, False]
    empty = KeySet(pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())}))
    assert empty.contains(pa.table({"a": [1], "b": ["u"]})).tolist() == [False]
