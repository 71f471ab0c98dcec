"""Columns of several vectors a row: exact searches and indexes of either, searched by both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, UnsupportedError

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:lance")

ROWS, DIM, K = 600, 16, 5
CENTRES = np.random.default_rng(9).standard_normal((40, DIM))
KINDS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 8},
    "IVF_SQ": {},
    "IVF_RQ": {"num_bits": 7},
    "IVF_HNSW_FLAT": {},
    "IVF_HNSW_SQ": {},
    "IVF_HNSW_PQ": {"num_sub_vectors": 8},
}
ALL = {"nprobes": 2, "refine_factor": 100, "ef": 300}


def rows(first: int, count: int, item: Any = np.float32) -> pa.Table:
    rng = np.random.default_rng(first)
    counts = rng.integers(0, 6, count)
    total = int(counts.sum())
    if item is np.uint8:
        vectors = rng.integers(0, 256, (total, DIM)).astype(item)
    else:
        vectors = (CENTRES[rng.integers(0, 40, total)] + 0.7 * rng.standard_normal((total, DIM))).astype(item)
    offsets = pa.array(np.append(0, np.cumsum(counts)), pa.int32())
    lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIM)
    mask = pa.array(np.arange(count) == 3)
    return pa.table({"id": np.arange(first, first + count), "v": pa.ListArray.from_arrays(offsets, lists, mask=mask)})


def query(seed: int = 0, item: Any = np.float32) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if item is np.uint8:
        return rng.integers(0, 256, (3, DIM)).astype(item)
    return (CENTRES[rng.integers(0, 40, 3)] + 0.3 * rng.standard_normal((3, DIM))).astype(item)


def search(dataset: Any, q: Any, filter_: str | None = None, **more: Any) -> tuple[list[int], np.ndarray]:
    nearest = {"column": "v", "q": q, "k": K, **more}
    found = dataset.to_table(columns=["id", "_distance"], nearest=nearest, filter=filter_, prefilter=True)
    return found["id"].to_pylist(), found["_distance"].to_numpy()


def check(path: Path, filter_: str | None = None) -> None:
    """Check that an index and a full comparison agree in both libraries; this package returns their distances."""
    for seed in range(3):
        exact = search(ld.dataset(path), query(seed), filter_, use_index=False, metric="cosine")
        for library in (ld, lance):
            found = search(library.dataset(path), query(seed), filter_, metric="cosine", **ALL)
            assert found[0] == exact[0]
            assert found[1] == pytest.approx(exact[1], abs=1e-5)


@pytest.mark.parametrize(
    ("metric", "item"),
    [("l2", np.float32), ("cosine", np.float16), ("dot", np.float64), ("l2", np.float64), ("hamming", np.uint8)],
)
def test_exact_multivector_searches_equal_those_of_pylance(tmp_path: Path, metric: str, item: Any) -> None:
    path = tmp_path / "t.lance"
    lance.write_dataset(rows(0, ROWS, item), path, max_rows_per_file=250).delete("id % 7 = 2")
    theirs, ours = lance.dataset(path), ld.dataset(path)
    for q in (query(0, item), query(0, item)[0], query(0, item).tolist()):
        for filter_ in (None, "id % 3 = 1"):
            expected, found = (search(each, q, filter_, metric=metric) for each in (theirs, ours))
            assert found[0] == expected[0]
            assert found[1] == pytest.approx(expected[1], rel=1e-3 if item is np.float16 else 1e-5)


@pytest.mark.parametrize(
    "kind", [k if k in ("IVF_PQ", "IVF_RQ") else pytest.param(k, marks=pytest.mark.slow) for k in KINDS]
)
@pytest.mark.parametrize("maker", [lance, ld], ids=["pylance", "ours"])
def test_both_libraries_maintain_a_multivector_index(tmp_path: Path, maker: Any, kind: str) -> None:
    path = tmp_path / "t.lance"
    lance.write_dataset(rows(0, ROWS), path, max_rows_per_file=250)
    maker.dataset(path).create_index("v", kind, metric="cosine", num_partitions=2, **KINDS[kind])
    ours = ld.dataset(path)
    assert "VectorIndexQuery" in ours.scanner(nearest={"column": "v", "q": query()}).explain_plan()
    check(path)
    check(path, "id % 3 = 1")
    ours.insert(rows(ROWS, 60))
    ours.delete("id % 9 = 5")
    check(path)
    ours.validate()
    ours.optimize.compact_files()
    check(path)
    ours.optimize.optimize_indices()
    ours.validate()
    check(path)
    figures = ours.index_statistics("v_idx")
    theirs = lance.dataset(path).stats.index_stats("v_idx")
    assert figures["num_indexed_rows"] == theirs["num_indexed_rows"] == ours.count_rows()


def test_multivector_searches_support_every_option(tmp_path: Path) -> None:
    path = tmp_path / "t.lance"
    ds = ld.write_dataset(rows(0, ROWS), path)
    ds.create_index("v", "IVF_FLAT", metric="cosine", num_partitions=2)
    expected, distances = search(ds, query(), recall=1)
    assert ds.search(query(), k=K)["id"].to_pylist() == expected
    con = ld.connect({"t": path})
    for text, given in (("?", [query().tolist()]), (f"{query().tolist()}::FLOAT[][]", [])):
        found = con.execute(
            f"SELECT id, _distance FROM lance_vector_search('t', 'v', {text}, k := {K})", given
        ).fetchall()
        assert [row for row, _ in found] == expected
        assert [distance for _, distance in found] == pytest.approx(distances.tolist(), abs=1e-5)
    between = search(ds, query(), distance_range=(float(distances[1]), float(distances[3])), recall=1)
    assert between[0] == expected[1:3]
    assert search(ds, query(), metric="l2")[0] == search(ds, query(), metric="l2", use_index=False)[0]
    assert search(ds, np.vstack([query(), np.zeros((1, DIM), np.float32)]))[0] == expected
    assert search(ds, np.zeros((2, DIM), np.float32))[0] == []
    with pytest.raises(InvalidInputError, match="does not match"):
        search(ds, query().ravel())


def test_unsupported_multivector_operations_are_rejected(tmp_path: Path) -> None:
    ds = ld.write_dataset(rows(0, 50), tmp_path / "t.lance")
    with pytest.raises(UnsupportedError, match="does not support metric l2"):
        ds.create_index("v", "IVF_FLAT")
    with pytest.raises(UnsupportedError, match="recall"):
        ld.recall_report(ds, "v")
    bits = ld.write_dataset(rows(0, 50, np.uint8), tmp_path / "bits.lance")
    with pytest.raises(NotImplementedError):
        bits.create_index("v", "IVF_FLAT", metric="hamming")
