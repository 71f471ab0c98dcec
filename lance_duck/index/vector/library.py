"""The import of faiss, the slowest of all: only modules that call faiss import this one."""

from __future__ import annotations

import warnings
from typing import Any, cast

# SWIG's types warn when they are created: where warnings are errors, older versions of faiss crash the process.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import faiss

__all__ = ["faiss", "queries_without_products"]


def queries_without_products(dim: int) -> int:
    """Return how many queries of `dim` numbers faiss compares with vectors one by one, at least 1.

    For more at once it multiplies matrices, and loses the distances of vectors far from zero in rounding.
    """
    numbers = int(cast("Any", faiss).cvar.distance_compute_blas_threshold)  # of all queries together, since 1.14.2
    return max((numbers - 1) // dim, 1)
