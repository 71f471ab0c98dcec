from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from unit.index.vector.written import Written, clustered

import lance_duck as ld
from lance_duck.errors import CorruptError
from lance_duck.index.catalog import Segment, catalog
from lance_duck.index.vector.open import VectorFiles
from lance_duck.index.vector.search.ivf import IvfIndex
from lance_duck.maintenance.validation.vectors import VectorRows
from lance_duck.snapshot import Snapshot, open_snapshot

ROWS = 20
X = clustered(ROWS, 4)[0]
X[3] = np.nan


@pytest.fixture
def table(tmp_path: Path) -> tuple[Snapshot, Segment]:
    """Return vector rows in two fragments, and a segment whose metadata covers them."""
    uri = str(tmp_path / "t.lance")
    column = pa.FixedSizeListArray.from_arrays(pa.array(X.reshape(-1)), 4)
    ds = ld.write_dataset(pa.table({"v": column}), uri, max_rows_per_file=10)
    ds.create_index("v", "IVF_FLAT", num_partitions=1)
    snapshot = open_snapshot(uri)
    ((segment,),) = (index.segments for index in catalog(snapshot))
    return snapshot, segment


def problems(table: tuple[Snapshot, Segment], folder: Path, vectors: np.ndarray, offsets: np.ndarray) -> None:
    """Compare the table with a segment that has these vectors, of these rows."""
    snapshot, segment = table
    names = (offsets // 10 * (1 << 32) + offsets % 10).astype(np.uint64)
    written = Written(vectors, [len(vectors)], X[:1], "FLAT", "l2", {"dim": 4}, rows=names)
    rows = VectorRows(snapshot, segment, IvfIndex(VectorFiles(written.write(folder / "segment"))))
    for fragment_id in (0, 1):
        values = pa.FixedSizeListArray.from_arrays(pa.array(X[10 * fragment_id :][:10].reshape(-1)), 4)
        rows.check(fragment_id, values, np.arange(10))


USABLE = np.array([i for i in range(ROWS) if i != 3])


def test_a_segment_with_all_rows_is_valid(table: tuple[Snapshot, Segment], tmp_path: Path) -> None:
    problems(table, tmp_path, X[USABLE], USABLE)


def test_rows_that_are_missing_are_found(table: tuple[Snapshot, Segment], tmp_path: Path) -> None:
    with pytest.raises(CorruptError, match="row 4 of fragment 1 is not in the index"):
        problems(table, tmp_path, np.delete(X[USABLE], 13, 0), np.delete(USABLE, 13))


def test_duplicate_rows_are_found(table: tuple[Snapshot, Segment], tmp_path: Path) -> None:
    with pytest.raises(CorruptError, match="twice"):
        problems(table, tmp_path, X[[*USABLE, 5]], np.array([*USABLE, 5]))


def test_rows_with_different_vectors_are_found(table: tuple[Snapshot, Segment], tmp_path: Path) -> None:
    vectors = X[USABLE]
    vectors[0] += 1
    with pytest.raises(CorruptError, match="a different vector for row 0 of fragment 0"):
        problems(table, tmp_path, vectors, USABLE)


def test_rows_beyond_their_fragment_are_found(table: tuple[Snapshot, Segment], tmp_path: Path) -> None:
    snapshot, segment = table
    written = Written(X[:1], [1], X[:1], "FLAT", "l2", {"dim": 4}, rows=np.array([10], np.uint64))
    with pytest.raises(CorruptError, match="below 10"):
        VectorRows(snapshot, segment, IvfIndex(VectorFiles(written.write(tmp_path / "segment"))))
