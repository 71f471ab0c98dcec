"""Phrases of a query: words that follow each other, and which of their tokens in texts do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.text.analyser import Analyser

_QUOTED: Final = re.compile(r'"([^"]*)"')
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Phrase:
    """Terms that follow each other.

    Attributes:
        words: Each term and its place in the phrase, ascending; places of words that the analyser leaves out are free.
        slop: Tokens that may stand between two of them besides.
    """

    words: tuple[tuple[str, int], ...]
    slop: int = 0


Wanted = str | Phrase
"""A term wherever it stands, or terms where they follow each other."""


def wanted_of(query: str, analyser: Analyser) -> list[Wanted]:
    """Return what is looked for by a text: its words, and as phrases those in double quotes; of JSON, its terms."""
    if analyser.parameters.is_json:
        return [token.text for token in analyser.terms_of_query(query)]
    result: list[Wanted] = []
    for number, part in enumerate(_QUOTED.split(query)):
        if number % 2:
            result += phrases_of(part, analyser)
        else:
            result += [token.text for token in analyser.terms_of(part)]
    return result


def phrases_of(query: str, analyser: Analyser, slop: int = 0) -> Iterator[Wanted]:
    """Yield a text as a phrase; its one term where it has no other, and nothing where it has none."""
    words = tuple((token.text, token.position) for token in analyser.terms_of_query(query))
    if len(words) > 1:
        yield Phrase(words, slop)
    elif words:
        yield words[0][0]


def in_phrase(
    phrase: Phrase, terms: Sequence[str], numbers: Places, texts: Places, places: Places
) -> NDArray[np.bool_]:
    """Return which tokens are part of a phrase, in any way in which it can be read there.

    Args:
        phrase: The phrase.
        terms: Distinct terms.
        numbers: Which of `terms` each token is.
        texts: Text of each token, ascending.
        places: Place of each token among all of its text.
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


def _has_any(keys: Places, least: Places, most: Places) -> NDArray[np.bool_]:
    """Return whether one of some ascending keys lies in each range, both ends of which belong to it."""
    result: NDArray[np.bool_] = np.searchsorted(keys, least) < np.searchsorted(keys, most, side="right")
    return result
