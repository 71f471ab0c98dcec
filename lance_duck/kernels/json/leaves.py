"""Kernel that lists the leaves of JSON documents with their paths, in document order.

Paths are numbered. The root has number 0. The number of every other path is its index plus one in a table of distinct
words (`kernels.tokens.words`). An entry consists of the parent path's number, as uint32, and a key.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.json.parse import (
    ARRAY,
    FALSE,
    KIND,
    NO_ROOM,
    NULL,
    OBJECT,
    OK,
    ORDER,
    PLACE,
    SIZE,
    SKIP,
    START,
    STRING,
    TRUE,
    Tape,
    parse_value,
)
from lance_duck.kernels.memory import Bytes, as_readonly, copy, store_u32
from lance_duck.kernels.tokens.words import FULL, Slots, word_number

Int64s = NDArray[np.int64]

DONE, LEAVES_FULL, PATHS_FULL, TAPE_FULL, OTHER = range(5)
"""Outcome of a run: finished, an array is full, or a document is not supported."""

TEXT_LEAF, NUMBER_LEAF, BOOL_LEAF, NULL_LEAF = range(4)
LEAF = 4
"""Number of fields of a leaf: kind, path, then the index of its string, or its byte range in the documents."""

FRAME = 3
"""Number of fields of an enclosing container: next node, path, object number (0 for an array)."""

PREFIX = 4
"""Size of the parent path's number in an entry, in bytes."""

DOCUMENTS_READ, LEAVES_READ, TEXTS_READ, TEXT_BYTES, PATHS, PATH_BYTES, OBJECTS = range(7)


@kernel
def read_leaves(
    data: Bytes,
    offsets: Int64s,
    parsing: tuple[Tape, Int64s, Bytes, Int64s],
    paths: tuple[Bytes, Int64s, Int64s, Slots, Int64s],
    texts: Bytes,
    text_ends: Int64s,
    leaves: NDArray[np.int64],
    bounds: Int64s,
    state: Int64s,
) -> int:
    """Read documents, each completely or not at all. Starts at the document in `state`.

    Args:
        data: The documents, UTF-8.
        offsets: Byte offset of each document, and the end of the last one. All lie within `data`.
        parsing: Tape, stack and scratch of `parse_value`, then one frame for each stack slot.
        paths: Five arrays: entry bytes, entry offsets, entry sizes, the hash table, and for each path the object that
            used it last. The last array begins as zeros and has one slot more than there are entries.
        texts: Receives the strings of the leaves. Has the size of the documents.
        text_ends: Receives the end of each string. Has a slot for each leaf.
        leaves: (n, LEAF), receives the leaves.
        bounds: Output from the second entry on: number of leaves before each document.
        state: int64 (7,): progress so far, in the fields named by the constants above.

    Returns:
        DONE, LEAVES_FULL, PATHS_FULL or TAPE_FULL. Returns OTHER if a document is not JSON, repeats a key within an
        object, holds an escaped surrogate, NaN or infinity, or is nested too deeply.
    """
    tape, stack, scratch, _ = parsing
    for i in range(state[DOCUMENTS_READ], len(offsets) - 1):
        start, stop = offsets[i], offsets[i + 1]
        if _has_surrogates(data, start, stop):
            return OTHER
        status, _, nodes = parse_value(data, start, stop, tape, stack, scratch)
        if status == NO_ROOM:
            return TAPE_FULL
        if status != OK:
            return OTHER
        if state[LEAVES_READ] + nodes > len(leaves):
            return LEAVES_FULL
        code = _put_leaves(data, nodes, parsing, paths, texts, text_ends, leaves, state)
        if code != DONE:
            return int(code)
        bounds[i + 1] = state[LEAVES_READ]
        state[DOCUMENTS_READ] = i + 1
    return DONE


@subroutine
def _has_surrogates(data: Bytes, start: Any, stop: Any) -> bool:
    r"""Return whether a string may contain surrogate escapes: \ud800 to \udfff."""
    for at in range(start, stop - 3):
        if data[at] == 92 and data[at + 1] == 117 and (data[at + 2] | 32) == 100 and data[at + 3] >= 56:
            return True
    return False


@subroutine
def _put_leaves(
    data: Bytes, nodes: Any, parsing: Any, paths: Any, texts: Bytes, text_ends: Any, leaves: Any, state: Any
) -> Any:
    """Write the leaves of the document whose nodes are on the tape. Updates the leaf count when all are written."""
    tape, _, scratch, frames = parsing
    count, num_texts, size = state[LEAVES_READ], state[TEXTS_READ], state[TEXT_BYTES]
    depth, node = np.int64(-1), np.int64(0)
    while node < nodes:
        while depth >= 0 and frames[depth, 0] == node:
            depth -= 1
        path = np.int64(0)
        if depth >= 0:
            path = frames[depth, 1]
            if frames[depth, 2] > 0:
                path = _path_below(path, tape[node, START], tape[node, SIZE], scratch, paths, state)
                if path < 0:
                    return PATHS_FULL
                if paths[4][path] == frames[depth, 2]:
                    return OTHER
                paths[4][path] = frames[depth, 2]
                node += 1
        kind = tape[node, KIND]
        if kind in (OBJECT, ARRAY):
            depth += 1
            state[OBJECTS] += 1
            frames[depth, 0], frames[depth, 1] = tape[node, SKIP], path
            frames[depth, 2] = state[OBJECTS] if kind == OBJECT else 0
        else:
            leaves[count, 1], leaves[count, 2], leaves[count, 3] = path, tape[node, PLACE], tape[node, ORDER]
            if kind == STRING:
                copy(texts, size, scratch, tape[node, START], tape[node, SIZE])
                size += tape[node, SIZE]
                text_ends[num_texts] = size
                leaves[count, 0], leaves[count, 2] = TEXT_LEAF, num_texts
                num_texts += 1
            elif kind in (TRUE, FALSE):
                leaves[count, 0] = BOOL_LEAF
            elif kind == NULL:
                leaves[count, 0] = NULL_LEAF
            else:
                last = data[tape[node, ORDER] - 1]
                if last > 57:  # "N" ends NaN, and "y" ends Infinity
                    return OTHER
                leaves[count, 0] = NUMBER_LEAF
            count += 1
        node += 1
    state[LEAVES_READ], state[TEXTS_READ], state[TEXT_BYTES] = count, num_texts, size
    return DONE


@subroutine
def _path_below(path: Any, start: Any, size: Any, scratch: Bytes, paths: Any, state: Any) -> Any:
    """Return the path number of a key below a path, or -1 if there is no room for a new path."""
    entries, starts, sizes, slots = paths[0], paths[1], paths[2], paths[3]
    begin = state[PATH_BYTES]
    if begin + PREFIX + size > len(entries):
        return np.int64(-1)
    store_u32(entries, begin, np.uint32(path))
    copy(entries, begin + PREFIX, scratch, start, size)
    known = as_readonly(entries)
    number = word_number(known, begin, PREFIX + size, slots, known, begin, starts, sizes, state[PATHS])
    if number == FULL:
        return np.int64(-1)
    if number == state[PATHS]:
        state[PATHS] += 1
        state[PATH_BYTES] = begin + PREFIX + size
    return number + 1
