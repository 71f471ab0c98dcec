"""Random texts whose word frequencies follow a natural language. Every run gets the same ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

VOCABULARY = 30_000
SEED = 11

_BEGINS = ("b", "br", "c", "ch", "d", "dr", "f", "g", "gr", "h", "k", "l", "m", "n", "p", "pr", "r", "s", "st", "t")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "ou")
_ENDS = ("", "n", "r", "t", "l", "s", "nd", "ck")
_SUFFIXES = ("", "", "", "s", "ed", "ing", "ly", "ation", "ness", "er")


def vocabulary(count: int = VOCABULARY) -> list[str]:
    """Return distinct words of one to three syllables, some with endings that a stemmer takes off; frequent first."""
    random = np.random.default_rng(SEED)
    words: dict[str, None] = {}
    while len(words) < count:
        syllables = 1 + int(random.integers(0, 3)) if len(words) > 200 else 1
        parts = [pick for _ in range(syllables) for pick in (_pick(random, _BEGINS), _pick(random, _VOWELS))]
        words["".join(parts) + _pick(random, _ENDS) + _pick(random, _SUFFIXES)] = None
    return list(words)


def texts(count: int, seed: int = 0) -> pa.StringArray:
    """Return texts of 3 to 40 words. The n-th most frequent word occurs about 1 / n times as often as the first."""
    random = np.random.default_rng((SEED, seed))
    lengths = random.integers(3, 41, count)
    shares = 1 / (np.arange(1, VOCABULARY + 1) + 2.7)
    ends = np.cumsum(shares / shares.sum())
    places = np.searchsorted(ends, random.random(int(lengths.sum())), side="right")
    return _joined(np.minimum(places, VOCABULARY - 1), lengths)


def _joined(places: NDArray[np.int64], lengths: NDArray[np.int64]) -> pa.StringArray:
    """Join words, given by their positions in the vocabulary, to texts with these word counts."""
    words = pa.array(vocabulary()).take(pa.array(places))
    offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
    return pc.binary_join(pa.ListArray.from_arrays(offsets, words), " ")


def _pick(random: np.random.Generator, choices: tuple[str, ...]) -> str:
    return choices[int(random.integers(0, len(choices)))]
