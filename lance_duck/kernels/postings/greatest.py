"""A kernel that finds the greatest score in each block of postings, by the statistics of its own partition."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.postings.scores import SATURATION


@kernel
def find_greatest(
    bounds: NDArray[np.int64],
    ids: NDArray[np.uint32],
    frequencies: NDArray[np.uint32],
    weights: NDArray[np.float32],
    norms: NDArray[np.float32],
    block_size: int,
    out: NDArray[np.float32],
) -> int:
    """Find the greatest score of each block, in float32, operation by operation.

    Args:
        bounds: Where the postings of each term begin, and where the last one's end; ascending, within `ids`.
        ids: (postings,), documents.
        frequencies: (postings,), at least 1.
        weights: The idf of each term.
        norms: Norm of each document.
        block_size: Number of postings of a block.
        out: Written: one for each block.

    Returns:
        Number of blocks; -1 if `out` is too small or an id is out of range.
    """
    block = 0
    for term in range(len(bounds) - 1):
        weight = np.float32(weights[term] * SATURATION)
        for place in range(bounds[term], bounds[term + 1], block_size):
            if block >= len(out):
                return -1
            best = np.float32(0)
            for i in range(place, min(place + block_size, bounds[term + 1])):
                if np.int64(ids[i]) >= len(norms):
                    return -1
                count = np.float32(frequencies[i])
                best = max(best, np.float32(count / np.float32(count + norms[ids[i]])))
            out[block] = np.float32(weight * best)
            block += 1
    return block
