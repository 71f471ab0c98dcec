"""Kernels that sort postings by term, from document tokens or from the postings of other partitions.

The tokens of a batch of documents become runs, one for each term:

    varint number of documents | for each: varint (document - previous) · 2 + x | x = 1: varint frequency - 2
                               | with positions, for each token: varint position - previous in the document

Document ids start at 0 in each batch. A partition's postings are first counted, then filled in. Each batch and each
partition numbers its terms independently. `terms` and `numbers` map these numbers to the numbers in the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.postings.packing import read_varint, write_varint

UInt32s = NDArray[np.uint32]
Int64s = NDArray[np.int64]

NO_DOCUMENT = 0xFFFFFFFF
"""Marks a missing document. Documents never have this id."""
RUN_BYTES = 5
"""Maximum size of a run's header, in bytes."""
TOKEN_BYTES = 15
"""Maximum size that each token adds to a run, in bytes."""

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@kernel
def write_runs(
    term_ids: UInt32s,
    bounds: Int64s,
    positions: UInt32s,
    ends: UInt32s,
    entries: NDArray[np.uint64],
    order: UInt32s,
    counts: UInt32s,
    starts: NDArray[Any],
    out: Bytes,
    state: Int64s,
) -> int:
    """Write the tokens of documents as runs, in order of the first occurrence of each term.

    Args:
        term_ids: (tokens,), term of each token, in document order; fewer than 2**32 tokens.
        bounds: (documents + 1,), first token of each document, and the total token count.
        positions: (tokens,), position of each token. If empty, positions are omitted.
        ends: (terms,), scratch space, initially 0.
        entries: (tokens,), scratch space.
        order: (terms,), output: the term of each run.
        counts: (2, terms), output: document count and token count of each run.
        starts: (terms,), output: byte offset of each run. The dtype must be wide enough.
        out: Output. 5 bytes for each run, 15 for each token, and 5 more are enough.
        state: (2,), output: number of runs, and their size in bytes.

    Returns:
        A status.
    """
    if len(entries) < len(term_ids) or (len(positions) != 0 and len(positions) != len(term_ids)):
        return status.TOO_SHORT
    if len(order) < len(ends) or len(starts) < len(ends) or counts.shape[1] < len(ends):
        return status.TOO_SHORT
    runs = 0
    for i in range(len(bounds) - 1):
        if bounds[i] < 0 or bounds[i] > bounds[i + 1] or bounds[i + 1] > len(term_ids):
            return status.BAD_OFFSETS | (i << 8)
        for j in range(bounds[i], bounds[i + 1]):
            term = np.int64(term_ids[j])
            if term >= len(ends):
                return status.BAD_CODE | (j << 8)
            if ends[term] == 0:
                order[runs] = np.uint32(term)
                runs += 1
            ends[term] += np.uint32(1)
    place = np.uint32(0)
    for run in range(runs):
        term = np.int64(order[run])
        counts[1, run] = ends[term]
        ends[term], place = place, np.uint32(place + ends[term])
    with_positions = len(positions) != 0
    for i in range(len(bounds) - 1):
        document = np.uint64(i) << _HALF
        for j in range(bounds[i], bounds[i + 1]):
            term = np.int64(term_ids[j])
            entries[np.int64(ends[term])] = document | np.uint64(positions[j]) if with_positions else document
            ends[term] += np.uint32(1)
    at, first = np.int64(0), np.int64(0)
    for run in range(runs):
        end = first + np.int64(counts[1, run])
        if len(out) - at < RUN_BYTES + TOKEN_BYTES * (end - first):
            return status.TOO_SHORT | (run << 8)
        starts[run] = at
        documents, at = _write_run(entries, first, end, with_positions, out, at)
        counts[0, run] = np.uint32(documents)
        first = end
    state[0], state[1] = runs, at
    return status.OK


@subroutine
def _write_run(entries: Any, first: Any, end: Any, with_positions: Any, out: Any, at: Any) -> Any:
    """Write a term's entries as a run. Returns (number of documents, end of the run)."""
    documents = np.int64(1)
    for i in range(first + 1, end):
        documents += np.int64((entries[i] >> _HALF) != (entries[i - 1] >> _HALF))
    at = write_varint(out, at, documents)
    previous, begin = np.int64(0), np.int64(first)
    while begin < end:
        name = entries[begin] >> _HALF
        stop = begin + 1
        while stop < end and (entries[stop] >> _HALF) == name:
            stop += 1
        more = (np.int64(name) - previous) * 2
        if stop - begin == 1:
            at = write_varint(out, at, more)
        else:
            at = write_varint(out, write_varint(out, at, more + 1), stop - begin - 2)
        previous = np.int64(name)
        if with_positions:
            before = np.uint64(0)
            for i in range(begin, stop):
                position = entries[i] & _LOW
                at = write_varint(out, at, np.int64((position - before) & _LOW))
                before = position
        begin = stop
    return documents, at


def write_runs_reference(
    term_ids: UInt32s,
    bounds: Int64s,
    positions: UInt32s,
    ends: UInt32s,
    entries: NDArray[np.uint64],
    order: UInt32s,
    counts: UInt32s,
    starts: NDArray[Any],
    out: Bytes,
    state: Int64s,
) -> int:
    """Reference implementation in plain Python."""
    runs: dict[int, dict[int, list[int]]] = {}
    for i in range(len(bounds) - 1):
        for j in range(bounds[i], bounds[i + 1]):
            places = runs.setdefault(int(term_ids[j]), {}).setdefault(i, [])
            places.append(int(positions[j]) if len(positions) else 0)
    data = bytearray()
    for run, (term, documents) in enumerate(runs.items()):
        order[run], starts[run] = term, len(data)
        counts[:, run] = len(documents), sum(map(len, documents.values()))
        data += _varint(len(documents))
        before = 0
        for document, places in documents.items():
            count = len(places)
            data += _varint((document - before) * 2 + (count > 1)) + (_varint(count - 2) if count > 1 else b"")
            if len(positions):
                data += b"".join(map(_varint, np.diff(places, prepend=0).tolist()))
            before = document
    out[: len(data)] = np.frombuffer(data, np.uint8)
    state[:] = len(runs), len(data)
    return status.OK


def _varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + _varint(value >> 7)


@kernel
def fill_runs(
    data: Bytes,
    terms: UInt32s,
    starts: NDArray[Any],
    first: int,
    names: UInt32s,
    ends: Int64s,
    document_ids: UInt32s,
    frequencies: UInt32s,
    position_ends: Int64s,
    positions: UInt32s,
) -> int:
    """Append the runs of a batch to the postings of their terms. `order` sorts the postings afterwards.

    Args:
        data: Bytes of the batch.
        terms: (runs,), term of each run.
        starts: (runs,), byte offset of each run.
        first: The term whose postings come first in the output.
        names: (documents of the batch,), id of each document.
        ends: (terms,), slot of each term's next posting; updated.
        document_ids: Output: documents of all postings of the terms.
        frequencies: Output: frequencies of all postings of the terms.
        position_ends: (terms,), slot of each term's next position; updated. Empty if the runs do not have positions.
        positions: Output: positions of all postings of the terms.

    Returns:
        A status with the index of a run.
    """
    with_positions, size = len(position_ends) != 0, len(data)
    if len(starts) < len(terms) or len(frequencies) < len(document_ids):
        return status.TOO_SHORT
    if with_positions and len(position_ends) < len(ends):
        return status.TOO_SHORT
    for run in range(len(terms)):
        term = np.int64(terms[run]) - first
        if term < 0 or term >= len(ends):
            return status.BAD_CODE | (run << 8)
        count, at = read_varint(data, np.int64(starts[run]), size)
        place = ends[term]
        if at < 0 or place < 0 or place + count > len(document_ids):
            return status.TOO_SHORT | (run << 8)
        document = np.int64(0)
        target = position_ends[term] if with_positions else np.int64(0)
        for i in range(place, place + count):
            word, at = _next(data, at, size)
            tokens = np.int64(1)
            if at >= 0 and word & 1:
                tokens, at = _next(data, at, size)
                tokens += 2
            if at < 0:
                return status.TOO_SHORT | (run << 8)
            document += word >> 1
            if document < 0 or document >= len(names):
                return status.BAD_CODE | (run << 8)
            document_ids[i] = names[document]
            frequencies[i] = np.uint32(tokens)
            if with_positions:
                if target < 0 or target + tokens > len(positions):
                    return status.TOO_SHORT | (run << 8)
                position = np.int64(0)
                for k in range(target, target + tokens):
                    more, at = _next(data, at, size)
                    if at < 0:
                        return status.TOO_SHORT | (run << 8)
                    position += more
                    positions[k] = np.uint32(position & 0xFFFFFFFF)
                target += tokens
        ends[term] = place + count
        if with_positions:
            position_ends[term] = target
    return status.OK


@subroutine
def _next(data: Bytes, at: Any, end: Any) -> Any:
    """Read a varint like `read_varint`, with a fast path for single bytes."""
    if at < end and data[at] < 128:
        return np.int64(data[at]), np.int64(at + 1)
    return read_varint(data, at, end)


def fill_runs_reference(
    data: Bytes,
    terms: UInt32s,
    starts: NDArray[Any],
    first: int,
    names: UInt32s,
    ends: Int64s,
    document_ids: UInt32s,
    frequencies: UInt32s,
    position_ends: Int64s,
    positions: UInt32s,
) -> int:
    """Reference implementation in plain Python."""
    for term, start in zip((terms.astype(np.int64) - first).tolist(), starts.tolist(), strict=True):
        numbers = _numbers(data[start:].tobytes())
        document = 0
        for _ in range(next(numbers)):
            word = next(numbers)
            document += word >> 1
            tokens = next(numbers) + 2 if word & 1 else 1
            document_ids[ends[term]], frequencies[ends[term]] = names[document], tokens
            ends[term] += 1
            if len(position_ends):
                places = np.cumsum([next(numbers) for _ in range(tokens)])
                positions[position_ends[term] : position_ends[term] + tokens] = places
                position_ends[term] += tokens
    return status.OK


def _numbers(data: bytes) -> Iterator[int]:
    """Yield varints."""
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


@kernel
def count_living(
    bounds: Int64s, document_ids: UInt32s, frequencies: UInt32s, names: Int64s, numbers: Int64s, counts: Int64s
) -> int:
    """Count a partition's live postings and their tokens.

    Args:
        bounds: (terms of the partition + 1,), first posting of each term, and the total posting count.
        document_ids: (postings,), document of each posting.
        frequencies: (postings,), frequency of each posting.
        names: (documents,), new id of each document, negative if it is deleted.
        numbers: (terms of the partition,), number of each term in the result.
        counts: (2, terms of the result), increased by the number of live postings and of their tokens for each term.

    Returns:
        A status.
    """
    if len(numbers) < len(bounds) - 1 or len(frequencies) != len(document_ids):
        return status.TOO_SHORT
    for i in range(len(bounds) - 1):
        if bounds[i] < 0 or bounds[i] > bounds[i + 1] or bounds[i + 1] > len(document_ids):
            return status.BAD_OFFSETS | (i << 8)
        term = numbers[i]
        if term < 0 or term >= counts.shape[1]:
            return status.BAD_CODE | (i << 8)
        postings = np.int64(0)
        tokens = np.int64(0)
        for j in range(bounds[i], bounds[i + 1]):
            if np.int64(document_ids[j]) >= len(names):
                return status.BAD_CODE | (j << 8)
            if names[np.int64(document_ids[j])] >= 0:
                postings += 1
                tokens += np.int64(frequencies[j])
        counts[0, term] += postings
        counts[1, term] += tokens
    return status.OK


def count_living_reference(
    bounds: Int64s, document_ids: UInt32s, frequencies: UInt32s, names: Int64s, numbers: Int64s, counts: Int64s
) -> int:
    """Reference implementation in plain Python."""
    lives = names[document_ids] >= 0
    for i, term in enumerate(numbers.tolist()):
        run = slice(bounds[i], bounds[i + 1])
        counts[0, term] += np.count_nonzero(lives[run])
        counts[1, term] += frequencies[run][lives[run]].sum()
    return status.OK


@kernel
def fill_living(
    bounds: Int64s,
    document_ids: UInt32s,
    frequencies: UInt32s,
    names: Int64s,
    numbers: Int64s,
    ends: Int64s,
    new_documents: UInt32s,
    new_frequencies: UInt32s,
) -> int:
    """Append a partition's live postings to the postings of each term.

    The first five arguments are the same as for `count_living`, which has checked them.

    Args:
        bounds: First posting of each term.
        document_ids: Document of each posting.
        frequencies: Frequency of each posting.
        names: New id of each document.
        numbers: Number of each term in the result.
        ends: (terms of the result,), slot of each term's next posting; updated.
        new_documents: Output: new document ids of all postings of the result.
        new_frequencies: Output: frequencies of all postings of the result.

    Returns:
        A status.
    """
    for i in range(len(bounds) - 1):
        place = ends[numbers[i]]
        for j in range(bounds[i], bounds[i + 1]):
            name = names[np.int64(document_ids[j])]
            if name < 0:
                continue
            if place < 0 or place >= len(new_documents):
                return status.TOO_SHORT | (i << 8)
            new_documents[place] = name
            new_frequencies[place] = frequencies[j]
            place += 1
        ends[numbers[i]] = place
    return status.OK


def fill_living_reference(
    bounds: Int64s,
    document_ids: UInt32s,
    frequencies: UInt32s,
    names: Int64s,
    numbers: Int64s,
    ends: Int64s,
    new_documents: UInt32s,
    new_frequencies: UInt32s,
) -> int:
    """Reference implementation in plain Python."""
    for i, term in enumerate(numbers.tolist()):
        run = slice(bounds[i], bounds[i + 1])
        living = names[document_ids[run]] >= 0
        end = ends[term] + np.count_nonzero(living)
        new_documents[ends[term] : end] = names[document_ids[run][living]]
        new_frequencies[ends[term] : end] = frequencies[run][living]
        ends[term] = end
    return status.OK


@kernel
def fill_living_positions(
    bounds: Int64s,
    document_ids: UInt32s,
    frequencies: UInt32s,
    names: Int64s,
    numbers: Int64s,
    positions: UInt32s,
    ends: Int64s,
    out: UInt32s,
) -> int:
    """Append the positions of a partition's live postings to the positions of each term.

    The first five arguments are the same as for `count_living`, which has checked them.

    Args:
        bounds: First posting of each term.
        document_ids: Document of each posting.
        frequencies: Frequency of each posting.
        names: New id of each document.
        numbers: Number of each term in the result.
        positions: (frequencies.sum(),), positions of all postings, in posting order.
        ends: (terms of the result,), slot of each term's next position; updated.
        out: Output: positions of all postings of the result.

    Returns:
        A status.
    """
    at = np.int64(0)
    for i in range(len(bounds) - 1):
        place = ends[numbers[i]]
        for j in range(bounds[i], bounds[i + 1]):
            count = np.int64(frequencies[j])
            if at + count > len(positions):
                return status.TOO_SHORT | (i << 8)
            if names[np.int64(document_ids[j])] >= 0:
                if place < 0 or place + count > len(out):
                    return status.TOO_SHORT | (i << 8)
                for k in range(count):
                    out[place + k] = positions[at + k]
                place += count
            at += count
        ends[numbers[i]] = place
    return status.OK if at == len(positions) else status.TRAILING


def fill_living_positions_reference(
    bounds: Int64s,
    document_ids: UInt32s,
    frequencies: UInt32s,
    names: Int64s,
    numbers: Int64s,
    positions: UInt32s,
    ends: Int64s,
    out: UInt32s,
) -> int:
    """Reference implementation in plain Python."""
    pieces = np.split(positions, np.cumsum(frequencies)[:-1])
    for i, term in enumerate(numbers.tolist()):
        for j in range(bounds[i], bounds[i + 1]):
            if names[document_ids[j]] >= 0:
                out[ends[term] : ends[term] + len(pieces[j])] = pieces[j]
                ends[term] += len(pieces[j])
    return status.OK
