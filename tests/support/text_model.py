"""A plain Python reference for full-text queries, word by word and row by row.

The strings contain only words that every analyser keeps (lower case, no stop words, no suffixes), split at spaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from lance_duck.index.inverted.codecs.logarithms import natural_log
from lance_duck.query import (
    BooleanQuery,
    BoostQuery,
    CombinedFieldsQuery,
    FullTextOperator,
    FullTextQuery,
    MatchQuery,
    MultiMatchQuery,
    Occur,
    PhraseQuery,
    PrefixQuery,
)

F = np.float32
Scores = dict[int, np.float32]


def distance(a: str, b: str) -> int:
    """Return the edits (insert, delete, replace a character) from one word to another."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        above, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (x != y)))
    return row[-1]


def idf(count: float, frequency: int) -> np.float32:
    return natural_log((F(count) - F(frequency) + F(0.5)) / (F(frequency) + F(0.5)) + F(1))


def weight(frequency: float, length: float, average: np.float32) -> np.float32:
    norm = F(1.2) * ((F(1) - F(0.75)) + F(0.75) * F(length) / average)
    return (F(1.2) + F(1)) * F(frequency) / (F(frequency) + norm)


class Column:
    """The texts of one column, by row; a row may be missing."""

    def __init__(self, texts: Mapping[int, str | None]) -> None:
        self.words = {row: (text or "").split() for row, text in texts.items()}
        self.count = sum(bool(words) for words in self.words.values())
        self.total = sum(map(len, self.words.values()))
        self.vocabulary = sorted({word for words in self.words.values() for word in words}, key=str.encode)

    def frequency(self, word: str) -> int:
        return sum(word in words for words in self.words.values())

    def idf(self, word: str) -> np.float32:
        return idf(self.count, self.frequency(word))

    def slots(self, query: MatchQuery | PrefixQuery | PhraseQuery) -> list[list[str]]:
        words = query.query.split()
        if isinstance(query, PrefixQuery):
            slots = [[word for word in self.vocabulary if word.startswith(each)] for each in words]
            most = query.max_expansions
        elif isinstance(query, MatchQuery) and query.fuzziness != 0:
            slots = [[word for word in self.vocabulary if near(query, each, word)] for each in words]
            most = query.max_expansions
        else:
            return [[word] for word in words]
        result = []
        for slot in slots:
            result.append(slot if most is None else slot[:most])
            most = None if most is None else most - len(result[-1])
        return result

    def scores(self, slots: Sequence[Sequence[str]], every: bool) -> Scores:
        average = F(self.total) / F(self.count) if self.count else F(0)
        weights = {word: self.idf(word) for slot in slots for word in slot}
        result: Scores = {}
        for row, words in self.words.items():
            if (all if every else any)(any(word in words for word in slot) for slot in slots) and slots:
                score = F(0)
                for slot in slots:
                    score = score + sum_of(
                        [
                            weights[word] * weight(words.count(word), len(words), average)
                            for word in slot
                            if word in words
                        ]
                    )
                result[row] = score
        return result

    def has_phrase(self, row: int, phrase: Sequence[str], slop: int) -> bool:
        words = self.words[row]
        ends = {place for place, word in enumerate(words) if word == phrase[0]}
        for word in phrase[1:]:
            ends = {
                place
                for end in ends
                for place in range(end + 1, min(end + 2 + slop, len(words)))
                if words[place] == word
            }
        return bool(ends)


def sum_of(scores: Sequence[np.float32]) -> np.float32:
    total = F(0)
    for score in scores:
        total = total + score
    return total


def near(query: MatchQuery, word: str, other: str) -> bool:
    edits = query.fuzziness
    if edits is None:
        edits = 0 if len(word.encode()) <= 2 else 1 if len(word.encode()) <= 5 else 2
    return distance(word, other) <= edits and other.startswith(word[: query.prefix_length])


class Model:
    """A table of texts.

    Args:
        columns: Texts by column and row.
    """

    def __init__(self, columns: Mapping[str, Mapping[int, str | None]]) -> None:
        self.columns = {name: Column(texts) for name, texts in columns.items()}

    def scores(self, query: FullTextQuery) -> Scores:
        """Return the rows that match, with their scores."""
        match query:
            case MatchQuery() | PrefixQuery():
                column = self.columns[query.column]
                found = column.scores(column.slots(query), query.operator is FullTextOperator.AND)
                return {row: score * F(query.boost) for row, score in found.items()}
            case PhraseQuery():
                column, words = self.columns[query.column], query.query.split()
                found = column.scores(column.slots(query), every=True)
                return {row: score for row, score in found.items() if column.has_phrase(row, words, query.slop)}
            case MultiMatchQuery():
                parts = [self.scores(each) for each in query.match_queries]
                return {row: max(p[row] for p in parts if row in p) for row in set().union(*parts)}
            case BoostQuery():
                negative = self.scores(query.negative)
                boost = F(query.negative_boost)
                return {
                    row: score - boost * negative[row] if row in negative else score
                    for row, score in self.scores(query.positive).items()
                }
            case BooleanQuery():
                return self.boolean(query)
            case CombinedFieldsQuery():
                return self.combined(query)
        raise AssertionError(query)

    def boolean(self, query: BooleanQuery) -> Scores:
        must, should, never = (
            [self.scores(each) for each in query.of(occur)] for occur in (Occur.MUST, Occur.SHOULD, Occur.MUST_NOT)
        )
        rows = set.intersection(*map(set, must)) if must else set().union(*should)
        result = {}
        for row in rows.difference(*never):
            sums = [sum_of([part[row] for part in parts if row in part]) for parts in (must, should) if parts]
            result[row] = sum_of(sums)
        return result

    def combined(self, query: CombinedFieldsQuery) -> Scores:
        columns = [self.columns[name] for name in query.columns]
        weights = query.boosts or [1.0] * len(columns)
        pairs = list(zip(columns, weights, strict=True))
        words = list(dict.fromkeys(query.query.split()))
        count = max(column.count for column in columns)
        average = F(sum(w * column.total for column, w in pairs)) / F(count)
        weighed = {word: idf(count, max(column.frequency(word) for column in columns)) for word in words}
        result: Scores = {}
        for row in columns[0].words:
            length = sum((F(w) * F(len(column.words[row])) for column, w in pairs), F(0))
            tf = {word: sum((F(w) * F(c.words[row].count(word)) for c, w in pairs), F(0)) for word in words}
            if words and (all if query.operator is FullTextOperator.AND else any)(tf[word] > 0 for word in words):
                score = F(0)
                for word in words:
                    if tf[word] > 0:
                        score = score + weighed[word] * weight(float(tf[word]), float(length), average)
                result[row] = score
        return result


def in_order(scores: Scores) -> list[int]:
    """Return the rows of a result, the best first; rows of one score by number."""
    return sorted(scores, key=lambda row: (-scores[row], row))
