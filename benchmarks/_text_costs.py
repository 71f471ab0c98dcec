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
"""Queries of one search: their words differ, so that no few of them decide."""


def flat_words(tables: CostTables, _: float) -> Work:
    """Search texts that no index covers, of a table opened anew."""
    path = tables.documents(200_000, indexed=False)
    word = vocabulary()[400]
    return lambda: ld.dataset(path).to_table(columns=["id"], full_text_query=word, limit=10)


def filtered_words(rows: int, k: float, share: float) -> Prepare:
    """Return work that searches an index for k texts of those that pass a filter, another one each time.

    Args:
        rows: Texts of the table.
        k: 0 for the size of the work.
        share: Of texts, one in so many passes; 0 for the size of the work.
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
    """Return work that searches a million texts for three words each, of a stretch of the vocabulary, met before."""
    words, rng = vocabulary(), np.random.default_rng(16)
    places = [rng.choice(np.arange(begin, end), 3, replace=False) for _ in range(QUERIES)]
    return _searches([MatchQuery(" ".join(words[at] for at in three), "text", operator=operator) for three in places])


def met_phrases(end: int) -> Prepare:
    """Return work that searches a million texts for phrases of two words of the most frequent ones, met before."""
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
