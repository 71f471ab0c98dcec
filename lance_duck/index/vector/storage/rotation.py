"""Rotations of vectors before they are rounded to bits; they preserve lengths and inner products.

fast      four rounds; round r takes d bits of the signs, least bit first, from byte r d / 8 on: where a bit is 1, the
          number changes its sign. Then the first (r even) or last (r odd) 2 ** n numbers, n as large as fits in d, go
          through a Walsh-Hadamard transform, divided by the root of their number; if these were not all numbers, both
          halves x, y of the vector become (x + y) / √2, (x - y) / √2
matrix    the product of a matrix and the vector
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.costs import MATRIX_DIMENSIONS

ROUNDS: Final = 4
_SEED: Final = 1234


@dataclass(frozen=True, eq=False)
class Rotation:
    """A rotation of vectors.

    Attributes:
        kind: "fast" or "matrix".
        parameters: uint8 (ROUNDS * dim / 8,): the signs; or float32 (dim, dim): the matrix.
    """

    kind: Literal["fast", "matrix"]
    parameters: NDArray[Any]

    @classmethod
    def drawn(cls, dim: int) -> Rotation:
        """Return the fast rotation of a dimension, always the same, so that segments with it can be merged."""
        return cls("fast", np.random.default_rng(_SEED).integers(0, 256, ROUNDS * dim // 8, np.uint8))

    @property
    def dim(self) -> int:
        """Numbers of a vector, a multiple of 8."""
        return len(self.parameters) if self.kind == "matrix" else len(self.parameters) * 8 // ROUNDS

    @np.errstate(over="ignore", invalid="ignore")
    def of(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the rotated vectors, (n, dim), C-contiguous; not finite where sums exceed float32."""
        matrix = self._matrix
        if matrix is None:
            return np.ascontiguousarray(transformed(vectors, self.parameters), np.float32)
        return np.ascontiguousarray(vectors @ matrix.T)

    def equals(self, other: Rotation) -> bool:
        """Return whether another rotation is the same."""
        return self.kind == other.kind and np.array_equal(self.parameters, other.parameters)

    @property
    def nbytes(self) -> int:
        """Upper bound of the bytes in memory."""
        return int(self.parameters.nbytes) + (4 * self.dim**2 if self.dim <= MATRIX_DIMENSIONS else 0)

    @cached_property
    def _matrix(self) -> NDArray[np.float32] | None:
        """Matrix of the rotation; None if the steps of a fast rotation take less time."""
        if self.kind == "matrix":
            return self.parameters
        if self.dim > MATRIX_DIMENSIONS:
            return None
        rows = transformed(np.eye(self.dim), self.parameters).T
        return np.ascontiguousarray(rows, np.float32)


def transformed(vectors: NDArray[Any], signs: NDArray[np.uint8]) -> NDArray[Any]:
    """Rotate vectors (n, dim) by the steps of a fast rotation."""
    dim = vectors.shape[1]
    size = 1 << (dim.bit_length() - 1)
    flips = 1 - 2 * np.unpackbits(signs, bitorder="little").reshape(ROUNDS, dim).astype(np.int8)
    result = vectors
    for number, flip in enumerate(flips):
        result = result * flip
        part = slice(0, size) if number % 2 == 0 else slice(dim - size, dim)
        result[:, part] = _walsh_hadamard(np.ascontiguousarray(result[:, part]))
        if size != dim:
            one, other = result[:, : dim // 2], result[:, dim // 2 :]
            result = np.hstack([one + other, one - other]) * result.dtype.type(np.sqrt(0.5))
    return result


def _walsh_hadamard(values: NDArray[Any]) -> NDArray[Any]:
    """Return the orthonormal Walsh-Hadamard transform of rows of 2 ** n numbers."""
    count, size = values.shape
    width = 1
    while width < size:
        pairs = values.reshape(count, -1, 2, width)
        one, other = pairs[:, :, 0], pairs[:, :, 1]
        values = np.stack([one + other, one - other], axis=2).reshape(count, size)
        width *= 2
    scaled: NDArray[Any] = values * values.dtype.type(1 / np.sqrt(size))
    return scaled
