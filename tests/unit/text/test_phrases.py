from __future__ import annotations

import random
from itertools import pairwise, product

import numpy as np
import pytest

from lance_duck.text.analyser import Analyser
from lance_duck.text.phrases import Phrase, in_phrase, targets_of

TERMS = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("duck lakes", ["duck", "lake"]),
        ('"duck the lake" goose', [Phrase((("duck", 0), ("lake", 2))), "goos"]),
        ('"ducks"', ["duck"]),
        ('"the" "" "duck', ["duck"]),
    ],
)
def test_words_in_double_quotes_are_phrases(query: str, wanted: list[str | Phrase]) -> None:
    assert targets_of(query, Analyser()) == wanted


def plain(phrase: Phrase, words: list[str]) -> set[int]:
    """Return the positions of all readings of a phrase, one by one."""
    found: set[int] = set()
    places = [[at for at, word in enumerate(words) if word == term] for term, _ in phrase.words]
    steps = [after - before for (_, before), (_, after) in zip(phrase.words[:-1], phrase.words[1:], strict=True)]
    for reading in product(*places):
        gaps = [after - before for before, after in pairwise(reading)]
        if all(step <= gap <= step + phrase.slop for gap, step in zip(gaps, steps, strict=True)):
            found.update(reading)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_phrase_spans_equal_a_brute_force_search(seed: int) -> None:
    pick = random.Random(seed)
    texts = [pick.choices([*TERMS, "x"], k=pick.randrange(12)) for _ in range(6)]
    tokens = [(number, at, word) for number, words in enumerate(texts) for at, word in enumerate(words) if word != "x"]
    at = np.cumsum([0, *(pick.choice([1, 1, 2]) for _ in range(pick.choice([1, 2])))]).tolist()
    phrase = Phrase(tuple((pick.choice([*TERMS, "missing"]), place) for place in at), pick.choice([0, 0, 1, 2]))
    numbers, of_texts, places = (
        np.array(column, np.int64) for column in zip(*((TERMS.index(w), n, p) for n, p, w in tokens), strict=True)
    )
    found = in_phrase(phrase, TERMS, numbers, of_texts, places)
    expected = [at in plain(phrase, texts[number]) for number, at, _ in tokens]
    assert found.tolist() == expected
