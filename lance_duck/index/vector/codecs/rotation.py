"""Rotations of vectors before they are rounded to bits. They preserve lengths and inner products.

fast      four rounds on the d numbers of a vector. Round r takes d bits of the signs, least significant bit first, from
          byte r d / 8 on. A number changes its sign if its bit is 1. Then the first (r even) or last (r odd) 2 ** n
          numbers are replaced by their Walsh-Hadamard transform, divided by √(2 ** n). n is the largest integer with
          2 ** n <= d. If 2 ** n < d, both halves x, y of the vector then become (x + y) / √2, (x - y) / √2
matrix    the product of a matrix and the vector

Kernels rotate vectors. The result for a vector does not depend on other vectors or on the thread count.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import readonly
from lance_duck.kernels.vectors.rotate import WORK_ROWS, rotate_by_matrix, rotate_fast

ROUNDS: Final = 4
_SEED: Final = 1234


@dataclass(frozen=True, eq=False)
class Rotation:
    """A rotation of vectors.

    Attributes:
        kind: "fast" or "matrix".
        parameters: The signs, uint8 (ROUNDS * dim / 8,), or the matrix, float32 (dim, dim).
    """

    kind: Literal["fast", "matrix"]
    parameters: NDArray[Any]

    @classmethod
    def drawn(cls, dim: int) -> Rotation:
        """Return the fast rotation for a dimension. It is always the same, so that segments can be merged."""
        return cls("fast", np.random.default_rng(_SEED).integers(0, 256, ROUNDS * dim // 8, np.uint8))

    @property
    def dim(self) -> int:
        """Number of dimensions, a multiple of 8."""
        return len(self.parameters) if self.kind == "matrix" else len(self.parameters) * 8 // ROUNDS

    def of(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the rotated vectors, (n, dim), C-contiguous. Numbers are not finite if sums overflow float32."""
        rotated = np.empty((len(vectors), self.dim), np.float32)
        rows = readonly(np.ascontiguousarray(vectors, np.float32))
        assert rows.shape == rotated.shape
        if self.kind == "matrix":
            rotate_by_matrix(rows, readonly(self.parameters), rotated)
        else:
            rotate_fast(rows, self._scales, np.empty((WORK_ROWS, self.dim), np.float32), rotated)
        return rotated

    def equals(self, other: Rotation) -> bool:
        """Return whether both rotations are the same."""
        return self.kind == other.kind and np.array_equal(self.parameters, other.parameters)

    @property
    def nbytes(self) -> int:
        """Upper bound of the size in memory, in bytes."""
        return int(self.parameters.nbytes) + (4 * ROUNDS * self.dim if self.kind == "fast" else 0)

    @cached_property
    def _scales(self) -> NDArray[np.float32]:
        return readonly(scales(self.parameters, self.dim))


def scales(signs: NDArray[np.uint8], dim: int) -> NDArray[np.float32]:
    """Return the factors that multiply the numbers of a vector before each round: float32 (ROUNDS, dim).

    They combine the signs with the divisor of the transform. Dividing first keeps sums of large numbers finite.
    """
    result = (1 - 2 * np.unpackbits(signs, bitorder="little").reshape(ROUNDS, dim).astype(np.int8)).astype(np.float32)
    for number, row in enumerate(result):
        row[_transformed_part(number, dim)] *= np.float32(1 / np.sqrt(_transformed_size(dim)))
    return result


def transformed(vectors: NDArray[np.float32], signs: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Rotate vectors (n, dim) by the steps of a fast rotation: the reference implementation of the kernel."""
    dim = vectors.shape[1]
    result = vectors
    for number, scale in enumerate(scales(signs, dim)):
        result = result * scale
        part = _transformed_part(number, dim)
        result[:, part] = _walsh_hadamard(np.ascontiguousarray(result[:, part]))
        if _transformed_size(dim) != dim:
            one, other = result[:, : dim // 2], result[:, dim // 2 :]
            result = np.hstack([one + other, one - other]) * np.float32(np.sqrt(0.5))
    return result


def _transformed_size(dim: int) -> int:
    return 1 << (dim.bit_length() - 1)


def _transformed_part(number: int, dim: int) -> slice:
    """Return the range of dimensions that a round transforms."""
    size = _transformed_size(dim)
    return slice(0, size) if number % 2 == 0 else slice(dim - size, dim)


def _walsh_hadamard(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the unnormalised Walsh-Hadamard transform of rows of 2 ** n numbers."""
    count, size = values.shape
    width = 1
    while width < size:
        pairs = values.reshape(count, size // (2 * width), 2, width)
        one, other = pairs[:, :, 0], pairs[:, :, 1]
        values = np.stack([one + other, one - other], axis=2).reshape(count, size)
        width *= 2
    return values
