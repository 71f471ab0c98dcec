"""Rows displaced before they serve as queries, and their true neighbours."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import lance_duck as ld
from lance_duck.index.catalog import catalog
from lance_duck.index.search import open_index
from lance_duck.index.vector.metric import distances, normalized
from lance_duck.scan.nearest.covered import CoveredVectors
from lance_duck.scan.nearest.options import vector_column
from lance_duck.scan.nearest.settings import compared_queries
from lance_duck.scan.nearest.settings.compared_queries import displaced
from lance_duck.scan.nearest.settings.sample import Sample, draw
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import open_snapshot

ROWS, DIM, K = 3000, 8, 10


def vectors(count: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, DIM)).astype(np.float32)


def moved(rows: NDArray[np.float32], others: NDArray[np.float32], metric: str) -> NDArray[Any]:
    """Rows displaced by the distance to the nearest of all others."""
    which = np.repeat(np.arange(len(rows)), len(others))
    return displaced(rows, which, np.tile(others, (len(rows), 1)), metric, np.random.default_rng(1))


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_a_displaced_row_moves_by_its_nearest_neighbour_distance(metric: str) -> None:
    rows, others = vectors(20), vectors(50, 7) * np.float32(3)
    if metric == "l2":
        nearest = np.linalg.norm(rows[:, None] - others, axis=2).min(axis=1)
    else:
        chords = np.linalg.norm(normalized(rows)[:, None] - normalized(others), axis=2).min(axis=1)
        nearest = chords * np.linalg.norm(rows, axis=1)
    ways = moved(rows, others, metric) - rows
    assert np.linalg.norm(ways, axis=1) == pytest.approx(nearest, rel=1e-4)
    assert len(np.unique(np.sign(ways), axis=0)) > 10  # in one direction each


def test_duplicate_and_isolated_rows_are_not_displaced() -> None:
    rows = vectors(3)
    found = displaced(rows, np.array([0, 0, 1]), np.stack([rows[1], rows[0], rows[2]]), "l2", np.random.default_rng(1))
    assert (found == rows).all(axis=1).tolist() == [True, False, True]


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("length", [0.0, 1e-45, 1e-20, 3e38])
def test_the_shortest_and_longest_vectors_are_displaced_to_usable_ones(metric: str, length: float) -> None:
    rows = np.eye(DIM, dtype=np.float32) * np.float32(length or metric == "cosine")
    found = moved(rows, -rows, metric)
    assert found.dtype == np.float32
    assert np.isfinite(found).all()
    assert metric != "cosine" or found.any(axis=1).all()


def table(uri: Path | str, kind: str, metric: str) -> ld.LanceDataset:
    """Return vectors; one in ten has a duplicate, and a tenth of the rows is deleted."""
    rows = vectors(ROWS)
    rows[: ROWS // 10] = rows[ROWS // 10 : ROWS // 5]
    column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), DIM)
    ds = ld.write_dataset(pa.table({"id": np.arange(ROWS), "v": column}), uri, max_rows_per_file=1000)
    codes = {"ef_construction": 60} if "HNSW" in kind else {}
    ds.create_index("v", kind, metric=metric, num_partitions=3, **codes)
    ds.delete("id % 10 = 3")
    return ds


def sample(ds: ld.LanceDataset) -> tuple[Sample, NDArray[np.float32]]:
    """Return the sample of the only segment, and the vectors by position; vectors of deleted rows are NaN."""
    snapshot = open_snapshot(ds.uri)
    (index,) = catalog(snapshot).over("v")
    (segment,) = index.segments
    opened: Any = open_index(snapshot, segment)
    rows = CoveredVectors(snapshot, segment, opened)
    drawn = draw(TableScan(snapshot), vector_column(TableScan(snapshot), "v"), segment, opened, rows, K, 1.0)
    assert drawn is not None
    read = ds.to_table(columns=["v"], with_row_address=True)
    at = np.searchsorted(read["_rowaddr"].to_numpy(), rows.addresses)
    values = read["v"].combine_chunks().values.to_numpy().reshape(-1, DIM)
    by_position = values[np.minimum(at, len(values) - 1)].copy()
    by_position[~rows.lives] = np.nan
    return drawn, by_position


def moved_and_twins(drawn: Sample, by_position: NDArray[np.float32]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return whether each query was displaced, and whether its row has a duplicate."""
    rows = by_position[drawn.own]
    twins = (by_position[:, None, 0] == rows[None, :, 0]).sum(axis=0) - 1
    return (drawn.queries != rows).any(axis=1), twins > 0


def uri_of(path: Path, place: str) -> Path | str:
    return path / "t.lance" if place == "disk" else f"memory://{uuid.uuid4().hex}/t.lance"


@pytest.mark.parametrize("place", ["disk", "store"])
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("kind", ["IVF_HNSW_FLAT", "IVF_HNSW_SQ"])
def test_queries_for_graphs_are_displaced_from_rows(tmp_path: Path, place: str, metric: str, kind: str) -> None:
    drawn, by_position = sample(table(uri_of(tmp_path, place), kind, metric))
    has_moved, has_twin = moved_and_twins(drawn, by_position)
    assert has_moved[~has_twin].all()
    assert not has_twin.all()
    if metric != "dot":  # whose nearest rows are long ones
        assert not has_moved[has_twin].any()
    far = distances(metric, drawn.queries, by_position)
    far[np.arange(len(far)), drawn.own] = np.inf
    far[np.isnan(far)] = np.inf
    last = np.sort(far, axis=1)[:, K - 1]
    for positions, near, mine, limit in zip(drawn.positions, drawn.are_near, far, last, strict=True):
        margin = 1e-5 * abs(float(limit)) + 1e-6
        found = set(positions[near].tolist())
        assert set(np.flatnonzero(mine < limit - margin).tolist()) <= found
        assert found <= set(np.flatnonzero(mine <= limit + margin).tolist())


@pytest.mark.parametrize("place", ["disk", "store"])
def test_queries_for_other_indexes_are_rows(tmp_path: Path, place: str) -> None:
    drawn, by_position = sample(table(uri_of(tmp_path, place), "IVF_FLAT", "l2"))
    assert np.array_equal(drawn.queries, by_position[drawn.own])


def test_queries_for_large_remote_tables_are_displaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compared_queries, "REMOTE_SAMPLE_BYTES", 4 * DIM * ROWS // 5)
    monkeypatch.setattr(compared_queries, "REMOTE_SAMPLE_RUNS", 16)
    drawn, by_position = sample(table(uri_of(tmp_path, "store"), "IVF_HNSW_SQ", "l2"))
    has_moved, has_twin = moved_and_twins(drawn, by_position)
    assert has_moved[~has_twin].all()
    assert not has_twin.all()
