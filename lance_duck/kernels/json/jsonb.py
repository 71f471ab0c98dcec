"""Kernel that converts binary JSON to text. `encoding.arrow.jsonb` describes the byte layout."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, store_u64

Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]

OK, TOO_SHORT, BAD_TYPE, BAD_NUMBER, BAD_EXTENSION, TOO_DEEP, TRAILING = range(7)
FRAME = 7
LARGEST_OFFSET, LARGEST_HOURS = 93_599, 25
BASE, COUNT, NEXT, KEY, VALUE, END, IS_OBJECT = range(FRAME)
ESCAPES = np.zeros(256, dtype=np.uint8)
ESCAPES[:32] = ord("u")
for _byte, _letter in zip(b'"\\\b\f\n\r\t', b'"\\bfnrt', strict=True):
    ESCAPES[_byte] = _letter
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)
_WORDS = np.frombuffer(b"nulltruefalse", dtype=np.uint8)


@subroutine
def _word(data: Bytes, at: int) -> np.int64:
    value = np.int64(0)
    for i in range(4):
        value = (value << 8) | np.int64(data[at + i])
    return value


@subroutine
def put_byte(out: Bytes, at: int, byte: int) -> int:
    """Write a byte if `out` has room. Returns the next position, which may be past the end."""
    if at < len(out):
        out[at] = byte
    return at + 1


@subroutine
def _put_all(out: Bytes, at: int, text: Bytes, start: int, stop: int) -> int:
    for i in range(start, stop):
        at = put_byte(out, at, text[i])
    return at


@subroutine
def _put_string(out: Bytes, at: int, data: Bytes, start: int, size: int) -> int:
    at = put_byte(out, at, 34)
    for i in range(start, start + size):
        byte = data[i]
        escape = ESCAPES[byte]
        if escape == 0:
            at = put_byte(out, at, byte)
            continue
        at = put_byte(out, at, 92)
        at = put_byte(out, at, escape)
        if escape == 117:
            at = put_byte(out, at, 48)
            at = put_byte(out, at, 48)
            at = put_byte(out, at, _HEX[byte >> 4])
            at = put_byte(out, at, _HEX[byte & 15])
    return put_byte(out, at, 34)


@subroutine
def _put_integer(out: Bytes, at: int, value: np.uint64, negative: bool) -> int:
    digits = 1
    rest = value // np.uint64(10)
    while rest > 0:
        rest //= np.uint64(10)
        digits += 1
    if negative:
        at = put_byte(out, at, 45)
    end = at + digits
    for i in range(digits):
        if end - 1 - i < len(out):
            out[end - 1 - i] = 48 + np.uint8(value % np.uint64(10))
        value //= np.uint64(10)
    return end


@subroutine
def _is_extension(data: Bytes, start: int, size: int) -> bool:
    """Return whether an extension value has a known tag and size and a valid time zone."""
    if size == 0:
        return False
    tag, width = int(data[start]), size - 1
    if tag == 0x30 and (width == 9 or width == 12):
        offset = np.int64(data[start + 9])
        offset -= 256 if offset > 127 else 0
        if width == 9:
            return bool(-LARGEST_HOURS <= offset <= LARGEST_HOURS)
        for i in range(10, 13):
            offset = (offset << 8) | np.int64(data[start + i])
        return bool(-LARGEST_OFFSET <= offset <= LARGEST_OFFSET)
    return tag == 0 or (tag == 0x10 and width == 4) or (tag == 0x20 and width == 8) or (tag == 0x40 and width == 16)


@subroutine
def _put_typed(
    start: int, size: int, out: Bytes, at: int, texts: Bytes, ends: Int64s, typed: Int64s, counts: Int64s
) -> int:
    """Write the text of a decimal or extension value. Records the value's location if `typed` has room."""
    number, place = counts[0], 3 * counts[1]
    if place + 2 < len(typed):
        typed[place], typed[place + 1], typed[place + 2] = number, start, size
    if number + 1 < len(ends):
        at = _put_all(out, at, texts, ends[number], ends[number + 1])
    counts[0] = number + 1
    counts[1] += 1
    return at


@subroutine
def _put_number(
    data: Bytes,
    start: int,
    size: int,
    out: Bytes,
    at: int,
    texts: Bytes,
    ends: Int64s,
    floats: Float64s,
    typed: Int64s,
    counts: Int64s,
) -> tuple[int, int]:
    """Write a number. Returns (status, end of the text)."""
    tag = data[start] if size else np.uint8(0)
    if size == 0 or tag == 0:
        return OK, put_byte(out, at, 48)
    if tag in (0x10, 0x20, 0x30):
        return OK, _put_all(out, at, _WORDS, 0, 4)
    width = size - 1
    if tag == 0x70 and width in (9, 17, 18, 33, 34):
        return OK, _put_typed(start, size, out, at, texts, ends, typed, counts)
    if tag not in (0x40, 0x50, 0x60) or width not in (1, 2, 4, 8) or (tag == 0x60 and width != 8):
        return BAD_NUMBER, at
    bits = np.uint64(0)
    for i in range(start + 1, start + size):
        bits = (bits << np.uint64(8)) | np.uint64(data[i])
    if tag == 0x60:
        number = counts[0]
        if number < len(floats):
            store_u64(floats, 8 * number, bits)
        if number + 1 < len(ends):
            at = _put_all(out, at, texts, ends[number], ends[number + 1])
        counts[0] = number + 1
        return OK, at
    negative = tag == 0x40 and (bits >> np.uint64(8 * width - 1)) != 0
    if negative:
        bits = (~bits + np.uint64(1)) & (np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * width))
    return OK, _put_integer(out, at, bits, negative)


@subroutine
def _open(data: Bytes, start: int, end: int, stack: Int64s, depth: int) -> int:
    """Push the container at `start` on the stack, and return a status. The values must not extend past `end`."""
    if (depth + 1) * FRAME > len(stack):
        return TOO_DEEP
    if end - start < 4:
        return TOO_SHORT
    head = _word(data, start)
    kind, count = head >> 28, head & 0x0FFFFFFF
    if kind != 2 and kind != 4 and kind != 8:
        return BAD_TYPE
    if kind == 2 and count != 1:
        count = np.int64(1)
    is_object = kind == 4
    entries = 4 * count * (2 if is_object else 1)
    if end - start - 4 < entries:
        return TOO_SHORT
    frame = stack[depth * FRAME : (depth + 1) * FRAME]
    frame[BASE], frame[COUNT], frame[NEXT], frame[END] = start, count, 0, end
    frame[IS_OBJECT] = 1 if is_object else 0 if kind == 8 else -1
    frame[KEY] = frame[VALUE] = start + 4 + entries
    if is_object:
        for i in range(count):
            frame[VALUE] += _word(data, start + 4 + 4 * i) & 0x0FFFFFFF
        if frame[VALUE] > end:
            return TOO_SHORT
    return OK


@subroutine
def _put_key(data: Bytes, frame: Int64s, out: Bytes, at: int) -> int:
    entry = int(_word(data, frame[BASE] + 4 + 4 * frame[NEXT]) & 0x0FFFFFFF)
    at = _put_string(out, at, data, frame[KEY], entry)
    frame[KEY] += entry
    return put_byte(out, at, 58)


@subroutine
def _close(frame: Int64s, out: Bytes, at: int) -> int:
    return at if frame[IS_OBJECT] < 0 else put_byte(out, at, 125 if frame[IS_OBJECT] else 93)


@subroutine
def _begin(frame: Int64s, out: Bytes, at: int) -> int:
    return at if frame[IS_OBJECT] < 0 else put_byte(out, at, 123 if frame[IS_OBJECT] else 91)


@subroutine
def _value_text(
    data: Bytes,
    start: int,
    end: int,
    stack: Int64s,
    out: Bytes,
    at: int,
    texts: Bytes,
    ends: Int64s,
    floats: Float64s,
    typed: Int64s,
    counts: Int64s,
    strict: bool,
) -> tuple[int, int]:
    """Write the text of one value. Returns (status, end of the text)."""
    status = _open(data, start, end, stack, 0)
    if status != OK:
        counts[0], counts[1] = data[start] >> 4, data[start]
        return status, at
    depth = 0
    at = _begin(stack[:FRAME], out, at)
    while depth >= 0:
        frame = stack[depth * FRAME : (depth + 1) * FRAME]
        i = frame[NEXT]
        if i == frame[COUNT]:
            if strict and frame[VALUE] != frame[END]:
                return TRAILING, at
            at = _close(frame, out, at)
            depth -= 1
            continue
        if i > 0:
            at = put_byte(out, at, 44)
        place = i
        if frame[IS_OBJECT] == 1:
            at, place = _put_key(data, frame, out, at), i + frame[COUNT]
        entry = _word(data, frame[BASE] + 4 + 4 * place)
        kind, size, begin = (entry >> 28) & 7, int(entry & 0x0FFFFFFF), frame[VALUE]
        frame[NEXT], frame[VALUE] = i + 1, begin + size
        if begin + size > frame[END]:
            return TOO_SHORT, at
        if kind == 5:
            depth += 1
            status = _open(data, begin, begin + size, stack, depth)
            if status == OK:
                at = _begin(stack[depth * FRAME : (depth + 1) * FRAME], out, at)
        elif kind == 1:
            at = _put_string(out, at, data, begin, size)
        elif kind == 2:
            status, at = _put_number(data, begin, size, out, at, texts, ends, floats, typed, counts)
        elif kind == 0:
            at = _put_all(out, at, _WORDS, 0, 4)
        elif kind == 3 or kind == 4:
            at = _put_all(out, at, _WORDS, 4 if kind == 4 else 8, 8 if kind == 4 else 13)
        elif kind == 6 and _is_extension(data, begin, size):
            at = _put_typed(begin, size, out, at, texts, ends, typed, counts)
        else:
            status = BAD_TYPE if kind == 7 else BAD_EXTENSION
        if status != OK:
            counts[0], counts[1] = kind, data[begin] if size else 0
            return status, at
    return OK, at


@kernel
def jsonb_text(
    data: Bytes,
    offsets: Int64s,
    stack: Int64s,
    out: Bytes,
    ends_out: Int64s,
    texts: Bytes,
    ends: Int64s,
    floats: Float64s,
    typed: Int64s,
    totals: Int64s,
    strict: bool,
) -> int:
    """Convert values to text until `out` is full.

    Args:
        data: The values.
        offsets: (n + 1,), within `data`. An empty value becomes an empty string.
        stack: Nesting stack, FRAME slots for each level.
        out: Receives the text. If it is empty, nothing is written.
        ends_out: (n + 1,), receives the string offsets.
        texts: Text of the floats and typed values, concatenated.
        ends: Offsets into `texts`. If empty, floats and typed values are written as empty strings.
        floats: Receives floats until it is full. Slots of typed values remain unset.
        typed: Receives three numbers for each decimal or extension value: index in `floats`, first byte, size.
        totals: (3,), receives the count of floats and typed values, the count of typed values, and the text size in
            bytes. If a value is invalid, receives its kind and tag.
        strict: Whether unused bytes after the last member of a container are an error.

    Returns:
        A status: a code in the low byte, and the index of a value in the bits above.
    """
    at = 0
    totals[0] = totals[1] = 0
    for i in range(len(offsets) - 1):
        if offsets[i + 1] > offsets[i]:
            start, stop = offsets[i], offsets[i + 1]
            status, at = _value_text(data, start, stop, stack, out, at, texts, ends, floats, typed, totals, strict)
            if status != OK:
                return status | (i << 8)
        ends_out[i + 1] = at
    totals[2] = at
    return OK
