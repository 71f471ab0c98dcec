"""Vector segments that are cut short, or name rows that are not there: every vector is compared, with one warning."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import IndexWarning
from lance_duck.index import search

ROWS, DIM, K = 400, 8, 7
KINDS = ["IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ"]
SOME = ("IVF_FLAT", "IVF_PQ", "IVF_RQ", "IVF_HNSW_SQ")
each_kind = pytest.mark.parametrize(
    "kind", [kind if kind in SOME else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]
)
LOOK = {"nprobes": 4, "ef": 50}


def vectors(count: int) -> np.ndarray:
    return np.random.default_rng(2).standard_normal((count, DIM)).astype(np.float32)


def indexed(path: Path, kind: str, count: int = ROWS) -> Path:
    """A table with an index; returns the folder of its segment."""
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors(count).ravel()), DIM)
    dataset = ld.write_dataset(
        pa.table({"id": np.arange(count), "vec": column}), path, storage_options={"checksums": "false"}
    )
    codes = {"num_sub_vectors": 4, "num_bits": 4} if kind.endswith("PQ") else {}
    dataset.create_index("vec", kind, num_partitions=3, max_iters=3, **codes)
    (segment,) = path.glob("_indices/*")
    return segment


def found(path: Path) -> tuple[list[int], list[str]]:
    """Return the nearest rows and the warnings, as if no warning had been given before."""
    search._WARNED._uuids.clear()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = ld.dataset(path)
        for _ in range(2):
            rows = dataset.search(vectors(1)[0], k=K, columns=["id"], **LOOK)
    told = [str(each.message) for each in caught if issubclass(each.category, IndexWarning)]
    return rows["id"].to_pylist(), told


def nearest(count: int) -> list[int]:
    distances = ((vectors(count) - vectors(1)[0]) ** 2).sum(axis=1)
    return np.argsort(distances)[:K].tolist()


@each_kind
@pytest.mark.parametrize("name", ["index.idx", "auxiliary.idx"])
def test_a_truncated_vector_index_file_is_skipped_with_one_warning(name: str, kind: str, tmp_path: Path) -> None:
    file = indexed(tmp_path / "t.lance", kind) / name
    whole = file.read_bytes()
    for place, length in enumerate((0, 1, len(whole) // 3, len(whole) - 40, len(whole) - 1)):
        copy = tmp_path / f"{place}.lance"
        shutil.copytree(tmp_path / "t.lance", copy)
        (copy / file.relative_to(tmp_path / "t.lance")).write_bytes(whole[:length])
        rows, told = found(copy)
        assert rows == nearest(ROWS), length
        assert len(told) == 1, length


@each_kind
def test_an_index_of_a_larger_table_never_returns_missing_rows(kind: str, tmp_path: Path) -> None:
    larger = indexed(tmp_path / "larger.lance", kind)
    small = indexed(tmp_path / "t.lance", kind, ROWS // 4)
    for name in ("index.idx", "auxiliary.idx"):
        shutil.copy(larger / name, small / name)
    rows, told = found(tmp_path / "t.lance")
    assert rows == nearest(ROWS // 4)
    assert len(told) <= 1
    with pytest.raises(ld.LanceDuckError):
        ld.dataset(tmp_path / "t.lance").validate()


@each_kind
def test_changed_index_bytes_never_return_missing_rows(kind: str, tmp_path: Path) -> None:
    segment = indexed(tmp_path / "t.lance", kind)
    rng = np.random.default_rng(3)
    for place in range(6):
        copy = tmp_path / f"{place}.lance"
        shutil.copytree(tmp_path / "t.lance", copy)
        for name in ("index.idx", "auxiliary.idx"):
            file = copy / segment.relative_to(tmp_path / "t.lance") / name
            bytes_ = bytearray(file.read_bytes())
            for at in rng.integers(0, len(bytes_), 4).tolist():
                bytes_[at] ^= 1 << int(rng.integers(8))
            file.write_bytes(bytes_)
        rows, told = found(copy)
        assert len(set(rows)) == len(rows) == K
        assert set(rows) <= set(range(ROWS))
        assert len(told) <= 1
