"""The functions `highlight` and `snippet`. They mark the words of a query in texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, Unpack, overload

import pyarrow as pa

from lance_duck.arguments import checked_call, declared_arguments
from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.scan.text.query.tree import FullTextQuery
from lance_duck.scan.text.query.vocabulary import marked_by
from lance_duck.scan.text.search import sought_leaves
from lance_duck.text import highlight as marked
from lance_duck.text.analyser import Analyser
from lance_duck.text.parameters import AnalyserArguments, AnalyserParameters, utf8_bytes
from lance_duck.text.phrases import Target, targets_of

Texts: TypeAlias = pa.Array | pa.ChunkedArray
TextsLike: TypeAlias = Iterable[str | None]
"""An array of string, large_string or string_view, or data that pyarrow converts to one: a list, a pandas column, …"""


@overload
def highlight(
    texts: str, query: str | FullTextQuery, pre: str = ..., post: str = ..., **options: Unpack[AnalyserArguments]
) -> str: ...


@overload
def highlight(
    texts: TextsLike, query: str | FullTextQuery, pre: str = ..., post: str = ..., **options: Unpack[AnalyserArguments]
) -> pa.LargeStringArray: ...


@checked_call
def highlight(
    texts: Any, query: str | FullTextQuery, pre: str = "<b>", post: str = "</b>", **options: Unpack[AnalyserArguments]
) -> str | pa.LargeStringArray:
    """Mark the query's words in texts, like SQL's `highlight` for an index with the same parameters.

    Texts are not escaped. To show them as HTML, escape them first, or mark words with characters that you replace
    later. Overlapping or adjacent words, for example n-grams, share one pair of marks.

    Args:
        texts: A text, or an array of texts (pyarrow, pandas, polars, numpy, a list). Nulls remain null.
        query: A string of words and of phrases in double quotes, or a query of `lance_duck.query`. The columns of a
            query are ignored. All its words are marked, including their fuzzy and prefix matches, except the words of
            MUST_NOT.
        pre: Mark before a word.
        post: Mark after a word.
        **options: Arguments of `create_scalar_index(column, "INVERTED", …)`, see `AnalyserArguments`.

    Returns: A text if `texts` is a text, otherwise a large_string array with one value per text.

    Raises:
        InvalidInputError: An argument, a tokenizer or a language is unknown, a number is out of its range, or a text
            is not UTF-8.
        WrongTypeError: An argument has the wrong type.
        UnsupportedError: The tokenizer is a Lance tokenizer that is not supported.
    """
    analyser = _analyser(highlight, options)
    _check_query(query, "highlight")

    def mark(array: Texts) -> pa.LargeStringArray:
        return marked.highlight(array, _targets(query, array, analyser), analyser, pre, post)

    return _of_each(texts, mark, "highlight")


@overload
def snippet(
    texts: str,
    query: str | FullTextQuery,
    words: int = ...,
    pre: str = ...,
    post: str = ...,
    gap: str = ...,
    **options: Unpack[AnalyserArguments],
) -> str: ...


@overload
def snippet(
    texts: TextsLike,
    query: str | FullTextQuery,
    words: int = ...,
    pre: str = ...,
    post: str = ...,
    gap: str = ...,
    **options: Unpack[AnalyserArguments],
) -> pa.LargeStringArray: ...


@checked_call
def snippet(
    texts: Any,
    query: str | FullTextQuery,
    words: int = 20,
    pre: str = "<b>",
    post: str = "</b>",
    gap: str = "…",
    **options: Unpack[AnalyserArguments],
) -> str | pa.LargeStringArray:
    """Return the excerpt of each text with the most query words, marked, like the SQL function `snippet`.

    Args:
        texts: See `highlight`.
        query: See `highlight`.
        words: Maximum length of an excerpt, in words (runs of letters and digits).
        pre: See `highlight`.
        post: See `highlight`.
        gap: Text to insert at each end where the excerpt omits text.
        **options: See `highlight`.

    Returns:
        See `highlight`. The excerpt of a text without words of the query is its beginning.

    Raises:
        InvalidInputError: `words` is less than 1. See also `highlight`.
        WrongTypeError, UnsupportedError: See `highlight`.
    """
    analyser = _analyser(snippet, options)
    _check_query(query, "snippet")

    def mark(array: Texts) -> pa.LargeStringArray:
        return marked.snippet(array, _targets(query, array, analyser), analyser, pre, post, words, gap)

    return _of_each(texts, mark, "snippet")


def _analyser(function: Callable[..., Any], options: Mapping[str, Any]) -> Analyser:
    declared = declared_arguments(function, options, AnalyserArguments)
    return Analyser(AnalyserParameters.from_arguments(declared, function.__name__))


def _check_query(query: object, where: str) -> None:
    if not isinstance(query, str | FullTextQuery):
        expected = "str, or a query of lance_duck.query"
        raise WrongTypeError("bad query", where=where, expected=expected, found=type(query).__name__)


def _targets(query: str | FullTextQuery, texts: Texts, analyser: Analyser) -> list[Target]:
    if isinstance(query, str):
        return targets_of(query, analyser)
    return list(dict.fromkeys(each for leaf in sought_leaves(query) for each in marked_by(leaf, texts, analyser)))


def _of_each(texts: Any, mark: Callable[[Texts], pa.LargeStringArray], where: str) -> str | pa.LargeStringArray:
    """Apply a function to texts. A single text yields a single text."""
    if isinstance(texts, str):
        utf8_bytes(texts, "text", where)
        return str(mark(pa.array([texts], pa.large_string()))[0])
    return mark(_array(texts, where))


def _array(texts: Any, where: str) -> pa.Array | pa.ChunkedArray:
    """Return texts as an Arrow array.

    Raises:
        WrongTypeError: The value does not consist of texts.
    """
    if isinstance(texts, pa.Array | pa.ChunkedArray):
        return texts
    expected = "a string, or an array of strings"
    if texts is None or isinstance(texts, bytes | Mapping):
        raise WrongTypeError("invalid strings", where=where, expected=expected, found=type(texts).__name__)
    try:
        if hasattr(texts, "__arrow_c_stream__"):
            return pa.chunked_array(texts)
        return pa.array(texts, pa.large_string(), from_pandas=True)
    except UnicodeEncodeError as error:
        raise InvalidInputError("invalid strings", where=where, expected="valid Unicode", found=str(error)) from error
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise WrongTypeError("invalid strings", where=where, expected=expected, found=str(error)) from error
