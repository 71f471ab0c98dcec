"""Merges entries: updates the rows of other segments' entries, and joins streams of entries."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import numpy as np

from lance_duck.index.files import INDEX_BLOCK_ROWS
from lance_duck.index.kind import Follow, Rows
from lance_duck.index.ngram.open import Entries
from lance_duck.rows.row_set import RowSet


def remapped_tokens(entries: Entries, follow: Follow) -> Entries:
    """Yield entries with their current rows. Tokens without remaining rows are dropped."""
    tokens: list[int] = []
    pieces: list[Rows] = []
    waiting = 0
    for token, rows in entries:
        tokens.append(token)
        pieces.append(rows.rows())
        waiting += len(pieces[-1])
        if waiting >= INDEX_BLOCK_ROWS:
            yield from _moved(tokens, pieces, follow)
            tokens, pieces, waiting = [], [], 0
    yield from _moved(tokens, pieces, follow)


def _moved(tokens: list[int], pieces: list[Rows], follow: Follow) -> Entries:
    if not tokens:
        return
    names, lives = follow(np.concatenate(pieces))
    end = 0
    for token, rows in zip(tokens, pieces, strict=True):
        start, end = end, end + len(rows)
        moved = RowSet.of(names[start:end][lives[start:end]])
        if moved:
            yield token, moved


def merged_tokens(sources: Sequence[Entries]) -> Entries:
    """Merge streams of entries. A token that several streams contain gets the rows of all of them."""
    if len(sources) == 1:
        yield from sources[0]
        return
    for token, same in groupby(heapq.merge(*sources, key=itemgetter(0)), itemgetter(0)):
        yield token, RowSet.union([rows for _, rows in same])
