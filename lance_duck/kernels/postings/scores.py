"""Kernels that score documents from compressed postings: all that match, or the best of them.

All arithmetic of scores is float32, operation by operation, and a document's terms are added in the order of the query:
the bits are those of the plain reference. Bounds are float64, and a little too large.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.postings.blocks import decode_block

Int64s = NDArray[np.int64]
UInt32s = NDArray[np.uint32]
Float32s = NDArray[np.float32]
Float64s = NDArray[np.float64]

SATURATION: Final = np.float32(np.float32(1.2) + np.float32(1))
_NEW, _KNOWN, _ALL, _SUM = range(4)
_DENSE_SHARE: Final = 2
"""Adding up a posting takes 4 to 5 ns, keeping it by term 12, looking one up 5 (`benchmarks/postings.py`)."""
GROUP: Final = 32
"""Blocks that an entry of the second level of impacts covers."""


@kernel
def accumulate(
    data: Bytes,
    offsets: Int64s,
    lists: Int64s,
    lengths: Int64s,
    block_size: int,
    is_varint: bool,
    weights: Float32s,
    slots: Int64s,
    norms: Float32s,
    mask: NDArray[np.bool_],
    every: bool,
    scores: Float32s,
    hits: NDArray[np.uint16],
    ids: UInt32s,
    frequencies: UInt32s,
) -> int:
    """Add the scores of all postings of some terms to those of their documents.

    Args:
        data: Bytes of all blocks.
        offsets: Where each block begins, and where the last one ends: inside `data`, ascending.
        lists: The first block of each term, and behind the last one of the last.
        lengths: Documents of each term; they fit the blocks.
        block_size: 128 or 256.
        is_varint: Numbers of the last block of a term are varints.
        weights: The idf of each term.
        slots: The word of the query that each term stands for; ascending from 0.
        norms: The norm of each document of the partition.
        mask: Whether each document may match; empty: all may.
        every: A document must have a term of each slot.
        scores: One for each document, added to.
        hits: One for each document, 0 before: how many slots it has, if each before that one; else whether it has any.
        ids: As many numbers as a block has documents, for work.
        frequencies: As many.

    Returns:
        A status; its place is a term.
    """
    num_documents = len(norms)
    for term in range(len(lengths)):
        rest, previous = lengths[term], np.int64(-1)
        weight, slot = weights[term], np.uint16(slots[term])
        for block in range(lists[term], lists[term + 1]):
            count = min(rest, block_size)
            begin, end = offsets[block], offsets[block + 1]
            code = decode_block(data, begin, end, count, block_size, is_varint, ids, frequencies, 0)
            if code != status.OK:
                return int(code | (term << 8))
            rest -= count
            for i in range(count):
                document = np.int64(ids[i])
                if document <= previous or document >= num_documents or frequencies[i] == 0:
                    return int(status.BAD_VALUE | (term << 8))
                previous = document
                if len(mask) and not mask[document]:
                    continue
                scores[document] += score_of(weight, frequencies[i], norms[document])
                if not every:
                    hits[document] = np.uint16(1)
                elif hits[document] == slot:
                    hits[document] = np.uint16(slot + np.uint16(1))
    return status.OK


@subroutine
def score_of(weight: Any, frequency: Any, norm: Any) -> Any:
    """Return what a term adds to the score of a document."""
    count = np.float32(frequency)
    return np.float32(weight * np.float32(np.float32(SATURATION * count) / np.float32(count + norm)))


@kernel
def bound_blocks(
    lists: Int64s,
    entries: Int64s,
    last_ids: Int64s,
    pairs: Int64s,
    frequencies: UInt32s,
    codes: NDArray[np.uint8],
    weights: Float32s,
    norms: Float64s,
    num_documents: int,
    last: Int64s,
    bounds: Float64s,
) -> int:
    """Bound the score that a term adds to a document of each of its blocks.

    Args:
        lists: The first block of each term, and behind the last one of the last; from 0.
        entries: The first entry of each term, and behind the last one of the last: one for each block, then others.
        last_ids: The last document of each entry.
        pairs: Where the pairs of each entry begin, and where the last one's end.
        frequencies: Of each pair.
        codes: Of each pair: the code of a length.
        weights: The idf of each term.
        norms: The norm of the least length of each code.
        num_documents: Documents of the partition.
        last: Written: the last document of each block.
        bounds: Written: of each block.

    Returns:
        A status; its place is a term.
    """
    for term in range(len(lists) - 1):
        blocks = lists[term + 1] - lists[term]
        if entries[term + 1] - entries[term] != blocks + (blocks + GROUP - 1) // GROUP:
            return status.BAD_LENGTH | (term << 8)
        previous = np.int64(-1)
        for i in range(blocks):
            entry = entries[term] + i
            if last_ids[entry] <= previous or last_ids[entry] >= num_documents:
                return status.BAD_VALUE | (term << 8)
            previous = last_ids[entry]
            best = 0.0
            for pair in range(pairs[entry], pairs[entry + 1]):
                count = np.float64(frequencies[pair])
                best = max(best, 2.2000001 * count / (count + norms[codes[pair]]))
            last[lists[term] + i] = previous
            bounds[lists[term] + i] = best * np.float64(weights[term])
    return status.OK


@kernel
def bound_windows(lists: Int64s, last: Int64s, bounds: Float64s, size: int, out: Float64s) -> None:
    """Bound the score that a term adds to a document of each window of so many ids.

    Args:
        lists: The first block of each term, and behind the last one of the last.
        last: The last document of each block: below `size` times the windows.
        bounds: Of each block.
        size: Ids of a window.
        out: (terms, windows), 0 before; written, and 0 where the term has no document.
    """
    for term in range(len(lists) - 1):
        first = np.int64(0)
        for block in range(lists[term], lists[term + 1]):
            for window in range(first // size, last[block] // size + 1):
                out[term, window] = max(out[term, window], bounds[block])
            first = last[block] + 1


@kernel
def find_best(
    data: Bytes,
    offsets: Int64s,
    lists: Int64s,
    lengths: Int64s,
    block_size: int,
    is_varint: bool,
    weights: Float32s,
    norms: Float32s,
    mask: NDArray[np.bool_],
    keys: NDArray[np.uint64],
    every: bool,
    last: Int64s,
    window_bounds: Float64s,
    order: Int64s,
    totals: Float64s,
    least: float,
    heap_scores: Float32s,
    heap_documents: Int64s,
    room: NDArray[np.uint32],
    decoded: Int64s,
    parts: Float32s,
    marks: NDArray[np.uint16],
    touched: Int64s,
    sequence: Int64s,
    counts: Int64s,
) -> int:
    """Find the documents with the greatest scores; of equal ones those with the least keys.

    Args:
        data: Bytes of all blocks; this and the next as of `accumulate`.
        offsets: See there.
        lists: See there.
        lengths: See there.
        block_size: See there.
        is_varint: See there.
        weights: See there.
        norms: See there.
        mask: See there.
        keys: One for each document.
        every: A document must have all terms; else one.
        last: The last document of each block, as its impacts say.
        window_bounds: (terms, windows): see `bound_windows`; a little too large.
        order: Windows in the order of their totals, the greatest first.
        totals: The bound of each window: less than 0 where no document can match.
        least: Documents below this score are not wanted.
        heap_scores: Written: the scores of the best, in no order; as many as are wanted.
        heap_documents: Written: their ids.
        room: (2, terms, documents of a block), for work.
        decoded: One for each term, -1: for work.
        parts: (terms, ids of a window), 0 everywhere: for work.
        marks: Ids of a window, 0 everywhere: for work.
        touched: Ids of a window, for work.
        sequence: Terms, for work; with `every` the terms, the rarest first.
        counts: Two numbers, 0 before; written: documents that were found, blocks that were decoded.

    Returns:
        A status; its place is a term.
    """
    kept = np.int64(0)
    for number in range(len(order)):
        window = order[number]
        start = window * len(marks)
        threshold = max(least, np.float64(heap_scores[0])) if kept == len(heap_scores) else least
        if totals[window] < 0 or totals[window] < threshold:
            break
        optional = 0 if every else _order_terms(window_bounds, window, threshold, sequence)
        is_dense = not every and _is_dense(lengths, sequence, optional)
        found = np.int64(0)
        for stage in range(len(sequence)):
            term, kind = _turn(sequence, stage, optional, every, is_dense)
            ids, how_often = room[0, term], room[1, term]
            block = _first_block(last, lists[term], lists[term + 1], start)
            while block < lists[term + 1] and (block == lists[term] or last[block - 1] + 1 < start + len(marks)):
                count = min(block_size, lengths[term] - (block - lists[term]) * block_size)
                if decoded[term] != block:
                    span = offsets[block], offsets[block + 1], last[block]
                    code = _decode(data, span, count, block_size, is_varint, ids, how_often)
                    if code != status.OK:
                        return int(code | (term << 8))
                    decoded[term] = block
                    counts[1] += 1
                source = ids, how_often, count, weights[term], norms, mask, start
                found = _take(source, kind, stage, parts[0 if is_dense else term], marks, touched, found)
                block += 1
            if not is_dense and found == 0 and (every or stage + 1 >= len(sequence) - optional):
                break
        best = heap_scores, heap_documents, keys, kept
        needed = 0 if is_dense else len(sequence) if every else 1
        kept = _settle(parts, marks, touched, found, needed, start, threshold, best)
    counts[0] = kept
    return status.OK


@subroutine
def _turn(sequence: Any, stage: Any, optional: Any, every: Any, is_dense: Any) -> Any:
    """Return the term that is read next in a window, and what is made of its documents."""
    if is_dense:
        return np.int64(stage), _SUM
    if every:
        return sequence[stage], _ALL if stage else _NEW
    return sequence[len(sequence) - 1 - stage], _NEW if stage < len(sequence) - optional else _KNOWN


@subroutine
def _add(source: Any, scores: Any, marks: Any) -> None:
    """Add what a term adds to the scores of the documents of a block that lie in a window."""
    ids, frequencies, count, weight, norms, mask, start = source
    for i in range(count):
        document = np.int64(ids[i])
        place = document - start
        if place < 0 or (len(mask) and not mask[document]):
            continue
        if place >= len(marks):
            break
        scores[place] = np.float32(scores[place] + score_of(weight, frequencies[i], norms[document]))
        marks[place] = 1


@subroutine
def _take(source: Any, kind: Any, stage: Any, parts: Any, marks: Any, touched: Any, found: Any) -> Any:
    """Keep what a term adds to the documents of a block that lie in a window; returns how many there are now.

    New documents are taken in, or those that are known get more, or only those that had all terms until now.
    """
    if kind == _SUM:
        _add(source, parts, marks)
        return found
    ids, frequencies, count, weight, norms, mask, start = source
    for i in range(count):
        document = np.int64(ids[i])
        place = document - start
        if place < 0:
            continue
        if place >= len(marks):
            break
        if kind == _NEW:
            if len(mask) and not mask[document]:
                continue
            if marks[place] == 0:
                marks[place] = 1
                touched[found] = place
                found += 1
        elif kind == _KNOWN:
            if marks[place] == 0:
                continue
        else:
            if marks[place] != stage:
                continue
            marks[place] = np.uint16(stage + 1)
        parts[place] = score_of(weight, frequencies[i], norms[document])
    return found


@subroutine
def _settle(parts: Any, marks: Any, touched: Any, found: Any, needed: Any, start: Any, least: Any, best: Any) -> Any:
    """Score the documents of a window and forget them; returns how many of the best there are now.

    Those that were found count that have as many terms as are needed; with 0 all that are marked, which are added up.
    """
    scores, documents, keys, kept = best
    for i in range(found if needed else len(marks)):
        place = touched[i] if needed else i
        if marks[place] == 0:
            continue
        score = np.float32(0)
        for term in range(len(parts) if needed else 1):
            score = np.float32(score + parts[term, place])
            parts[term, place] = 0
        is_match = marks[place] >= needed
        marks[place] = 0
        if is_match and score >= least:
            kept = _push(scores, documents, keys, kept, score, start + place)
    return kept


@subroutine
def _order_terms(bounds: Any, window: Any, threshold: Any, sequence: Any) -> Any:
    """Sort terms by their bounds in a window, the least first; returns how many of them cannot reach the threshold."""
    for i in range(len(sequence)):
        j = i
        while j > 0 and bounds[sequence[j - 1], window] > bounds[i, window]:
            sequence[j] = sequence[j - 1]
            j -= 1
        sequence[j] = i
    total, optional = 0.0, 0
    while optional < len(sequence) - 1:
        total += bounds[sequence[optional], window]
        if total >= threshold:
            break
        optional += 1
    return optional


@subroutine
def _is_dense(lengths: Any, sequence: Any, optional: Any) -> Any:
    """Return whether it is quicker to add up all terms than to look up the optional ones."""
    few, many = np.int64(0), np.int64(0)
    for i in range(len(sequence)):
        if i < optional:
            many += lengths[sequence[i]]
        else:
            few += lengths[sequence[i]]
    return few * _DENSE_SHARE > many


@subroutine
def _first_block(last: Any, low: Any, high: Any, start: Any) -> Any:
    """Return the first block that ends at a document or behind it."""
    while low < high:
        middle = (low + high) >> 1
        if last[middle] < start:
            low = middle + 1
        else:
            high = middle
    return low


@subroutine
def _decode(data: Any, span: Any, count: Any, block_size: Any, is_varint: Any, ids: Any, frequencies: Any) -> Any:
    """Decode a block, whose last document is known, and check it; returns a status without place."""
    begin, end, last = span
    code = decode_block(data, begin, end, count, block_size, is_varint, ids, frequencies, 0)
    if code != status.OK:
        return code
    for i in range(count):
        if (i > 0 and ids[i] <= ids[i - 1]) or frequencies[i] == 0:
            return status.BAD_VALUE
    return status.OK if np.int64(ids[count - 1]) == last else status.BAD_VALUE


@subroutine
def _push(scores: Any, documents: Any, keys: Any, kept: Any, score: Any, document: Any) -> Any:
    """Put a document into a heap whose root is the worst of the best; returns how many there are."""
    if kept < len(scores):
        place = kept
        while place > 0:
            above = (place - 1) >> 1
            if _is_worse(scores[above], keys[documents[above]], score, keys[document]):
                break
            scores[place] = scores[above]
            documents[place] = documents[above]
            place = above
        scores[place] = score
        documents[place] = document
        return kept + 1
    if not _is_worse(scores[0], keys[documents[0]], score, keys[document]):
        return kept
    place = np.int64(0)
    while True:
        below = place * 2 + 1
        if below >= kept:
            break
        right = below + 1
        if right < kept and _is_worse(scores[right], keys[documents[right]], scores[below], keys[documents[below]]):
            below = right
        if not _is_worse(scores[below], keys[documents[below]], score, keys[document]):
            break
        scores[place] = scores[below]
        documents[place] = documents[below]
        place = below
    scores[place] = score
    documents[place] = document
    return kept


@subroutine
def _is_worse(score: Any, key: Any, other: Any, other_key: Any) -> Any:
    return score < other or (score == other and key > other_key)
