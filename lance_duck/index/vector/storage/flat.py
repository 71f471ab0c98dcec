"""Flat storage: uncompressed vectors, as float32; for cosine normalised.

flat    fixed_size_list<float, dim>, partition after partition

Each form of storage is a module.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.storage.files import VectorFiles


def flat_lists(files: VectorFiles, quantizer: Any, metric: int) -> Any:
    """Return a faiss index with empty lists of vectors.

    Args:
        files: Files of a segment with flat storage.
        quantizer: faiss index of the centroids; must outlive the result.
        metric: faiss.METRIC_L2 or faiss.METRIC_INNER_PRODUCT.
    """
    return faiss.IndexIVFFlat(quantizer, files.dim, files.num_partitions, metric)


def flat_bytes(codes: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Return vectors (n, dim) in the byte layout of faiss, (n, code size), C-contiguous."""
    raw: NDArray[np.uint8] = np.ascontiguousarray(codes, np.float32).view(np.uint8)
    return raw
