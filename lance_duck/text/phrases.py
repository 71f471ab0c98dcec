"""Phrases of a query: consecutive terms, and the tokens of texts that match them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.text.analyser import Analyser

_QUOTED: Final = re.compile(r'"([^"]*)"')
Int64s = NDArray[np.int64]


@dataclass(frozen=True)
class Phrase:
    """Terms that follow each other.

    Attributes:
        words: Each term and its position in the phrase, ascending. Words dropped by the analyser leave gaps.
        slop: Maximum number of extra tokens between two consecutive terms.
    """

    words: tuple[tuple[str, int], ...]
    slop: int = 0


Target = str | Phrase
"""A term or a phrase that is marked in texts."""


def targets_of(query: str, analyser: Analyser) -> list[Target]:
    """Return the terms of a query, with quoted terms as phrases. For JSON documents, returns only terms."""
    if analyser.parameters.is_json:
        return [token.text for token in analyser.terms_of_query(query)]
    result: list[Target] = []
    for number, part in enumerate(_QUOTED.split(query)):
        if number % 2:
            result += phrases_of(part, analyser)
        else:
            result += [token.text for token in analyser.terms_of(part)]
    return result


def phrases_of(query: str, analyser: Analyser, slop: int = 0) -> Iterator[Target]:
    """Yield the phrase of a query, or its only term. Yields nothing if the analyser does not find any term."""
    words = tuple((token.text, token.position) for token in analyser.terms_of_query(query))
    if len(words) > 1:
        yield Phrase(words, slop)
    elif words:
        yield words[0][0]


def in_phrase(
    phrase: Phrase, terms: Sequence[str], numbers: Int64s, texts: Int64s, places: Int64s
) -> NDArray[np.bool_]:
    """Return whether each token is part of an occurrence of a phrase. Occurrences may overlap.

    Args:
        phrase: The phrase.
        terms: Distinct terms.
        numbers: Index in `terms` of each token's term.
        texts: Text of each token, ascending.
        places: Position of each token in its text.
    """
    term_numbers = {term: number for number, term in enumerate(terms)}
    stride = (int(places.max()) if len(places) else 0) + phrase.words[-1][1] + len(phrase.words) * (phrase.slop + 1) + 2
    keys = texts * stride + places
    order = np.argsort(keys, kind="stable")
    of_words = [order[numbers[order] == term_numbers.get(term, -1)] for term, _ in phrase.words]
    steps = [after - before for (_, before), (_, after) in zip(phrase.words[:-1], phrase.words[1:], strict=True)]
    for number, step in enumerate(steps, 1):
        before, mine = keys[of_words[number - 1]], keys[of_words[number]]
        of_words[number] = of_words[number][_has_any(before, mine - step - phrase.slop, mine - step)]
    for number in range(len(steps), 0, -1):
        mine, after = keys[of_words[number - 1]], keys[of_words[number]]
        least = mine + steps[number - 1]
        of_words[number - 1] = of_words[number - 1][_has_any(after, least, least + phrase.slop)]
    is_part = np.zeros(len(keys), np.bool_)
    is_part[np.concatenate(of_words)] = True
    return is_part


def _has_any(keys: Int64s, least: Int64s, most: Int64s) -> NDArray[np.bool_]:
    """Return, for each closed range, whether it contains any of the ascending keys."""
    result: NDArray[np.bool_] = np.searchsorted(keys, least) < np.searchsorted(keys, most, side="right")
    return result
