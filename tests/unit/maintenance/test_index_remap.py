"""Indexes under compaction: rewritten, deferred, or left uncovered; never wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from unit.index.plain import PlainKind, built, changed, indexed
from unit.maintenance.indexed import batch, check, compact, covers, directories, with_index, write

import lance_duck as ld
from lance_duck.commit import CreateIndex, commit, committer
from lance_duck.errors import IndexWarning, LanceDuckError, RetryableError, StoreError, UnsupportedError
from lance_duck.index import registry
from lance_duck.index.reuse import reuse_of
from lance_duck.index.reuse_write import LARGEST_INLINE
from lance_duck.optimize import Compaction, CompactionTask, RewriteResult

DEFER = {"defer_index_remap": True}
LEAVE = {"remap_indices": False}


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> PlainKind:
    made = PlainKind()
    monkeypatch.setattr(registry, "KINDS", (*registry.KINDS, registry.KindEntry.of(made)))
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.lance"


def reused(dataset: ld.LanceDataset) -> int | None:
    """Versions that the fragment reuse index has."""
    reuse = reuse_of(dataset.handle.snapshot)
    return None if reuse is None else len(reuse.versions)


@pytest.mark.parametrize(
    ("options", "covered", "versions"), [({}, [[6]], None), (DEFER, [[6]], 1), (LEAVE, [[]], None)]
)
def test_an_index_is_remapped_deferred_or_uncovered(
    path: Path, kind: PlainKind, options: dict[str, Any], covered: list[list[int]], versions: int | None
) -> None:
    dataset = with_index(write(path), kind)
    dataset.delete("key % 4 = 1")
    dataset = compact(dataset, **options)
    assert (covers(dataset), reused(dataset)) == (covered, versions)
    assert check(dataset) == set(covered[0])
    dataset.validate()


@pytest.mark.parametrize("options", [{}, LEAVE])
@pytest.mark.parametrize(("new_version", "follows"), [(0, True), (1, False)])
def test_with_stable_row_ids_only_address_segments_are_remapped(
    path: Path, kind: PlainKind, options: dict[str, Any], new_version: int, follows: bool
) -> None:
    kind.new_version = new_version
    kind.rows_by = "id" if new_version == 0 else "address"
    kind.type_url = "/lance.table.BitmapIndexDetails" if follows else "/lance.table.BTreeIndexDetails"
    registry.KINDS = (registry.KindEntry.of(kind),)
    dataset = with_index(write(path, stable=True), kind)
    dataset.delete("key % 4 = 1")
    before = directories(path)
    dataset = compact(dataset, **options)
    left = options == LEAVE and not follows
    assert covers(dataset) == [[] if left else [6]]
    assert check(dataset) == (set() if left else {6})
    assert (directories(path) == before) == (follows or left)


def test_nothing_is_deferred_with_stable_row_ids(path: Path) -> None:
    dataset = write(path, stable=True)
    with pytest.raises(UnsupportedError, match="stable row ids"):
        compact(dataset, **DEFER)
    with pytest.raises(UnsupportedError, match="stable row ids"):
        Compaction.commit(dataset, [t.execute(dataset) for t in Compaction.plan(dataset).tasks], DEFER)
    assert dataset.version == 6


def test_only_fragments_covered_by_the_same_segments_are_joined(path: Path, kind: PlainKind) -> None:
    dataset = with_index(write(path), kind, [0, 1], [2, 3])
    dataset = compact(dataset)
    assert covers(dataset) == [[6], [7]]
    assert check(dataset) == {6, 7}
    assert [f.count_rows() for f in dataset.get_fragments()] == [20, 20, 20]


@pytest.mark.parametrize("ways", [[DEFER, DEFER, {}], [DEFER, {}, DEFER], [{}, DEFER, DEFER], [DEFER, LEAVE, DEFER]])
def test_compactions_in_a_row(path: Path, kind: PlainKind, ways: list[dict[str, Any]]) -> None:
    dataset = with_index(write(path, 8), kind)
    for i, options in enumerate(ways):
        dataset.delete(f"key % 11 = {i}")
        dataset = compact(dataset, target_rows_per_fragment=20 * 2**i, materialize_deletions_threshold=0, **options)
        check(dataset)
        dataset.insert(batch(1000 + 10 * i, 10))
        check(dataset)
    dataset.validate()
    present = set(dataset.fragment_ids())
    left = LEAVE in ways
    assert bool(present & set(covers(dataset)[0])) == (not left)


def test_unused_versions_are_removed_from_the_reuse_index(path: Path, kind: PlainKind) -> None:
    dataset = with_index(write(path, 8), kind, [0, 1, 2, 3], [4, 5, 6, 7])
    dataset = compact(dataset, **DEFER)
    assert reused(dataset) == 1
    dataset.delete("key < 10")
    dataset = compact(dataset, excluded_fragment_ids=[9], materialize_deletions_threshold=0)
    assert reused(dataset) == 1  # the second segment still has its old addresses
    dataset.delete("key > 70")
    dataset = compact(dataset, excluded_fragment_ids=[10], materialize_deletions_threshold=0)
    assert reused(dataset) is None
    assert check(dataset) == {10, 11}


def test_a_large_reuse_index_is_stored_in_a_file(path: Path, kind: PlainKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_duck.index.reuse_write.LARGEST_INLINE", 100)
    assert LARGEST_INLINE == 204_800
    dataset = with_index(write(path), kind)
    dataset.delete("key % 4 = 1")
    dataset = compact(dataset, **DEFER)
    entry = dataset.handle.snapshot.indices[-1]
    assert (path / "_indices" / str(entry.uuid) / "details.binpb").stat().st_size > 100
    dataset = ld.dataset(path)
    assert check(dataset) == {6}
    dataset.cleanup_old_versions(retain_versions=1, delete_unverified=True)
    assert check(ld.dataset(path)) == {6}


def test_in_place_updates_after_a_deferral_reduce_coverage(path: Path, kind: PlainKind) -> None:
    dataset = with_index(write(path, 8), kind, column="x")
    dataset = with_index(dataset, kind, column="y")
    dataset = compact(dataset, target_rows_per_fragment=40, **DEFER)
    assert dataset.fragment_ids() == [8, 9]
    source = pa.table({"key": [3], "x": [6]})
    dataset.merge_insert("key").when_matched_update_all().write_mode("rewrite_columns").execute(source)
    dataset = ld.dataset(path)
    assert covers(dataset, "x_idx")[0] == [9]
    assert check(dataset) == {9}
    assert check(dataset, "y") == {8, 9}


def test_a_table_whose_reuse_index_is_broken_is_compacted_all_the_same(
    path: Path, kind: PlainKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lance_duck.index.reuse_write.LARGEST_INLINE", 10)
    dataset = compact(with_index(write(path), kind), target_rows_per_fragment=30, **DEFER)
    for file in path.rglob("details.binpb"):
        file.write_bytes(b"broken")
    dataset = compact(ld.dataset(path))
    assert (len(dataset.get_fragments()), covers(dataset)) == (1, [[]])
    dataset.delete("key = 3")
    with pytest.raises(LanceDuckError):
        compact(ld.dataset(path), materialize_deletions_threshold=0.0, **DEFER)
    assert ld.dataset(path).count_rows() == 59


def test_a_broken_segment_loses_its_coverage(path: Path, kind: PlainKind) -> None:
    dataset = with_index(write(path), kind)
    for file in (path / "_indices").rglob("*.lance"):
        file.write_bytes(b"broken")
    with pytest.warns(IndexWarning, match="x_idx"):
        dataset = compact(dataset)
    assert len(dataset.get_fragments()) == 1
    assert covers(dataset) == [[]]


@pytest.mark.parametrize(("options", "fragments"), [({}, 4), (DEFER, 2), (LEAVE, 2)])
def test_fragments_covered_by_an_unknown_index_kind_are_not_compacted(
    path: Path, kind: PlainKind, options: dict[str, Any], fragments: int
) -> None:
    dataset = write(path)
    segment = changed(built(dataset.handle.snapshot, kind, fragments=[0, 1, 2]), details_type="/other.Unknown")
    indexed(dataset.handle.snapshot, segment)
    dataset = compact(ld.dataset(path), **options)
    assert len(dataset.get_fragments()) == fragments
    assert covers(dataset) == [{4: [0, 1, 2], 2: [6] if options == DEFER else []}[fragments]]


def test_fragments_of_an_index_without_coverage_are_not_compacted(path: Path, kind: PlainKind) -> None:
    dataset = write(path)
    segment = changed(built(dataset.handle.snapshot, kind), details_type="/other.Unknown", fragment_bitmap=None)
    indexed(dataset.handle.snapshot, segment)
    assert compact(ld.dataset(path)).version == 7


def test_a_vector_index_is_deferred_and_others_are_remapped(path: Path, kind: PlainKind) -> None:
    dataset = with_index(write(path), kind)
    vector = changed(built(dataset.handle.snapshot, kind, "y"), details_type="/lance.index.pb.VectorIndexDetails")
    indexed(dataset.handle.snapshot, vector)
    before = {s.name: s.uuid for s in ld.dataset(path).handle.snapshot.indices}
    dataset = compact(ld.dataset(path))
    after = {s.name: s.uuid for s in dataset.handle.snapshot.indices}
    built_on = {s.name: s.dataset_version for s in dataset.handle.snapshot.indices}
    assert (built_on["x_idx"], built_on["y_idx"] < dataset.version) == (dataset.version, True)
    assert (after["x_idx"] != before["x_idx"], after["y_idx"] == before["y_idx"]) == (True, True)
    assert (covers(dataset, "x_idx"), covers(dataset, "y_idx"), reused(dataset)) == ([[6]], [[6]], 1)
    assert check(dataset) == {6}


def test_overlapping_segments_lose_their_coverage(path: Path, kind: PlainKind) -> None:
    dataset = with_index(write(path, 4), kind, [0, 1, 2, 3], [0, 1, 2, 3])
    dataset = compact(dataset)
    check(dataset)
    assert sorted(covers(dataset)) in ([[], [4]], [[4]])


def test_indexes_of_a_table_that_compacts_to_nothing_are_handled(path: Path, kind: PlainKind) -> None:
    dataset = with_index(write(path, 2), kind)
    dataset.delete("key >= 0")
    dataset = compact(dataset, **DEFER)
    assert check(dataset) == set()


def test_committing_tasks_remaps_the_indexes(path: Path, kind: PlainKind) -> None:
    dataset = with_index(write(path), kind)
    dataset.delete("key % 4 = 1")
    results = []
    for task in Compaction.plan(dataset, {"target_rows_per_fragment": 20}).tasks:
        done = CompactionTask.from_json(task.json()).execute(ld.dataset(path))
        results.append(RewriteResult.from_json(done.json()))
    ld.dataset(path).insert(batch(100, 10))
    Compaction.commit(dataset, results)
    assert check(dataset) == set(covers(dataset)[0]) == set(dataset.fragment_ids()) - {6}


def test_a_lost_commit_leaves_no_segment(path: Path, kind: PlainKind) -> None:
    dataset = with_index(write(path), kind)
    done = [task.execute(dataset) for task in Compaction.plan(dataset).tasks]
    before = directories(path)
    ld.dataset(path).delete("key = 3")
    with pytest.raises(RetryableError, match="Delete"):
        Compaction.commit(dataset, done)
    assert directories(path) == before
    assert check(ld.dataset(path)) == {0, 1, 2, 3, 4, 5}


def test_a_failed_compaction_leaves_nothing(path: Path, kind: PlainKind, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = with_index(with_index(write(path), kind), kind, column="y")
    before = {*directories(path), *(p.name for p in (path / "data").iterdir())}
    merge, calls = kind.merge, []

    def failing(*args: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:
            raise StoreError("no space")
        return merge(*args)

    monkeypatch.setattr(kind, "merge", failing)
    with pytest.raises(StoreError):
        compact(dataset)
    assert {*directories(path), *(p.name for p in (path / "data").iterdir())} == before


def test_an_outdated_reuse_index_file_is_removed(path: Path, kind: PlainKind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_duck.index.reuse_write.LARGEST_INLINE", 10)
    dataset = with_index(write(path), kind)
    publish, calls = committer.publish, []

    def overtaken(*args: Any, **options: Any) -> Any:
        calls.append(args)
        if len(calls) == 2:  # the first one sets ids of fragments aside
            ld.dataset(path).insert(batch(500, 10))
        return publish(*args, **options)

    monkeypatch.setattr(committer, "publish", overtaken)
    dataset = compact(dataset, **DEFER)
    assert len(list(path.rglob("details.binpb"))) == 1
    assert check(dataset) == {6}
    assert dataset.count_rows() == 70


def test_concurrent_deferred_compactions_both_enter_the_reuse_index(path: Path, kind: PlainKind) -> None:
    dataset = with_index(write(path), kind)
    plan = Compaction.plan(dataset, {"target_rows_per_fragment": 20})
    first, second, third = (task.execute(dataset) for task in plan.tasks)
    Compaction.commit(ld.dataset(path), [first], DEFER)
    Compaction.commit(ld.dataset(path), [second], DEFER)
    Compaction.commit(ld.dataset(path), [third])
    dataset = ld.dataset(path)
    assert reused(dataset) == 2
    assert check(dataset) == set(dataset.fragment_ids())
    assert dataset.count_rows() == 60


@pytest.mark.parametrize("options", [{}, DEFER])
def test_an_index_created_during_compaction_causes_a_conflict(
    path: Path, kind: PlainKind, options: dict[str, Any]
) -> None:
    dataset = write(path)
    done = [task.execute(dataset) for task in Compaction.plan(dataset).tasks]
    with_index(dataset, kind)
    with pytest.raises(RetryableError, match="CreateIndex"):
        Compaction.commit(dataset, done, options)


def test_an_index_on_compacted_fragments_is_rejected(path: Path, kind: PlainKind) -> None:
    dataset = write(path)
    segment = built(dataset.handle.snapshot, kind)
    compact(ld.dataset(path), **DEFER)
    with pytest.raises(RetryableError, match="Rewrite"):
        commit(dataset.handle.snapshot, CreateIndex([segment]))


def test_replacing_a_reuse_index_conflicts_with_a_compaction(path: Path, kind: PlainKind) -> None:
    dataset = compact(with_index(write(path), kind), target_rows_per_fragment=30, **DEFER)
    entry = dataset.handle.snapshot.indices[-1]
    compact(ld.dataset(path), **DEFER)
    with pytest.raises(RetryableError, match="Rewrite"):
        commit(dataset.handle.snapshot, CreateIndex([changed(entry, dataset_version=1)], [entry]))


def test_rows_changed_during_a_deferred_compaction_are_found_once(path: Path, kind: PlainKind) -> None:
    dataset = with_index(write(path), kind)
    plan = Compaction.plan(dataset, {"target_rows_per_fragment": 20})
    first, *_ = (task.execute(dataset) for task in plan.tasks)
    other = ld.dataset(path)
    other.delete("key = 45")
    other.insert(batch(200, 5))
    other.update({"x": "0"}, where="key = 50")
    Compaction.commit(dataset, [first])
    after = ld.dataset(path)
    assert check(after) == {2, 3, 4, 5} | set(covers(after)[0]) & set(after.fragment_ids())
    assert after.count_rows() == 64


def test_a_restored_version_uses_its_original_segments(path: Path, kind: PlainKind) -> None:
    dataset = with_index(write(path), kind)
    version = dataset.version
    for options in ({}, DEFER):
        dataset = compact(ld.dataset(path), materialize_deletions_threshold=0, **options)
        dataset.delete("key % 5 = 2")
        assert check(ld.dataset(path, version=version)) == {0, 1, 2, 3, 4, 5}
    dataset.checkout_version(version).restore()
    dataset = ld.dataset(path)
    assert check(dataset) == {0, 1, 2, 3, 4, 5}
    dataset = compact(dataset, **DEFER)
    assert check(dataset) == set(dataset.fragment_ids())


def test_a_clone_uses_source_segments_until_they_are_rewritten(path: Path, kind: PlainKind, tmp_path: Path) -> None:
    dataset = compact(with_index(write(path), kind), target_rows_per_fragment=20, **DEFER)
    clone = dataset.shallow_clone(str(tmp_path / "clone.lance"), dataset.version)
    assert check(clone) == set(clone.fragment_ids())
    assert not (tmp_path / "clone.lance" / "_indices").exists()
    clone = compact(clone)
    assert check(clone) == set(clone.fragment_ids())
    assert {s.base_id for s in clone.handle.snapshot.indices if s.name == "x_idx"} == {None}
    assert check(ld.dataset(path)) == set(dataset.fragment_ids())
