"""Kernel that parses one JSON value into a tape of nodes, in document order.

A node is a row of the tape: kind, payload offset in the scratch buffer, JSONB size, number of children, and the first
row after the node and its descendants. Two more fields belong to the writing kernel. Until that kernel runs, these
fields hold the byte range of a scalar in the text. An object member takes two nodes: key and value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import subroutine
from lance_duck.kernels.memory import Bytes

Int64s = NDArray[np.int64]
Tape = NDArray[np.int64]

OK, BAD_VALUE, BAD_STRING, BAD_NUMBER, BAD_PLACE, ENDS, TRAILING, DUPLICATE, TOO_DEEP, TOO_LARGE, NO_ROOM = range(11)
KIND, START, SIZE, COUNT, SKIP, PLACE, ORDER = range(7)
NODE = 7
NULL, STRING, NUMBER, FALSE, TRUE, ARRAY, OBJECT, FLOAT = range(8)
MAX_SIZE = (1 << 28) - 1
_WORDS = np.frombuffer(b"nulltruefalseNaNInfinity-Infinity", dtype=np.uint8)
_WORD_ENDS = np.array([0, 4, 8, 13, 16, 24, 33], dtype=np.int64)
_WORD_KINDS = np.array([NULL, TRUE, FALSE, NUMBER, NUMBER, NUMBER], dtype=np.int64)
_WORD_TAGS = np.array([0, 0, 0, 0x10, 0x20, 0x30], dtype=np.uint8)
_FINITE = np.frombuffer(b"17976931348623158079", dtype=np.uint8)
_UNESCAPED = np.zeros(256, dtype=np.uint8)
for _letter, _byte in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    _UNESCAPED[_letter] = _byte


@subroutine
def _blanks(data: Bytes, at: int, stop: int) -> int:
    while at < stop and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at


@subroutine
def _hex(data: Bytes, at: int, stop: int) -> int:
    """Return the value of four hexadecimal digits, or -1 if they are invalid."""
    if stop - at < 4:
        return -1
    value = 0
    for i in range(at, at + 4):
        byte = int(data[i])
        if 48 <= byte <= 57:
            digit = byte - 48
        elif 97 <= (byte | 32) <= 102:
            digit = (byte | 32) - 87
        else:
            return -1
        value = value * 16 + digit
    return value


@subroutine
def _put_code(scratch: Bytes, end: int, code: int) -> int:
    """Write a code point as UTF-8. Returns the end of the bytes."""
    if code < 0x80:
        scratch[end] = code
        return end + 1
    size = 2 if code < 0x800 else 3 if code < 0x10000 else 4
    for i in range(size - 1, 0, -1):
        scratch[end + i] = 0x80 | (code & 0x3F)
        code >>= 6
    scratch[end] = code | (0xC0 if size == 2 else 0xE0 if size == 3 else 0xF0)
    return end + size


@subroutine
def _put_escape(data: Bytes, at: int, stop: int, scratch: Bytes, end: int) -> tuple[int, int]:
    r"""Write the character of the escape at `at`. Returns (next byte, scratch end), or (-1, scratch end) if invalid.

    An unpaired surrogate escape is copied unchanged, together with the \u escape that follows it.
    """
    if stop - at < 2:
        return -1, end
    if data[at + 1] != 117:
        byte = _UNESCAPED[data[at + 1]]
        scratch[end] = byte
        return (at + 2 if byte else -1), end + 1
    code, size = _hex(data, at + 2, stop), 6
    if code < 0:
        return -1, end
    if 0xD800 <= code < 0xDC00 and stop - at >= 12 and data[at + 6] == 92 and data[at + 7] == 117:
        low, size = _hex(data, at + 8, stop), 12
        if low < 0:
            return -1, end
        if 0xDC00 <= low < 0xE000:
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
    if 0xD800 <= code < 0xE000:
        for i in range(size):
            scratch[end + i] = data[at + i]
        return at + size, end + size
    return at + size, _put_code(scratch, end, code)


@subroutine
def _string(data: Bytes, at: int, stop: int, scratch: Bytes, end: int) -> tuple[int, int, int]:
    """Write the string whose opening quote is at `at`. Returns (status, next byte, scratch end)."""
    at += 1
    while at < stop:
        byte = data[at]
        if byte == 34:
            return OK, at + 1, end
        if byte == 92:
            after, end = _put_escape(data, at, stop, scratch, end)
            if after < 0:
                return BAD_STRING, at, end
            at = after
        else:
            scratch[end] = byte
            end += 1
            at += 1
    return ENDS, at, end


@subroutine
def _digits(data: Bytes, at: int, stop: int) -> int:
    while at < stop and 48 <= data[at] <= 57:
        at += 1
    return at


@subroutine
def _is_infinite(data: Bytes, start: int, point: int, mantissa: int, exponent: int) -> bool:
    """Return whether a number is too large for a float. The digits end at `mantissa`, the point is at `point`."""
    at = start
    while at < mantissa and (data[at] == 48 or data[at] == 46):
        at += 1
    if at == mantissa:
        return False
    magnitude = exponent + (point - at - 1 if at < point else point - at)
    if magnitude != 308:
        return magnitude > 308
    digit = 0
    while at < mantissa and digit < len(_FINITE):
        if data[at] != 46:
            if data[at] != _FINITE[digit]:
                return bool(data[at] > _FINITE[digit])
            digit += 1
        at += 1
    return digit == len(_FINITE)


@subroutine
def _put_integer(scratch: Bytes, place: int, value: np.uint64, negative: bool) -> int:
    if value == 0:
        scratch[place] = 0
        return place + 1
    largest = value - np.uint64(1) if negative else value >> np.uint64(1)
    width = 1
    while width < 8 and (largest >> np.uint64(8 * width - 1)) != 0:
        width *= 2
    if negative:
        value = ~value + np.uint64(1)
    scratch[place] = 0x40 if negative else 0x50
    for i in range(width):
        scratch[place + 1 + i] = np.uint8((value >> np.uint64(8 * (width - 1 - i))) & np.uint64(255))
    return place + 1 + width


@subroutine
def _put_float_span(scratch: Bytes, place: int, start: int, stop: int) -> int:
    """Write the byte range of a float's text into 16 bytes: its 8 value bytes and 8 more."""
    for i in range(8):
        scratch[place + i] = (start >> (8 * i)) & 255
        scratch[place + 8 + i] = (stop >> (8 * i)) & 255
    return place + 16


@subroutine
def _exponent(data: Bytes, at: int, stop: int) -> tuple[int, int]:
    """Return (next byte, exponent) for the digits after `e`, capped at 10 ** 6, or (-1, 0) if there are none."""
    sign = 1
    if at < stop and (data[at] == 43 or data[at] == 45):
        sign = -1 if data[at] == 45 else 1
        at += 1
    end = _digits(data, at, stop)
    if end == at:
        return -1, 0
    value = 0
    for i in range(at, end):
        value = min(value * 10 + int(data[i]) - 48, 10**6)
    return end, sign * value


@subroutine
def _number(data: Bytes, start: int, stop: int, scratch: Bytes, place: int) -> tuple[int, int, int, int]:
    """Write the number at `start`. Returns (status, next byte, scratch end, kind)."""
    negative = data[start] == 45
    first = start + 1 if negative else start
    point = mantissa = end = _digits(data, first, stop)
    if point == first or (point - first > 1 and data[first] == 48):
        return BAD_NUMBER, point, place, NUMBER
    if end < stop and data[end] == 46:
        mantissa = end = _digits(data, point + 1, stop)
        if end == point + 1:
            return BAD_NUMBER, end, place, NUMBER
    exponent = 0
    if end < stop and (data[end] | 32) == 101:
        end, exponent = _exponent(data, end + 1, stop)
        if end < 0:
            return BAD_NUMBER, mantissa, place, NUMBER
    if end == point:
        value, fits = np.uint64(0), point - first <= 20
        for i in range(first, point):
            digit = np.uint64(data[i] - 48)
            fits = fits and bool(value <= (np.uint64(0xFFFFFFFFFFFFFFFF) - digit) // np.uint64(10))
            value = value * np.uint64(10) + digit
        if fits and not (negative and value > np.uint64(1 << 63)):
            return OK, end, _put_integer(scratch, place, value, negative), NUMBER
    if _is_infinite(data, first, point, mantissa, exponent):
        scratch[place] = 0x30 if negative else 0x20
        return OK, end, place + 1, NUMBER
    return OK, end, _put_float_span(scratch, place, start, end), FLOAT


@subroutine
def _word(data: Bytes, at: int, stop: int) -> int:
    """Return the index of the literal at `at` in `_WORD_KINDS`, or -1 if it is not a literal."""
    for word in range(len(_WORD_KINDS)):
        size = _WORD_ENDS[word + 1] - _WORD_ENDS[word]
        if stop - at >= size:
            same = True
            for i in range(size):
                same = same and data[at + i] == _WORDS[_WORD_ENDS[word] + i]
            if same:
                return word
    return -1


@subroutine
def _scalar(data: Bytes, at: int, stop: int, scratch: Bytes, place: int, tape: Tape, node: int) -> tuple[int, int, int]:
    """Read the scalar at `at` into a node. Returns (status, next byte, scratch end)."""
    status, begin, kind, byte = OK, place, STRING, data[at]
    tape[node, PLACE] = at
    if byte == 34:
        status, at, place = _string(data, at, stop, scratch, place)
    elif 48 <= byte <= 57 or (byte == 45 and not (at + 1 < stop and data[at + 1] == 73)):
        status, at, place, kind = _number(data, at, stop, scratch, place)
    else:
        word = _word(data, at, stop)
        if word < 0:
            return BAD_VALUE, at, place
        kind = _WORD_KINDS[word]
        at += _WORD_ENDS[word + 1] - _WORD_ENDS[word]
        if kind == NUMBER:
            scratch[place] = _WORD_TAGS[word]
            place += 1
    size = 9 if kind == FLOAT else place - begin
    tape[node, KIND], tape[node, START], tape[node, SIZE] = kind, begin, size
    tape[node, COUNT], tape[node, SKIP], tape[node, ORDER] = 0, node + 1, at
    return (TOO_LARGE if size > MAX_SIZE else status), at, place


@subroutine
def _count_in(tape: Tape, stack: Int64s, depth: int, size: int, members: int) -> None:
    """Add an entry of `size` bytes to the container on top of the stack."""
    if depth >= 0:
        tape[stack[depth], SIZE] += 4 + size
        tape[stack[depth], COUNT] += members


@subroutine
def _close(tape: Tape, nodes: int, stack: Int64s, depth: int) -> int:
    """Complete the top container, count it as an item of its parent, and return a status."""
    node = stack[depth]
    tape[node, SKIP] = nodes
    _count_in(tape, stack, depth - 1, tape[node, SIZE], 1)
    return TOO_LARGE if tape[node, SIZE] > MAX_SIZE else OK


@subroutine
def _open(tape: Tape, node: int, is_object: bool, stack: Int64s, depth: int) -> int:
    if depth >= len(stack):
        return TOO_DEEP
    tape[node, KIND] = OBJECT if is_object else ARRAY
    tape[node, START], tape[node, SIZE], tape[node, COUNT] = 0, 4, 0
    stack[depth] = node
    return OK


@subroutine
def _key(data: Bytes, at: int, stop: int, scratch: Bytes, place: int, tape: Tape, node: int) -> tuple[int, int, int]:
    """Read the key at `at` and the colon after it, like `_scalar`."""
    if data[at] != 34:
        return BAD_PLACE, at, place
    status, at, place = _scalar(data, at, stop, scratch, place, tape, node)
    at = _blanks(data, at, stop)
    if status == OK and at == stop:
        status = ENDS
    elif status == OK and data[at] != 58:
        status = BAD_PLACE
    return status, at + 1 if status == OK else at, place


@subroutine
def parse_value(data: Bytes, at: int, stop: int, tape: Tape, stack: Int64s, scratch: Bytes) -> tuple[int, int, int]:
    """Parse the single value between `at` and `stop`.

    Args:
        data: The text.
        at: First byte of the value.
        stop: End of the value.
        tape: Receives the nodes. The status is NO_ROOM if they do not fit.
        stack: Nesting stack, one slot for each level.
        scratch: Receives unescaped strings, numbers as JSONB, and for floats the byte range of their text. Needs at
            least 16 bytes, and 4 bytes for each byte of the value.

    Returns:
        (status, offset in `data` to which the status refers, number of nodes).
    """
    depth, nodes, place, status = -1, 0, 0, OK
    first = wants_key = after = False
    while status == OK:
        at = _blanks(data, at, stop)
        if after and depth < 0:
            return (OK if at == stop else TRAILING), at, nodes
        if at == stop:
            return ENDS, at, nodes
        byte, in_object = data[at], depth >= 0 and tape[stack[depth], KIND] == OBJECT
        if (after or first) and byte == (125 if in_object else 93):
            status = _close(tape, nodes, stack, depth)
            at, depth, after, first = at + 1, depth - 1, True, False
        elif after:
            status = OK if byte == 44 else BAD_PLACE
            at, wants_key, after = at + (byte == 44), in_object, False
        elif nodes == len(tape):
            status = NO_ROOM
        elif not wants_key and (byte == 91 or byte == 123):
            depth += 1
            status = _open(tape, nodes, byte == 123, stack, depth)
            at, nodes, wants_key, first = at + 1, nodes + 1, byte == 123, True
        else:
            first = False
            if wants_key:
                status, at, place = _key(data, at, stop, scratch, place, tape, nodes)
            else:
                status, at, place = _scalar(data, at, stop, scratch, place, tape, nodes)
            if status == OK:
                _count_in(tape, stack, depth, tape[nodes, SIZE], 0 if wants_key else 1)
            nodes, after, wants_key = nodes + 1, not wants_key, False
    return status, at, nodes
