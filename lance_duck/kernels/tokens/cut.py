"""Kernels that cut tokens: runs of characters that belong to words, n-grams, and whole texts.

Each call continues after the last one. `state` is int64 (5,): text number, next byte of the text, token count,
distinct word count, byte count of the distinct words. Damaged UTF-8 is cut somewhere inside its text.

`table` holds the distinct words: their bytes, the offset and the size of each, and the slots of `word_number`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, as_readonly, copy, load_u64, trailing_zeros
from lance_duck.kernels.tokens.words import FULL, LONG, Slots, word_number

Table = tuple[Bytes, NDArray[np.int64], NDArray[np.int64], Slots]

DONE = 0
TOKENS_FULL = 1
"""There are more tokens than places in `ids`."""
WORDS_FULL = 2
"""There are more distinct words than places in the table, or more bytes of them."""
BAD_OFFSETS = 3
"""Offsets do not ascend, or leave the data."""

CODE_POINTS = 0x110000

_HIGH = np.uint64(0x8080808080808080)
_SEVEN = np.uint64(7)
_ONE = np.uint64(1)


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
    members: tuple[Bytes, NDArray[np.uint64]],
    limit: int,
    table: Table,
    ids: NDArray[np.uint32],
    spans: NDArray[np.int64],
    bounds: NDArray[np.int64],
    state: NDArray[np.int64],
) -> int:
    """Cut the longest runs of characters that belong to words.

    Args:
        data: UTF-8 of all texts.
        offsets: Where each text begins, and where the last one ends.
        members: (CODE_POINTS,), 1 for a character that belongs to words; and `ascii_sums` of these.
        limit: Number of bytes from which on a token is LONG.
        table: See above, written.
        ids: Number of each token's word, or LONG, written.
        spans: (n, 2): begin and end of each token in the data, written; as many as ids, or none.
        bounds: Number of tokens before each text, one more than texts, written from the second one on.
        state: See above, written.

    Returns:
        DONE, TOKENS_FULL, WORDS_FULL or BAD_OFFSETS.
    """
    text, at, count, words, used = state[0], state[1], state[2], state[3], state[4]
    is_member, sums = members
    outcome = DONE
    while text < len(offsets) - 1:
        if at < 0:
            at = offsets[text]
        stop = offsets[text + 1]
        if offsets[text] < 0 or at < offsets[text] or at > stop or stop > len(data):
            return BAD_OFFSETS
        while True:
            begin = _next_member(data, at, stop, is_member)
            if begin == stop:
                break
            at = _run_end(data, begin, stop, is_member, sums)
            outcome, words, used = _put_token(data, begin, at, limit, table, ids, spans, count, words, used)
            if outcome != DONE:
                at = begin
                break
            count += 1
        if outcome != DONE:
            break
        at = np.int64(-1)
        text += 1
        bounds[text] = count
    state[0], state[1], state[2], state[3], state[4] = text, at, count, words, used
    return int(outcome)


@subroutine
def _put_token(
    data: Bytes,
    begin: Any,
    end: Any,
    limit: int,
    table: Table,
    ids: NDArray[np.uint32],
    spans: NDArray[np.int64],
    count: Any,
    words: Any,
    used: Any,
) -> Any:
    """Write a token behind `count` others, and its word if that is new.

    Returns:
        (DONE, TOKENS_FULL or WORDS_FULL, the number of distinct words, that of their bytes).
    """
    known, starts, sizes, slots = table
    size = end - begin
    if count == len(ids):
        return TOKENS_FULL, words, used
    number = np.int64(LONG)
    if size < limit:
        if size > len(known) - used:
            return WORDS_FULL, words, used
        number = word_number(data, begin, size, slots, as_readonly(known), used, starts, sizes, words)
        if number == FULL:
            return WORDS_FULL, words, used
        if number == words:
            copy(known, used, data, begin, size)
            words += 1
            used += size
    ids[count] = number
    if count < len(spans):
        spans[count, 0], spans[count, 1] = begin, end
    return DONE, words, used


@subroutine
def _next_member(data: Bytes, at: Any, stop: Any, members: Bytes) -> Any:
    """Return where the next character lies that belongs to words; `stop` if there is none."""
    while at < stop:
        code = np.int64(data[at])
        size = np.int64(1)
        if code >= 0x80:
            size = _size_at(data, at, stop)
            code = _code_point(data, at, size)
        if members[code] != 0:
            return at
        at += size
    return stop


@subroutine
def _run_end(data: Bytes, at: Any, stop: Any, members: Bytes, sums: NDArray[np.uint64]) -> Any:
    """Return where the run ends that `at` lies in: up to eight ASCII characters are looked at together."""
    while at < stop:
        if at + 8 <= len(data):
            word = load_u64(data, at)
            outside = ~_inside(word, sums) & _HIGH
            others = word & _HIGH
            if others:
                # A byte that is no ASCII may disturb those above it, never those below.
                outside &= (_ONE << np.uint64(trailing_zeros(others) - 7)) - _ONE
            if outside:
                return min(at + (trailing_zeros(outside) >> 3), stop)
            if not others:
                at += 8
                continue
            at += trailing_zeros(others) >> 3
            if at >= stop:
                return stop
        code = np.int64(data[at])
        size = np.int64(1)
        if code >= 0x80:
            size = _size_at(data, at, stop)
            code = _code_point(data, at, size)
        if members[code] == 0:
            return at
        at += size
    return stop


@subroutine
def _inside(word: Any, sums: NDArray[np.uint64]) -> Any:
    """Return a word whose highest bits of bytes say which of eight ASCII characters belong to words."""
    inside = np.uint64(0)
    for i in range(len(sums)):
        inside |= (word + sums[i, 0]) & ~(word + sums[i, 1])
    return inside


def ascii_sums(members: Bytes) -> NDArray[np.uint64]:
    """Return what `cut_words` adds to eight ASCII characters to find which belong to words: uint64 (ranges, 2).

    A character c is in the range from a to b if the highest bit of c + 128 - a is set, and that of c + 127 - b is not.
    """
    edges = np.flatnonzero(np.diff(members[:0x80].astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    every = np.uint64(0x0101010101010101)
    sums = np.stack([0x80 - edges[:, 0], 0x80 - edges[:, 1]], axis=1).astype(np.uint64)
    return sums * every


@kernel
def cut_ngrams(
    data: Bytes,
    offsets: NDArray[np.int64],
    lengths: NDArray[np.int64],
    limit: int,
    table: Table,
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
        table: See above, written.
        ids: Number of each token's word, written.
        spans: (n, 2): begin and end of each token in the data, written; as many as ids, or none.
        bounds: Number of tokens before each text, one more than texts, written from the second one on.
        state: See above, written.

    Returns:
        DONE, TOKENS_FULL, WORDS_FULL or BAD_OFFSETS.
    """
    shortest, longest, only_first = lengths[0], lengths[1], lengths[2] != 0
    text, at, count, words, used = state[0], state[1], state[2], state[3], state[4]
    full = DONE
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
            before = count
            last, wide = end, shortest
            while last - at < limit:
                full, words, used = _put_token(data, at, last, limit, table, ids, spans, count, words, used)
                count += np.int64(full == DONE)
                if full != DONE or wide == longest or last == stop:
                    break
                last += _size_at(data, last, stop)
                wide += 1
            if full != DONE:
                count = before
                break
            if only_first or end == stop:
                break
            at += _size_at(data, at, stop)
            end += _size_at(data, end, stop)
        if full != DONE:
            break
        at = np.int64(-1)
        text += 1
        bounds[text] = count
    state[0], state[1], state[2], state[3], state[4] = text, at, count, words, used
    return int(full)


@kernel
def cut_whole(
    data: Bytes,
    offsets: NDArray[np.int64],
    rule: int,
    limit: int,
    table: Table,
    ids: NDArray[np.uint32],
    spans: NDArray[np.int64],
    bounds: NDArray[np.int64],
    state: NDArray[np.int64],
) -> int:
    """Make a token of each text.

    Args:
        data: UTF-8 of all texts.
        offsets: Where each text begins, and where the last one ends.
        rule: Not read.
        limit: Number of bytes from which on a token is LONG.
        table: See above, written.
        ids: Number of each token's word, or LONG, written.
        spans: (n, 2): begin and end of each token in the data, written; as many as ids, or none.
        bounds: Number of tokens before each text, one more than texts, written from the second one on.
        state: See above, written.

    Returns:
        DONE, TOKENS_FULL, WORDS_FULL or BAD_OFFSETS.
    """
    text, words, used = state[0], state[3], state[4]
    outcome = DONE
    while text < len(offsets) - 1:
        begin, stop = offsets[text], offsets[text + 1]
        if begin < 0 or begin > stop or stop > len(data):
            return BAD_OFFSETS
        outcome, words, used = _put_token(data, begin, stop, limit, table, ids, spans, text, words, used)
        if outcome != DONE:
            break
        text += 1
        bounds[text] = text
    state[0], state[2], state[3], state[4] = text, text, words, used
    return int(outcome)
