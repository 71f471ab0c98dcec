"""Base tokenizers: texts cut into tokens, each given by the number of its word.

Numbers count distinct words in order of their first occurrence. The kernels' arrays grow as words and tokens come, so
that memory follows what the texts hold, not what they might.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.errors import InternalError, InvalidInputError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.tokens.cut import DONE, TOKENS_FULL, WORDS_FULL, cut_ngrams, cut_words
from lance_duck.kernels.tokens.words import LONG, fill_slots
from lance_duck.text.parameters import AnalyserParameters
from lance_duck.text.tables import alphanumeric, not_whitespace

_NO_LIMIT: Final = (1 << 63) - 1
_FIRST_WORDS: Final = 1 << 12
_FIRST_TOKENS: Final = 1 << 10
_MOST_BYTES: Final = 1 << 31
"""Bytes of all distinct words together. Long n-grams without a limit of length would take memory without end."""


@dataclass(frozen=True, eq=False)
class Words:
    """Tokens of texts, as a base tokenizer cuts them.

    Attributes:
        words: Distinct words, in order of their first occurrence.
        ids: Place in `words` of each token, or LONG for one that is too long; uint32.
        bounds: Number of tokens before each text, and of all; one more than texts, int64.
        spans: Begin and end of each token in its text, in bytes, int64 (n, 2); none where they were not asked for.
    """

    words: list[str]
    ids: NDArray[np.uint32]
    bounds: NDArray[np.int64]
    spans: NDArray[np.int64]


def cut_texts(texts: pa.LargeStringArray, parameters: AnalyserParameters, with_spans: bool = False) -> Words:
    """Cut texts into tokens.

    Args:
        texts: Without nulls, of valid UTF-8.
        parameters: Parameters that are supported.
        with_spans: Whether to say where each token is.
    """
    if parameters.base_tokenizer == "raw":
        return _whole_texts(texts, parameters)
    limit = _limit(parameters)
    if parameters.base_tokenizer == "ngram":
        lengths = [parameters.min_ngram_length, parameters.max_ngram_length, int(parameters.prefix_only)]
        return _cut(texts, cut_ngrams, readonly(np.array(lengths, np.int64)), limit, with_spans)
    members = alphanumeric() if parameters.base_tokenizer == "simple" else not_whitespace()
    return _cut(texts, cut_words, members, limit, with_spans)


def tokens_of_text(text: str, parameters: AnalyserParameters) -> Iterator[tuple[str, int]]:
    """Yield each token of one text that is not too long, and its position: the plain reference of `cut_texts`."""
    limit = _limit(parameters)
    tokens = _CUTS[parameters.base_tokenizer](text, parameters)
    for place, token in enumerate(tokens):
        if len(token.encode()) < limit:
            yield token, 0 if parameters.base_tokenizer == "ngram" else place


def grown(array: NDArray[Any], used: int) -> NDArray[Any]:
    """Return an array of twice the length, which begins with so many values of another."""
    larger = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    return larger


def text_buffers(texts: pa.LargeStringArray) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return data and offsets of texts, without copying them."""
    _, offsets, data = texts.buffers()
    if len(texts) == 0 or offsets is None:
        return readonly(np.empty(0, np.uint8)), readonly(np.zeros(1, np.int64))
    places = np.frombuffer(offsets, np.int64, len(texts) + 1, 8 * texts.offset)
    values = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return readonly(values), readonly(places)


def _limit(parameters: AnalyserParameters) -> int:
    return _NO_LIMIT if parameters.max_token_length is None else parameters.max_token_length


def _whole_texts(texts: pa.LargeStringArray, parameters: AnalyserParameters) -> Words:
    """Return each text as one token."""
    ends = pc.binary_length(texts).to_numpy(zero_copy_only=False).astype(np.int64)
    short = ends < _limit(parameters)
    encoded = texts.filter(pa.array(short)).dictionary_encode()
    ids = np.full(len(texts), LONG, np.uint32)
    ids[short] = encoded.indices.to_numpy(zero_copy_only=False)
    spans = np.stack([np.zeros_like(ends), ends], axis=1)
    return Words(encoded.dictionary.to_pylist(), ids, np.arange(len(texts) + 1, dtype=np.int64), spans)


def _cut(
    texts: pa.LargeStringArray, cut: Callable[..., int], rule: NDArray[Any], limit: int, with_spans: bool
) -> Words:
    """Run a kernel to its end, with larger arrays whenever one is full."""
    data, offsets = text_buffers(texts)
    text_bytes = int(offsets[-1] - offsets[0])
    starts, sizes = np.empty((2, _FIRST_WORDS), np.int64)
    slots = np.zeros(4 * _FIRST_WORDS, np.uint64)
    ids = np.empty(max(_FIRST_TOKENS, text_bytes // 4), np.uint32)
    spans = np.empty((len(ids) if with_spans else 0, 2), np.int64)
    bounds = np.zeros(len(offsets), np.int64)
    state = np.array([0, -1, 0, 0], np.int64)
    while True:
        status = cut(data, offsets, rule, limit, slots, starts, sizes, ids, spans, bounds, state)
        count = int(state[2])
        words = int(state[3])
        if status == DONE:
            break
        if status == TOKENS_FULL:
            ids, spans = grown(ids, count), grown(spans, count)
        elif status == WORDS_FULL:
            if words >= LONG // 2:
                raise InvalidInputError("texts have too many distinct tokens", expected=f"at most {words}")
            starts, sizes = grown(starts, words), grown(sizes, words)
            slots = np.zeros(4 * len(starts), np.uint64)
            fill_slots(data, starts[:words], sizes[:words], slots)
        else:
            raise InternalError("offsets of texts do not ascend inside their data")
    if sizes[:words].sum() > _MOST_BYTES:
        remedy = "give less of them at once, or a max_token_length"
        raise InvalidInputError("texts have too many long tokens", expected=f"{_MOST_BYTES:,} bytes", remedy=remedy)
    spans = spans[:count]
    if with_spans:
        spans -= np.repeat(offsets[:-1], np.diff(bounds))[:, None]
    return Words(_strings(data, starts[:words], sizes[:words]), ids[:count], bounds, spans)


def _strings(data: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> list[str]:
    view = memoryview(cast("Any", data))
    pairs = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
    return [str(view[start:stop], "utf-8") for start, stop in pairs]


def _alphanumeric_runs(text: str) -> Iterable[str]:
    """Return runs of letters and digits, as `_runs` does; most queries are ASCII, which `re` cuts ten times faster."""
    return _ASCII_RUNS.findall(text) if text.isascii() else _runs(text, alphanumeric())


def _runs(text: str, members: NDArray[np.uint8]) -> Iterator[str]:
    begin = None
    for place, character in enumerate(text):
        if members[ord(character)]:
            begin = place if begin is None else begin
        elif begin is not None:
            yield text[begin:place]
            begin = None
    if begin is not None:
        yield text[begin:]


def _ngrams(text: str, parameters: AnalyserParameters) -> Iterator[str]:
    for begin in range(min(len(text), 1) if parameters.prefix_only else len(text)):
        for size in range(parameters.min_ngram_length, parameters.max_ngram_length + 1):
            if begin + size > len(text):
                break
            yield text[begin : begin + size]


_ASCII_RUNS: Final = re.compile("[0-9A-Za-z]+")
_CUTS: Final[dict[str, Callable[[str, AnalyserParameters], Iterable[str]]]] = {
    "simple": lambda text, _: _alphanumeric_runs(text),
    "whitespace": lambda text, _: _runs(text, not_whitespace()),
    "raw": lambda text, _: iter([text]),
    "ngram": _ngrams,
}
