"""Kernels that replace bytes with FSST codes, and count the codes in order to find better symbols."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, copy, load_u64, store_u16
from lance_duck.kernels.texts.fsst import ESCAPE
from lance_duck.kernels.texts.fsst_table import BYTE, Table, longest_form, symbols_of, word_at
from lance_duck.kernels.texts.variable import Offsets

SLACK: Final = 8


@subroutine
def _next_word(data: Bytes, at: int, end: int) -> Any:
    """Load the eight bytes at `at`. Bytes from `end` on are undefined."""
    return load_u64(data, at) if at + 8 <= len(data) else word_at(data, at, end)


@subroutine
def _skip_empty(offsets: Offsets, value: int, last: int, place: Any, ends: Offsets) -> int:
    """Write the ends of empty values, beginning with `value`. Returns the index of the first non-empty value."""
    while value < last and offsets[value] == offsets[value + 1]:
        ends[value + 1] = place
        value += 1
    return value


@subroutine
def _finish(
    data: Bytes,
    offsets: Offsets,
    table: Table,
    value: int,
    last: int,
    at: Any,
    place: Any,
    ends: Offsets,
    out: Bytes,
) -> Any:
    """Encode from `at` in a value to the end of value `last`. Returns the end of the codes in `out`."""
    while value < last:
        end: Any = np.int64(offsets[value + 1])
        while at < end:
            word = _next_word(data, at, end)
            form = longest_form(word, end - at, *table)
            store_u16(out, place, np.uint16((form & 0xFF) | np.int64(word & BYTE) << 8))
            place += 1 + ((form & 0xFF) == ESCAPE)
            at += form >> 8
        value += 1
        ends[value] = place
    return place


@kernel
def compress(
    data: Bytes,
    offsets: Offsets,
    table: Table,
    middle: int,
    ends: Offsets,
    out: Bytes,
    spare: Bytes,
) -> int:
    """Replace the bytes of each value with codes. Each code is the longest symbol that matches.

    Each code depends on the previous code. To hide this latency, the kernel encodes a value of each half at the same
    time.

    Args:
        data: Bytes of the values. The offsets lie within it.
        offsets: (values + 1,), ascending.
        table: Symbol table.
        middle: First value of the second half.
        ends: (values + 1,), output: offsets into `out`, from 0.
        out: Output: twice the size of the values, plus SLACK.
        spare: Scratch space, twice the size of the second half plus SLACK.

    Returns:
        Number of bytes written.
    """
    count = len(offsets) - 1
    place: Any = np.int64(0)
    other_place: Any = np.int64(0)
    ends[0] = 0
    value: Any = _skip_empty(offsets, 0, middle, place, ends)
    other: Any = _skip_empty(offsets, middle, count, other_place, ends)
    at: Any = np.int64(offsets[value])
    other_at: Any = np.int64(offsets[other])
    while value < middle and other < count:
        end: Any = np.int64(offsets[value + 1])
        other_end: Any = np.int64(offsets[other + 1])
        while at < end and other_at < other_end:
            word = _next_word(data, at, end)
            other_word = _next_word(data, other_at, other_end)
            form = longest_form(word, end - at, *table)
            other_form = longest_form(other_word, other_end - other_at, *table)
            store_u16(out, place, np.uint16((form & 0xFF) | np.int64(word & BYTE) << 8))
            store_u16(spare, other_place, np.uint16((other_form & 0xFF) | np.int64(other_word & BYTE) << 8))
            place += 1 + ((form & 0xFF) == ESCAPE)
            other_place += 1 + ((other_form & 0xFF) == ESCAPE)
            at += form >> 8
            other_at += other_form >> 8
        if at == end:
            ends[value + 1] = place
            value = _skip_empty(offsets, value + 1, middle, place, ends)
            at = np.int64(offsets[value])
        if other_at == other_end:
            ends[other + 1] = other_place
            other = _skip_empty(offsets, other + 1, count, other_place, ends)
            other_at = np.int64(offsets[other])
    place = _finish(data, offsets, table, value, middle, at, place, ends, out)
    other_place = _finish(data, offsets, table, other, count, other_at, other_place, ends, spare)
    copy(out, place, spare, 0, other_place)
    for i in range(middle, count):
        ends[i + 1] += place
    return int(place + other_place)


def compress_reference(
    data: Bytes,
    offsets: Offsets,
    table: Table,
    middle: int,
    ends: Offsets,
    out: Bytes,
    spare: Bytes,
) -> int:
    """Reference implementation that looks up symbols in a dictionary."""
    numbers = symbols_of(table)
    codes = bytearray()
    ends[0] = 0
    for i in range(len(offsets) - 1):
        value = data[offsets[i] : offsets[i + 1]].tobytes()
        while value:
            size = next((n for n in range(8, 0, -1) if value[:n] in numbers and len(value) >= n), 0)
            codes += bytes([numbers[value[:size]]]) if size else bytes([ESCAPE, value[0]])
            value = value[max(size, 1) :]
        ends[i + 1] = len(codes)
    out[: len(codes)] = np.frombuffer(bytes(codes), np.uint8)
    return len(codes)


KINDS: Final = 512
"""Number of code kinds to count: 256 escaped bytes, then 256 codes."""


@kernel
def count_codes(
    data: Bytes,
    offsets: Offsets,
    table: Table,
    singles: NDArray[np.int32],
    pairs: NDArray[np.int32],
) -> None:
    """Count the codes that `compress` would write. A symbol of several bytes also counts as its first byte.

    Args:
        data: See `compress`.
        offsets: See `compress`.
        table: See `compress`.
        singles: (KINDS,), incremented by the occurrences of each escaped byte and each code.
        pairs: (KINDS * KINDS,), incremented by the occurrences of consecutive pairs, at [first * KINDS + second].
    """
    for i in range(len(offsets) - 1):
        at: Any = np.int64(offsets[i])
        end: Any = np.int64(offsets[i + 1])
        before: Any = -1
        while at < end:
            word = word_at(data, at, end)
            form = longest_form(word, end - at, *table)
            first = np.int64(word & BYTE)
            kind: Any = first if form & 0xFF == ESCAPE else 256 + (form & 0xFF)
            singles[kind] += 1
            if before >= 0:
                pairs[before * KINDS + kind] += 1
            if form >> 8 > 1:
                singles[first] += 1
                if before >= 0:
                    pairs[before * KINDS + first] += 1
            before = kind
            at += form >> 8


def count_codes_reference(
    data: Bytes,
    offsets: Offsets,
    table: Table,
    singles: NDArray[np.int32],
    pairs: NDArray[np.int32],
) -> None:
    """Reference implementation in plain Python. It counts the codes that `compress_reference` writes."""
    symbols = {code: symbol for symbol, code in symbols_of(table).items()}
    ends, out = np.empty(len(offsets), np.int64), np.empty(2 * len(data) + SLACK, np.uint8)
    compress_reference(data, offsets, table, 0, ends, out, out)
    for i in range(len(offsets) - 1):
        codes = iter(out[ends[i] : ends[i + 1]].tolist())
        before = None
        for code in codes:
            kind = next(codes) if code == ESCAPE else 256 + code
            alone = symbols[code][0] if code != ESCAPE and len(symbols[code]) > 1 else None
            for counted in (kind,) if alone is None else (kind, alone):
                singles[counted] += 1
                if before is not None:
                    pairs[before * KINDS + counted] += 1
            before = kind
