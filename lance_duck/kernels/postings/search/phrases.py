"""A kernel that finds the highest-scoring documents with a phrase: words in order.

Documents with all words are found and scored as in `kernels.postings.search.best`, and collected in a pool. Positions
are then read for the best of these documents first, until enough documents contain the phrase.
`kernels.postings.search.best` describes `postings`, `scoring`, `windows` and `best`.

    phrase     bytes of all positions; start and end of each position block, in the order of `postings`; whether numbers
               are packed in groups; each word's distance from the previous word, 0 for the first word; the slop, by
               which a distance may be longer
    work       see `kernels.postings.search.intersect`
    pool       (n,), scores of documents whose positions are not read yet; (1 + words, n), the document, and its index
               in each word's postings; (n,), scratch space
    reading    (words * 128,), each word's current group; (words, POSITION_STATE), initially -1: see `_COUNTED`;
               (2, m), positions of a document
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.postings.lanes import unpack_lanes
from lance_duck.kernels.postings.packing import read_varint
from lance_duck.kernels.postings.positions import GROUP, LANES
from lance_duck.kernels.postings.search.heap import order_best, order_entries, push, score_to_reach, take_first
from lance_duck.kernels.postings.search.intersect import ROWS_BEFORE, intersect_promising, score_row
from lance_duck.kernels.postings.search.reading import block_of_posting, count_of, read_frequencies

Int64s = NDArray[np.int64]

_COUNTED: Final = 0
"""First fields of a word's state: the block whose positions were counted last; a document's index in this block; the
number of positions before that document; the number of positions of the whole block.
"""
_PLACE: Final = 1
_FIRST: Final = 2
_TOTAL: Final = 3
_BLOCK: Final = 4
"""More fields of a word's state: block of the decoded group; the group's number in the block; start of the next."""
_GROUP: Final = 5
_NEXT: Final = 6
POSITION_STATE: Final = 7
"""Number of fields of a word's state."""


@kernel
def find_best_phrases(
    postings: Any,
    scoring: Any,
    windows: Any,
    phrase: Any,
    best: Any,
    work: Any,
    pool: Any,
    reading: Any,
    counts: Int64s,
) -> int:
    """Find the best documents that contain a phrase.

    Args:
        postings: Postings of the words, in phrase order, with repeated words repeated.
        scoring: Weights, norms and sort keys of documents.
        windows: Score bounds of each window, and the order of windows.
        phrase: Encoded positions of the words in documents, and the distance of each word from the previous word.
        best: Output: scores and ids of the best documents.
        work: Scratch space for a window's candidates.
        pool: Scratch space for documents whose positions are not read yet.
        reading: Scratch space for positions.
        counts: Output, three numbers, initially 0: number of documents found; number of posting blocks decoded; the
            required number of positions if `reading` is too small. In that case, no document is returned. The required
            number is at most 128 per byte of a position block.

    Returns:
        A status with the index of a word.
    """
    slots, rows = scoring[4], work[5]
    scores = best[0]
    waiting, places, _ = pool
    num_best, num_waiting = np.int64(0), np.int64(0)
    for number in range(len(windows[2])):
        threshold = score_to_reach(scores, num_best, 0.0)
        num_candidates, code = intersect_promising(postings, scoring, windows, number, threshold, work, counts)
        if code != status.OK:
            return int(code)
        for i in range(num_candidates):
            score, code = score_row(postings, scoring, slots, work, i, counts)
            if code != status.OK:
                return int(code)
            if score < score_to_reach(scores, num_best, 0.0):
                continue
            if num_waiting == len(waiting):
                num_best, code = _drain(
                    postings, scoring[3], phrase, best, work, pool, reading, num_waiting, num_best, counts
                )
                if code != status.OK or counts[2]:
                    return int(code)
                num_waiting = np.int64(0)
            waiting[num_waiting] = score
            places[0, num_waiting] = rows[0, i]
            for word in range(len(slots)):
                places[1 + word, num_waiting] = rows[ROWS_BEFORE + word, i]
            num_waiting += 1
    num_best, code = _drain(postings, scoring[3], phrase, best, work, pool, reading, num_waiting, num_best, counts)
    if code != status.OK or counts[2]:
        return int(code)
    order_best(scores, best[1], scoring[3], num_best)
    counts[0] = num_best
    return status.OK


@subroutine
def _drain(
    postings: Any,
    keys: Any,
    phrase: Any,
    best: Any,
    work: Any,
    pool: Any,
    reading: Any,
    num_waiting: Any,
    num_best: Any,
    counts: Any,
) -> Any:
    """Keep the pool's best documents that contain the phrase. Returns (number of best documents, status).

    Documents are checked in descending order of their scores, which often avoids reading the remaining documents. If
    all documents may be needed, they are checked in index order.
    """
    waiting, places, order = pool
    scores, documents = best
    is_sorted = num_waiting + num_best > len(scores)
    if is_sorted:
        order_entries(waiting, order, num_waiting)
    for number in range(num_waiting):
        entry = take_first(waiting, order, num_waiting - number) if is_sorted else np.int64(number)
        if num_best == len(scores) and waiting[entry] < scores[0]:
            if is_sorted:
                break
            continue
        follows, code = _has_phrase(postings, phrase, work, places, entry, reading, counts)
        if code != status.OK or counts[2]:
            return num_best, np.int64(code)
        if follows:
            num_best = push(scores, documents, keys, num_best, waiting[entry], places[0, entry])
    return num_best, np.int64(status.OK)


@subroutine
def _has_phrase(postings: Any, phrase: Any, work: Any, places: Any, entry: Any, reading: Any, counts: Any) -> Any:
    """Check whether a document of the pool contains the phrase.

    Returns:
        (whether it contains the phrase, status).
    """
    data, begins, ends, has_groups, distances, slop = phrase
    groups, progress, positions = reading
    lists, lengths, block_size = postings[2], postings[3], postings[4]
    room, state = work[0], work[1]
    before = np.int64(0)
    for word in range(len(distances)):
        block, place = block_of_posting(postings, word, places[1 + word, entry])
        code = read_frequencies(postings, word, block, room, state, counts)
        if code != status.OK:
            return False, code | (word << 8)
        frequencies = room[1, word]
        count = np.int64(frequencies[place])
        span = begins[block], ends[block]
        if count > positions.shape[1]:
            if count > (span[1] - span[0]) * GROUP:
                return False, status.BAD_LENGTH | (word << 8)
            counts[2] = count
            return False, status.OK
        _count_numbers(frequencies, count_of(lists, lengths, block_size, word, block), block, place, progress[word])
        mine = positions[word & 1]
        code = _read_positions(data, span, has_groups, groups, progress[word], word * GROUP, block, count, mine)
        if code != status.OK:
            return False, code | (word << 8)
        if word > 0:
            count = _keep_following(positions[1 - (word & 1)], before, mine, count, distances[word], slop)
            if count == 0:
                return False, status.OK
        before = count
    return True, status.OK


@subroutine
def _count_numbers(frequencies: Any, documents: Any, block: Any, place: Any, state: Any) -> None:
    """Count the positions of a block, and the positions before one of its documents."""
    if state[_COUNTED] != block:
        total = np.int64(0)
        for i in range(documents):
            total += np.int64(frequencies[i])
        state[_COUNTED], state[_PLACE], state[_FIRST], state[_TOTAL] = block, 0, 0, total
    if state[_PLACE] > place:
        state[_PLACE], state[_FIRST] = 0, 0
    first = state[_FIRST]
    for i in range(state[_PLACE], place):
        first += np.int64(frequencies[i])
    state[_PLACE], state[_FIRST] = place, first


@subroutine
def _read_positions(
    data: Any,
    span: Any,
    has_groups: Any,
    groups: Any,
    state: Any,
    room: Any,
    block: Any,
    count: Any,
    out: Any,
) -> Any:
    """Read the positions of the document selected by `_count_numbers`. Returns a status without an index.

    Args:
        data: Bytes of all positions.
        span: Start and end of the block.
        has_groups: Whether numbers are packed in groups.
        groups: The current group of each word.
        state: State of the word, see `_COUNTED`.
        room: Offset of the word's group in `groups`.
        block: Number of the block.
        count: Number of positions of the document.
        out: Output: the positions.
    """
    if state[_BLOCK] != block:
        state[_BLOCK], state[_GROUP], state[_NEXT] = block, -1, span[0]
    value, done, first = np.int64(0), np.int64(0), state[_FIRST]
    while done < count:
        group = (first + done) // GROUP
        if state[_GROUP] != group:
            code = _load_group(data, span, has_groups, groups, state, room, group)
            if code != status.OK:
                return code
        low = room + first + done - group * GROUP
        for i in range(low, min(np.int64(room + GROUP), low + count - done)):
            value += np.int64(groups[i])
            out[done] = value
            done += 1
    return status.OK if value <= 0xFFFFFFFF else status.BAD_VALUE


@subroutine
def _load_group(data: Any, span: Any, has_groups: Any, groups: Any, state: Any, room: Any, group: Any) -> Any:
    """Decode one group of a block's numbers, skipping earlier packed groups. See `_read_positions`."""
    if state[_GROUP] > group:
        state[_GROUP], state[_NEXT] = -1, span[0]
    at, end = state[_NEXT], span[1]
    for number in range(state[_GROUP] + 1, group + 1):
        rest = state[_TOTAL] - number * GROUP
        if has_groups and rest >= GROUP:
            if at >= end:
                return status.TOO_SHORT
            width = np.int64(data[at])
            if width > 32:
                return status.BAD_WIDTH
            if end - at - 1 < width * LANES * 4:
                return status.TOO_SHORT
            if number == group:
                unpack_lanes(data, at + 1, width, LANES, groups, room)
            at += 1 + width * LANES * 4
        else:
            for i in range(room, room + min(rest, np.int64(GROUP))):
                value, at = read_varint(data, at, end)
                if at < 0 or value > 0xFFFFFFFF:
                    return status.TOO_SHORT
                groups[i] = np.uint32(value)
        if rest <= GROUP and at != end:
            return status.TRAILING
    state[_GROUP], state[_NEXT] = group, at
    return status.OK


@subroutine
def _keep_following(before: Any, num_before: Any, mine: Any, count: Any, distance: Any, slop: Any) -> Any:
    """Keep positions that follow an earlier position by `distance` to `distance` + `slop`. Returns their number."""
    num_positions, at = np.int64(0), np.int64(0)
    for i in range(count):
        highest = mine[i] - distance
        while at < num_before and before[at] < highest - slop:
            at += 1
        if at == num_before:
            break
        if before[at] <= highest:
            mine[num_positions] = mine[i]
            num_positions += 1
    return num_positions
