"""Scalar quantisation: each number as one byte, between two bounds that all numbers share.

    __sq_code    fixed_size_list<uint8, dim>, partition after partition; code c is 255 (x - start) / (end - start),
                 truncated, so it stands for the numbers from start + c (end - start) / 255 up to that of c + 1
    metadata     {"dim", "num_bits": 8, "bounds": {"start", "end"}}

faiss encodes in the same way, and decodes to the middle of these numbers, vmin + (c + 1/2) / 255 vdiff, where vmin is
start and vdiff is end - start.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_duck.index.vector.library import faiss
from lance_duck.index.vector.storage.files import VectorFiles


def scalar_lists(files: VectorFiles, quantizer: Any, metric: int) -> Any:
    """Return a faiss index with empty lists of codes; arguments as for `flat.flat_lists`."""
    kind = faiss.ScalarQuantizer.QT_8bit_uniform
    index = faiss.IndexIVFScalarQuantizer(quantizer, files.dim, files.num_partitions, kind, metric, False)
    faiss.copy_array_to_vector(faiss_bounds(*files.bounds), index.sq.trained)
    return index


def faiss_bounds(start: float, end: float) -> Any:
    """Return the trained state of faiss's QT_8bit_uniform for bounds of Lance: float32 [vmin, vdiff]."""
    return np.array([start, end - start], np.float32)
