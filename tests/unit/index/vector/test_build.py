from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import ROW, VALUE, BuildOptions, MergeInput
from lance_duck.index.vector.kind import VECTOR
from lance_duck.index.vector.metric import distances
from lance_duck.index.vector.search.contract import Probe
from lance_duck.index.vector.training.model import Model
from lance_duck.store import open_store

DIM = 16
KINDS = ("IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
LEAST = {"FLAT": 0.99, "SQ": 0.9, "PQ": 0.7, "RQ": 0.9}


class Made:
    """Segments in a folder, built of vectors and merged."""

    def __init__(self, folder: Path) -> None:
        self.store = open_store(str(folder))

    def build(self, vectors: Any, rows: Any = None, limit: int = 1 << 30, batch: int = 200, **parameters: Any) -> Any:
        array = vectors if isinstance(vectors, pa.Array) else column(vectors)
        with SegmentWriter(self.store) as writer:
            options = BuildOptions(parameters, memory_limit=limit)
            details = VECTOR.build(reader(array, rows, batch), writer, options)
        return VECTOR.open(SegmentReader(self.store, writer.directory), array.type, details)

    def merge(self, parts: list[MergeInput], vectors: Any = None, rows: Any = None) -> Any:
        with SegmentWriter(self.store) as writer:
            new = None if vectors is None else reader(column(vectors), rows, 200)
            details = VECTOR.merge(parts, new, writer, BuildOptions())
        return VECTOR.open(SegmentReader(self.store, writer.directory), pa.list_(pa.float32(), DIM), details)


def column(vectors: np.ndarray) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])


def reader(array: pa.Array, rows: Any, batch: int) -> pa.RecordBatchReader:
    names = np.arange(len(array), dtype=np.uint64) if rows is None else np.asarray(rows, np.uint64)
    table = pa.table({VALUE: array, ROW: names})
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=batch))


def vectors(count: int, seed: int = 0) -> np.ndarray:
    chance = np.random.default_rng(seed)
    return (chance.normal(size=(8, DIM))[chance.integers(0, 8, count)] + chance.normal(size=(count, DIM))).astype("f4")


def recall(index: Any, all_: np.ndarray, names: np.ndarray) -> float:
    queries = vectors(20, 7)
    nearest = names[np.argsort(distances(index.metric, queries, all_), axis=1)[:, :10]]
    found = index.rows()[index.search(queries, 10, None, Probe(nprobes=99)).positions]
    return float(np.mean([len(np.intersect1d(f, n)) / 10 for f, n in zip(found, nearest, strict=True)]))


def names_of(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint64)


def stay(names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return names, np.ones(len(names), np.bool_)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path)


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_built_index_reaches_the_expected_recall(made: Made, kind: str, metric: str) -> None:
    data = vectors(400)
    parameters = {"num_sub_vectors": 8} if "PQ" in kind else {}
    index = made.build(data, index_type=kind, metric=metric, num_partitions=3, max_iters=4, **parameters)
    assert sorted(index.rows().tolist()) == list(range(400))
    for rows in (index.rows()[index.files.partitions.rows(p)] for p in range(3)):
        assert (np.diff(rows.astype(np.int64)) > 0).all()
    assert recall(index, data, names_of(400)) >= LEAST[kind.rpartition("_")[2]]


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_SQ", "IVF_HNSW_SQ"])
def test_the_memory_limit_does_not_change_the_index(made: Made, kind: str) -> None:
    data = vectors(600)
    few = made.build(data, limit=20_000, batch=100, index_type=kind, num_partitions=4)
    many = made.build(data, batch=100, index_type=kind, num_partitions=4)
    assert np.array_equal(few.rows(), many.rows())
    for one, other in zip(few.files.codes(range(4)), many.files.codes(range(4)), strict=True):
        assert np.array_equal(one, other)


def test_unusable_vectors_are_not_indexed(made: Made) -> None:
    data = vectors(50)
    data[3, 1], data[4], data[5, 2] = np.nan, 0, np.inf
    array = pa.array([None if i == 2 else row.tolist() for i, row in enumerate(data)], pa.list_(pa.float32(), DIM))
    for metric, missing in (("l2", {2, 3, 5}), ("dot", {2, 3, 5}), ("cosine", {2, 3, 4, 5})):
        index = made.build(array, index_type="IVF_FLAT", metric=metric)
        assert set(range(50)) - set(index.rows().tolist()) == missing


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_HNSW_FLAT"])
def test_binary_vectors_are_indexed(made: Made, kind: str) -> None:
    data = np.random.default_rng(0).integers(0, 256, (300, DIM)).astype(np.uint8)
    index = made.build(data, index_type=kind, metric="hamming", num_partitions=3)
    found = index.search(data[:5], 1, None, Probe(nprobes=3))
    assert index.rows()[found.positions[:, 0]].tolist() == [0, 1, 2, 3, 4]
    assert found.distances[:, 0].tolist() == [0] * 5


@pytest.mark.parametrize("type_", ["f2", "f8"])
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_SQ"])
def test_float16_and_float64_vectors_are_indexed(made: Made, kind: str, type_: str) -> None:
    data = vectors(300).astype(type_)
    index = made.build(data, index_type=kind, num_partitions=2)
    assert recall(index, data.astype("f4"), names_of(300)) >= 0.9


@pytest.mark.parametrize("type_", ["f2", "f8"])
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_HNSW_FLAT"])
def test_a_remap_keeps_the_float_type(made: Made, kind: str, type_: str) -> None:
    index = made.build(vectors(100).astype(type_), index_type=kind, num_partitions=2)
    moved = made.merge([MergeInput(index, lambda n: (n + np.uint64(7), n % np.uint64(9) != 4))])
    assert moved.files.auxiliary.column("flat").arrow_type == index.files.auxiliary.column("flat").arrow_type
    rows = moved.rows() - np.uint64(7)
    for place, codes in enumerate(moved.files.codes(range(2))):
        expected = vectors(100)[rows[moved.files.partitions.rows(place)].astype(int)].astype(type_).astype("f4")
        assert np.array_equal(codes, expected)


def test_own_centroids_and_codebook(made: Made) -> None:
    data = vectors(100)
    codebook = np.random.default_rng(1).normal(size=(8, 16, 2)).astype("f4")
    given = {"ivf_centroids": column(data[:4]), "pq_codebook": codebook, "num_bits": 4}
    index = made.build(data, index_type="IVF_PQ", **given)
    assert np.array_equal(index.files.centroids, data[:4])
    assert np.array_equal(index.files.codebook, codebook)
    assert index.num_rows == 100


@pytest.mark.parametrize(
    "form",
    [
        lambda numbers: numbers.astype("f8"),
        lambda numbers: np.asfortranarray(numbers),
        lambda numbers: numbers.tolist(),
        lambda numbers: pa.array(numbers.tolist()),
        lambda numbers: pa.chunked_array([column(numbers[:1]), column(numbers[1:])]),
        lambda numbers: column(np.vstack([numbers[:2], numbers, numbers]))[2:6],
        lambda numbers: pa.FixedShapeTensorArray.from_numpy_ndarray(numbers),
    ],
)
def test_custom_centroids_may_have_any_form(made: Made, form: Any) -> None:
    data = vectors(100)
    index = made.build(data, index_type="IVF_FLAT", ivf_centroids=form(data[:4]))
    assert np.array_equal(index.files.centroids, data[:4])


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        "near",
        object(),
        [None],
        [["a"] * DIM],
        [[1.0] * DIM, [1.0]],
        np.zeros((1, 2, DIM)),
        np.full((2, DIM), 1e300),
        np.ones((2, DIM), bool),
        pa.array([[1.0] * DIM, None]),
        pa.array([[1.0] * DIM, [1.0]]),
        pa.array([[None] * DIM], pa.list_(pa.float32(), DIM)),
        pa.record_batch({"c": [[1.0] * DIM]}),
    ],
)
def test_invalid_centroids_are_rejected(made: Made, wrong: Any) -> None:
    with pytest.raises(InvalidInputError, match="ivf_centroids"):
        made.build(vectors(9), index_type="IVF_FLAT", ivf_centroids=wrong)


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_HNSW_SQ"])
@pytest.mark.parametrize("metric", ["l2", "dot"])
@pytest.mark.parametrize("long", [5, 300])
def test_vectors_whose_distances_overflow_float32_are_indexed(made: Made, kind: str, metric: str, long: int) -> None:
    values = vectors(300)
    values[:long] *= np.float32(1e30)
    codes = {"num_sub_vectors": 4, "num_bits": 4} if kind == "IVF_PQ" else {}
    found = made.build(values, index_type=kind, metric=metric, num_partitions=4, **codes)
    assert found.num_rows == 300


def test_centroids_of_bits_are_bytes(made: Made) -> None:
    bits = column(np.arange(100 * DIM, dtype=np.uint8).reshape(100, DIM))
    given = {"index_type": "IVF_FLAT", "metric": "hamming"}
    assert made.build(bits, **given, ivf_centroids=np.array([[0.0] * DIM, [255.0] * DIM])).num_rows == 100
    for wrong in (256, -1, 0.5):
        with pytest.raises(InvalidInputError, match="0 to 255"):
            made.build(bits, **given, ivf_centroids=np.full((2, DIM), wrong))


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"index_type": "IVF_PQ"}, "too few"),
        ({"index_type": "IVF_PQ", "num_sub_vectors": 3}, "num_sub_vectors"),
        ({"index_type": "IVF_PQ", "num_bits": 5}, "num_bits"),
        ({"index_type": "IVF_RQ", "num_bits": 10}, "num_bits"),
        ({"index_type": "IVF_FLAT", "num_partitions": 0}, "num_partitions"),
        ({"index_type": "IVF_FLAT", "metric": "far"}, "metric"),
        ({"index_type": "IVF_FLAT", "metric": "hamming"}, "hamming"),
        ({"index_type": "IVF_FLAT", "ivf_centroids": np.zeros((2, 5))}, "ivf_centroids"),
        ({"index_type": "IVF_FLAT", "ivf_centroids": np.full((2, DIM), np.nan)}, "finite"),
        ({"index_type": "IVF_FLAT", "ivf_centroids": np.zeros((2, DIM)), "num_partitions": 3}, "num_partitions"),
        ({"index_type": "IVF_PQ", "pq_codebook": np.zeros((3, 256, 4))}, "pq_codebook"),
        ({"index_type": "IVF_HNSW_FLAT", "m": 1}, "m"),
        ({"index_type": "IVF_FLAT", "colour": "red"}, "colour"),
    ],
)
def test_invalid_parameters_are_rejected(made: Made, parameters: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidInputError, match=said):
        made.build(vectors(100), **parameters)


def test_unknown_kinds_are_rejected(made: Made) -> None:
    with pytest.raises(UnsupportedError, match="IVF_FLAT"):
        made.build(vectors(10), index_type="IVF_HNSW_RQ")


def test_rabitq_requires_a_dimension_divisible_by_8(made: Made) -> None:
    with pytest.raises(InvalidInputError, match="multiple of 8"):
        made.build(vectors(100)[:, :12].copy(), index_type="IVF_RQ")


@pytest.mark.parametrize("kind", KINDS)
def test_segments_can_be_remapped(made: Made, kind: str) -> None:
    data, names = vectors(400), names_of(400)
    parameters = {"num_sub_vectors": 8} if "PQ" in kind else {}
    index = made.build(data, index_type=kind, num_partitions=2, max_iters=4, **parameters)
    lives = names % np.uint64(9) != 4
    moved = made.merge([MergeInput(index, lambda n: (n + np.uint64(1000), n % np.uint64(9) != 4))])
    assert sorted(moved.rows().tolist()) == (names[lives] + 1000).tolist()
    assert recall(moved, data[lives], names[lives] + np.uint64(1000)) >= LEAST[kind.rpartition("_")[2]]


@pytest.mark.parametrize("kind", KINDS)
def test_segments_are_merged_with_new_rows(made: Made, kind: str) -> None:
    data, names = vectors(600), names_of(600)
    parameters = {"num_sub_vectors": 8} if "PQ" in kind else {}
    first = made.build(data[:300], index_type=kind, num_partitions=2, max_iters=4, **parameters)
    given = {"ivf_centroids": first.files.centroids, **parameters}
    if "PQ" in kind:
        given["pq_codebook"] = first.files.codebook
    second = made.build(data[300:500], names[300:500], index_type=kind, **given)
    merged = made.merge([MergeInput(first, stay), MergeInput(second, stay)], data[500:], names[500:])
    assert sorted(merged.rows().tolist()) == names.tolist()
    assert recall(merged, data, names) >= LEAST[kind.rpartition("_")[2]]


def test_sq_segments_trained_separately_are_not_merged(made: Made) -> None:
    parts = [MergeInput(made.build(vectors(300, seed), index_type="IVF_SQ", num_partitions=2), stay) for seed in (1, 2)]
    with pytest.raises(UnsupportedError, match="trained separately"):
        made.merge(parts)


def test_flat_segments_trained_separately_are_merged(made: Made) -> None:
    data, names = vectors(400), names_of(400)
    one = made.build(data[:200], index_type="IVF_FLAT", num_partitions=2)
    other = made.build(data[200:], names[200:], index_type="IVF_FLAT", num_partitions=3)
    merged = made.merge([MergeInput(one, stay), MergeInput(other, stay)])
    assert merged.files.num_partitions == 2
    assert recall(merged, data, names) == 1


@pytest.mark.parametrize("kind", ["IVF_SQ", "IVF_PQ"])
def test_codes_of_decoded_codes_are_the_same(kind: str) -> None:
    chance = np.random.default_rng(3)
    codebook = chance.normal(size=(8, 256, 2)).astype("f4")
    model = Model(kind, "l2", np.dtype("f4"), vectors(3), bounds=(-3.1, 2.7), codebook=codebook)
    codes = chance.integers(0, 256, (200, model.code_width)).astype(np.uint8)
    places = chance.integers(0, 3, 200)
    assert np.array_equal(model.encode(model.decode(codes, places), places), codes)
