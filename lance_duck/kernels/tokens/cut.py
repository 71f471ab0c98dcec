"""Kernels that cut tokens: runs of characters that belong to words, and n-grams.

Both continue where they stopped. `state` is int64 (4,): the text, the next byte of the text, the number of tokens, that
of distinct words. Damaged UTF-8 is cut somewhere inside its text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.tokens.words import FULL, LONG, Slots, word_number

DONE = 0
TOKENS_FULL = 1
"""There are more tokens than places in `ids`."""
WORDS_FULL = 2
"""There are more distinct words than places in `starts`."""
BAD_OFFSETS = 3
"""Offsets do not ascend, or leave the data."""

CODE_POINTS = 0x110000


@subroutine
def _size_at(data: Bytes, at: Any, stop: Any) -> Any:
    """Return the number of bytes of the character at `at`, at most up to the end of the text."""
    lead = data[at]
    size = 1
    if lead >= 0xF0:
        size = 4
    elif lead >= 0xE0:
        size = 3
    elif lead >= 0xC0:
        size = 2
    return np.int64(min(size, stop - at))


@subroutine
def _code_point(data: Bytes, at: Any, size: Any) -> Any:
    """Return the code point of `size` bytes; for damaged UTF-8 any number below CODE_POINTS."""
    lead = np.int64(data[at])
    if size == 1:
        return lead
    code = lead & (0x7F >> size)
    for i in range(1, size):
        code = (code << 6) | (np.int64(data[at + i]) & 0x3F)
    return code if code < CODE_POINTS else np.int64(0)


@kernel
def cut_words(
    data: Bytes,
    offsets: NDArray[np.int64],
    members: Bytes,
    limit: int,
    slots: Slots,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    ids: NDArray[np.uint32],
    spans: NDArray[np.int64],
    bounds: NDArray[np.int64],
    state: NDArray[np.int64],
) -> int:
    """Cut the longest runs of characters that belong to words.

    Args:
        data: UTF-8 of all texts.
        offsets: Where each text begins, and where the last one ends.
        members: (CODE_POINTS,), 1 for a character that belongs to words.
        limit: Number of bytes from which on a token is LONG.
        slots: See `word_number`.
        starts: First occurrence of each distinct word, written.
        sizes: Number of bytes of each distinct word, written.
        ids: Number of each token's word, or LONG, written.
        spans: (n, 2): begin and end of each token in the data, written; as many as ids, or none.
        bounds: Number of tokens before each text, one more than texts, written from the second one on.
        state: See above, written.

    Returns:
        DONE, TOKENS_FULL, WORDS_FULL or BAD_OFFSETS.
    """
    text, at = state[0], state[1]
    while text < len(offsets) - 1:
        if at < 0:
            at = offsets[text]
        stop = offsets[text + 1]
        if offsets[text] < 0 or at < offsets[text] or at > stop or stop > len(data):
            return BAD_OFFSETS
        while True:
            begin, at = _next_run(data, at, stop, members)
            if begin == stop:
                break
            full = _put_token(data, begin, at, limit, slots, starts, sizes, ids, spans, state)
            if full != DONE:
                state[0], state[1] = text, begin
                return int(full)
        at = np.int64(-1)
        text += 1
        bounds[text] = state[2]
    state[0], state[1] = text, -1
    return DONE


@subroutine
def _put_token(
    data: Bytes,
    begin: Any,
    end: Any,
    limit: int,
    slots: Slots,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    ids: NDArray[np.uint32],
    spans: NDArray[np.int64],
    state: NDArray[np.int64],
) -> Any:
    """Write a token, and its word if that is new, and count both; return DONE, TOKENS_FULL or WORDS_FULL."""
    count, words = state[2], state[3]
    if count == len(ids):
        return TOKENS_FULL
    number = np.int64(LONG)
    if end - begin < limit:
        number = word_number(data, begin, end - begin, slots, starts, sizes, words)
        if number == FULL:
            return WORDS_FULL
    ids[count] = number
    if count < len(spans):
        spans[count, 0], spans[count, 1] = begin, end
    state[2], state[3] = count + 1, words + np.int64(number == words)
    return DONE


@subroutine
def _next_run(data: Bytes, at: Any, stop: Any, members: Bytes) -> Any:
    """Return the begin and the end of the next run; both are `stop` if there is none."""
    inside = False
    begin = stop
    while at < stop:
        code = np.int64(data[at])
        size = np.int64(1)
        if code >= 0x80:
            size = _size_at(data, at, stop)
            code = _code_point(data, at, size)
        if (members[code] != 0) != inside:
            if inside:
                return begin, at
            inside = True
            begin = at
        at += size
    return begin, at


@kernel
def cut_ngrams(
    data: Bytes,
    offsets: NDArray[np.int64],
    lengths: NDArray[np.int64],
    limit: int,
    slots: Slots,
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    ids: NDArray[np.uint32],
    spans: NDArray[np.int64],
    bounds: NDArray[np.int64],
    state: NDArray[np.int64],
) -> int:
    """Cut all n-grams of some lengths, ordered by begin, then by length; those that are too long are left out.

    Args:
        data: UTF-8 of all texts.
        offsets: Where each text begins, and where the last one ends.
        lengths: Smallest and largest number of characters, at least 1; 1 if only n-grams at the begin of a text count.
        limit: Number of bytes from which on a token is left out.
        slots: See `word_number`.
        starts: First occurrence of each distinct word, written.
        sizes: Number of bytes of each distinct word, written.
        ids: Number of each token's word, written.
        spans: (n, 2): begin and end of each token in the data, written; as many as ids, or none.
        bounds: Number of tokens before each text, one more than texts, written from the second one on.
        state: See above, written.

    Returns:
        DONE, TOKENS_FULL, WORDS_FULL or BAD_OFFSETS.
    """
    shortest, longest, only_first = lengths[0], lengths[1], lengths[2] != 0
    text, at = state[0], state[1]
    while text < len(offsets) - 1:
        if at < 0:
            at = offsets[text]
        stop = offsets[text + 1]
        if offsets[text] < 0 or at < offsets[text] or at > stop or stop > len(data):
            return BAD_OFFSETS
        end = at
        length = 0
        while length < shortest and end < stop:
            end += _size_at(data, end, stop)
            length += 1
        while length == shortest:
            before = state[2]
            last, wide = end, shortest
            full = DONE
            while last - at < limit:
                full = _put_token(data, at, last, limit, slots, starts, sizes, ids, spans, state)
                if full != DONE or wide == longest or last == stop:
                    break
                last += _size_at(data, last, stop)
                wide += 1
            if full != DONE:
                state[0], state[1], state[2] = text, at, before
                return int(full)
            if only_first or end == stop:
                break
            at += _size_at(data, at, stop)
            end += _size_at(data, end, stop)
        at = np.int64(-1)
        text += 1
        bounds[text] = state[2]
    state[0], state[1] = text, -1
    return DONE
