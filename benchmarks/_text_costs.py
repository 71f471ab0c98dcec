"""Text searches, for the thresholds that `costs.py` varies."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final

import numpy as np

import lance_duck as ld
from benchmarks._cost_tables import PICKED, CostTables
from benchmarks._texts import vocabulary
from lance_duck.query import FullTextOperator, MatchQuery, PhraseQuery

Work = Callable[[], object]
Prepare = Callable[[CostTables, float], Work]

QUERIES: Final = 50
"""Number of queries in one measurement, all with different words."""


def flat_words(tables: CostTables, _: float) -> Work:
    """Open a table and search texts without an index."""
    path = tables.documents(200_000, indexed=False)
    word = vocabulary()[400]
    return lambda: ld.dataset(path).to_table(columns=["id"], full_text_query=word, limit=10)


def filtered_words(rows: int, k: float, share: float) -> Prepare:
    """Return work that searches an index for k texts that pass a filter, which changes each time.

    Args:
        rows: Number of texts.
        k: Number of results. With 0, the size of the work.
        share: One text in `share` passes. With 0, the size of the work.
    """

    def prepare(tables: CostTables, size: float) -> Work:
        dataset, others = ld.dataset(tables.documents(rows, indexed=True)), itertools.count()
        most, every = int(k or max(1.0, size)), share or size
        word = vocabulary()[20]

        def run() -> None:
            passing = int(PICKED / every) + next(others)
            dataset.to_table(columns=["id"], full_text_query=word, filter=f"pick < {passing}", limit=most)

        return run

    return prepare


def met_words(begin: int, end: int, operator: FullTextOperator = FullTextOperator.OR) -> Prepare:
    """Return work that searches a million texts for three words, which are already in the cache."""
    words, rng = vocabulary(), np.random.default_rng(16)
    places = [rng.choice(np.arange(begin, end), 3, replace=False) for _ in range(QUERIES)]
    return _searches([MatchQuery(" ".join(words[at] for at in three), "text", operator=operator) for three in places])


def met_phrases(end: int) -> Prepare:
    """Return work that searches a million texts for phrases of two frequent words, which are already in the cache."""
    words, rng = vocabulary(), np.random.default_rng(17)
    pairs = [rng.choice(end, 2, replace=False) for _ in range(QUERIES)]
    return _searches([PhraseQuery(" ".join(words[at] for at in pair), "text") for pair in pairs])


def _searches(queries: list[MatchQuery] | list[PhraseQuery]) -> Prepare:
    def prepare(tables: CostTables, _: float) -> Work:
        dataset = ld.dataset(tables.documents(1_000_000, indexed=True))

        def run() -> None:
            for query in queries:
                dataset.to_table(columns=["_rowid"], full_text_query=query, limit=10)

        return run

    return prepare
