"""Vocabularies: the words that an analyser has seen, with their terms."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.kernels.tokens.keep import DROPPED
from lance_duck.text.filters import terms_of_words
from lance_duck.text.parameters import AnalyserParameters
from lance_duck.text.words import Cut, WordTable, cut_with, grown

_FIRST_WORDS: Final = 1 << 9


class TermVocabulary:
    """The words that an analyser has seen. Filters run only once for each word.

    Not thread-safe. Memory use grows with the number of distinct words.

    Args:
        parameters: Parameters that are supported.
    """

    def __init__(self, parameters: AnalyserParameters) -> None:
        self._parameters = parameters
        self._words, self._terms = WordTable(), WordTable()
        self._numbers = np.empty(_FIRST_WORDS, np.uint32)
        self._count = 0

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self._words.nbytes + self._terms.nbytes + self._numbers.nbytes

    @property
    def numbers(self) -> NDArray[np.uint32]:
        """The term number of each word, or DROPPED for a stop word."""
        return self._numbers[: self._count]

    def terms(self) -> pa.LargeBinaryArray:
        """Return all terms by number. Numbers are in order of first occurrence."""
        return self._terms.values()

    def cut(self, texts: pa.LargeStringArray) -> Cut:
        """Tokenize texts without nulls, and map the words to terms."""
        cut = cut_with(self._words, texts, self._parameters)
        words = self._words.strings(self._count)
        if words:
            self._add(terms_of_words(words, self._parameters))
        return cut

    def _add(self, terms: list[str | None]) -> None:
        """Number the terms of new words."""
        total = self._count + len(terms)
        while total > len(self._numbers):
            self._numbers = grown(self._numbers, self._count)
        array = pa.array(terms, pa.large_string())
        is_term = array.is_valid().to_numpy(zero_copy_only=False)
        numbers = self._numbers[self._count : total]
        numbers[:] = DROPPED
        numbers[is_term] = self._terms.number(array.drop_null())
        self._count = total
