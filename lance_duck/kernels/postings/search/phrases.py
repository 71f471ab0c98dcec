"""A kernel that finds the documents with the greatest scores among those that have a phrase: words in their order.

Documents that have all words are found as by `kernels.postings.search.best_of_all`. The positions of a document are
read only if its score reaches the threshold, group by group.
`kernels.postings.search.best` describes `postings`, `scoring`, `windows` and `best`.

    phrase     of the words: bytes of all positions; where each block of them begins and ends, block by block as in
               `postings`; whether numbers are packed in groups; the distance of each word from the one before, 0 for
               the first; the number of places by which a distance may be longer
    work       see `kernels.postings.search.best_of_all`
    reading    (words * 128,), the numbers of a group of each word; (words, POSITION_STATE), all -1: see `_COUNTED`;
               (2, n), positions of a document
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
from lance_duck.kernels.postings.search.best import push
from lance_duck.kernels.postings.search.best_of_all import ROWS_BEFORE, intersect_window, score_row
from lance_duck.kernels.postings.search.reading import block_of_posting, count_of, read_frequencies

Int64s = NDArray[np.int64]

_COUNTED: Final = 0
"""Fields of a word's state: the block whose numbers are counted; the place of a document in it, the number of positions
before that document, and of the whole block."""
_PLACE: Final = 1
_FIRST: Final = 2
_TOTAL: Final = 3
_BLOCK: Final = 4
"""Fields of a word's state: the block of the decoded group; the group's number in the block; where the next begins."""
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
    reading: Any,
    counts: Int64s,
) -> int:
    """Find the best documents that have a phrase.

    Args:
        postings: Postings of the words, in their order; those of a repeated word come repeatedly.
        scoring: See `kernels.postings.search.best`.
        windows: See `kernels.postings.search.best`, without the bounds of terms.
        phrase: See above.
        best: See `kernels.postings.search.best`.
        work: See above.
        reading: See above.
        counts: Three numbers, 0 before; written: number of documents found, number of blocks of postings decoded, and
            the number of positions of a document, if `reading` has no room for them: then nothing is found, and the
            bytes at hand justify that number.

    Returns:
        A status; its place is a word.
    """
    totals, order, size = windows
    mask, keys = scoring[2], scoring[3]
    scores, documents = best
    num_best = np.int64(0)
    for number in range(len(order)):
        window = order[number]
        threshold = np.float64(scores[0]) if num_best == len(scores) else 0.0
        if totals[window] < 0 or totals[window] < threshold:
            continue
        num_candidates, code = intersect_window(postings, mask, window * size, (size, len(totals)), work, counts)
        if code != status.OK:
            return int(code)
        for i in range(num_candidates):
            document = work[4][0, i]
            score, code = score_row(postings, scoring, work, i, counts)
            if code != status.OK:
                return int(code)
            if score < (np.float64(scores[0]) if num_best == len(scores) else 0.0):
                continue
            follows, code = _has_phrase(postings, phrase, work, i, reading, counts)
            if code != status.OK or counts[2]:
                return int(code)
            if follows:
                num_best = push(scores, documents, keys, num_best, score, document)
    counts[0] = num_best
    return status.OK


@subroutine
def _has_phrase(postings: Any, phrase: Any, work: Any, row: Any, reading: Any, counts: Any) -> Any:
    """Check whether a document, a row of `work`, has the phrase.

    Returns:
        (whether it has, a status).
    """
    data, begins, ends, has_groups, distances, slop = phrase
    groups, progress, positions = reading
    lists, lengths, block_size = postings[2], postings[3], postings[4]
    room, state, rows = work[0], work[1], work[4]
    before = np.int64(0)
    for word in range(len(distances)):
        block, place = block_of_posting(postings, word, rows[ROWS_BEFORE + word, row])
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
    """Count the positions of a block, and those before one of its documents."""
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
    """Read the positions of the document that `_count_numbers` went to; return a status without place.

    Args:
        data: Bytes of all positions.
        span: Where the block begins and ends.
        has_groups: Whether numbers are packed in groups.
        groups: Numbers of a group of each word.
        state: State of the word, see `_COUNTED`.
        room: Where the word's group lies in `groups`.
        block: Number of the block.
        count: Number of positions of the document.
        out: Written: the positions.
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
    """Decode a group of numbers of a block, skipping packed groups before it; see `_read_positions`."""
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
    """Keep positions at a distance after one of `num_before` others, or up to `slop` farther; return their number."""
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
