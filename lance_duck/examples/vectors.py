"""Vectors of texts without a model."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.cache import SizedCache
from lance_duck.errors import InvalidInputError, WrongTypeError

_WORDS: Final[SizedCache[NDArray[np.float32]]] = SizedCache(16 << 20, lambda vector: vector.nbytes)
"""Cache of the vectors of words by (word, dimensions): those of all example texts at 128 dimensions take 0.1 MB."""


def embed(text: str | Sequence[str], dimensions: int = 128) -> NDArray[np.float32]:
    """Return a vector of a text, computed from its words and trigrams: texts that share these are near each other.

    The vector knows nothing of what words mean; use a model instead for that.

    Args:
        text: One text, or several.
        dimensions: Length of a vector.

    Returns:
        Shape (dimensions,), or (texts, dimensions) for several; of length 1, or 0 for a text without words of
        three letters or more.

    Raises:
        WrongTypeError: `text` is neither a text nor a list of texts.
        InvalidInputError: `dimensions` is less than 1.
    """
    if not isinstance(text, str) and not (isinstance(text, Sequence) and all(isinstance(each, str) for each in text)):
        raise WrongTypeError("text", where="embed", expected="a string, or a list of strings", found=repr(text))
    if dimensions < 1:
        raise InvalidInputError("dimensions", where="embed", expected="1 or more", found=dimensions)
    if not isinstance(text, str):
        return np.stack([embed(each, dimensions) for each in text]) if len(text) else np.empty((0, dimensions), "f4")
    total: NDArray[np.float32] = np.zeros(dimensions, np.float32)
    for word in re.findall(r"\w+", text.lower()):
        total += _WORDS.get((word, dimensions), partial(_word_vector, word, dimensions))
    length = float(np.linalg.norm(total))
    if length:
        total /= length
    return total


def _word_vector(word: str, dimensions: int) -> NDArray[np.float32]:
    """Return the vector of a word, computed from the word and its trigrams; zero for a word of two letters."""
    marked = f"<{word}>"
    parts = {marked, *(marked[place : place + 3] for place in range(len(marked) - 2))}
    drawn = [np.random.default_rng(zlib.crc32(part.encode())).random(dimensions) - 0.5 for part in sorted(parts)]
    mean: NDArray[np.float64] = np.mean(drawn, axis=0)
    return (mean * max(len(word) - 2, 0)).astype(np.float32)
