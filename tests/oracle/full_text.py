"""Texts for full-text indexes, and what each side answers through an index."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from lance.query import MatchQuery, PhraseQuery

import lance_duck as ld

OPTIONS = {"fsync": "false"}
WORDS = (
    *("lake", "Lakes", "duck", "ducks", "swimming", "swims", "the", "of", "running", "ran", "Straße", "café", "naïve"),
    *("others", "during", "nicht", "Häuser", "größer", "maison", "chevaux", "мир", "книги", "x", "42", "3.14", "don't"),
    *("a" * 39, "a" * 40),
)
QUERIES = ("lake", "duck swims", "Straße 42 running", "the others", "книги maison häuser größer", "a" * 39)


def texts(seed: int, count: int) -> pa.StringArray:
    """Return texts of up to 12 words, frequent ones first in `WORDS`; some are null, some empty."""
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, len(WORDS) + 1)
    made: list[str | None] = []
    for _ in range(count):
        words = random.choice(WORDS, random.integers(0, 13), p=weights / weights.sum())
        made.append(None if random.random() < 0.05 else " ".join(words))
    return pa.array(made, pa.string())


def rows(seed: int, first: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64()), "s": texts(seed, count)})


def ours(uri: str) -> ld.LanceDataset:
    return ld.dataset(uri, storage_options=OPTIONS)


def scores(uri: str, query: Any, column: str = "s") -> dict[int, float]:
    """Return the score of each row that pylance finds by its index."""
    if isinstance(query, str):
        query = MatchQuery(query, column)
    table = lance.dataset(uri).to_table(columns=["id", "_score"], full_text_query=query)
    ids = table["id"].to_pylist()
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, table["_score"].to_pylist(), strict=True))


def all_scores(uri: str, *, phrases: bool = False, queries: Sequence[str] = QUERIES) -> list[dict[int, float]]:
    """Return what pylance answers to some queries."""
    asked: list[Any] = list(queries)
    if phrases:
        asked += [PhraseQuery("lake duck", "s"), PhraseQuery("lakes duck", "s", slop=2)]
    return [scores(uri, query) for query in asked]


def contents(uri: str) -> list[dict[str, Any]]:
    """Return pylance's figures of the segments of the index `s_idx`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        segments: list[dict[str, Any]] = lance.dataset(uri).stats.index_stats("s_idx")["segments"]
    return segments
