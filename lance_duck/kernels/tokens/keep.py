"""Kernel that replaces words with their terms and drops tokens whose word does not have a term."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.tokens.words import LONG

DROPPED = LONG


@kernel
def keep_tokens(
    ids: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    terms: NDArray[np.uint32],
    has_positions: bool,
    positions: NDArray[np.uint32],
    new_bounds: NDArray[np.int64],
) -> int:
    """Overwrite `ids` with the terms of the kept tokens, in order.

    Args:
        ids: Word of each token, or LONG; overwritten.
        bounds: Number of tokens before each string, and the total, which is len(ids).
        terms: Term of each word, or DROPPED.
        has_positions: Whether to write token positions. If False, zeros are written.
        positions: Output: position of each kept token in its string. Has room for all tokens.
        new_bounds: Output: number of kept tokens before each string. Has the length of `bounds`.

    Returns:
        Number of kept tokens, or -1 if `bounds` does not ascend or a word is not in `terms`.
    """
    count = 0
    new_bounds[0] = 0
    for text in range(len(bounds) - 1):
        begin, end = bounds[text], bounds[text + 1]
        if begin < 0 or end < begin or end > len(ids):
            return -1
        for i in range(begin, end):
            word = np.int64(ids[i])
            if word == LONG:
                continue
            if word >= len(terms):
                return -1
            term = terms[word]
            if term != DROPPED:
                ids[count] = term
                positions[count] = i - begin if has_positions else 0
                count += 1
        new_bounds[text + 1] = count
    return count


def keep_tokens_reference(
    ids: NDArray[np.uint32],
    bounds: NDArray[np.int64],
    terms: NDArray[np.uint32],
    has_positions: bool,
    positions: NDArray[np.uint32],
    new_bounds: NDArray[np.int64],
) -> int:
    """Reference implementation in numpy."""
    of_tokens = np.append(terms, np.uint32(DROPPED))[np.minimum(ids, len(terms))]
    places = np.arange(len(ids)) - np.repeat(bounds[:-1], np.diff(bounds))
    keep = of_tokens != DROPPED
    count = int(keep.sum())
    ids[:count] = of_tokens[keep]
    positions[:count] = places[keep] if has_positions else 0
    new_bounds[:] = np.concatenate([[0], np.cumsum(keep)])[bounds]
    return count
