"""Damaged write-ahead logs: errors name the file, and nothing outside the log is read."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from support.write_ahead_log import KEY, ShardWriter, bits, create_log

import lance_duck as ld
from lance_duck.errors import CorruptError, LanceDuckError, NotFoundError, UnsupportedError
from lance_duck.wire.pb import index_pb2

SCHEMA = pa.schema([pa.field("id", pa.int64(), False, KEY), pa.field("x", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table([ids, [f"x{i}" for i in ids]], schema=SCHEMA)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> ShardWriter:
    """A table of rows 0 to 3, with an SSTable of rows 1 and 5, and an entry of rows 2 and 6."""
    path = str(tmp_path_factory.mktemp("kept") / "t.lance")
    ld.write_dataset(rows(0, 1, 2, 3), path)
    create_log(path)
    shard = ShardWriter(path)
    shard.put(rows(1, 5))
    shard.flush()
    shard.put(rows(2, 6))
    return shard


@pytest.fixture
def shard(kept: ShardWriter, tmp_path: Path) -> ShardWriter:
    """A copy of `kept` that a test may change."""
    return kept.copied(str(tmp_path / "t.lance"))


def manifest_of(shard: ShardWriter) -> Path:
    return shard.folder / "manifest" / f"{bits(shard.state.version)}.binpb"


def entry_of(shard: ShardWriter) -> Path:
    return shard.folder / "wal" / f"{bits(shard.position)}.arrow"


def ids(path: str, log: str = "fresh") -> list[int]:
    return sorted(ld.dataset(path, log=log).to_table()["id"].to_pylist())


@pytest.mark.parametrize("name", ["", ".", "..", "../../../other.lance", "/etc", "a/b", "a\\b", "a\0b"])
def test_sstables_outside_the_shard_are_rejected(name: str, shard: ShardWriter) -> None:
    shard.state.sstables[0].path = name
    shard.publish()
    with pytest.raises(CorruptError, match=f"{bits(3)}.*invalid folder of an SSTable: expected a name without slashes"):
        ids(shard.path)


def test_links_out_of_the_table_are_not_followed(shard: ShardWriter, tmp_path: Path) -> None:
    other = shutil.move(shard.folder / shard.state.sstables[0].path, tmp_path / "other")
    (shard.folder / shard.state.sstables[0].path).symlink_to(other)
    with pytest.raises(LanceDuckError):
        ids(shard.path)


@pytest.mark.parametrize("generation", [0, 1, 2**64 - 1])
def test_generations_are_distinct_numbers(generation: int, shard: ShardWriter) -> None:
    shard.state.sstables.add(generation=generation, path=shard.state.sstables[0].path)
    shard.publish()
    if generation > 1:  # the same rows twice
        assert ids(shard.path) == [0, 1, 2, 3, 5, 6]
        return
    with pytest.raises(CorruptError, match=f"invalid generation of an SSTable.*found {generation}"):
        ids(shard.path)


def test_a_missing_sstable_is_an_error(shard: ShardWriter) -> None:
    shutil.rmtree(shard.folder / shard.state.sstables[0].path)
    with pytest.raises(NotFoundError, match=r"_gen_1: an SSTable of the write-ahead log .* is missing"):
        ids(shard.path)


def test_an_sstable_that_is_removed_after_its_merge_is_not_missed(
    shard: ShardWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = ld.dataset(shard.path, log="flushed")
    shard.put(rows(9))
    old = view.handle.snapshot.main  # type: ignore[attr-defined]
    shard.merge()
    shutil.rmtree(shard.folder / shard.state.sstables[0].path)
    monkeypatch.setattr("lance_duck.log.view.open_snapshot", lambda *_: old)
    assert ids(shard.path, "flushed") == [0, 1, 2, 3, 5]


def test_the_hint_of_a_shard_is_not_trusted(shard: ShardWriter) -> None:
    hint = shard.folder / "manifest" / "version_hint.json"
    for text in ('{"version":1}', '{"version":99}', "{"):
        hint.write_text(text)
        assert ids(shard.path) == [0, 1, 2, 3, 5, 6]


def test_a_manifest_under_a_wrong_number_is_rejected(shard: ShardWriter) -> None:
    shutil.copy(manifest_of(shard), shard.folder / "manifest" / f"{bits(2**63)}.binpb")
    with pytest.raises(CorruptError, match=f"wrong version of a shard: expected {2**63}, found 2"):
        ids(shard.path)


def test_a_position_past_all_entries_leaves_none(shard: ShardWriter) -> None:
    shard.state.replay_after_wal_entry_position = 2**64 - 1
    shard.publish()
    assert ids(shard.path) == [0, 1, 2, 3, 5]


def test_entries_after_a_gap_are_not_read(shard: ShardWriter) -> None:
    shard.position += 1
    shard.put(rows(8))
    assert ids(shard.path) == [0, 1, 2, 3, 5, 6]


def test_folders_that_are_not_shards_are_ignored(shard: ShardWriter) -> None:
    for name in ("x", "00000000-0000-4000-8000-00000000000g", "00000000-0000-4000-8000-000000000009"):
        (shard.folder.parent / name).mkdir()
    assert ids(shard.path) == [0, 1, 2, 3, 5, 6]


ENTRIES: dict[str, pa.Table] = {
    "no key": pa.table({"_tombstone": [False]}),
    "null key": pa.table({"id": pa.array([None], pa.int64()), "_tombstone": [False]}),
    "text key": pa.table({"id": ["a"], "_tombstone": [False]}),
    "no tombstone": pa.table({"id": [9]}),
    "number as tombstone": pa.table({"id": [9], "_tombstone": [1]}),
    "wrong column": pa.table({"id": [9], "x": [{"y": 1}], "_tombstone": [False]}),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_that_do_not_match_the_table_are_rejected(name: str, shard: ShardWriter) -> None:
    table = ENTRIES[name]
    numbers = {"id": "0", "x": "1"}
    fields = [field.with_metadata({"lance:field_id": numbers.get(field.name, "")}) for field in table.schema]
    shard.entry(table.cast(pa.schema(fields)))
    with pytest.raises(CorruptError, match=r"wal/[01]{64}\.arrow"):
        ids(shard.path)


def test_sstables_with_other_types_are_rejected(shard: ShardWriter) -> None:
    def replace(table: pa.Table) -> None:
        ld.write_dataset(table, str(shard.folder / shard.state.sstables[0].path), mode="overwrite")

    replace(pa.table({"id": [1], "x": [1], "_tombstone": [False]}))
    with pytest.raises(CorruptError, match=r"column 'x' of an SSTable has another type.*expected string, found int64"):
        ids(shard.path)
    replace(pa.table({"id": [1], "x": ["a"]}))
    with pytest.raises(CorruptError, match="an SSTable has no column _tombstone"):
        ids(shard.path)
    replace(pa.table({"x": ["a"], "_tombstone": [False]}))
    with pytest.raises(CorruptError):
        ids(shard.path)


def test_an_sstable_with_data_elsewhere_is_rejected(shard: ShardWriter, tmp_path: Path) -> None:
    sstable = str(shard.folder / shard.state.sstables[0].path)
    other = ld.write_dataset(ld.dataset(sstable).to_table(), str(tmp_path / "other"))
    shutil.rmtree(sstable)
    other.shallow_clone(sstable)
    with pytest.raises(UnsupportedError, match="an SSTable with base paths or overlays is not supported"):
        ids(shard.path)


def mutations(data: bytes, rng: random.Random) -> bytes:
    if rng.random() < 0.3:
        return data[: rng.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        changed[rng.randrange(len(data))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
    return bytes(changed)


@pytest.mark.parametrize("file", [manifest_of, entry_of])
def test_mutated_files_raise_an_error_or_read(file: Callable[[ShardWriter], Path], shard: ShardWriter) -> None:
    path, rng = file(shard), random.Random(4)
    data = path.read_bytes()
    outcomes = set()
    for _ in range(25):
        path.write_bytes(mutations(data, rng))
        try:
            ids(shard.path)
            outcomes.add("read")
        except LanceDuckError as error:
            outcomes.add(type(error).__name__)
        assert "write-ahead log" in ld.dataset(shard.path).scanner().explain_plan()
    assert "CorruptError" in outcomes
    path.write_bytes(data)
    assert ids(shard.path) == [0, 1, 2, 3, 5, 6]


def test_damaged_details_are_an_error(shard: ShardWriter) -> None:
    details = index_pb2.MemWalIndexDetails()
    details.compacted_sstables.add(shard_id={"uuid": b"short"}, generation=1)
    shard.state.sstables[0].generation = 2**64 - 1
    shard.publish()
    assert ids(shard.path) == [0, 1, 2, 3, 5, 6]
    shard.set_details(details)
    with pytest.raises(CorruptError, match="invalid id of a shard: expected 16 bytes, found 5"):
        ids(shard.path)
