"""Kernels that cut tokens: runs of word characters, n-grams, and whole strings.

Each call continues where the last one stopped. `state` is int64 (5,): string index, next byte of the string, token
count, distinct word count, size of the distinct words. Invalid UTF-8 may be cut at any byte of its string.

`table` is a tuple with the bytes, offsets and sizes of the distinct words, and the slots of `word_number`.
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
"""`ids` is full."""
WORDS_FULL = 2
"""The table, or its buffer for the words' bytes, is full."""
BAD_OFFSETS = 3
"""The offsets do not ascend within the data."""

CODE_POINTS = 0x110000

_HIGH = np.uint64(0x8080808080808080)
_SEVEN = np.uint64(7)
_ONE = np.uint64(1)


@subroutine
def _size_at(data: Bytes, at: Any, stop: Any) -> Any:
    """Return the size of the character at `at`, limited by the end of the string."""
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
    """Decode a code point of `size` bytes. Invalid UTF-8 yields an arbitrary number below CODE_POINTS."""
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
    """Cut the longest runs of word characters.

    Args:
        data: UTF-8 of all strings.
        offsets: Byte offset of each string, and the end of the last one.
        members: Two arrays: (CODE_POINTS,), 1 for word characters; and the `ascii_sums` of the first array.
        limit: Minimum size of a LONG token, in bytes.
        table: See above; updated.
        ids: Output: word number of each token, or LONG.
        spans: (n, 2), output: start and end of each token in the data. Has the length of `ids`, or is empty.
        bounds: Output from the second entry on: number of tokens before each string.
        state: See above; updated.

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
    """Append a token as number `count`, and add its word if it is new.

    Returns:
        The status (DONE, TOKENS_FULL or WORDS_FULL), the number of distinct words, and their total size in bytes.
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
    """Return the offset of the next word character, or `stop` if there is none."""
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
    """Return the end of the run around `at`. Tests up to eight ASCII characters at a time."""
    while at < stop:
        if at + 8 <= len(data):
            word = load_u64(data, at)
            outside = ~_inside(word, sums) & _HIGH
            others = word & _HIGH
            if others:
                # A non-ASCII byte may corrupt the bits of the bytes above it, but not of the bytes below it.
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
    """Return a 64-bit word whose high bits mark which of eight ASCII characters are word characters."""
    inside = np.uint64(0)
    for i in range(len(sums)):
        inside |= (word + sums[i, 0]) & ~(word + sums[i, 1])
    return inside


def ascii_sums(members: Bytes) -> NDArray[np.uint64]:
    """Return the addends that `cut_words` uses to test eight ASCII characters at once: uint64 (ranges, 2).

    A character c is in the range a to b if the high bit is set in c + 128 - a and clear in c + 127 - b.
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
    """Cut all n-grams of the given lengths, sorted by start, then by length. Drops tokens of at least `limit` bytes.

    Args:
        data: UTF-8 of all strings.
        offsets: Byte offset of each string, and the end of the last one.
        lengths: Three numbers: minimum and maximum number of characters, at least 1; then 1 to cut only n-grams at the
            start of a string.
        limit: Minimum size of a dropped token, in bytes.
        table: See above; updated.
        ids: Output: word number of each token.
        spans: (n, 2), output: start and end of each token in the data. Has the length of `ids`, or is empty.
        bounds: Output from the second entry on: number of tokens before each string.
        state: See above; updated.

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
    """Make each string one token.

    Args:
        data: UTF-8 of all strings.
        offsets: Byte offset of each string, and the end of the last one.
        rule: Unused.
        limit: Minimum size of a LONG token, in bytes.
        table: See above; updated.
        ids: Output: word number of each token, or LONG.
        spans: (n, 2), output: start and end of each token in the data. Has the length of `ids`, or is empty.
        bounds: Output from the second entry on: number of tokens before each string.
        state: See above; updated.

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
