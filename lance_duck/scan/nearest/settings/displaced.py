"""Queries for indexes with graphs: rows displaced by the distance to their nearest neighbour.

A graph has an edge from a row to its own neighbours, so that a walk finds these more easily than those of a vector that
is like the rows, but none of them, as most queries are. Of 20,000 vectors of 24 uniform numbers a walk of 20 candidates
finds 0.882 of the neighbours of such vectors, 0.985 of those of rows, and 0.888 of those of displaced rows
(`benchmarks/graph_recall.py --walks`). A row with a twin stays where it is: queries have twins, too, then.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.index.vector.metric import normalized
from lance_duck.index.vector.vectors import usable_rows

Vectors = NDArray[Any]
Int64s = NDArray[np.int64]


def displaced(rows: Vectors, which: Int64s, others: Vectors, metric: str, rng: np.random.Generator) -> Vectors:
    """Displace rows, each in a direction drawn by chance, by the distance to the nearest of some others.

    For cosine and dot, whose order does not depend on the length of a query, the distance is that between directions.
    A row with which no other is compared stays where it is, and so does one that would leave what numbers can express.

    Args:
        rows: float32 (n, dim), usable.
        which: int64 (pairs,): row of each pair.
        others: float32 (pairs, dim), usable: vectors near to the rows, but not these themselves.
        metric: "l2", "cosine" or "dot".
        rng: Source of randomness.

    Returns:
        float32 (n, dim).
    """
    wide = rows.astype(np.float64)
    distances = np.full(len(rows), np.inf)
    if metric == "l2":
        np.minimum.at(distances, which, np.linalg.norm(wide[which] - others, axis=1))
    else:
        chords = np.linalg.norm(normalized(rows)[which].astype(np.float64) - normalized(others), axis=1)
        np.minimum.at(distances, which, chords)
        distances *= np.linalg.norm(wide, axis=1)
    distances[~np.isfinite(distances)] = 0
    directions = rng.standard_normal(rows.shape)
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        moved = (wide + distances[:, None] * directions).astype(np.float32)
    stays = (distances == 0) | ~usable_rows(moved, metric)
    return np.where(stays[:, None], rows, moved)
