"""Kernels that sort postings by term, after counting them: of the tokens of documents, or of other partitions.

Each batch of tokens, and each partition, numbers its terms in its own way; `numbers` maps these to the numbers of the
result. A call of a kernel counts or fills for one batch or partition, and the next call continues where it ended.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel

UInt32s = NDArray[np.uint32]
Int64s = NDArray[np.int64]

NO_DOCUMENT = 0xFFFFFFFF
"""Initial value of `last`: no document has this id."""


@kernel
def count_tokens(
    term_ids: UInt32s, numbers: Int64s, bounds: Int64s, first: int, last: UInt32s, postings: Int64s, tokens: Int64s
) -> int:
    """Count the postings and the tokens of each term.

    Args:
        term_ids: (tokens,), term of each token, document by document.
        numbers: (terms of the batch,), number of each term in the result.
        bounds: (documents + 1,), where the tokens of each document begin, and where the last one's end.
        first: Id of the first document; the last document's id is below `NO_DOCUMENT`.
        last: (terms of the result,), the document that was counted last for each term; written.
        postings: (terms of the result,), number of documents of each term; added to.
        tokens: (terms of the result,), number of tokens of each term; added to.

    Returns:
        A status.
    """
    count = len(last)
    if len(postings) != count or len(tokens) != count:
        return status.TOO_SHORT
    for i in range(len(bounds) - 1):
        if bounds[i] < 0 or bounds[i] > bounds[i + 1] or bounds[i + 1] > len(term_ids):
            return status.BAD_OFFSETS | (i << 8)
        document = np.uint32(first + i)
        for j in range(bounds[i], bounds[i + 1]):
            if np.int64(term_ids[j]) >= len(numbers):
                return status.BAD_CODE | (j << 8)
            term = numbers[np.int64(term_ids[j])]
            if term < 0 or term >= count:
                return status.BAD_CODE | (j << 8)
            tokens[term] += 1
            if last[term] != document:
                last[term] = document
                postings[term] += 1
    return status.OK


def count_tokens_reference(
    term_ids: UInt32s, numbers: Int64s, bounds: Int64s, first: int, last: UInt32s, postings: Int64s, tokens: Int64s
) -> int:
    """Compute the plain reference, in Python."""
    terms = numbers[term_ids]
    tokens += np.bincount(terms, minlength=len(tokens))
    documents = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)) + first
    pairs = np.unique(np.stack([terms, documents]), axis=1)
    postings += np.bincount(pairs[0], minlength=len(postings))
    last[pairs[0]] = pairs[1]
    return status.OK


@kernel
def fill_tokens(
    term_ids: UInt32s,
    numbers: Int64s,
    bounds: Int64s,
    first: int,
    last: UInt32s,
    ends: Int64s,
    document_ids: UInt32s,
    frequencies: UInt32s,
) -> int:
    """Append a batch's postings of some adjacent terms to those of each of these terms.

    `term_ids`, `bounds` and `first` have been checked by `count_tokens`, which describes them.

    Args:
        term_ids: Term of each token.
        numbers: (terms of the batch,), number of each term among the wanted ones; any other number leaves it out.
        bounds: Where the tokens of each document begin.
        first: Id of the first document.
        last: (wanted terms,), the document that was written last for each term; written.
        ends: (wanted terms,), where the next posting of each term goes; written.
        document_ids: Documents of all postings of the wanted terms; written.
        frequencies: Frequencies of all postings of the wanted terms; written.

    Returns:
        A status.
    """
    wanted = len(ends)
    if len(last) != wanted or len(frequencies) != len(document_ids):
        return status.TOO_SHORT
    for i in range(len(bounds) - 1):
        document = np.uint32(first + i)
        for j in range(bounds[i], bounds[i + 1]):
            term = numbers[np.int64(term_ids[j])]
            if term < 0 or term >= wanted:
                continue
            place = ends[term]
            if last[term] == document:
                frequencies[place - 1] += np.uint32(1)
                continue
            if place < 0 or place >= len(document_ids):
                return status.TOO_SHORT | (j << 8)
            last[term] = document
            document_ids[place] = document
            frequencies[place] = 1
            ends[term] = place + 1
    return status.OK


def fill_tokens_reference(
    term_ids: UInt32s,
    numbers: Int64s,
    bounds: Int64s,
    first: int,
    last: UInt32s,
    ends: Int64s,
    document_ids: UInt32s,
    frequencies: UInt32s,
) -> int:
    """Compute the plain reference, in Python."""
    for i in range(len(bounds) - 1):
        terms, counts = np.unique(numbers[term_ids[bounds[i] : bounds[i + 1]]], return_counts=True)
        is_wanted = (terms >= 0) & (terms < len(ends))
        terms, counts = terms[is_wanted], counts[is_wanted]
        document_ids[ends[terms]] = last[terms] = first + i
        frequencies[ends[terms]] = counts
        ends[terms] += 1
    return status.OK


@kernel
def fill_positions(term_ids: UInt32s, numbers: Int64s, positions: UInt32s, ends: Int64s, out: UInt32s) -> int:
    """Append a batch's positions of some adjacent terms to those of each of these terms.

    `term_ids` have been checked by `count_tokens`, which describes them.

    Args:
        term_ids: Term of each token.
        numbers: (terms of the batch,), number of each term among the wanted ones; any other number leaves it out.
        positions: (tokens,), position of each token.
        ends: (wanted terms,), where the next position of each term goes; written.
        out: Positions of all postings of the wanted terms; written.

    Returns:
        A status.
    """
    for j in range(len(term_ids)):
        term = numbers[np.int64(term_ids[j])]
        if term < 0 or term >= len(ends):
            continue
        place = ends[term]
        if place < 0 or place >= len(out):
            return status.TOO_SHORT | (j << 8)
        out[place] = positions[j]
        ends[term] = place + 1
    return status.OK


def fill_positions_reference(term_ids: UInt32s, numbers: Int64s, positions: UInt32s, ends: Int64s, out: UInt32s) -> int:
    """Compute the plain reference, in Python."""
    for term, position in zip(numbers[term_ids].tolist(), positions.tolist(), strict=True):
        if 0 <= term < len(ends):
            out[ends[term]] = position
            ends[term] += 1
    return status.OK


@kernel
def count_living(
    bounds: Int64s, document_ids: UInt32s, frequencies: UInt32s, names: Int64s, numbers: Int64s, counts: Int64s
) -> int:
    """Count the live postings of a partition, and their tokens.

    Args:
        bounds: (terms of the partition + 1,), where the postings of each term begin, and where the last one's end.
        document_ids: (postings,), document of each posting.
        frequencies: (postings,), frequency of each posting.
        names: (documents,), new id of each document; negative if it is gone.
        numbers: (terms of the partition,), number of each term in the result.
        counts: (2, terms of the result), number of postings and of tokens of each term; added to.

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
    """Compute the plain reference, in Python."""
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
    """Append a partition's live postings to those of each term.

    The first five arguments have been checked by `count_living`, which describes them.

    Args:
        bounds: Where the postings of each term begin.
        document_ids: Document of each posting.
        frequencies: Frequency of each posting.
        names: New id of each document.
        numbers: Number of each term in the result.
        ends: (terms of the result,), where the next posting of each term goes; written.
        new_documents: New ids of the documents of all postings of the result; written.
        new_frequencies: Frequencies of all postings of the result; written.

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
    """Compute the plain reference, in Python."""
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
    """Append the positions of a partition's live postings to those of each term.

    The first five arguments have been checked by `count_living`, which describes them.

    Args:
        bounds: Where the postings of each term begin.
        document_ids: Document of each posting.
        frequencies: Frequency of each posting.
        names: New id of each document.
        numbers: Number of each term in the result.
        positions: (frequencies.sum(),), positions of each posting in turn.
        ends: (terms of the result,), where the next position of each term goes; written.
        out: Positions of all postings of the result; written.

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
    """Compute the plain reference, in Python."""
    pieces = np.split(positions, np.cumsum(frequencies)[:-1])
    for i, term in enumerate(numbers.tolist()):
        for j in range(bounds[i], bounds[i + 1]):
            if names[document_ids[j]] >= 0:
                out[ends[term] : ends[term] + len(pieces[j])] = pieces[j]
                ends[term] += len(pieces[j])
    return status.OK
