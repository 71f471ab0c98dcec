"""Indexes built in parts: fragment runs, pickled orders, and concurrent writers."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import IndexWarning, NotIndexableError, StoreError
from lance_duck.verbs.indexes.create import create_index
from lance_duck.verbs.indexes.kinds import IndexSpec
from lance_duck.verbs.indexes.optimize import OptimizeOptions, optimize_indices
from lance_duck.verbs.indexes.rows import runs_of
from lance_duck.verbs.indexes.segment_orders import SegmentOrder
from lance_duck.verbs.indexes.vector import spec_of

Writer = Callable[[ld.LanceDataset], Any]


def rows(first: int, count: int) -> pa.Table:
    return pa.table({"id": range(first, first + count), "x": [i % 5 for i in range(count)]})


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    place = tmp_path / "t.lance"
    ld.write_dataset(rows(0, 60), place, max_rows_per_file=10, enable_stable_row_ids=request.param).delete("id = 7")
    return place


class Elsewhere:
    """Other processes; a writer may commit after their first build."""

    def __init__(self, path: Path, writer: Writer | None = None, count: int = 3) -> None:
        self.path = path
        self.writer = writer
        self.count = count
        self.orders: list[SegmentOrder] = []

    def runs(self, now: Any, fragments: Sequence[int]) -> list[tuple[int, ...]]:
        return runs_of(now, fragments, self.count)

    def write(self, now: Any, orders: Sequence[tuple[SegmentOrder, IndexSpec | None]]) -> list[Any]:
        self.orders += [order for order, _ in orders]
        done = [self._written(*each) for each in orders]
        if self.writer is not None:
            writer, self.writer = self.writer, None
            writer(ld.dataset(self.path))
        return done

    def _written(self, order: SegmentOrder, spec: IndexSpec | None) -> Any:
        order = pickle.loads(pickle.dumps(order))
        snapshot = ld.dataset(self.path, order.version).handle.snapshot
        segment = order.write(snapshot, {} if spec is None else spec.parameters)
        return pickle.loads(pickle.dumps(segment))


def created_by(workers: Elsewhere) -> Elsewhere:
    snapshot = ld.dataset(workers.path).handle.snapshot
    create_index(snapshot, spec_of(snapshot, "x", "BTREE", {}), None, workers)
    return workers


def created(path: Path, writer: Writer | None = None) -> Elsewhere:
    return created_by(Elsewhere(path, writer))


def check(path: Path) -> None:
    dataset = ld.dataset(path)
    for value in (0, 2, 4, 99):
        expected = dataset.to_table(filter=f"x = {value}", use_scalar_index=False)
        assert dataset.to_table(filter=f"x = {value}") == expected
    dataset.validate()
    explained = dataset.explain_cleanup_old_versions(timedelta(0), delete_unverified=True, include_files=True)
    assert [file.path for file in explained.candidate_files if file.unverified] == []


def covered(path: Path) -> list[list[int]]:
    return [sorted(segment["fragment_ids"]) for segment in ld.dataset(path).list_indices()]


def test_runs_group_adjacent_fragments_by_row_count(path: Path) -> None:
    snapshot = ld.dataset(path).handle.snapshot
    assert runs_of(snapshot, range(6), 3) == [(0, 1), (2, 3), (4, 5)]
    assert runs_of(snapshot, [5, 0], 9) == [(0,), (5,)]
    assert runs_of(snapshot, range(6), 1) == [tuple(range(6))]
    assert runs_of(snapshot, [], 3) == []


def test_parts_become_segments_of_one_index(path: Path) -> None:
    created(path)
    assert covered(path) == [[0, 1], [2, 3], [4, 5]]
    check(path)


def test_concurrently_appended_fragments_stay_uncovered(path: Path) -> None:
    workers = created(path, lambda dataset: dataset.insert(rows(100, 10)))
    assert len(workers.orders) == 3
    assert covered(path) == [[0, 1], [2, 3], [4, 5]]
    check(path)


def test_only_compacted_fragments_are_rebuilt(path: Path) -> None:
    def writer(dataset: ld.LanceDataset) -> None:
        dataset.optimize.compact_files(target_rows_per_fragment=20, max_source_fragments=2)

    workers = created(path, writer)
    assert sum(len(order.fragments) for order in workers.orders[3:]) <= 3
    assert set().union(*covered(path)) == {f.fragment_id for f in ld.dataset(path).get_fragments()}
    check(path)


def test_concurrently_changed_values_are_found(path: Path) -> None:
    def writer(dataset: ld.LanceDataset) -> None:
        dataset.update({"x": "99"}, where="id = 33")
        dataset.optimize.compact_files(target_rows_per_fragment=20)

    created(path, writer)
    assert ld.dataset(path).to_table(filter="x = 99")["id"].to_pylist() == [33]
    check(path)


def test_files_of_abandoned_attempts_are_removed(path: Path) -> None:
    class Twice(Elsewhere):
        def write(self, now: Any, orders: Sequence[Any]) -> list[Any]:
            super().write(now, orders)
            return super().write(now, orders)

    created_by(Twice(path))
    assert len(list((path / "_indices").iterdir())) == 3
    check(path)


def test_a_failed_job_leaves_nothing(path: Path) -> None:
    class Failing(Elsewhere):
        def write(self, now: Any, orders: Sequence[Any]) -> list[Any]:
            super().write(now, orders)
            raise StoreError("the disk is full")

    version = ld.dataset(path).version
    with pytest.raises(StoreError):
        created_by(Failing(path))
    assert not (path / "_indices").exists()
    assert ld.dataset(path).version == version


@pytest.mark.parametrize("merge", [None, 0, 2])
def test_new_rows_are_covered_in_parts(path: Path, merge: int | None) -> None:
    created(path)
    for first in (100, 200, 300, 400):
        ld.dataset(path).insert(rows(first, 10))
    workers = Elsewhere(path, lambda dataset: dataset.insert(rows(500, 10)), 2)
    optimize_indices(ld.dataset(path).handle.snapshot, OptimizeOptions(merge), None, workers)
    segments = {None: 2, 0: 5, 2: 3}[merge]
    assert len(covered(path)) == segments
    assert len(set().union(*covered(path))) == 10
    check(path)


def test_a_broken_index_is_unchanged(path: Path) -> None:
    created(path)
    ld.dataset(path).insert(rows(100, 10))
    before = covered(path)
    for file in path.glob("_indices/*/page_data.lance"):
        file.write_bytes(b"")
    with pytest.warns(IndexWarning, match="was not changed"):
        after, segments = optimize_indices(
            ld.dataset(path).handle.snapshot, OptimizeOptions(), None, Elsewhere(path, count=2)
        )
    assert segments == []
    assert covered(path) == before
    assert after.version == ld.dataset(path).version


@pytest.mark.parametrize(("kind", "meant"), [("IVFPQ", "IVF_PQ"), ("hnsw_sq", "IVF_HNSW_SQ"), ("BTRE", "BTREE")])
def test_a_misspelled_kind_suggests_a_related_one(tmp_path: Path, kind: str, meant: str) -> None:
    vectors = pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float32(), 2))
    table = ld.write_dataset(pa.table({"id": range(4), "vec": vectors}), tmp_path / "t.lance")
    with pytest.raises(NotIndexableError, match=f"did you mean '{meant}'"):
        spec_of(table.handle.base, "id" if meant == "BTREE" else "vec", kind, {})
