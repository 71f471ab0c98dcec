from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.errors import InvalidInputError
from lance_duck.index.vector.metric import distances, metric_of, normalized
from lance_duck.index.vector.vectors import has_byte_items, is_vector, vectors_of

X = np.array([[1, 2], [3, 4], [-5, 0.5]], np.float32)


def column(values: np.ndarray, type_: pa.DataType) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1), type_), values.shape[1])


def test_float32_is_not_copied() -> None:
    array = column(X, pa.float32())
    found = vectors_of(array)
    np.testing.assert_array_equal(found.values, X)
    assert found.values.ctypes.data == array.flatten().buffers()[1].address
    assert found.usable.all()
    np.testing.assert_array_equal(vectors_of(array[1:]).values, X[1:])
    assert vectors_of(array[1:]).values.ctypes.data == found.values.ctypes.data + 8


@pytest.mark.parametrize("type_", [pa.float16(), pa.float64()])
def test_float16_and_float64_become_float32(type_: pa.DataType) -> None:
    found = vectors_of(column(X.astype(type_.to_pandas_dtype()), type_))
    assert found.values.dtype == np.float32
    np.testing.assert_array_equal(found.values, X)


def test_bfloat16_becomes_float32() -> None:
    bits = (X.view(np.uint32) >> 16).astype(np.uint16)
    inner = pa.Array.from_buffers(pa.binary(2), X.size, [None, pa.py_buffer(bits.tobytes())])
    found = vectors_of(pa.FixedSizeListArray.from_arrays(inner, 2))
    np.testing.assert_array_equal(found.values, X)
    assert found.usable.all()


def test_bytes_stay_bytes() -> None:
    array = column(np.arange(6, dtype=np.uint8).reshape(3, 2), pa.uint8())
    assert vectors_of(array).values.dtype == np.uint8
    assert has_byte_items(array.type)
    assert not has_byte_items(pa.list_(pa.float32(), 2))


def test_nulls_are_not_usable() -> None:
    array = pa.array([[1, 2], None, [3, None], [4, 5]], pa.list_(pa.float32(), 2))
    found = vectors_of(array)
    assert found.usable.tolist() == [True, False, False, True]
    np.testing.assert_array_equal(found.values[[0, 3]], [[1, 2], [4, 5]])
    assert vectors_of(array[2:]).usable.tolist() == [False, True]
    chunked = pa.chunked_array([array, array[:1]])
    assert vectors_of(chunked).usable.tolist() == [True, False, False, True, True]


@pytest.mark.parametrize(("metric", "zero"), [("l2", True), ("dot", True), ("cosine", False)])
def test_non_finite_vectors_and_zero_vectors_for_cosine_are_unusable(metric: str, zero: bool) -> None:
    values = np.array([[0, -0.0], [np.nan, 1], [np.inf, 1], [1, -np.inf], [3e38, 3e38], [1e-30, 0]], np.float32)
    found = vectors_of(column(values, pa.float32()), metric=metric)
    assert found.usable.tolist() == [zero, False, False, False, True, True]


def test_numbers_too_large_for_float32_are_unusable() -> None:
    assert vectors_of(column(np.array([[1e300, 1], [1, 1]]), pa.float64())).usable.tolist() == [False, True]


@pytest.mark.parametrize(
    "type_", [pa.list_(pa.float32()), pa.float32(), pa.list_(pa.int32(), 3), pa.list_(pa.string(), 2), pa.binary(4)]
)
def test_other_columns_are_not_vectors(type_: pa.DataType) -> None:
    assert not is_vector(type_)
    with pytest.raises(InvalidInputError, match="not a vector column"):
        vectors_of(pa.nulls(2, type_))


def test_metric_names_have_aliases() -> None:
    assert [metric_of(n) for n in ("L2", "euclidean", "Cosine", "DOT", "hamming")] == [
        "l2",
        "l2",
        "cosine",
        "dot",
        "hamming",
    ]
    for wrong in ("l1", None, 2, ""):
        with pytest.raises(InvalidInputError, match="metric"):
            metric_of(wrong)


def test_distances_follow_their_metric() -> None:
    q = np.array([[1, 0]], np.float32)
    v = np.array([[1, 0], [0, 2], [-3, 0]], np.float32)
    assert distances("l2", q, v).tolist() == [[0, 5, 16]]
    assert distances("cosine", q, v).tolist() == [[0, 1, 2]]
    assert distances("dot", q, v).tolist() == [[0, 1, 4]]
    assert distances("hamming", np.array([[0b101]], np.uint8), np.array([[0], [0b101], [255]], np.uint8)).tolist() == [
        [2, 0, 6]
    ]
    assert distances("l2", q[:0], v).shape == (0, 3)
    assert distances("l2", q, v[:0]).shape == (1, 0)


def test_vectors_of_any_size_are_normalised() -> None:
    found = normalized(np.array([[3, 4], [0, 0], [3e38, 3e38], [1e-40, 0]], np.float32))
    np.testing.assert_allclose(found, [[0.6, 0.8], [0, 0], [0.5**0.5, 0.5**0.5], [1, 0]], rtol=1e-5)
