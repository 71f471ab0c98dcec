"""RaBitQ codes are as accurate as those that faiss finds with every scale."""

from __future__ import annotations

from collections.abc import Callable

import faiss
import numpy as np
import pytest

from lance_duck.kernels.vectors.rabit_encode import fit_codes

DIM = 64
SHAPES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "normal": lambda rng: rng.standard_normal((200, DIM)),
    "few numbers": lambda rng: rng.standard_normal((200, DIM)) * (rng.random((200, DIM)) < 0.1),
    "a large number": lambda rng: rng.standard_t(2, (200, DIM)),
}


def fitted(vectors: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    codes, sizes = np.empty_like(vectors), np.empty(DIM, np.float32)
    signs = np.zeros((len(vectors), DIM // 8), np.uint8)
    further = np.zeros((len(vectors), DIM // 8 * bits), np.uint8)
    fit_codes(vectors, bits, sizes, codes, signs, further)
    return codes, signs, further


def numbers_of(signs: np.ndarray, further: np.ndarray, bits: int) -> np.ndarray:
    """Return the numbers of codes as defined in `index.vector.codecs.rq`."""
    ones = np.unpackbits(signs, axis=1, bitorder="little").astype(np.float32)
    places = np.unpackbits(further, axis=1, bitorder="little").reshape(len(signs), DIM, bits)
    return ones * 2**bits + (places * (1 << np.arange(bits))).sum(axis=2) - (2**bits - 0.5)


def by_faiss(vectors: np.ndarray, bits: int) -> np.ndarray:
    origin = faiss.IndexFlatL2(DIM)
    origin.add(np.zeros((1, DIM), np.float32))
    index = faiss.IndexIVFRaBitQ(origin, DIM, 1, faiss.METRIC_L2, True, bits + 1)
    index.is_trained = True
    codes, lists = np.empty((len(vectors), index.code_size), np.uint8), np.zeros(len(vectors), np.int64)
    index.encode_vectors(len(vectors), *map(faiss.swig_ptr, (vectors, lists, codes)))
    first = DIM // 8 + 12
    return numbers_of(codes[:, : DIM // 8], codes[:, first : first + DIM // 8 * bits], bits)


def angle(vectors: np.ndarray, codes: np.ndarray) -> float:
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(codes, axis=1)
    return float(np.mean(1 - np.einsum("ij,ij->i", vectors, codes) / np.where(lengths, lengths, 1)))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bits", [1, 2, 4, 8])
def test_codes_are_as_accurate_as_those_of_faiss(shape: str, bits: int) -> None:
    vectors = SHAPES[shape](np.random.default_rng(bits)).astype(np.float32)
    codes, signs, further = fitted(vectors, bits)
    assert np.array_equal(numbers_of(signs, further, bits), codes)
    assert angle(vectors, codes) <= 1.005 * angle(vectors, by_faiss(vectors, bits))


def test_a_zero_vector_has_the_smallest_code_and_positive_signs() -> None:
    codes, signs, further = fitted(np.zeros((2, DIM), np.float32), 3)
    assert (codes == 0.5).all()
    assert (signs == 255).all()
    assert not further.any()


def test_without_further_bits_codes_are_signs() -> None:
    vectors = np.random.default_rng(0).standard_normal((5, DIM)).astype(np.float32)
    codes, signs, _ = fitted(vectors, 0)
    assert np.array_equal(codes, np.copysign(np.float32(0.5), vectors))
    assert np.array_equal(np.unpackbits(signs, axis=1, bitorder="little"), vectors >= 0)
