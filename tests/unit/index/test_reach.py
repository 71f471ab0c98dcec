"""Segments that name rows by address, in tables with stable row ids, whose lists of fragments others got wrong."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from unit.index.conftest import Table
from unit.index.plain import changed, indexed, rows_of

import lance_duck as ld
from lance_duck.commit import commit
from lance_duck.commit.operations import CreateIndex
from lance_duck.errors import IndexWarning, InvalidInputError
from lance_duck.index.btree import kind as btree
from lance_duck.index.btree.layout import DATA
from lance_duck.index.btree.search import BTreeIndex
from lance_duck.index.build import build_segment, merge_segments
from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.kind import BuildOptions, Details
from lance_duck.rows import roaring_bytes
from lance_duck.snapshot import Snapshot, open_snapshot
from lance_duck.wire.index import IndexMetadata


class ByAddress(btree.BTreeKind):
    """B-trees as pylance 14 writes them where row ids are stable: entries are addresses."""

    rows_by = "address"
    reaches_into_lists = False

    def build(self, rows: Any, writer: Any, options: BuildOptions) -> Details:
        super().build(rows, writer, options)
        return Details(1)


def by_address(snapshot: Snapshot, fragments: Iterable[int] | None = None) -> IndexMetadata:
    """A B-tree over x of addresses, not committed."""
    ids = list(snapshot.fragments.ids() if fragments is None else fragments)
    rows = rows_of(snapshot, "x", ids, by_id=False)
    return build_segment(snapshot, "x", ByAddress(), rows, ids, name="x_idx")


def listing(snapshot: Snapshot, fragments: Iterable[int]) -> Snapshot:
    """Return the version with a segment that lists these fragments, like a core without coverage checks."""
    (old,) = snapshot.indices
    new = changed(old, fragment_bitmap=roaring_bytes(np.array(sorted(fragments), np.uint32)))
    return commit(snapshot, CreateIndex([new], [old]))


def changed_table(snapshot: Snapshot, *, update: str | None = None, compact: bool = False) -> Snapshot:
    dataset = ld.dataset(snapshot.uri)
    if update is not None:
        dataset.update({"y": "y + 1000"}, where=update)
    if compact:
        dataset.optimize.compact_files(remap_indices=False)
    return open_snapshot(snapshot.uri)


def only(snapshot: Snapshot) -> Segment:
    (index,) = catalog(snapshot)
    (segment,) = index.segments
    return segment


def check_answers(snapshot: Snapshot) -> None:
    """Check that the index and a scan return the same rows."""
    dataset = ld.dataset(snapshot.uri)
    for where in ("x < 14", "x = 21", "x IS NULL", "x >= 30", "x IN (1, 12, 33)"):
        expected = dataset.to_table(filter=where, use_scalar_index=False)["y"].to_pylist()
        assert dataset.to_table(filter=where)["y"].to_pylist() == expected
        assert dataset.count_rows(filter=where) == len(expected)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gets an item whenever the entries of a B-tree are read to see which fragments they reach."""
    found: list[int] = []
    names = BTreeIndex.names

    def noted(self: BTreeIndex) -> Any:
        found.append(self.num_entries)
        return names(self)

    monkeypatch.setattr(BTreeIndex, "names", noted)
    return found


def test_a_fragment_with_moved_rows_is_not_covered(table: Table) -> None:
    snapshot = table(stable=True)
    snapshot = indexed(snapshot, by_address(snapshot))
    snapshot = listing(changed_table(snapshot, update="x < 5"), range(5))
    assert only(snapshot).fragments.tolist() == [0, 1, 2, 3]
    check_answers(snapshot)


def test_a_compacted_fragment_is_not_covered(table: Table) -> None:
    snapshot = table(stable=True)
    snapshot = indexed(snapshot, by_address(snapshot))
    snapshot = changed_table(snapshot, compact=True)
    (new,) = snapshot.fragments.ids()
    snapshot = listing(snapshot, [new])
    assert only(snapshot).fragments.tolist() == []
    check_answers(snapshot)


def test_a_fragment_with_rows_missing_from_the_index_is_not_covered(table: Table) -> None:
    snapshot = table(stable=True)
    snapshot = changed_table(changed_table(snapshot, update="x < 5"), compact=True)
    (new,) = snapshot.fragments.ids()
    rows = rows_of(snapshot, "x", [new], by_id=False).read_all().slice(0, 36)
    reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
    snapshot = indexed(snapshot, build_segment(snapshot, "x", ByAddress(), reader, [new], name="x_idx"))
    assert only(snapshot).fragments.tolist() == []
    check_answers(snapshot)


@pytest.mark.parametrize("name", ["ZONEMAP", "BLOOMFILTER"])
def test_zones_do_not_cover_other_fragments(table: Table, name: str) -> None:
    snapshot = table(stable=True)
    ld.dataset(snapshot.uri).delete("y IN (0, 9, 15)")
    ld.dataset(snapshot.uri).create_scalar_index("x", name)
    snapshot = listing(changed_table(open_snapshot(snapshot.uri), update="x < 5"), range(5))
    assert only(snapshot).fragments.tolist() == [0, 1, 2, 3]
    check_answers(snapshot)
    snapshot = changed_table(snapshot, compact=True)
    (new,) = snapshot.fragments.ids()
    snapshot = listing(snapshot, [new])
    assert only(snapshot).fragments.tolist() == []
    check_answers(snapshot)
    ld.dataset(snapshot.uri).optimize.optimize_indices()
    snapshot = open_snapshot(snapshot.uri)
    assert only(snapshot).fragments.tolist() == [new]
    check_answers(snapshot)


def test_a_segment_rebuilt_after_rows_moved_covers_them(table: Table) -> None:
    snapshot = changed_table(table(stable=True), update="x < 5 OR x = 17")
    snapshot = indexed(snapshot, by_address(snapshot))
    assert only(snapshot).fragments.tolist() == [0, 1, 2, 3, 4]
    snapshot = changed_table(snapshot, compact=True)
    (old,) = snapshot.indices
    snapshot = commit(snapshot, CreateIndex([by_address(snapshot)], [old]))
    assert only(snapshot).fragments.tolist() == snapshot.fragments.ids()
    ld.dataset(snapshot.uri).delete("y % 3 = 0")
    snapshot = open_snapshot(snapshot.uri)
    assert only(snapshot).fragments.tolist() == snapshot.fragments.ids()
    check_answers(snapshot)


def test_deleted_rows_need_no_index_entries(table: Table) -> None:
    snapshot = table(stable=True)
    snapshot = changed_table(snapshot, compact=True)
    (new,) = snapshot.fragments.ids()
    rows = rows_of(snapshot, "x", [new], by_id=False).read_all().slice(5)
    reader = pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches())
    snapshot = indexed(snapshot, build_segment(snapshot, "x", ByAddress(), reader, [new], name="x_idx"))
    assert only(snapshot).fragments.tolist() == []
    ld.dataset(snapshot.uri).delete("y < 5")
    snapshot = open_snapshot(snapshot.uri)
    assert only(snapshot).fragments.tolist() == [new]
    check_answers(snapshot)


def test_entries_are_not_counted_if_no_row_can_have_moved(table: Table, counted: list[int]) -> None:
    snapshot = table(stable=True)
    snapshot = indexed(snapshot, by_address(snapshot))
    ld.dataset(snapshot.uri).insert(pa.table({"x": [50], "y": [50], "s": ["s"]}))
    ld.dataset(snapshot.uri).delete("x = 7")
    snapshot = open_snapshot(snapshot.uri)
    assert only(snapshot).fragments.tolist() == [0, 1, 2, 3]
    assert counted == []


def test_entries_are_counted_once_for_successive_versions(table: Table, counted: list[int]) -> None:
    snapshot = table(stable=True)
    snapshot = indexed(snapshot, by_address(snapshot))
    dataset = ld.dataset(listing(changed_table(snapshot, update="x < 5"), range(5)).uri)
    for where in ("x = 3", "x = 8", "x = 9"):
        assert dataset.to_table(filter=where)["x"].to_pylist() == [int(where[-1])] * (where != "x = 9")
        dataset.update({"y": "y + 1000"}, where=where)
    assert counted == [40]


def test_a_merge_corrects_a_wrong_fragment_list(table: Table) -> None:
    snapshot = table(stable=True)
    snapshot = indexed(snapshot, by_address(snapshot))
    snapshot = listing(changed_table(snapshot, update="x < 5"), range(5))
    merged = merge_segments(snapshot, [only(snapshot)])
    snapshot = commit(snapshot, CreateIndex([merged], snapshot.indices))
    assert only(snapshot).by_row_id
    assert only(snapshot).fragments.tolist() == [0, 1, 2, 3]
    check_answers(snapshot)


def test_optimize_indexes_rows_that_were_not_covered(table: Table) -> None:
    snapshot = table(stable=True)
    snapshot = indexed(snapshot, by_address(snapshot))
    snapshot = listing(changed_table(snapshot, update="x < 5"), range(5))
    ld.dataset(snapshot.uri).optimize.optimize_indices(num_indices_to_merge=0)
    snapshot = open_snapshot(snapshot.uri)
    (segment,) = snapshot.indices
    assert segment.version == 0
    assert only(snapshot).fragments.tolist() == [0, 1, 2, 3, 4]
    check_answers(snapshot)


def test_compaction_does_not_mix_addresses_and_row_ids(table: Table) -> None:
    snapshot = table(stable=True)
    snapshot = indexed(snapshot, by_address(snapshot, [0, 1]), by_address(snapshot, [2, 3]))
    ld.dataset(snapshot.uri).delete("y IN (3, 4, 5, 6, 7)")
    ld.dataset(snapshot.uri).optimize.compact_files(target_rows_per_fragment=10, materialize_deletions_threshold=0.2)
    snapshot = open_snapshot(snapshot.uri)
    assert [segment.version for segment in snapshot.indices] == [1, 1]
    (index,) = catalog(snapshot)
    assert index.fragments.tolist() == snapshot.fragments.ids()
    check_answers(snapshot)


def test_all_segments_of_an_index_identify_rows_the_same_way(table: Table) -> None:
    snapshot = table(stable=True)
    dataset = ld.dataset(indexed(snapshot, by_address(snapshot, [0, 1])).uri)
    segment = dataset.create_index_uncommitted("x", "BTREE", name="other", fragment_ids=[2, 3])
    with pytest.raises(InvalidInputError, match=r"stores stable row ids, .* stores row addresses"):
        dataset.commit_existing_index_segments("x_idx", "x", [segment])
    dataset.optimize.optimize_indices(num_indices_to_merge=0)
    (index,) = open_snapshot(snapshot.uri).indices
    assert index.version == 0


def test_rows_of_an_unreadable_segment_are_scanned(table: Table) -> None:
    snapshot = table(stable=True)
    snapshot = indexed(snapshot, by_address(snapshot))
    snapshot = listing(changed_table(snapshot, update="x < 5"), range(5))
    (metadata,) = snapshot.indices
    (Path(snapshot.uri) / metadata.directory / DATA).unlink()
    assert only(open_snapshot(snapshot.uri)).fragments.tolist() == [0, 1, 2, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IndexWarning)
        check_answers(snapshot)


def test_statistics_count_rows_that_the_index_has(table: Table) -> None:
    snapshot = table(stable=True)
    snapshot = indexed(snapshot, by_address(snapshot))
    snapshot = listing(changed_table(snapshot, update="x < 5"), range(5))
    dataset = ld.dataset(snapshot.uri)
    figures = dataset.stats.index_stats("x_idx")
    assert (figures["num_indexed_rows"], figures["num_unindexed_rows"]) == (36, 4)
    assert [index["fragment_ids"] for index in dataset.list_indices()] == [{0, 1, 2, 3}]


def test_validation_names_listed_fragments_that_are_not_covered(table: Table) -> None:
    snapshot = table(stable=True)
    snapshot = indexed(snapshot, by_address(snapshot))
    ld.dataset(snapshot.uri).validate()
    snapshot = listing(changed_table(snapshot, update="x < 5"), range(5))
    with pytest.raises(ld.errors.CorruptError, match=r"x_idx.*lists fragments \[4\]"):
        ld.dataset(snapshot.uri).validate()
