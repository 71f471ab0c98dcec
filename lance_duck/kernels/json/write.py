"""Kernel that writes JSONB from a parsed tape. `encoding.arrow.jsonb` describes the byte layout."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.json.parse import (
    ARRAY,
    COUNT,
    DUPLICATE,
    FLOAT,
    KIND,
    NO_ROOM,
    OBJECT,
    OK,
    ORDER,
    PLACE,
    SIZE,
    SKIP,
    START,
    Tape,
    parse_value,
)
from lance_duck.kernels.memory import Bytes

Int64s = NDArray[np.int64]

_ENTRY_KINDS = np.array([0, 1, 2, 3, 4, 5, 5, 2], dtype=np.int64)


@subroutine
def _put_word(out: Bytes, at: int, kind: int, value: int) -> int:
    word = (kind << 28) | value
    for i in range(4):
        out[at + i] = (word >> (24 - 8 * i)) & 255
    return at + 4


@subroutine
def _is_less(tape: Tape, scratch: Bytes, one: int, other: int) -> bool:
    """Return whether the key of node `one` sorts before the key of node `other`, bytewise."""
    start, begin = tape[one, START], tape[other, START]
    size, length = tape[one, SIZE], tape[other, SIZE]
    for i in range(min(size, length)):
        if scratch[start + i] != scratch[begin + i]:
            return bool(scratch[start + i] < scratch[begin + i])
    return bool(size < length)


@subroutine
def _sift(tape: Tape, at: int, count: int, scratch: Bytes) -> None:
    while True:
        child = 2 * at + 1
        if child + 1 < count and _is_less(tape, scratch, tape[child, ORDER], tape[child + 1, ORDER]):
            child += 1
        if child >= count or not _is_less(tape, scratch, tape[at, ORDER], tape[child, ORDER]):
            return
        tape[at, ORDER], tape[child, ORDER] = tape[child, ORDER], tape[at, ORDER]
        at = child


@subroutine
def _sort(tape: Tape, count: int, scratch: Bytes) -> int:
    """Sort the first `count` nodes in ORDER by key bytes. Returns DUPLICATE if two keys are equal, otherwise OK."""
    for i in range(1, count):
        if not _is_less(tape, scratch, tape[i - 1, ORDER], tape[i, ORDER]):
            break
    else:
        return OK
    for at in range(count // 2 - 1, -1, -1):
        _sift(tape, at, count, scratch)
    for last in range(count - 1, 0, -1):
        tape[0, ORDER], tape[last, ORDER] = tape[last, ORDER], tape[0, ORDER]
        _sift(tape, 0, last, scratch)
    for i in range(1, count):
        if not _is_less(tape, scratch, tape[i - 1, ORDER], tape[i, ORDER]):
            return DUPLICATE
    return OK


@subroutine
def _float_extent(scratch: Bytes, at: int) -> tuple[np.int64, np.int64]:
    start = stop = np.int64(0)
    for i in range(8):
        start |= np.int64(scratch[at + i]) << (8 * i)
        stop |= np.int64(scratch[at + 8 + i]) << (8 * i)
    return start, stop


@subroutine
def _put_payload(tape: Tape, node: int, scratch: Bytes, out: Bytes, at: int, floats: Int64s, num_floats: int) -> int:
    """Write a scalar, or reserve space for a container. Returns the number of floats so far."""
    kind = tape[node, KIND]
    if kind in (ARRAY, OBJECT):
        tape[node, PLACE] = at
    elif kind == FLOAT:
        if num_floats < len(floats):
            start, stop = _float_extent(scratch, tape[node, START])
            floats[num_floats, 0], floats[num_floats, 1], floats[num_floats, 2] = start, stop, at + 1
        out[at] = 0x60
        return num_floats + 1
    else:
        begin = tape[node, START]
        for i in range(tape[node, SIZE]):
            out[at + i] = scratch[begin + i]
    return num_floats


@subroutine
def _put_container(
    tape: Tape, node: int, scratch: Bytes, out: Bytes, floats: Int64s, num_floats: int
) -> tuple[int, int]:
    """Write a container and its scalars. Returns (status, number of floats so far)."""
    count, is_object, child = tape[node, COUNT], tape[node, KIND] == OBJECT, node + 1
    entry = _put_word(out, tape[node, PLACE], 4 if is_object else 8, count)
    for i in range(count):
        tape[i, ORDER] = child
        child = tape[child + 1 if is_object else child, SKIP]
    at = entry + 4 * count
    if is_object:
        if _sort(tape, count, scratch) != OK:
            return DUPLICATE, num_floats
        at += 4 * count
        for i in range(count):
            key = tape[i, ORDER]
            entry = _put_word(out, entry, 1, tape[key, SIZE])
            num_floats = _put_payload(tape, key, scratch, out, at, floats, num_floats)
            at += tape[key, SIZE]
    for i in range(count):
        member = tape[i, ORDER] + is_object
        entry = _put_word(out, entry, _ENTRY_KINDS[tape[member, KIND]], tape[member, SIZE])
        num_floats = _put_payload(tape, member, scratch, out, at, floats, num_floats)
        at += tape[member, SIZE]
    return OK, num_floats


@subroutine
def _put_value(
    tape: Tape, nodes: int, scratch: Bytes, out: Bytes, at: int, floats: Int64s, num_floats: int
) -> tuple[int, int, int]:
    """Write one value. Returns (status, end of its bytes, number of floats so far)."""
    status, kind, size = OK, tape[0, KIND], tape[0, SIZE]
    if kind not in (ARRAY, OBJECT):
        entry = _put_word(out, _put_word(out, at, 2, 0), _ENTRY_KINDS[kind], size)
        num_floats = _put_payload(tape, 0, scratch, out, entry, floats, num_floats)
        return OK, entry + size, num_floats
    tape[0, PLACE] = at
    for node in range(nodes):
        if status == OK and tape[node, KIND] in (ARRAY, OBJECT):
            status, num_floats = _put_container(tape, node, scratch, out, floats, num_floats)
    return status, at + size, num_floats


@kernel
def write_jsonb(
    data: Bytes,
    offsets: Int64s,
    skip: Bytes,
    tape: Tape,
    stack: Int64s,
    scratch: Bytes,
    out: Bytes,
    ends: Int64s,
    floats: Int64s,
    state: Int64s,
) -> int:
    """Convert JSON strings to JSONB, starting at value `state[0]`.

    Args:
        data: The strings.
        offsets: (n + 1,), within `data`.
        skip: (n,), nonzero for values to skip. They become empty.
        tape: (rows, NODE), space for the nodes of one value.
        stack: Nesting stack, one slot for each level.
        scratch: At least 16 bytes, and at least 4 bytes for each byte of the longest string.
        out: Receives the values. Needs 8 bytes for each value and 4 bytes for each byte of text.
        ends: (n + 1,), receives the value offsets.
        floats: (rows, 3), receives for each float the byte range of its text and the offset of its 8 bytes in `out`.
        state: Next value, bytes written, float count. After an error, the fourth number is the offset in the text.

    Returns:
        A status. NO_ROOM means that `tape` or `floats` is too short.
    """
    for i in range(state[0], len(offsets) - 1):
        start, stop, at, num_floats = offsets[i], offsets[i + 1], state[1], state[2]
        if not skip[i] and start < stop:
            status, place, nodes = parse_value(data, start, stop, tape, stack, scratch)
            if status == OK:
                status, at, num_floats = _put_value(tape, nodes, scratch, out, at, floats, num_floats)
            if status == OK and num_floats > len(floats):
                status = NO_ROOM
            if status != OK:
                state[3] = place
                return status
        elif not skip[i]:
            at = _put_word(out, _put_word(out, at, 2, 0), 0, 0)
        state[0], state[1], state[2] = i + 1, at, num_floats
        ends[i + 1] = at
    return OK
