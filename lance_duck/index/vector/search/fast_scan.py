"""faiss's fast scan of 4-bit PQ codes and of RQ codes with 1 bit. The processor compares 32 codes at once.

Four bits of a code are looked up in a table of 16 distances, which fits a register.

The lookup tables of a query have one byte per entry, scaled over the partitions that are searched. Distances are
therefore less precise than the codes. The result for a query does not depend on other queries in the batch.

A block has 32 codes. For each byte of a code, which holds two sub-vectors or eight signs, a block has 16 bytes with the
low halves of all codes, then 16 bytes with the high halves. A byte holds the halves of codes `_ORDER[i]` and
`_ORDER[i]` + 16. With RQ, the factors of the 32 codes follow.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.codecs.rq import QUERY_BITS
from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.metric import has_residual
from lance_duck.index.vector.open import VectorFiles

BLOCK: Final = 32
_FAISS: Final[Any] = faiss  # faiss's stubs are incomplete
_ORDER: Final = np.array([0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15])


def has_fast_scan(files: VectorFiles) -> bool:
    """Return whether the codes of a segment without graphs are scanned by lookups in registers."""
    return files.bits == 4 if files.rounding is None else files.rounding.bits == 1


def fast_lists(files: VectorFiles, quantizer: Any, metric: int) -> Any:
    """Return a faiss index with empty lists, for blocks of codes.

    Args:
        files: Files of a segment for which `has_fast_scan` is true.
        quantizer: faiss index of the centroids. It must outlive the result.
        metric: faiss.METRIC_L2 or faiss.METRIC_INNER_PRODUCT.
    """
    if files.rounding is not None:
        rounded = _FAISS.IndexIVFRaBitQFastScan(quantizer, files.dim, files.num_partitions, metric, BLOCK, False, 1)
        rounded.qb = QUERY_BITS
        return rounded
    parts = len(files.codebook)
    index = faiss.IndexIVFPQFastScan(quantizer, files.dim, files.num_partitions, parts, files.bits, metric, BLOCK)
    index.by_residual = has_residual(files.metric)
    faiss.copy_array_to_vector(files.codebook.reshape(-1), index.pq.centroids)
    index.use_precomputed_table = -1
    return index


def block_lists(index: Any) -> Any:
    """Return empty lists of `packed_blocks`, for a result of `fast_lists`."""
    packer = index.get_CodePacker()
    packer.thisown = False  # the lists own it
    return _FAISS.BlockInvertedLists(index.nlist, packer)


def rounded_blocks(codes: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """Return RQ codes with 1 bit in blocks, uint8 (blocks, bytes of 32 codes). The last block is padded with zeros.

    Args:
        codes: uint8 (n, bytes of a code), from `rabit_bytes`.
        width: Bytes of the signs, which precede the factors.
    """
    signs = packed_blocks(codes[:, :width])
    factors = np.zeros((len(signs) * BLOCK, codes.shape[1] - width), np.uint8)
    factors[: len(codes)] = codes[:, width:]
    return np.ascontiguousarray(np.hstack([part.reshape(len(signs), -1) for part in (signs, factors)]))


def packed_blocks(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return codes in blocks, uint8 (blocks, bytes of a code, 2, 16). The last block is padded with zeros.

    Args:
        codes: uint8 (n, bytes of a code).
    """
    count = -(-len(codes) // BLOCK)
    padded = np.zeros((count * BLOCK, codes.shape[1]), np.uint8)
    padded[: len(codes)] = codes
    first, second = padded.reshape(count, 2, 16, -1).transpose(1, 0, 3, 2)[..., _ORDER]
    return np.ascontiguousarray(np.stack([first & 15 | second << 4, first >> 4 | second & 240], axis=2))
