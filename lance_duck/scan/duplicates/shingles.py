"""Texts as sets of shingles, and their band keys."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.errors import InternalError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.tokens.minhash import band_keys, common_counts, shingle_hashes
from lance_duck.scan.duplicates.parameters import MinHashParameters
from lance_duck.text.analyser import Analyser

Int64s = NDArray[np.int64]
UInt64s = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class ShingledTexts:
    """The distinct shingles of texts, as ascending hashes. Texts without tokens have none.

    Attributes:
        hashes: Hashes of the shingles, text by text; uint64.
        first: First shingle of each text, and the shingle count; int64.
    """

    hashes: UInt64s
    first: Int64s

    @property
    def sizes(self) -> Int64s:
        """Number of shingles of each text."""
        return np.diff(self.first)

    @cached_property
    def digests(self) -> UInt64s:
        """A digest of each set of shingles, uint64 (texts, 3)."""
        columns = [self.sizes.astype(np.uint64)]
        for factor in (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F):
            mixed = (self.hashes ^ self.hashes >> np.uint64(31)) * np.uint64(factor)
            sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed ^ mixed >> np.uint64(29), dtype=np.uint64)])
            columns.append(sums[self.first[1:]] - sums[self.first[:-1]])
        return np.stack(columns, axis=1)

    def common(self, left: Int64s, right: Int64s) -> Int64s:
        """Return the number of common shingles of each pair of texts."""
        counts = np.empty(len(left), np.int64)
        if not common_counts(readonly(self.hashes), readonly(self.first), readonly(left), readonly(right), counts):
            raise InternalError("a pair names a text that does not exist")
        return counts


class Shingler:
    """Turns texts into shingles and band keys.

    Args:
        parameters: How texts are signed.
    """

    def __init__(self, parameters: MinHashParameters) -> None:
        self._size = parameters.shingle_size
        self._bands = parameters.num_bands
        self._analyser = Analyser(parameters.analyser)
        self._coefficients = tuple(map(readonly, parameters.coefficients))

    def shingles(self, texts: pa.Array | pa.ChunkedArray) -> ShingledTexts:
        """Return the shingles of texts."""
        return _distinct(*self._hashed(texts))

    def signed(self, texts: pa.Array) -> tuple[NDArray[np.bool_], UInt64s]:
        """Return a mask of the texts with a shingle, and their band keys, uint64 (texts with a shingle, bands)."""
        hashes, sizes = self._hashed(texts)
        has_text = sizes > 0
        return has_text, self._keys(hashes, np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[has_text])]))

    def _hashed(self, texts: pa.Array | pa.ChunkedArray) -> tuple[UInt64s, Int64s]:
        """Return the hashes of all shingles, text by text, and their number in each text."""
        tokens = self._analyser.analyse(texts)
        counts = np.diff(tokens.bounds)
        sizes = np.where(counts > 0, np.maximum(counts - self._size + 1, 1), 0)
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        starts = np.frombuffer(tokens.terms.buffers()[1] or b"", np.int64, len(tokens.terms) + 1, 0)
        if tokens.terms.offset:
            raise InternalError("terms begin inside a buffer")
        data = np.frombuffer(tokens.terms.buffers()[2] or b"", np.uint8)
        longest = int(np.diff(starts).max(initial=0)) + 1
        hashes = np.empty(int(first[-1]), np.uint64)
        scratch = np.empty(self._size * longest + 8, np.uint8)
        arrays = (readonly(data), readonly(starts), readonly(tokens.term_ids), readonly(tokens.bounds))
        if not shingle_hashes(*arrays, self._size, scratch, readonly(first), hashes):
            raise InternalError("tokens do not match their terms")
        return hashes, sizes

    def _keys(self, hashes: UInt64s, first: Int64s) -> UInt64s:
        a, b, c = self._coefficients
        keys = np.empty((len(first) - 1, self._bands), np.uint64)
        least, band = np.empty(len(a), np.uint64), np.empty(2 * (len(a) // self._bands), np.uint8)
        if not band_keys(readonly(hashes), readonly(first), a, b, c, least, band, keys):
            raise InternalError("signatures do not match their parameters")
        return keys


def _distinct(hashes: UInt64s, sizes: Int64s) -> ShingledTexts:
    owners = np.repeat(np.arange(len(sizes)), sizes)
    order = np.lexsort((hashes, owners))
    hashes, owners = hashes[order], owners[order]
    is_new = np.ones(len(hashes), np.bool_)
    is_new[1:] = (hashes[1:] != hashes[:-1]) | (owners[1:] != owners[:-1])
    counts = np.bincount(owners[is_new], minlength=len(sizes))
    return ShingledTexts(hashes[is_new], np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]))
