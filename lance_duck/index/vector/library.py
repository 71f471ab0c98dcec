"""Imports faiss, which is the slowest import of this package. Only modules that call faiss import this module."""

from __future__ import annotations

import warnings
from typing import Any, cast

# SWIG issues warnings when it creates types. If warnings are errors, older versions of faiss crash the process.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import faiss

__all__ = ["faiss", "queries_without_products"]


def queries_without_products(dim: int) -> int:
    """Return the size of the largest query batch that faiss compares without matrix products, at least 1.

    For vectors far from zero, matrix products lose precision by cancellation.
    """
    numbers = int(cast("Any", faiss).cvar.distance_compute_blas_threshold)  # for all queries of a call
    return max((numbers - 1) // dim, 1)
