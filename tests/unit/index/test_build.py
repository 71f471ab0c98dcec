from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from unit.index.conftest import Table
from unit.index.plain import FILE, PlainKind, built, changed, indexed, rows_of

import lance_duck as ld
from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError, StoreError, UnsupportedError
from lance_duck.index.build import build_segment, builds_by_row_id, discard_segment, merge_segments
from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.kind import ROW, VALUE, BuildOptions, Details
from lance_duck.index.opened import segment_files
from lance_duck.rows import roaring_values
from lance_duck.snapshot import Snapshot, open_snapshot
from lance_duck.wire.index import IndexMetadata


def segments(snapshot: Snapshot) -> tuple[Segment, ...]:
    return catalog(snapshot).over("x")[0].segments


Entries = set[tuple[int | None, int]]


def entries(snapshot: Snapshot, metadata: IndexMetadata) -> Entries:
    """Value and row of each entry."""
    file = segment_files(snapshot, metadata).open(FILE)
    values, rows = file.read([VALUE, ROW])
    assert len(values) == len(set(rows.to_pylist()))
    return set(zip(values.to_pylist(), rows.to_pylist(), strict=True))


def truth(snapshot: Snapshot, name: str = "_rowaddr") -> Entries:
    """Return x and the row identifier of each row."""
    found = ld.dataset(snapshot.uri).to_table(columns=["x", name])
    return set(zip(found["x"].to_pylist(), found[name].to_pylist(), strict=True))


def x_of(row: int) -> int | None:
    return None if row % 5 == 4 else row


def covered(metadata: IndexMetadata) -> list[int]:
    assert metadata.fragment_bitmap is not None
    found: list[int] = roaring_values(metadata.fragment_bitmap, "here", 100).tolist()
    return found


def leftovers(snapshot: Snapshot, before: Iterable[Path]) -> set[Path]:
    return {p for p in Path(snapshot.uri).rglob("*") if p.is_file()} - set(before)


def files(snapshot: Snapshot) -> set[Path]:
    return leftovers(snapshot, ())


def test_a_built_segment_has_the_expected_metadata(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    uuid = UUID(int=7)
    rows = rows_of(snapshot, "x", [1, 2], by_id=False)
    made = build_segment(snapshot, "x", kind, rows, [2, 1], name="mine", uuid=uuid)
    assert (made.uuid, made.name, made.fields, made.dataset_version) == (uuid, "mine", (0,), snapshot.version)
    assert (made.details_type, made.details, made.version) == (kind.type_url, b"plain", 0)
    assert covered(made) == [1, 2]
    assert made.created_at is not None
    assert made.base_id is None
    size = (Path(snapshot.uri) / made.directory / FILE).stat().st_size
    assert made.files == ((FILE, size),)
    assert entries(snapshot, made) == {(x_of(i), (i // 10 << 32) + i % 10) for i in range(10, 30)}
    discard_segment(snapshot, made)
    assert not (Path(snapshot.uri) / made.directory).exists()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_index_files_have_the_file_version_of_the_table(version: str, tmp_path: Path, kind: PlainKind) -> None:
    uri = str(tmp_path / "t.lance")
    ld.write_dataset(pa.table({"x": [1, 2]}), uri, data_storage_version=version)
    snapshot = open_snapshot(uri)
    made = built(snapshot, kind)
    content = (Path(uri) / made.directory / FILE).read_bytes()
    assert (
        struct.unpack_from("<HH", content, len(content) - 8) == {"2.0": (0, 3), "2.1": (2, 1), "2.2": (2, 2)}[version]
    )


@pytest.mark.parametrize(
    ("rows_by", "stable", "by_id"),
    [("id", True, True), ("id", False, False), ("version", True, True), ("version", False, False)],
)
def test_a_kind_determines_how_segments_identify_rows(
    rows_by: str, stable: bool, by_id: bool, table: Table, kind: PlainKind
) -> None:
    kind.rows_by = rows_by
    snapshot = table(stable=stable)
    assert builds_by_row_id(snapshot, kind) == by_id
    assert not builds_by_row_id(snapshot, PlainKind(rows_by="address"))


@pytest.mark.parametrize(
    ("column", "error", "match"), [("z", InvalidInputError, "no column 'z'"), ("f", UnsupportedError, "double")]
)
def test_an_unsupported_column_is_rejected_by_name(
    column: str, error: type[Exception], match: str, tmp_path: Path, kind: PlainKind
) -> None:
    ld.write_dataset(pa.table({"f": [0.5]}), str(tmp_path / "t.lance"))
    snapshot = open_snapshot(str(tmp_path / "t.lance"))
    before = files(snapshot)
    rows = pa.RecordBatchReader.from_batches(pa.schema({}), [])
    with pytest.raises(error, match=match):
        build_segment(snapshot, column, kind, rows, [0], name="i")
    assert not leftovers(snapshot, before)


@pytest.mark.parametrize("finished", [False, True])
def test_a_failed_build_leaves_no_files(finished: bool, table: Table, kind: PlainKind) -> None:
    snapshot = table()
    before = files(snapshot)

    def build(rows: Any, writer: Any, options: BuildOptions) -> Details:
        kind._write(rows.read_all(), writer, options)
        if not finished:
            file = writer.create("half.lance", pa.schema([("a", pa.int64())]))
            file.write(pa.record_batch({"a": np.arange(100_000)}))
        raise StoreError("the disk is full")

    kind.build = build  # type: ignore[method-assign]
    with pytest.raises(StoreError, match="full"):
        built(snapshot, kind)
    assert not leftovers(snapshot, before)


def test_a_merge_keeps_the_entries_each_segment_covers(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind, fragments=[0, 1]), built(snapshot, kind, fragments=[2]))
    dataset = ld.dataset(snapshot.uri)
    dataset.update({"x": "x + 100"}, where="x >= 10 AND x < 13")
    dataset.delete("x = 3 OR x = 21")
    now = open_snapshot(snapshot.uri)
    new = now.fragments.ids()[-1]
    merged = merge_segments(now, segments(now), rows_of(now, "x", [3, new], by_id=False), [3, new])
    assert covered(merged) == [0, 1, 2, 3, new]
    assert merged.dataset_version == now.version
    assert entries(now, merged) == truth(now)


def test_a_merge_can_remap_rows(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind, fragments=[0, 1]))

    def move(addresses: Any) -> Any:
        return addresses + np.uint64(7 << 32), addresses < np.uint64(1 << 32)

    merged = merge_segments(snapshot, segments(snapshot), translate=move, covers=[7])
    assert covered(merged) == [7]
    assert entries(snapshot, merged) == {(x_of(i), (7 << 32) + i) for i in range(10)}


def test_a_merge_by_row_id_drops_rows_that_left_the_coverage(table: Table, kind: PlainKind) -> None:
    kind.rows_by = "id"
    snapshot = table(stable=True)
    snapshot = indexed(snapshot, built(snapshot, kind, fragments=[0, 1]))
    dataset = ld.dataset(snapshot.uri)
    dataset.update({"x": "x + 100"}, where="x = 3")
    dataset.delete("x = 12")
    now = open_snapshot(snapshot.uri)
    found = entries(now, merge_segments(now, segments(now)))
    assert found == {(x_of(i), i) for i in range(20) if i not in (3, 12)}


def test_a_merge_changes_addresses_into_row_ids_and_back(table: Table, kind: PlainKind) -> None:
    snapshot = table(stable=True)
    ld.dataset(snapshot.uri).update({"x": "x + 100"}, where="x = 3 OR x = 12")  # their ids and addresses differ
    snapshot = open_snapshot(snapshot.uri)
    kind.rows_by = "address"
    snapshot = indexed(snapshot, built(snapshot, kind))
    by_address = segments(snapshot)[0]
    assert not by_address.by_row_id
    kind.rows_by = "version"
    by_id = merge_segments(snapshot, [by_address])
    assert entries(snapshot, by_id) == truth(snapshot, "_rowid")
    kind.rows_by = "address"
    again = replace(by_address, metadata=changed(by_id, index_version=0), by_row_id=True)
    assert entries(snapshot, merge_segments(snapshot, [again])) == truth(snapshot)


def test_segments_of_different_indexes_are_not_merged(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind))
    snapshot = indexed(snapshot, built(snapshot, kind, "y"))
    both = [catalog(snapshot).over(path)[0].segments[0] for path in "xy"]
    with pytest.raises(InvalidInputError, match="several"):
        merge_segments(snapshot, both)
    with pytest.raises(InvalidInputError, match="list of segments is empty"):
        merge_segments(snapshot, [])


def test_a_merge_of_a_broken_segment_fails_and_leaves_no_files(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    snapshot = indexed(snapshot, built(snapshot, kind))
    (segment,) = segments(snapshot)
    path = Path(snapshot.uri) / segment.metadata.directory / FILE
    before = files(snapshot) - {path}
    path.unlink()
    with pytest.raises(NotFoundError):
        merge_segments(snapshot, [segment])
    assert files(snapshot) == before


def test_a_segment_with_rows_beyond_the_table_is_not_merged(table: Table, kind: PlainKind) -> None:
    snapshot = table()
    rows = pa.table({VALUE: [1], ROW: pa.array([99], pa.uint64())})
    reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
    snapshot = indexed(snapshot, build_segment(snapshot, "x", kind, reader, [0], name="i"))
    before = files(snapshot)
    with pytest.raises(CorruptError, match="a row offset is out of range in fragment 0"):
        merge_segments(snapshot, segments(snapshot))
    assert files(snapshot) == before
