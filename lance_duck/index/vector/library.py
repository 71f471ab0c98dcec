"""Imports faiss, the slowest import of all. Only modules that call faiss import this one."""

from __future__ import annotations

import warnings
from typing import Any, cast

# SWIG's types warn when they are created: where warnings are errors, older versions of faiss crash the process.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import faiss

__all__ = ["faiss", "queries_without_products"]


def queries_without_products(dim: int) -> int:
    """Return the largest batch of queries that faiss compares without matrix products, at least 1.

    Matrix products lose precision for vectors far from zero, because distances cancel out.
    """
    numbers = int(cast("Any", faiss).cvar.distance_compute_blas_threshold)  # of all queries together, since 1.14.2
    return max((numbers - 1) // dim, 1)
