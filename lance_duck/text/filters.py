"""Word filters: lower case, stemming, stop word removal and ASCII folding, in this order.

Stop words are compared with stems, as in Lance. Some are therefore missed: "during" is stemmed to "dure".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import Stemmer
from numpy.typing import NDArray

from lance_duck.kernels.tokens.keep import DROPPED
from lance_duck.text.parameters import AnalyserParameters
from lance_duck.text.tables import ascii_folding, lower_case, stop_words

STEMMER: Final = f"Snowball, PyStemmer {Stemmer.version()}"
"""The stemmer and its version. Indexes do not record the stemmer version, and releases differ in a few stems."""


def terms_of_words(words: Sequence[str], parameters: AnalyserParameters) -> list[str | None]:
    """Return the term of each word, or None for a stop word.

    Args:
        words: Tokens of the base tokenizer that are within the length limit.
        parameters: Parameters that are supported.
    """
    terms = list(words)
    if parameters.lower_case:
        terms = [term.lower() if term.isascii() else term.translate(lower_case()) for term in terms]
    if parameters.stem:
        # A stemmer is not thread-safe. Words are distinct, so its cache would not help.
        terms = Stemmer.Stemmer(parameters.language.lower(), 0).stemWords(terms)
    refused = _refused(parameters)
    is_folded = parameters.ascii_folding
    return [
        None if term in refused else term if not is_folded or term.isascii() else term.translate(ascii_folding())
        for term in terms
    ]


def numbered_terms(terms: Sequence[str | None]) -> tuple[NDArray[np.uint32], pa.LargeBinaryArray]:
    """Number the distinct terms in order of first occurrence.

    Returns:
        The number of each term (DROPPED for None), and the distinct terms.
    """
    numbers: dict[str, int] = {}
    ids = [DROPPED if term is None else numbers.setdefault(term, len(numbers)) for term in terms]
    return np.array(ids, np.uint32), pa.array(numbers, pa.large_string()).cast(pa.large_binary())


def _refused(parameters: AnalyserParameters) -> frozenset[str]:
    """Return the stop words to remove. Empty if the parameters keep stop words."""
    if not parameters.remove_stop_words:
        return frozenset()
    if parameters.custom_stop_words is not None:
        return frozenset(parameters.custom_stop_words)
    return stop_words(parameters.language)
