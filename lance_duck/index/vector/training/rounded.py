"""Encodes vectors as RaBitQ rows: the bits with the smallest angle to a vector, and their factors."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.codecs.rq import Rounding
from lance_duck.kernels.vectors.rabit_encode import fit_codes

_EPSILON: Final = 1.9
"""Number of standard deviations in the error bound that searches use."""


def rounded(
    rounding: Rounding,
    vectors: NDArray[np.float32],
    centroids: NDArray[np.float32],
    partitions: NDArray[np.int64],
    metric: str,
) -> NDArray[np.uint8]:
    """Encode vectors as rows, uint8 (n, width). `index.vector.codecs.rq` describes their layout and the formulas.

    Args:
        rounding: Rounding of the vectors.
        vectors: float32 (n, dim), rotated.
        centroids: float32 (partitions, dim), rotated.
        partitions: int64 (n,), partition of each vector.
        metric: "l2", "cosine" or "dot".
    """
    with np.errstate(over="ignore"):
        near = centroids[partitions]
        residuals = vectors - near
    signs, further, numbers = _codes(rounding, residuals)
    halves = np.copysign(np.float32(0.5), numbers)
    named = _factors(residuals, near, halves, metric, of_residual=rounding.of_residual)
    factors = [named["add"], named["scale"], *([named["error"]] if rounding.has_error else [])]
    parts = [signs]
    if rounding.extra:
        named = _factors(residuals, near, numbers, metric)
        factors += [named["add"], named["scale"]]
        parts.append(further)
    return np.hstack([*parts, _held(np.stack(factors, axis=1)).view(np.uint8)])


def _codes(
    rounding: Rounding, residuals: NDArray[np.float32]
) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.float32]]:
    """Return the signs of residuals (n, dim), their further bits, and the decoded numbers.

    Codes depend only on the direction of a residual. Residuals are first scaled to a length of about 1, because
    squares of large numbers would overflow.
    """
    largest = np.abs(residuals).max(axis=1, initial=0)
    finite = np.isfinite(largest)
    _, exponents = np.frexp(np.where(finite, largest, 0))
    directions = np.ldexp(np.where(finite[:, None], residuals, 0), -exponents[:, None])
    num_signs = rounding.dim // 8
    signs = np.zeros((len(residuals), num_signs), np.uint8)
    further = np.zeros((len(residuals), num_signs * rounding.extra), np.uint8)
    numbers = np.empty((len(residuals), rounding.dim), np.float32)
    sizes = np.empty(rounding.dim, np.float32)
    fit_codes(np.ascontiguousarray(directions, np.float32), rounding.extra, sizes, numbers, signs, further)
    return signs, further, numbers


def _factors(
    residuals: NDArray[np.float32],
    centroids: NDArray[np.float32],
    codes: NDArray[np.float32],
    metric: str,
    *,
    of_residual: bool = False,
) -> dict[str, NDArray[Any]]:
    """Return the factors by name, from residuals and codes, both (n, dim). Scale and error are 0 for zero residuals."""

    def products(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float64]:
        sums: NDArray[np.float64] = np.einsum("ij,ij->i", one, other, dtype=np.float64)
        return sums

    dim = residuals.shape[1]
    squares, along = products(residuals, residuals), products(residuals, codes)
    safe = np.where(along > 0, along, 1.0)
    share = np.where(along > 0, squares / safe, 0.0)
    error = np.sqrt(np.maximum(share * dim / 4 / safe - 1, 0) / max(dim - 1, 1)) * np.sqrt(squares) * 2 * _EPSILON
    error[along <= 0] = 0
    root = np.sqrt(dim) / 2 if of_residual else 1.0
    shift = 0.0 if of_residual else share * products(centroids, codes)
    if metric == "dot":
        return {"add": 1 - products(residuals, centroids) + shift, "scale": -share * root, "error": error / 2}
    return {"add": squares + 2 * shift, "scale": -2 * share * root, "error": error}


def _held(factors: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return factors as float32, clipped to its finite range, because readers reject infinite factors."""
    largest = np.finfo(np.float32).max
    held: NDArray[np.float32] = np.clip(factors, -largest, largest).astype("<f4")
    return held
