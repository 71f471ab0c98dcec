"""Kernels that replace bytes by FSST codes, and count how often each code comes, from which better symbols are made.

A table finds the longest symbol at a place by two look-ups. Symbols of three bytes and more sit in a hash table of
their first three bytes, one to a slot, so that of symbols that begin alike just one is in a table. Shorter ones are
found by the next two bytes:

    slots   symbol, mask of its bytes (0: no symbol, and the symbol is 1, which no masked word equals), form
    short   form of the symbol of two bytes, else of one byte, else an escape; then, for each byte, without those of two
    form    code | bytes of the symbol << 8; code 255 is an escape, of one byte
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import Bytes
from lance_duck.encoding.kernels.fsst import ESCAPE
from lance_duck.encoding.kernels.jit import kernel
from lance_duck.encoding.kernels.memory import copy, load_u16, load_u64, store_u16
from lance_duck.encoding.kernels.variable import Offsets

SLOTS: Final = 2048
PAIRS: Final = 1 << 16
SHORT: Final = PAIRS + 256
SLACK: Final = 8
MAX_SYMBOLS: Final = 255
KINDS: Final = 512
"""Codes that are counted: bytes that are escaped, then 256 + code."""
_ALONE = np.uint16(ESCAPE | 1 << 8)
_FIRST_THREE = np.uint64(0xFFFFFF)
_FIRST_TWO = np.uint64(0xFFFF)
_PRIME = np.uint64(2971215073)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_BYTE = np.uint64(0xFF)

Table = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint16], NDArray[np.uint16]]
"""Symbols, masks and forms of the slots; short forms."""


@kernel
def _slot(word: Any) -> Any:
    mixed = (word & _FIRST_THREE) * _PRIME
    return np.int64((mixed ^ (mixed >> np.uint64(15))) & np.uint64(SLOTS - 1))


@kernel
def _mask(size: int) -> Any:
    return _ALL >> np.uint64(64 - 8 * size)


@kernel
def fill_table(
    symbols: NDArray[np.uint64],
    lengths: Bytes,
    slot_symbols: NDArray[np.uint64],
    slot_masks: NDArray[np.uint64],
    slot_forms: NDArray[np.uint16],
    short: NDArray[np.uint16],
    chosen: NDArray[np.int64],
) -> int:
    """Takes symbols, the first ones first, as long as there are codes and their slots are free.

    Args:
        symbols: Little-endian, the bytes behind a symbol 0; all different.
        lengths: Bytes of each, 1 to 8.
        slot_symbols: SLOTS, written.
        slot_masks: SLOTS, written.
        slot_forms: SLOTS, written.
        short: SHORT, written.
        chosen: MAX_SYMBOLS, written: the symbol of each code.

    Returns:
        Number of codes.
    """
    slot_symbols[:] = 1
    slot_masks[:] = 0
    slot_forms[:] = 0
    short[:] = _ALONE
    codes = 0
    for i in range(len(symbols)):
        if codes == MAX_SYMBOLS:
            break
        if lengths[i] >= 3:
            slot = _slot(symbols[i])
            if slot_masks[slot] != 0:
                continue
            slot_symbols[slot] = symbols[i]
            slot_masks[slot] = _mask(lengths[i])
            slot_forms[slot] = codes | np.int64(lengths[i]) << 8
        chosen[codes] = i
        codes += 1
    for size in range(1, 3):
        for code in range(codes):
            symbol = np.int64(symbols[chosen[code]])
            if lengths[chosen[code]] == size:
                step = 1 << (8 * size)
                for place in range(symbol, PAIRS, step):
                    short[place] = code | size << 8
                if size == 1:
                    short[PAIRS + symbol] = code | size << 8
    return codes


def fill_table_reference(
    symbols: NDArray[np.uint64],
    lengths: Bytes,
    slot_symbols: NDArray[np.uint64],
    slot_masks: NDArray[np.uint64],
    slot_forms: NDArray[np.uint16],
    short: NDArray[np.uint16],
    chosen: NDArray[np.int64],
) -> int:
    """The same, plainly."""
    slots: dict[int, int] = {}
    taken: list[int] = []
    for i, (symbol, size) in enumerate(zip(symbols.tolist(), lengths.tolist(), strict=True)):
        mixed = (symbol & 0xFFFFFF) * 2971215073
        slot = (mixed ^ mixed >> 15) % SLOTS
        if len(taken) < MAX_SYMBOLS and (size < 3 or slot not in slots):
            if size >= 3:
                slots[slot] = len(taken)
            taken.append(i)
    slot_symbols[:], slot_masks[:], slot_forms[:], short[:] = 1, 0, 0, _ALONE
    for slot, code in slots.items():
        slot_symbols[slot] = symbols[taken[code]]
        slot_masks[slot] = (1 << 8 * int(lengths[taken[code]])) - 1
        slot_forms[slot] = code | int(lengths[taken[code]]) << 8
    for size in (1, 2):
        for code, i in enumerate(taken):
            if lengths[i] == size:
                short[int(symbols[i]) : PAIRS : 1 << 8 * size] = code | size << 8
                if size == 1:
                    short[PAIRS + int(symbols[i])] = code | size << 8
    chosen[: len(taken)] = taken
    return len(taken)


@kernel
def _word(data: Bytes, at: int, end: int) -> Any:
    """The eight bytes at `at`, those from `end` on as 0."""
    left = end - at
    if at + 8 <= len(data):
        word: Any = load_u64(data, at)
        return word if left >= 8 else word & _mask(left)
    word = np.uint64(0)
    for i in range(min(left, 8)):
        word |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return word


@kernel
def _form(
    word: Any,
    left: int,
    slot_symbols: NDArray[np.uint64],
    slot_masks: NDArray[np.uint64],
    slot_forms: NDArray[np.uint16],
    short: NDArray[np.uint16],
) -> Any:
    """Form of the longest symbol that begins `word`, of which `left` bytes count, one at least.

    There are no branches: which symbol is next cannot be predicted.
    """
    slot = _slot(word)
    form: Any = np.int64(load_u16(slot_forms, slot * 2))
    place: Any = np.int64(word & _FIRST_TWO) if left > 1 else PAIRS + np.int64(word & _BYTE)
    shorter: Any = np.int64(load_u16(short, place * 2))
    fits = (word & load_u64(slot_masks, slot * 8) == load_u64(slot_symbols, slot * 8)) & (form >> 8 <= left)
    return form if fits else shorter


@kernel
def _next_word(data: Bytes, at: int, end: int) -> Any:
    """Eight bytes at `at`; those from `end` on may be anything."""
    return load_u64(data, at) if at + 8 <= len(data) else _word(data, at, end)


@kernel
def _skip_empty(offsets: Offsets, value: int, last: int, place: Any, ends: Offsets) -> int:
    """The first value from `value` on that has bytes; the ends of those before it are written."""
    while value < last and offsets[value] == offsets[value + 1]:
        ends[value + 1] = place
        value += 1
    return value


@kernel
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
    """Replaces the bytes from `at` in a value on, up to the value `last`; returns where they end in `out`."""
    while value < last:
        end: Any = np.int64(offsets[value + 1])
        while at < end:
            word = _next_word(data, at, end)
            form = _form(word, end - at, *table)
            store_u16(out, place, np.uint16((form & 0xFF) | np.int64(word & _BYTE) << 8))
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
    """Replaces the bytes of each value by codes, at each place the longest symbol.

    Each code waits for the one before it, so that two values at a time, one of each half, take hardly longer than one.

    Args:
        data: Bytes of the values; the offsets lie in it.
        offsets: Number of values + 1, ascending.
        table: Of symbols.
        middle: First value of the second half.
        ends: Number of values + 1, written: offsets into `out`, from 0.
        out: Twice the bytes of the values and SLACK more, written.
        spare: Twice the bytes of the second half and SLACK more, scratch.

    Returns:
        Bytes written.
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
            form = _form(word, end - at, *table)
            other_form = _form(other_word, other_end - other_at, *table)
            store_u16(out, place, np.uint16((form & 0xFF) | np.int64(word & _BYTE) << 8))
            store_u16(spare, other_place, np.uint16((other_form & 0xFF) | np.int64(other_word & _BYTE) << 8))
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
    """The same, with the symbols in a dictionary."""
    numbers = _symbols_of(table)
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


def _symbols_of(table: Table) -> dict[bytes, int]:
    """Code of each symbol."""
    slot_symbols, _, slot_forms, short = table
    numbers = {}
    for symbol, form in zip(slot_symbols.tolist(), slot_forms.tolist(), strict=True):
        if form:
            numbers[symbol.to_bytes(8, "little")[: form >> 8]] = form & 0xFF
    for word, form in enumerate(short.tolist()):
        if form & 0xFF != ESCAPE:
            numbers[(word % PAIRS).to_bytes(2, "little")[: form >> 8]] = form & 0xFF
    return numbers


@kernel
def count_codes(
    data: Bytes,
    offsets: Offsets,
    table: Table,
    singles: NDArray[np.int32],
    pairs: NDArray[np.int32],
) -> None:
    """Counts what compress would write; a symbol of several bytes counts also as its first byte alone.

    Args:
        data: As for compress, as are the next two.
        offsets: The same.
        table: The same.
        singles: KINDS, raised: how often each byte is escaped, and each code comes.
        pairs: KINDS * KINDS, raised: how often one comes behind another, at [before * KINDS + behind].
    """
    for i in range(len(offsets) - 1):
        at: Any = np.int64(offsets[i])
        end: Any = np.int64(offsets[i + 1])
        before: Any = -1
        while at < end:
            word = _word(data, at, end)
            form = _form(word, end - at, *table)
            first = np.int64(word & _BYTE)
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
    """The same, from the codes."""
    symbols = {code: symbol for symbol, code in _symbols_of(table).items()}
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
