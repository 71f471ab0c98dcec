"""Subroutines that read posting blocks of several terms on demand.

`kernels.postings.search.best` describes `postings`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lance_duck.kernels import status
from lance_duck.kernels.jit import subroutine
from lance_duck.kernels.postings.blocks import LARGE, decode_block, decode_documents, frequency_in


@subroutine
def read_block(postings: Any, term: Any, block: Any, room: Any, decoded: Any, counts: Any) -> Any:
    """Decode a term's block, unless it was decoded last. Returns a status without an index."""
    if decoded[term] == block:
        return status.OK
    code = decode_known(postings, term, block, room[0, term], room[1, term])
    decoded[term] = block if code == status.OK else np.int64(-1)
    counts[1] += 1
    return code


@subroutine
def read_documents(postings: Any, term: Any, block: Any, room: Any, state: Any, counts: Any) -> Any:
    """Decode the documents of a term's block, unless `room` holds them. Returns a status without an index.

    `state` has two numbers for each term: the block whose documents are in `room`, and the block whose frequencies are
    in `room`.
    """
    if state[0, term] == block:
        return status.OK
    data, offsets, lists, lengths, block_size, is_varint, last, is_exact = postings
    count, ids = count_of(lists, lengths, block_size, term, block), room[0, term]
    begin, end = offsets[block], offsets[block + 1]
    code = decode_documents(data, begin, end, count, block_size, is_varint, ids, room[1, term])
    counts[1] += 1
    state[0, term] = np.int64(-1)
    if count < block_size:
        state[1, term] = np.int64(-1)
    if code != status.OK:
        return code
    wrong = np.int64(np.int64(ids[0]) <= _last_before(postings, term, block))
    for i in range(1, count):
        wrong += np.int64(ids[i] <= ids[i - 1])
    if wrong or not _ends_at(np.int64(ids[count - 1]), last[block], is_exact):
        return status.BAD_VALUE
    state[0, term] = block
    return status.OK


@subroutine
def read_both(postings: Any, term: Any, block: Any, room: Any, state: Any, counts: Any) -> Any:
    """Decode a term's block, unless `room` holds its documents and frequencies. Returns a status without an index."""
    if state[0, term] == block and state[1, term] == block:
        return status.OK
    state[1, term] = np.int64(-1)
    return read_frequencies(postings, term, block, room, state, counts)


@subroutine
def read_frequencies(postings: Any, term: Any, block: Any, room: Any, state: Any, counts: Any) -> Any:
    """Decode a term's block, unless `room` holds its frequencies. Returns a status without an index."""
    if state[1, term] == block:
        return status.OK
    code = read_block(postings, term, block, room, state[1], counts)
    state[0, term] = state[1, term]
    return code


@subroutine
def frequency_of(postings: Any, term: Any, block: Any, i: Any, room: Any, state: Any, counts: Any) -> Any:
    """Return a term's frequency in document `i` of a block, or 0 if the block is corrupt. Documents must be decoded."""
    data, offsets, lists, lengths, block_size, _, _, _ = postings
    if block_size == LARGE or count_of(lists, lengths, block_size, term, block) < block_size:
        if read_frequencies(postings, term, block, room, state, counts) != status.OK:
            return np.uint32(0)
        return np.uint32(room[1, term, i])
    return frequency_in(data, offsets[block], offsets[block + 1], i)


@subroutine
def count_of(lists: Any, lengths: Any, block_size: Any, term: Any, block: Any) -> Any:
    """Return the number of documents of a block."""
    return min(block_size, lengths[term] - (block - lists[term]) * block_size)


@subroutine
def block_of_posting(postings: Any, term: Any, posting: Any) -> Any:
    """Return (block of a term's posting, index of the posting in the block)."""
    if postings[4] == LARGE:
        return postings[2][term] + (posting >> 8), posting & 255
    return postings[2][term] + (posting >> 7), posting & 127


@subroutine
def decode_known(postings: Any, term: Any, block: Any, ids: Any, frequencies: Any) -> Any:
    """Decode a term's block, and check it against the known last documents. Returns a status without an index."""
    data, offsets, lists, lengths, block_size, is_varint, last, is_exact = postings
    begin, end, count = offsets[block], offsets[block + 1], count_of(lists, lengths, block_size, term, block)
    code = decode_block(data, begin, end, count, block_size, is_varint, ids, frequencies, 0)
    if code != status.OK:
        return code
    wrong = np.int64(frequencies[0] == 0) + np.int64(np.int64(ids[0]) <= _last_before(postings, term, block))
    for i in range(1, count):
        wrong += np.int64(ids[i] <= ids[i - 1]) + np.int64(frequencies[i] == 0)
    return status.OK if wrong == 0 and _ends_at(np.int64(ids[count - 1]), last[block], is_exact) else status.BAD_VALUE


@subroutine
def _last_before(postings: Any, term: Any, block: Any) -> Any:
    """Return the last document of the term's previous block, or its upper bound. Returns -1 for the first block."""
    return postings[6][block - 1] if block > postings[2][term] else np.int64(-1)


@subroutine
def _ends_at(document: Any, last: Any, is_exact: Any) -> Any:
    """Return whether a block's last document matches the expected last document."""
    return document == last or (document < last and not is_exact)


@subroutine
def first_block(last: Any, low: Any, high: Any, start: Any) -> Any:
    """Return the first block that ends at or after a document."""
    while low < high:
        middle = (low + high) >> 1
        if last[middle] < start:
            low = middle + 1
        else:
            high = middle
    return low


@subroutine
def next_block(last: Any, block: Any, high: Any, document: Any) -> Any:
    """Return the first block that ends at or after a document, given that `block` ends before it."""
    step = np.int64(1)
    while block + step < high and last[block + step] < document:
        block += step
        step += step
    return first_block(last, block + 1, min(block + step, high), document)


@subroutine
def lower_place(ids: Any, low: Any, high: Any, document: Any) -> Any:
    """Return the index of the first id at or above `document`, or `high` - 1 if all ids are smaller. Ids ascend."""
    high = high - 1
    while low < high:
        middle = (low + high) >> 1
        if np.int64(ids[middle]) < document:
            low = middle + 1
        else:
            high = middle
    return low
