"""Kernels rotate each vector bit-identically to the plain reference, alone and in batches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_duck.index.vector.codecs.rotation import Rotation, transformed
from lance_duck.kernels.vectors.rotate import sum_weights

dims = st.integers(1, 40).map(lambda eighths: 8 * eighths)


def vectors_of(rows: int, dim: int, seed: int) -> np.ndarray:
    """Vectors of any length, with zeros among the numbers."""
    rng = np.random.default_rng(seed)
    lengths = 10.0 ** rng.integers(-30, 30, (rows, 1))
    return (rng.standard_normal((rows, dim)) * lengths * (rng.random((rows, dim)) < 0.9)).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(dim=dims, rows=st.integers(0, 5), seed=st.integers(0, 1 << 30))
def test_a_fast_rotation_equals_the_reference(dim: int, rows: int, seed: int) -> None:
    signs = np.random.default_rng(seed).integers(0, 256, dim // 2, np.uint8)
    vectors = vectors_of(rows, dim, seed)
    np.testing.assert_array_equal(Rotation("fast", signs).of(vectors), transformed(vectors, signs))


@pytest.mark.parametrize("dim", [128, 768, 1536, 2560])
@pytest.mark.parametrize("kind", ["fast", "matrix"])
def test_batched_rotations_are_bit_identical(kind: str, dim: int) -> None:
    matrix = np.random.default_rng(1).standard_normal((dim, dim)).astype(np.float32)
    rotation = Rotation.drawn(dim) if kind == "fast" else Rotation("matrix", matrix)
    vectors = vectors_of(37, dim, 2)
    together = rotation.of(vectors)
    for i in range(len(vectors)):
        np.testing.assert_array_equal(rotation.of(vectors[i : i + 1])[0], together[i])
    for size in (2, 3, 16):
        np.testing.assert_array_equal(rotation.of(vectors[-size:]), together[-size:])


@settings(max_examples=40, deadline=None)
@given(dim=dims, rows=st.integers(0, 5), seed=st.integers(0, 1 << 30))
def test_a_matrix_is_multiplied_by_each_vector(dim: int, rows: int, seed: int) -> None:
    matrix = np.random.default_rng(seed).standard_normal((dim, dim)).astype(np.float32)
    vectors = vectors_of(rows, dim, seed)
    expected = vectors.astype("f8") @ matrix.T.astype("f8")
    error = 1e-6 * dim * np.abs(vectors).max(axis=1, initial=0, keepdims=True)
    assert (np.abs(Rotation("matrix", matrix).of(vectors) - expected) <= error + 1e-37).all()


def test_numbers_near_the_float_limit_stay_finite() -> None:
    """As they do in a product with a matrix: a rotation leaves lengths as they are."""
    vectors = np.full((2, 256), 2e37, np.float32)
    vectors[1, 1:] = 0
    rotated = Rotation.drawn(256).of(vectors).astype("f8")
    np.testing.assert_allclose(np.linalg.norm(rotated, axis=1), [2e37 * 16, 2e37], rtol=1e-5)


@settings(max_examples=40, deadline=None)
@given(width=st.integers(0, 60), rows=st.integers(0, 9), seed=st.integers(0, 1 << 30))
def test_weights_of_set_bits_are_summed(width: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    bits, weights = rng.integers(0, 256, (rows, width), np.uint8), rng.standard_normal(8 * width).astype(np.float32)
    sums = np.empty(rows, np.float32)
    sum_weights(bits, weights, sums)
    expected = np.unpackbits(bits, axis=1, bitorder="little") @ weights.astype("f8")
    np.testing.assert_allclose(sums, expected, rtol=1e-4, atol=1e-4)
    alone = np.empty(1, np.float32)
    for i in range(rows):
        sum_weights(bits[i : i + 1], weights, alone)
        assert alone[0] == sums[i]
