"""A kernel that finds the documents with the greatest scores among those in which words come in their order.

Documents of the rarest word are looked up in the others, one by one, so that the blocks of all words are at hand when
the positions of a document are read: only where its score reaches the threshold, and group by group.
`kernels.postings.best` says what `postings`, `scoring`, `windows` and `best` are.

    phrase     of the words: bytes of all positions; where each block of them begins and ends, block by block as in
               `postings`; whether numbers are packed in groups; how far each word is behind the one before, 0 for the
               first; places more than these that are allowed
    work       (2, words, documents of a block); the block of each word that is decoded, -1; the words, the rarest
               first; a bound of what the words behind each in that order add; the place of the document in the block
               of each word, 0; what each word adds, float32; documents of the decoded block of each word
    reading    (words * 128) the numbers of a group of each word; (words, POSITION_STATE), all -1: see `_COUNTED`;
               (2, n) positions of a document
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels import status
from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.postings.best import push
from lance_duck.kernels.postings.best_of_all import SLACK
from lance_duck.kernels.postings.packing import read_varint, unpack_lanes
from lance_duck.kernels.postings.positions import GROUP, LANES
from lance_duck.kernels.postings.reading import count_of, first_block, lower_place, read_block
from lance_duck.kernels.postings.scores import score_of

Int64s = NDArray[np.int64]

_COUNTED: Final = 0
"""The block whose numbers are counted; the place of a document in it, numbers before that one, numbers of all."""
_PLACE: Final = 1
_FIRST: Final = 2
_TOTAL: Final = 3
_BLOCK: Final = 4
"""The block of the group that is decoded; its number in the block; where the next one begins."""
_GROUP: Final = 5
_NEXT: Final = 6
POSITION_STATE: Final = 7
"""Numbers that say what is read of a word."""
_NEAR: Final = 8
"""Documents that are looked at one by one before the others are halved."""


@kernel
def find_best_phrases(
    postings: Any, scoring: Any, windows: Any, phrase: Any, best: Any, work: Any, reading: Any, counts: Int64s
) -> int:
    """Find the best documents in which words come in their order.

    Args:
        postings: Of the words, in their order: one that comes again is there again.
        scoring: See `kernels.postings.best`.
        windows: See there.
        phrase: See above.
        best: See `kernels.postings.best`.
        work: See above.
        reading: See above.
        counts: Three numbers, 0 before; written: documents that were found, blocks of postings that were decoded, and
            the positions of a document, if these are too many for `reading`: then nothing was found, and the bytes at
            hand can have so many.

    Returns:
        A status; its place is a word.
    """
    window_bounds, totals, order, size = windows
    lists, lengths, block_size, last = postings[2], postings[3], postings[4], postings[6]
    room, decoded, sequence, rests, _, _, sizes = work
    scores = best[0]
    term = sequence[0]
    kept = np.int64(0)
    for number in range(len(order)):
        window = order[number]
        if totals[window] < (np.float64(scores[0]) if kept == len(scores) else 0.0):
            continue
        start, rest = window * size, totals[window]
        for stage in range(len(sequence)):
            rest -= window_bounds[sequence[stage], window]
            rests[stage] = rest
        block = first_block(last, lists[term], lists[term + 1], start)
        while block < lists[term + 1] and (block == lists[term] or last[block - 1] + 1 < start + size):
            code = read_block(postings, term, block, room, decoded, counts)
            if code != status.OK:
                return int(code | (term << 8))
            sizes[term] = count_of(lists, lengths, block_size, term, block)
            span = sizes[term], start, start + size
            kept, code = _search_block(postings, scoring, phrase, best, work, reading, counts, span, kept)
            if code != status.OK or counts[2]:
                return int(code)
            block += 1
    counts[0] = kept
    return status.OK


@subroutine
def _search_block(
    postings: Any, scoring: Any, phrase: Any, best: Any, work: Any, reading: Any, counts: Any, span: Any, kept: Any
) -> Any:
    """Keep the best documents of a window from the block of the rarest word that is decoded.

    What runs for each document is here: a call would copy all arrays.

    Args:
        postings: See `find_best_phrases`, as the others.
        scoring: See there.
        phrase: See there.
        best: See there.
        work: See there.
        reading: See there.
        counts: See there.
        span: Documents of the block, where the window begins, and where it ends.
        kept: How many of the best there are.

    Returns:
        (how many of the best there are now, a status).
    """
    last = postings[6]
    weights, norms, mask, keys = scoring
    room, decoded, sequence, rests, places, parts, sizes = work
    scores, documents = best
    rarest = sequence[0]
    for i in range(lower_place(room[0, rarest], np.int64(0), span[0], span[1]), span[0]):
        document = np.int64(room[0, rarest, i])
        if document >= span[2]:
            break
        if document < span[1] or (len(mask) and not mask[document]):
            continue
        threshold = np.float64(scores[0]) if kept == len(scores) else 0.0
        places[rarest] = i
        parts[rarest] = score_of(weights[rarest], room[1, rarest, i], norms[document])
        total, stage = np.float64(parts[rarest]), np.int64(1)
        while stage < len(sequence) and total * SLACK >= threshold - rests[stage - 1]:
            word = sequence[stage]
            if decoded[word] < 0 or last[decoded[word]] < document or np.int64(room[0, word, 0]) > document:
                code = _seek(postings, word, document, work, counts)
                if code != status.OK:
                    return kept, code | (word << 8)
            place, near = places[word], min(places[word] + _NEAR, sizes[word] - 1)
            while place < near and np.int64(room[0, word, place]) < document:
                place += 1
            if np.int64(room[0, word, place]) < document:
                place = lower_place(room[0, word], place, sizes[word], document)
            places[word] = place
            if np.int64(room[0, word, place]) != document:
                break
            parts[word] = score_of(weights[word], room[1, word, place], norms[document])
            total += np.float64(parts[word])
            stage += 1
        if stage < len(sequence):
            continue
        score = np.float32(0)
        for word in range(len(parts)):
            score = np.float32(score + parts[word])
        if score < threshold:
            continue
        follows, code = _has_phrase(phrase, sizes, room[1], decoded, places, reading, counts)
        if code != status.OK or counts[2]:
            return kept, code
        if follows:
            kept = push(scores, documents, keys, kept, score, document)
    return kept, status.OK


@subroutine
def _seek(postings: Any, word: Any, document: Any, work: Any, counts: Any) -> Any:
    """Decode the block of a word in which a document is, if it is in any; returns a status without place."""
    lists, last = postings[2], postings[6]
    block = min(first_block(last, lists[word], lists[word + 1], document), lists[word + 1] - 1)
    code = read_block(postings, word, block, work[0], work[1], counts)
    work[4][word], work[6][word] = 0, count_of(lists, postings[3], postings[4], word, block)
    return code


@subroutine
def _has_phrase(phrase: Any, sizes: Any, frequencies: Any, decoded: Any, places: Any, reading: Any, counts: Any) -> Any:
    """Look whether words come in their order in the document that was looked up last.

    Returns:
        (whether they do, a status).
    """
    data, begins, ends, has_groups, distances, slop = phrase
    groups, state, positions = reading
    before = np.int64(0)
    for word in range(len(distances)):
        block, place = decoded[word], places[word]
        count = np.int64(frequencies[word, place])
        span = begins[block], ends[block]
        if count > positions.shape[1]:
            if count > (span[1] - span[0]) * GROUP:
                return False, status.BAD_LENGTH | (word << 8)
            counts[2] = count
            return False, status.OK
        _count_numbers(frequencies[word], sizes[word], block, place, state[word])
        mine = positions[word & 1]
        code = _read_positions(data, span, has_groups, groups, state[word], word * GROUP, block, count, mine)
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
    """Count the positions of a block, and those before a document of it."""
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
    """Read `count` positions of the document that was counted; returns a status without place.

    Args:
        data: Bytes of all positions.
        span: Where the block begins and ends.
        has_groups: Whether numbers are packed.
        groups: Numbers of a group of each word.
        state: Of the word, see `_COUNTED`.
        room: Where the group of the word is in `groups`.
        block: The block.
        count: Positions of the document.
        out: Written.
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
    """Decode a group of numbers of a block; packed ones before it are skipped. See `_read_positions`."""
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
def _keep_following(before: Any, many: Any, mine: Any, count: Any, distance: Any, slop: Any) -> Any:
    """Keep positions at a distance behind one of `many` others, or up to `slop` farther; returns how many there are."""
    kept, at = np.int64(0), np.int64(0)
    for i in range(count):
        highest = mine[i] - distance
        while at < many and before[at] < highest - slop:
            at += 1
        if at == many:
            break
        if before[at] <= highest:
            mine[kept] = mine[i]
            kept += 1
    return kept
