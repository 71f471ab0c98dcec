"""Searches read the row ids of their results; rows that vanished without a trace are detected."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_duck as ld
from lance_duck.index.catalog import catalog
from lance_duck.index.files import SegmentReader
from lance_duck.index.search import open_index
from lance_duck.index.vector.open import VectorFiles
from lance_duck.scan.costs import NAMED_SHARE
from lance_duck.snapshot import open_snapshot
from lance_duck.store import open_store
from lance_duck.wire.paths import index_directory

DIM, ROWS, FEW, PARTS = 8, 6000, 40, 4


def vectors(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)


def batch(numbers: np.ndarray, first: int, gone: int = 0) -> pa.Table:
    mask = np.arange(len(numbers)) < gone
    column = pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()), DIM, mask=pa.array(mask))
    return pa.table({"id": np.arange(first, first + len(numbers)), "v": column})


def ids(table: ld.LanceDataset, q: np.ndarray, **settings: object) -> list[int]:
    nearest = {"column": "v", "q": q, "k": 5, **settings}
    found: list[int] = table.to_table(columns=["id"], nearest=nearest)["id"].to_pylist()
    return found


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_HNSW_SQ"])
@pytest.mark.parametrize("stable", [False, True])
def test_a_first_search_reads_only_the_row_ids_it_needs(
    kind: str, stable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = vectors(ROWS, 1)
    made = ld.write_dataset(batch(numbers, 0), tmp_path / "t.lance", enable_stable_row_ids=stable)
    made.create_index("v", kind, num_partitions=4, **({"num_sub_vectors": 4} if kind == "IVF_PQ" else {}))
    q = numbers[17] + np.float32(0.01)
    settings = {"nprobes": 4, "refine_factor": 2}
    expected = ids(ld.dataset(made.uri), q, use_index=False)
    with monkeypatch.context() as patched:
        patched.setattr(VectorFiles, "rows", lambda files: pytest.fail("all names were read"))
        first = ids(ld.dataset(made.uri), q, **settings)
    opened = ld.dataset(made.uri)
    many = [ids(opened, q, **settings) for _ in range(3 + ROWS // (10 * NAMED_SHARE))]
    assert first[0] == 17
    assert all(each == first for each in many)
    assert kind == "IVF_PQ" or first == expected


@pytest.mark.parametrize("refine", [None, 3])
@pytest.mark.parametrize("size", [1, 25])
def test_moved_rows_are_not_returned_even_if_counts_match(size: int, refine: int | None, tmp_path: Path) -> None:
    numbers = vectors(ROWS + FEW, 2)
    made = ld.write_dataset(batch(numbers[:ROWS], 0, gone=FEW), tmp_path / "t.lance")
    made.insert(batch(numbers[ROWS:], ROWS))
    made.create_index("v", "IVF_FLAT", num_partitions=4)
    moved = vectors(FEW, 3) + np.float32(50)
    column = pa.FixedSizeListArray.from_arrays(pa.array(moved.ravel()), DIM)
    made.merge_insert("id").when_matched_update_all().execute(
        pa.table({"id": np.arange(ROWS, ROWS + FEW), "v": column})
    )
    opened = ld.dataset(made.uri)
    queries = numbers[ROWS : ROWS + size] + np.float32(0.01)
    asked = queries[0] if size == 1 else queries
    settings = {"nprobes": 4} | ({} if refine is None else {"refine_factor": refine})
    assert ids(opened, asked, **settings) == ids(opened, asked, use_index=False)
    assert ids(opened, asked, **settings) == ids(ld.dataset(made.uri), asked, **settings)
    assert ids(opened, moved[3], **settings)[0] == ROWS + 3


def test_row_ids_at_positions_equal_those_of_a_full_read(tmp_path: Path) -> None:
    made = ld.write_dataset(batch(vectors(ROWS, 4), 0), tmp_path / "t.lance")
    made.create_index("v", "IVF_FLAT", num_partitions=4)
    files = _files(made)
    size = files.nbytes
    positions = np.array([5000, 3, 3, 77])
    few = files.rows_at(positions)
    assert files.nbytes == size
    assert np.array_equal(few, files.rows()[positions])
    assert files.nbytes > size


@given(
    st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=40),
    st.lists(st.integers(0, PARTS - 1), max_size=PARTS, unique=True),
    st.booleans(),
)
def test_row_ids_from_an_object_store_equal_those_of_a_full_read(
    remote: ld.LanceDataset, chosen: list[int], partitions: list[int], all_first: bool
) -> None:
    files, plain = (_opened(remote) for _ in range(2))
    names = plain.rows()
    if all_first:
        files.rows()
    files.codes(partitions)
    positions = np.array(chosen)
    for each in (positions, positions[::-1]):
        assert np.array_equal(files.rows_at(each), names[each])
    assert np.array_equal(files.rows(), names)


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_RQ", "IVF_HNSW_SQ"])
@pytest.mark.parametrize("stable", [False, True])
def test_remote_row_ids_are_read_together_with_the_codes(
    kind: str, stable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = vectors(ROWS, 1)
    made = ld.write_dataset(batch(numbers, 0), f"memory:///{uuid4()}.lance", enable_stable_row_ids=stable)
    made.create_index("v", kind, num_partitions=PARTS, **({"num_sub_vectors": 4} if kind == "IVF_PQ" else {}))
    settings = {"nprobes": 2, "refine_factor": 4}
    known = ld.dataset(made.uri)
    known.prewarm_index("v_idx")
    queries = numbers[:40] + np.float32(0.01)
    expected = [ids(known, q, **settings) for q in queries]
    monkeypatch.setattr(VectorFiles, "rows", lambda files: pytest.fail("all names were read"))
    monkeypatch.setattr(VectorFiles, "_read_rows_of", lambda files, missing: pytest.fail("names were read alone"))
    opened = ld.dataset(made.uri)
    assert [ids(opened, q, **settings) for q in queries] == expected


@pytest.fixture(scope="module")
def remote() -> ld.LanceDataset:
    """A table in an object store, with an index."""
    made = ld.write_dataset(batch(vectors(ROWS, 4), 0), f"memory:///{uuid4()}.lance")
    return made.create_index("v", "IVF_PQ", num_partitions=PARTS, num_sub_vectors=4)


def _opened(dataset: ld.LanceDataset) -> VectorFiles:
    (index,) = catalog(open_snapshot(dataset.uri)).over("v")
    uuid = index.segments[0].uuid
    return VectorFiles(SegmentReader(open_store(dataset.uri), index_directory(uuid)))


def _files(dataset: ld.LanceDataset) -> Any:
    snapshot = open_snapshot(dataset.uri)
    (index,) = catalog(snapshot).over("v")
    opened: Any = open_index(snapshot, index.segments[0])
    return opened.files


@pytest.mark.filterwarnings("error::lance_duck.IndexWarning")
@pytest.mark.parametrize("metric", ["l2", "dot"])
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_SQ", "IVF_RQ"])
def test_a_query_with_overflowing_distances_equals_a_scan(kind: str, metric: str, tmp_path: Path) -> None:
    made = ld.write_dataset(batch(vectors(600, 1), 0), tmp_path / "t.lance")
    made.create_index("v", kind, metric=metric, num_partitions=4)
    for far in (3e38, 1e19):
        q = np.full(DIM, far, np.float32)
        for k in (1, 100):
            expected = ids(ld.dataset(made.uri), q, use_index=False, metric=metric, k=k)
            assert len(ids(ld.dataset(made.uri), q, metric=metric, k=k)) == len(expected)
