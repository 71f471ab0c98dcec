"""Highlights: spans of a query's words in texts, texts with marks around these words, and the best excerpts of texts.

A token is marked if its term is requested. For example, "running" is marked for the term "run".
The text itself is not escaped. Callers that show it as HTML escape it first, or choose marks that survive escaping.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from operator import index
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.arrow.types import is_text
from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.kernels.tokens.words import LONG
from lance_duck.text.analyser import Analyser
from lance_duck.text.filters import terms_of_words
from lance_duck.text.parameters import AnalyserParameters, utf8_bytes
from lance_duck.text.phrases import Phrase, Target, in_phrase
from lance_duck.text.texts import joined_texts, large_texts, present_texts
from lance_duck.text.words import cut_texts

_WORDS: Final = AnalyserParameters(max_token_length=None)
"""Parameters for splitting a text into the words that the length of a snippet counts."""


@dataclass(frozen=True, eq=False)
class TokenSpans:
    """Token spans in texts, sorted by start. N-gram spans overlap.

    Attributes:
        begins: Start of each token in its text, in bytes, int64.
        ends: End of each token in its text, in bytes, int64.
        terms: Index of each token's term in the requested terms, int64.
        bounds: int64 (texts + 1,), number of spans before each text, and the total.
    """

    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    terms: NDArray[np.int64]
    bounds: NDArray[np.int64]


def term_spans(texts: pa.Array | pa.ChunkedArray, targets: Collection[Target], analyser: Analyser) -> TokenSpans:
    """Return the spans of terms in texts. Nulls do not contain terms.

    Args:
        texts: string, large_string or string_view.
        targets: Terms of a query, as returned by the analyser, and phrases of these terms.
        analyser: The analyser of the texts.

    Raises:
        WrongTypeError: The texts do not have a string type.
        InvalidInputError: A text is not UTF-8.
        UnsupportedError: The analyser is for JSON documents.
    """
    if analyser.parameters.is_json:
        raise UnsupportedError(
            "highlight does not support JSON columns",
            where="highlight",
            remedy="extract a string first: highlight(column ->> '$.path', 'words')",
        )
    array = _checked(texts)
    present = array.is_valid().to_numpy(zero_copy_only=False)
    cut = cut_texts(present_texts(array), analyser.parameters, with_spans=True)
    alone = [each for each in targets if isinstance(each, str)]
    phrases = [each for each in targets if isinstance(each, Phrase)]
    terms = list(dict.fromkeys([*alone, *(term for phrase in phrases for term, _ in phrase.words)]))
    numbers = {term: number for number, term in enumerate(terms)}
    of_words = [-1 if t is None else numbers.get(t, -1) for t in terms_of_words(cut.words, analyser.parameters)]
    # The -1 at the end is for tokens that are too long.
    of_tokens = np.array([*of_words, -1], np.int64)[np.where(cut.ids == LONG, len(of_words), cut.ids)]
    marked = of_tokens >= 0
    if phrases:
        tokens = np.flatnonzero(marked)
        of_texts = np.searchsorted(cut.bounds, tokens, side="right") - 1
        numbered = of_tokens[tokens], of_texts, tokens - cut.bounds[of_texts]
        is_hit = np.isin(numbered[0], [numbers[term] for term in alone])
        for phrase in phrases:
            is_hit |= in_phrase(phrase, terms, *numbered)
        marked[tokens[~is_hit]] = False
    before = np.concatenate([[0], np.cumsum(marked)])[cut.bounds]
    spans = cut.spans[marked]
    of_texts = np.concatenate([[0], np.cumsum(present)])
    return TokenSpans(spans[:, 0], spans[:, 1], of_tokens[marked], before[of_texts])


def highlight(
    texts: pa.Array | pa.ChunkedArray,
    terms: Collection[Target],
    analyser: Analyser,
    pre: str = "<b>",
    post: str = "</b>",
) -> pa.LargeStringArray:
    """Return texts with marks around the tokens of terms. Overlapping or adjacent tokens share one pair of marks.

    Args:
        texts: See `term_spans`.
        terms: See `term_spans`.
        analyser: See `term_spans`.
        pre: Mark inserted before a token.
        post: Mark inserted after a token.

    Raises:
        InvalidInputError: A mark is not UTF-8.
        WrongTypeError, InvalidInputError, UnsupportedError: See `term_spans`.
    """
    marks = _encoded_marks("highlight", pre=pre, post=post)
    array = _checked(texts)
    return _with_marks(array, _merged(term_spans(array, terms, analyser)), *marks)


def snippet(
    texts: pa.Array | pa.ChunkedArray,
    terms: Collection[Target],
    analyser: Analyser,
    pre: str = "<b>",
    post: str = "</b>",
    words: int = 20,
    gap: str = "…",
) -> pa.LargeStringArray:
    """Return the best excerpt of each text, with marks around the tokens of terms.

    The best excerpt has the most different terms. Among equals, the excerpt with the most tokens of these terms wins,
    then the first one. A text that does not contain any term yields its first words.

    Args:
        texts: See `term_spans`.
        terms: See `term_spans`.
        analyser: See `term_spans`.
        pre: Mark inserted before a token.
        post: Mark inserted after a token.
        words: Maximum length of an excerpt, in words (runs of letters and digits).
        gap: Text inserted at either end if the excerpt omits text there.

    Raises:
        InvalidInputError: `words` is less than 1, or a mark or the gap is not UTF-8.
        WrongTypeError, InvalidInputError, UnsupportedError: See `term_spans`.
    """
    if index(words) < 1:
        raise InvalidInputError("bad words", where="snippet", expected="1 or more", found=words)
    first, last, _ = _encoded_marks("snippet", pre=pre, post=post, gap=gap)
    array = _checked(texts)
    spans = term_spans(array, terms, analyser)
    parts = _parts(array, spans, words)
    texts_of_bytes = [(text or "").encode() for text in array.to_pylist()]
    pairs = list(zip(texts_of_bytes, parts, strict=True))
    shown = pa.array([text[begin:end].decode() for text, (begin, end) in pairs], pa.large_string())
    marked = _with_marks(shown, _merged(_inside(spans, parts)), first, last)
    before = pa.array([gap if begin else "" for _, (begin, _) in pairs], pa.large_string())
    behind = pa.array([gap if end < len(text) else "" for text, (_, end) in pairs], pa.large_string())
    whole = pc.binary_join_element_wise(before, marked, behind, pa.scalar("", pa.large_string()))
    return pc.if_else(array.is_valid(), whole, pa.scalar(None, pa.large_string()))


def _checked(texts: pa.Array | pa.ChunkedArray) -> pa.LargeStringArray:
    array = joined_texts(texts)
    if not is_text(array.type):
        expected = "string, large_string or string_view"
        raise WrongTypeError("the strings have the wrong type", where="highlight", expected=expected, found=array.type)
    return large_texts(array)


def _texts_of(spans: TokenSpans) -> NDArray[np.int64]:
    """Return the index of the text that contains each span."""
    return np.repeat(np.arange(len(spans.bounds) - 1), np.diff(spans.bounds))


def _merged(spans: TokenSpans) -> TokenSpans:
    """Join overlapping or adjacent spans of a text. A joined span keeps the term of its first span."""
    if len(spans.begins) == 0:
        return spans
    texts = _texts_of(spans)
    # Each text gets its own range of `width` offsets, so spans of different texts are never joined.
    width = int(spans.ends.max()) + 1
    reach = np.maximum.accumulate(spans.ends + texts * width)
    is_first = np.ones(len(texts), bool)
    is_first[1:] = (spans.begins + texts * width)[1:] > reach[:-1]
    firsts = np.flatnonzero(is_first)
    lasts = np.append(firsts[1:], len(texts)) - 1
    bounds = np.searchsorted(firsts, spans.bounds)
    return TokenSpans(spans.begins[firsts], (reach - texts * width)[lasts], spans.terms[firsts], bounds)


def _encoded_marks(where: str, **marks: str) -> list[bytes]:
    return [utf8_bytes(mark, name, where) for name, mark in marks.items()]


def _with_marks(texts: pa.LargeStringArray, spans: TokenSpans, pre: bytes, post: bytes) -> pa.LargeStringArray:
    """Return texts with marks around non-overlapping spans. Nulls stay null."""
    marks = np.frombuffer(pre + post, np.uint8)
    split = len(pre)
    starts = np.concatenate([[0], np.cumsum(_sizes(texts))])
    data = np.frombuffer("".join(text or "" for text in texts.to_pylist()).encode(), np.uint8)
    places = np.stack([spans.begins, spans.ends], axis=1) + starts[_texts_of(spans)][:, None]
    repeats = np.tile([split, len(marks) - split], len(places))
    marked = np.insert(data, np.repeat(places.ravel(), repeats), np.tile(marks, len(places)))
    offsets = starts + spans.bounds * len(marks)
    valid = texts.is_valid().buffers()[1] if texts.null_count else None
    return pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(marked), valid)


def _sizes(texts: pa.LargeStringArray) -> NDArray[np.int64]:
    """Return the size of each text in bytes, or 0 for a null."""
    sizes = pc.binary_length(texts).fill_null(0)
    return np.asarray(sizes.to_numpy(zero_copy_only=False), np.int64)


def _parts(texts: pa.LargeStringArray, spans: TokenSpans, words: int) -> list[tuple[int, int]]:
    """Return the start and end of each text's excerpt, in bytes, or (0, 0) for a null."""
    cut = cut_texts(texts.fill_null(""), _WORDS, with_spans=True)
    bounds, edges = spans.bounds.tolist(), cut.bounds.tolist()
    begins, terms = spans.begins.tolist(), spans.terms.tolist()
    parts = []
    for text, size in enumerate(_sizes(texts).tolist()):
        tokens = cut.spans[edges[text] : edges[text + 1]].tolist()
        if len(tokens) <= words:
            parts.append((0, size))
            continue
        first_bytes = [begin for begin, _ in tokens]
        marked = range(bounds[text], bounds[text + 1])
        places = [max(0, bisect_right(first_bytes, begins[i]) - 1) for i in marked]
        first = _window(places, [terms[i] for i in marked], len(tokens), words)
        last = first + words - 1
        parts.append((tokens[first][0] if first else 0, size if last + 1 == len(tokens) else tokens[last][1]))
    return parts


def _window(places: list[int], terms: list[int], count: int, words: int) -> int:
    """Find the window with the most distinct terms, and center it around them.

    Returns the position of its first word. The first window is returned if no term occurs.

    Args:
        places: Ascending word positions at which a term occurs.
        terms: Term at each position.
        count: Number of words of the text, more than `words`.
        words: Number of words of the window.
    """
    best, middle = (0, 0), (0, 0)
    inside: Counter[int] = Counter()
    end = 0
    for begin, place in enumerate(places):
        while end < len(places) and places[end] < place + words:
            inside[terms[end]] += 1
            end += 1
        value = (len(inside), end - begin)
        if value > best:
            best, middle = value, (place, places[end - 1])
        inside[terms[begin]] -= 1
        if not inside[terms[begin]]:
            del inside[terms[begin]]
    slack = words - (middle[1] - middle[0] + 1)
    return 0 if best == (0, 0) else min(max(0, middle[0] - slack // 2), count - words)


def _inside(spans: TokenSpans, parts: list[tuple[int, int]]) -> TokenSpans:
    """Return the spans inside the excerpt of their text, relative to the excerpt's start."""
    texts = _texts_of(spans)
    edges = np.array(parts, np.int64).reshape(-1, 2)
    begins, ends = spans.begins - edges[texts, 0], spans.ends - edges[texts, 0]
    inside = (begins >= 0) & (spans.ends <= edges[texts, 1])
    bounds = np.concatenate([[0], np.cumsum(inside)])[spans.bounds]
    return TokenSpans(begins[inside], ends[inside], spans.terms[inside], bounds)
