"""Base tokenizers, which split texts into tokens. A token is represented by its word number.

Numbers count distinct words in order of their first occurrence. The kernels' arrays grow with the words and tokens
found, so memory use depends on the actual texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.memory import unset
from lance_duck.errors import InternalError, InvalidInputError
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.tokens.cut import DONE, TOKENS_FULL, WORDS_FULL, cut_ngrams, cut_whole, cut_words
from lance_duck.kernels.tokens.words import LONG, fill_slots
from lance_duck.text.parameters import AnalyserParameters
from lance_duck.text.tables import alphanumeric, alphanumeric_runs, not_whitespace, not_whitespace_runs

_NO_LIMIT: Final = (1 << 63) - 1
_FIRST_WORDS: Final = 1 << 9
_FIRST_BYTES: Final = 8 * _FIRST_WORDS
_FIRST_TOKENS: Final = 1 << 10
_MOST_BYTES: Final = 1 << 31
"""Maximum total size of distinct n-grams, in bytes. Without a limit for token lengths, n-grams could take much more
memory than the texts. Other words never take more bytes than the texts."""


@dataclass(frozen=True, eq=False)
class Cut:
    """Tokens from a base tokenizer, as word numbers in a table.

    Attributes:
        ids: uint32 (tokens,), word number of each token, or LONG if it is too long.
        bounds: int64 (texts + 1,), number of tokens before each text, and the total.
        spans: int64 (n, 2), start and end of each token in its text, in bytes, or empty if they were not requested.
    """

    ids: NDArray[np.uint32]
    bounds: NDArray[np.int64]
    spans: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Words(Cut):
    """Tokens from a base tokenizer, with the distinct words among them.

    Attributes:
        ids: See `Cut`: indices in `words`.
        bounds: See `Cut`.
        spans: See `Cut`.
        words: Distinct words, in order of their first occurrence.
    """

    words: list[str]


class WordTable:
    """Distinct words, numbered in order of first occurrence. Not thread-safe."""

    def __init__(self) -> None:
        self._known = np.empty(_FIRST_BYTES, np.uint8)
        self._starts, self._sizes = np.empty((2, _FIRST_WORDS), np.int64)
        self._slots = np.zeros(4 * _FIRST_WORDS, np.uint64)
        self._count = self._used = 0

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Size in memory, in bytes."""
        return self._known.nbytes + self._starts.nbytes + self._sizes.nbytes + self._slots.nbytes

    def strings(self, first: int = 0) -> list[str]:
        """Return the words whose numbers are at least `first`."""
        view = memoryview(cast("Any", self._known))
        starts, sizes = self._starts[first : self._count], self._sizes[first : self._count]
        pairs = zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
        return [str(view[start:stop], "utf-8") for start, stop in pairs]

    def values(self) -> pa.LargeBinaryArray:
        """Return all words by number. The array does not change when words are added."""
        offsets = np.append(self._starts[: self._count], self._used)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(self._known)]
        return pa.LargeBinaryArray.from_buffers(pa.large_binary(), self._count, buffers)

    def number(self, words: pa.LargeBinaryArray | pa.LargeStringArray) -> NDArray[np.uint32]:
        """Return the number of each word, adding new words to the table. Words must not be null."""
        return self.cut(words, cut_whole, 0, _NO_LIMIT).ids

    def cut(
        self,
        texts: pa.LargeStringArray | pa.LargeBinaryArray,
        cut: Callable[..., int],
        rule: Any,
        limit: int,
        with_spans: bool = False,
    ) -> Cut:
        """Run a kernel of `kernels.tokens.cut` over all texts. Arrays that are full are replaced by larger ones.

        Args:
            texts: Without nulls.
            cut: The kernel.
            rule: Third argument of the kernel.
            limit: Size from which a token is too long, in bytes.
            with_spans: Whether to return the span of each token.

        Raises:
            InvalidInputError: There are too many distinct words, or too many bytes of n-grams.
        """
        data, offsets = text_buffers(texts)
        most = len(texts) if cut is cut_whole else int(offsets[-1] - offsets[0]) // 4
        ids = unset(max(_FIRST_TOKENS, most), np.uint32)
        spans = np.empty((len(ids) if with_spans else 0, 2), np.int64)
        bounds = np.zeros(len(offsets), np.int64)
        state = np.array([0, -1, 0, self._count, self._used], np.int64)
        while True:
            table = (self._known, self._starts, self._sizes, self._slots)
            status = cut(data, offsets, rule, limit, table, ids, spans, bounds, state)
            count = int(state[2])
            self._count, self._used = int(state[3]), int(state[4])
            if status == DONE:
                break
            if status == TOKENS_FULL:
                ids, spans = grown(ids, count), grown(spans, count)
            elif status == WORDS_FULL:
                self._grow(is_bounded=cut is cut_ngrams)
            else:
                raise InternalError("string offsets do not ascend, or exceed their data")
        spans = spans[:count]
        if with_spans:
            spans -= np.repeat(offsets[:-1], np.diff(bounds))[:, None]
        return Cut(ids[:count], bounds, spans)

    def _grow(self, *, is_bounded: bool) -> None:
        """Double the capacity for words or for their bytes. With `is_bounded`, `_MOST_BYTES` limits the bytes."""
        if self._count < len(self._starts):
            if is_bounded and len(self._known) >= _MOST_BYTES:
                remedy = "give fewer of them at once, or a max_token_length"
                raise InvalidInputError(
                    "the documents have too many long tokens", expected=f"{_MOST_BYTES:,} bytes", remedy=remedy
                )
            self._known = grown(self._known, self._used)
            return
        if self._count >= LONG // 2:
            raise InvalidInputError("the documents have too many distinct tokens", expected=f"at most {self._count}")
        self._starts, self._sizes = grown(self._starts, self._count), grown(self._sizes, self._count)
        self._slots = np.zeros(4 * len(self._starts), np.uint64)
        fill_slots(self._known, self._starts[: self._count], self._sizes[: self._count], self._slots)


def cut_texts(texts: pa.LargeStringArray, parameters: AnalyserParameters, with_spans: bool = False) -> Words:
    """Cut texts into tokens.

    Args:
        texts: Without nulls, of valid UTF-8.
        parameters: Parameters that are supported.
        with_spans: Whether to return the span of each token.
    """
    table = WordTable()
    cut = cut_with(table, texts, parameters, with_spans)
    return Words(cut.ids, cut.bounds, cut.spans, table.strings())


def cut_with(
    table: WordTable, texts: pa.LargeStringArray, parameters: AnalyserParameters, with_spans: bool = False
) -> Cut:
    """Cut texts into tokens, and add new words to a table. See `cut_texts`."""
    limit = _limit(parameters)
    if parameters.base_tokenizer == "raw":
        return table.cut(texts, cut_whole, 0, limit, with_spans)
    if parameters.base_tokenizer == "ngram":
        lengths = [parameters.min_ngram_length, parameters.max_ngram_length, int(parameters.prefix_only)]
        return table.cut(texts, cut_ngrams, readonly(np.array(lengths, np.int64)), limit, with_spans)
    members = alphanumeric_runs() if parameters.base_tokenizer == "simple" else not_whitespace_runs()
    return table.cut(texts, cut_words, members, limit, with_spans)


def tokens_of_text(text: str, parameters: AnalyserParameters) -> Iterator[tuple[str, int]]:
    """Yield the tokens of a text within the length limit, with their positions: the reference for `cut_texts`."""
    limit = _limit(parameters)
    tokens = _CUTS[parameters.base_tokenizer](text, parameters)
    for place, token in enumerate(tokens):
        if len(token.encode()) < limit:
            yield token, 0 if parameters.base_tokenizer == "ngram" else place


def grown(array: NDArray[Any], used: int) -> NDArray[Any]:
    """Return an array of twice the length that starts with the first `used` values of `array`."""
    larger = np.empty((2 * len(array), *array.shape[1:]), array.dtype)
    larger[:used] = array[:used]
    return larger


def text_buffers(texts: pa.LargeStringArray | pa.LargeBinaryArray) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the data and the offsets of texts, without copying them."""
    _, offsets, data = texts.buffers()
    if len(texts) == 0 or offsets is None:
        return readonly(np.empty(0, np.uint8)), readonly(np.zeros(1, np.int64))
    places = np.frombuffer(offsets, np.int64, len(texts) + 1, 8 * texts.offset)
    values = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return readonly(values), readonly(places)


def _limit(parameters: AnalyserParameters) -> int:
    return _NO_LIMIT if parameters.max_token_length is None else parameters.max_token_length


def _alphanumeric_runs(text: str) -> Iterable[str]:
    """Return runs of letters and digits, like `_runs`. Most queries are ASCII, for which `re` is ten times faster."""
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
