"""RaBitQ encoding: vectors as signs and extra bits, with the scale that preserves their direction best.

A number x is encoded as its sign and u, the integer part of |x| times a scale, at most 2 ** bits - 1. It decodes to
u + 1 / 2 with the sign of x. For negative numbers, the extra bits encode 2 ** bits - 1 - u. The kernel tries a range of
scales, and refines the best scale with ever smaller steps in both directions. The angle between a vector and its code
is as small as in faiss, which tries every scale. `tests/unit/kernels/vectors` compares both.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import summing_kernel

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

_FIRST: Final = 0.4  # first scale, relative to the scale at which the largest number just fits
_STEP: Final = 1.3
_STEPS: Final = 14
_HALVINGS: Final = 4


@summing_kernel
def fit_codes(vectors: Floats, bits: int, sizes: Floats, codes: Floats, signs: Bytes, further: Bytes) -> None:
    """Encode vectors.

    Args:
        vectors: float32 (n, dim), finite.
        bits: Number of extra bits for each number, 0 to 8.
        sizes: float32 (dim,), scratch space.
        codes: float32 (n, dim), output: the decoded numbers, with signs.
        signs: uint8 (n, dim / 8), initially 0. Output: bits of non-negative numbers are set, lowest bit first.
        further: uint8 (n, dim * bits / 8), initially 0. Output: extra bits, number by number, lowest bit first.
    """
    dim = vectors.shape[1]
    largest_code = (np.int64(1) << bits) - 1
    top, half = np.float32(largest_code), np.float32(0.5)
    for i in range(len(vectors)):
        largest = np.float32(0)
        for j in range(dim):
            sizes[j] = abs(vectors[i, j])
            largest = max(largest, sizes[j])
        best, best_scale, step = np.float32(-1), np.float32(0), np.float32(_STEP)
        scale = np.float32(_FIRST) * (top + np.float32(1)) / largest if largest > 0 else np.float32(0)
        for trial in range(_STEPS + 2 * _HALVINGS):
            if trial >= _STEPS:
                if (trial - _STEPS) % 2 == 0:
                    step = np.sqrt(step)
                    scale = best_scale / step
                else:
                    scale = scale * step * step
            along, square = np.float32(0), np.float32(0)
            for j in range(dim):
                code = min(np.float32(np.int32(sizes[j] * scale)), top) + half
                along += sizes[j] * code
                square += code * code
            if along * along / square > best:
                best, best_scale = along * along / square, scale
            if trial < _STEPS:
                scale *= step
        place = 0
        for j in range(dim):
            number = np.int64(min(np.float32(np.int32(sizes[j] * best_scale)), top))
            codes[i, j] = np.float32(number) + half
            if vectors[i, j] >= 0:
                signs[i, j >> 3] |= np.uint8(1 << (j & 7))
            else:
                codes[i, j] = -codes[i, j]
                number = largest_code - number
            for bit in range(bits):
                further[i, place >> 3] |= np.uint8(((number >> bit) & 1) << (place & 7))
                place += 1
