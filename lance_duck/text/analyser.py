"""Analysers, which turn texts into terms for indexes and queries, and `tokenize`, which returns the terms of a text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arguments import checked_call, declared_arguments
from lance_duck.arrow.memory import unset
from lance_duck.arrow.types import is_list, is_text
from lance_duck.errors import InternalError, WrongTypeError
from lance_duck.kernels.tokens.keep import keep_tokens
from lance_duck.text.filters import terms_of_words
from lance_duck.text.json import json_tokens, json_tokens_reference, query_tokens
from lance_duck.text.parameters import AnalyserArguments, AnalyserParameters, utf8_bytes
from lance_duck.text.texts import joined_texts, large_texts, present_texts
from lance_duck.text.tokens import FtsToken, Tokens, positions_within
from lance_duck.text.vocabulary import TermVocabulary
from lance_duck.text.words import Cut, tokens_of_text


@dataclass(frozen=True)
class Analyser:
    """An analyser, which turns texts into terms.

    Args:
        parameters: How texts are analysed.

    Raises:
        UnsupportedError: The parameters name a tokenizer or a language that is not supported.
    """

    parameters: AnalyserParameters = field(default_factory=AnalyserParameters)

    def __post_init__(self) -> None:
        self.parameters.require_support()

    def vocabulary(self) -> TermVocabulary:
        """Return an empty vocabulary for `analyse`."""
        return TermVocabulary(self.parameters)

    def analyse(self, texts: pa.Array | pa.ChunkedArray, vocabulary: TermVocabulary | None = None) -> Tokens:
        """Return the tokens of texts. Nulls do not yield tokens, even inside lists.

        Args:
            texts: string, large_string, string_view, or lists of them.
            vocabulary: A result of `vocabulary`, which collects the terms of all calls that share it. By default, each
                call creates a new one. Ignored if documents are JSON.

        Raises:
            WrongTypeError: The texts do not have one of these types.
            InvalidInputError: A text is not UTF-8, or is not JSON although documents are JSON.
        """
        array = joined_texts(texts)
        leaves = array.type
        while is_list(leaves):
            leaves = leaves.value_type
        if not is_text(leaves):
            expected = "string, large_string, string_view, or a list of them"
            raise WrongTypeError(
                "the strings have the wrong type", where="analyse", expected=expected, found=array.type
            )
        if self.parameters.is_json:
            return self._json(array)
        known = self.vocabulary() if vocabulary is None else vocabulary
        words = _cut(array, known)
        numbers, terms = known.numbers, known.terms()
        positions = unset(len(words.ids), np.uint32)
        bounds = np.empty(len(words.bounds), np.int64)
        has_positions = self.parameters.base_tokenizer != "ngram"
        count = keep_tokens(words.ids, words.bounds, numbers, has_positions, positions, bounds)
        if count < 0:
            raise InternalError("a token has no word")
        return Tokens(terms, words.ids[:count], positions[:count], bounds)

    def terms_of(self, text: str) -> list[FtsToken]:
        """Return the tokens of one text, in order, with their positions. Removed tokens leave gaps.

        Raises:
            InvalidInputError: The text contains a lone surrogate.
        """
        utf8_bytes(text, "text")
        if self.parameters.is_json:
            return _in_order(json_tokens_reference(text, self.parameters))
        cut = list(tokens_of_text(text, self.parameters))
        terms = terms_of_words([token for token, _ in cut], self.parameters)
        return [FtsToken(term, place) for term, (_, place) in zip(terms, cut, strict=True) if term is not None]

    def terms_of_query(self, query: str) -> list[FtsToken]:
        """Return the tokens of a query. Uses `query_tokens` if documents are JSON, otherwise `terms_of`.

        Raises:
            InvalidInputError: The query contains a lone surrogate, or `query_tokens` rejects its form.
        """
        utf8_bytes(query, "query")
        return _in_order(query_tokens(query, self.parameters)) if self.parameters.is_json else self.terms_of(query)

    def _json(self, texts: pa.Array) -> Tokens:
        """Return the tokens of JSON documents. The tokens of a list are concatenated over its elements."""
        if is_text(texts.type):
            tokens = json_tokens(present_texts(large_texts(texts)), self.parameters)
            sizes = texts.is_valid().to_numpy(zero_copy_only=False)
        else:
            tokens = self._json(texts.flatten())
            sizes = pc.list_value_length(texts).fill_null(0).to_numpy(zero_copy_only=False)
        bounds = tokens.bounds[_offsets(sizes)]
        return replace(tokens, positions=positions_within(bounds), bounds=bounds)


@checked_call
def tokenize(query: str, **options: Unpack[AnalyserArguments]) -> list[FtsToken]:
    """Return the tokens that a full-text index with these parameters stores for a text.

    Args:
        query: The text.
        **options: Arguments of `create_scalar_index(column, "INVERTED", …)`, see `AnalyserArguments`.

    Returns: Tokens in order. The first token has position 0, and removed tokens leave gaps.

    Raises:
        InvalidInputError: An argument, a tokenizer or a language is unknown, or a number is out of its range.
        WrongTypeError: An argument has the wrong type.
        UnsupportedError: Lance has the tokenizer, but this package does not support it.
    """
    if not isinstance(query, str):
        raise WrongTypeError("bad query", where="tokenize", expected="str", found=type(query).__name__)
    declared = declared_arguments(tokenize, options, AnalyserArguments)
    tokens = Analyser(AnalyserParameters.from_arguments(declared, "tokenize")).terms_of(query)
    return [replace(token, position=token.position - tokens[0].position) for token in tokens]


def _cut(texts: pa.Array, vocabulary: TermVocabulary) -> Cut:
    """Return the words of texts. The words of a list are concatenated over its elements."""
    if is_text(texts.type):
        cut = vocabulary.cut(present_texts(large_texts(texts)))
        present = texts.is_valid().to_numpy(zero_copy_only=False)
        return replace(cut, bounds=cut.bounds[_offsets(present)])
    sizes = pc.list_value_length(texts).fill_null(0).to_numpy(zero_copy_only=False)
    elements = _cut(texts.flatten(), vocabulary)
    return replace(elements, bounds=elements.bounds[_offsets(sizes)])


def _in_order(terms: Iterable[str]) -> list[FtsToken]:
    return [FtsToken(term, place) for place, term in enumerate(terms)]


def _offsets(sizes: NDArray[np.generic]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
