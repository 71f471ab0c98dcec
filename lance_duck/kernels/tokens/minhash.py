"""Kernels of MinHash: hashes of shingles, band keys of documents, and common shingles of pairs.

A shingle is a run of tokens of one document, joined by the byte 1F.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.keys.xxhash import hash_of
from lance_duck.kernels.memory import Bytes

UInt64s = NDArray[np.uint64]
Int64s = NDArray[np.int64]

_SEED = np.uint64(42)
_MOST = np.uint64(2**64 - 1)
_HASH_BITS = np.uint64(2**56 - 1)
_SEPARATOR = np.uint8(0x1F)


@kernel
def shingle_hashes(
    terms: Bytes,
    starts: Int64s,
    tokens: NDArray[np.uint32],
    bounds: Int64s,
    size: int,
    scratch: Bytes,
    first: Int64s,
    hashes: UInt64s,
) -> bool:
    """Hash the shingles of documents. Returns False if an argument does not match the others.

    Args:
        terms: Bytes of all terms.
        starts: Offset of each term in `terms`, and the end of the last one.
        tokens: Term of each token, document by document.
        bounds: First token of each document, and the token count.
        size: Number of tokens of a shingle. A document with fewer tokens has one shingle.
        scratch: At least as long as the longest shingle.
        first: First shingle of each document, and the shingle count.
        hashes: Output.
    """
    if bounds[len(bounds) - 1] > len(tokens) or len(first) != len(bounds) or first[len(first) - 1] > len(hashes):
        return False
    for document in range(len(bounds) - 1):
        stop = bounds[document + 1]
        for number in range(first[document + 1] - first[document]):
            at = np.int64(0)
            begin = bounds[document] + number
            for token in range(begin, min(begin + size, stop)):
                term = np.int64(tokens[token])
                if term + 1 >= len(starts) or starts[term] < 0 or starts[term + 1] > len(terms):
                    return False
                length = starts[term + 1] - starts[term]
                if at + length + 1 > len(scratch):
                    return False
                if token > begin:
                    scratch[at] = _SEPARATOR
                    at += 1
                for place in range(length):
                    scratch[at + place] = terms[starts[term] + place]
                at += length
            hashes[first[document] + number] = hash_of(scratch, np.int64(0), at, _SEED)
    return True


@kernel
def band_keys(
    hashes: UInt64s,
    first: Int64s,
    factors: UInt64s,
    addends: UInt64s,
    finals: UInt64s,
    least: UInt64s,
    band: Bytes,
    keys: NDArray[np.uint64],
) -> bool:
    """Compute the key of each band of documents. Returns False if an argument does not match the others.

    Args:
        hashes: Hashes of the shingles, document by document.
        first: First shingle of each document, and the shingle count. Each document has a shingle.
        factors: Coefficients a of the hash functions.
        addends: Coefficients b.
        finals: Coefficients c.
        least: As long as the coefficients, overwritten.
        band: Two bytes for each value of a band, overwritten.
        keys: Output, (documents, bands).
    """
    rows, count = len(band) // 2, len(factors)
    if first[len(first) - 1] > len(hashes) or len(keys) != len(first) - 1 or rows * keys.shape[1] != count:
        return False
    if len(addends) != count or len(finals) != count or len(least) != count:
        return False
    for document in range(len(first) - 1):
        for i in range(count):
            least[i] = _MOST
        for shingle in range(first[document], first[document + 1]):
            x = hashes[shingle]
            for i in range(count):
                least[i] = min(least[i], factors[i] * x + addends[i])
        for number in range(keys.shape[1]):
            for row in range(rows):
                i = number * rows + row
                value: Any = (finals[i] * least[i]) >> np.uint64(48)
                band[2 * row] = np.uint8(value & np.uint64(0xFF))
                band[2 * row + 1] = np.uint8(value >> np.uint64(8))
            value = hash_of(band, np.int64(0), np.int64(2 * rows), _SEED)
            keys[document, number] = np.uint64(number) << np.uint64(56) | value & _HASH_BITS
    return True


@kernel
def common_counts(hashes: UInt64s, first: Int64s, left: Int64s, right: Int64s, counts: NDArray[np.int64]) -> bool:
    """Count the common shingles of pairs of documents. Returns False if a document does not exist.

    Args:
        hashes: Distinct hashes of the shingles of each document, ascending, document by document.
        first: First shingle of each document, and the shingle count.
        left: The first document of each pair.
        right: The second one.
        counts: Output.
    """
    documents = len(first) - 1
    if first[documents] > len(hashes) or len(right) != len(left) or len(counts) != len(left):
        return False
    for pair in range(len(left)):
        if not (0 <= left[pair] < documents and 0 <= right[pair] < documents):
            return False
        i, i_stop = first[left[pair]], first[left[pair] + 1]
        j, j_stop = first[right[pair]], first[right[pair] + 1]
        count = 0
        while i < i_stop and j < j_stop:
            if hashes[i] == hashes[j]:
                count += 1
                i += 1
                j += 1
            elif hashes[i] < hashes[j]:
                i += 1
            else:
                j += 1
        counts[pair] = count
    return True
