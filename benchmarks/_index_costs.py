"""Work with indexes and row sets, for the thresholds that `costs.py` varies."""

from __future__ import annotations

from typing import Final

import numpy as np

import lance_duck as ld
from benchmarks._cost_tables import CostTables
from benchmarks._text_costs import Prepare, Work
from lance_duck.rows.deletion import DeletionVector
from lance_duck.rows.row_positions import Slots
from lance_duck.rows.row_set import RowSet

ROWS: Final = 400_000
"""Number of vectors in the table."""


def named_rows(tables: CostTables, share: float) -> Work:
    """Open a table and search it for a share of its rows: 1 / `share`."""
    path = tables.vectors(ROWS, 32, indexed=True)
    query = np.random.default_rng(17).standard_normal(32).astype(np.float32)
    nearest = {"column": "v", "q": query, "k": max(1, int(ROWS / share)), "nprobes": 16}
    return lambda: ld.dataset(path).to_table(columns=["_rowaddr"], nearest=nearest)


def together(queries: int) -> Prepare:
    """Return work that searches for many queries in one call. With 0, the size of the work is their number."""

    def prepare(tables: CostTables, size: float) -> Work:
        dataset = ld.dataset(tables.vectors(100_000, 32, indexed=True))
        vectors = np.random.default_rng(18).standard_normal((queries or int(size), 32)).astype(np.float32)
        nearest = {"column": "v", "q": vectors, "k": 10, "nprobes": 8}
        return lambda: dataset.to_table(columns=["_rowaddr"], nearest=nearest)

    return prepare


def built_texts(rows: int) -> Prepare:
    """Return work that builds a full-text index."""

    def prepare(tables: CostTables, _: float) -> Work:
        dataset = ld.dataset(tables.documents(rows, indexed=False))
        return lambda: dataset.create_scalar_index("text", "INVERTED", with_position=True, replace=True)

    return prepare


def row_set(_: CostTables, density: float) -> Work:
    """Build a row set from 262,144 shuffled rows with this density per 65,536 positions."""
    rng, rows = np.random.default_rng(19), 1 << 18
    names = (np.arange(rows) * (65_536 / density)).astype(np.uint64)
    rng.shuffle(names)
    return lambda: RowSet.of(names)


def placed_rows(count: int) -> Prepare:
    """Return work that finds the positions of rows in 1,000 fragments, whose ids have this maximum."""

    def prepare(_: CostTables, largest: float) -> Work:
        rng = np.random.default_rng(21)
        ids = np.linspace(0, int(largest) - 1, 1_000).astype(np.uint64)
        addresses = (rng.choice(ids, count) << np.uint64(32)) + rng.integers(0, 1_000, count).astype(np.uint64)
        sizes = np.full(len(ids), 1_000)
        return lambda: Slots(ids, sizes).find(addresses)

    return prepare


def deletions(_: CostTables, count: float) -> Work:
    """Serialize the deletion vector of a fragment with a million rows."""
    rows = np.random.default_rng(22).choice(1_000_000, int(count), replace=False)
    deleted = DeletionVector(np.sort(rows).astype(np.uint32))
    return deleted.to_bytes
