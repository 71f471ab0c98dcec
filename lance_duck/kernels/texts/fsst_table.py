"""The table of FSST symbols, which finds the longest one at a place, and its kernels.

The longest symbol is found by two look-ups. Symbols of three bytes and more lie in a hash table of their first three
bytes, one to a slot, so that of symbols that begin alike just one is in a table. Shorter ones are found by the next two
bytes:

    slots   symbol, mask of its bytes (0: no symbol, and the symbol is 1, which no masked word equals), form
    short   for each two bytes: form of the symbol of both, else of the first one, else of an escape; then, for each
            byte: form of its symbol, else of an escape
    form    code | bytes of the symbol << 8; code 255 is an escape, of one byte
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel, subroutine
from lance_duck.kernels.memory import Bytes, load_u16, load_u64
from lance_duck.kernels.texts.fsst import ESCAPE

SLOTS: Final = 2048
PAIRS: Final = 1 << 16
SHORT: Final = PAIRS + 256
MAX_SYMBOLS: Final = 255
_ALONE = np.uint16(ESCAPE | 1 << 8)
_FIRST_THREE = np.uint64(0xFFFFFF)
_FIRST_TWO = np.uint64(0xFFFF)
_GOLDEN = np.uint64(0x9E3779B1)
_SPREAD = np.uint64(20)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
BYTE = np.uint64(0xFF)

Table = tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint16], NDArray[np.uint16]]
"""A table of symbols: symbols, masks and forms of the slots, and short forms."""


@subroutine
def _slot(word: Any) -> Any:
    return np.int64((((word & _FIRST_THREE) * _GOLDEN) >> _SPREAD) & np.uint64(SLOTS - 1))


@subroutine
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
    symbol_numbers: NDArray[np.int64],
) -> int:
    """Assign codes to symbols, in order, as long as there are codes and the symbols' slots are free.

    Args:
        symbols: Bytes of each symbol, little-endian, 0 behind its end; all different.
        lengths: Number of bytes of each symbol, 1 to 8.
        slot_symbols: (SLOTS,), written.
        slot_masks: (SLOTS,), written.
        slot_forms: (SLOTS,), written.
        short: (SHORT,), written.
        symbol_numbers: (MAX_SYMBOLS,), written: the symbol of each code.

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
        symbol_numbers[codes] = i
        codes += 1
    for size in range(1, 3):
        for code in range(codes):
            symbol = np.int64(symbols[symbol_numbers[code]])
            if lengths[symbol_numbers[code]] == size:
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
    symbol_numbers: NDArray[np.int64],
) -> int:
    """Compute the plain reference, in Python."""
    slots: dict[int, int] = {}
    numbers: list[int] = []
    for i, (symbol, size) in enumerate(zip(symbols.tolist(), lengths.tolist(), strict=True)):
        slot = ((symbol & 0xFFFFFF) * 0x9E3779B1 >> 20) % SLOTS
        if len(numbers) < MAX_SYMBOLS and (size < 3 or slot not in slots):
            if size >= 3:
                slots[slot] = len(numbers)
            numbers.append(i)
    slot_symbols[:], slot_masks[:], slot_forms[:], short[:] = 1, 0, 0, _ALONE
    for slot, code in slots.items():
        slot_symbols[slot] = symbols[numbers[code]]
        slot_masks[slot] = (1 << 8 * int(lengths[numbers[code]])) - 1
        slot_forms[slot] = code | int(lengths[numbers[code]]) << 8
    for size in (1, 2):
        for code, i in enumerate(numbers):
            if lengths[i] == size:
                short[int(symbols[i]) : PAIRS : 1 << 8 * size] = code | size << 8
                if size == 1:
                    short[PAIRS + int(symbols[i])] = code | size << 8
    symbol_numbers[: len(numbers)] = numbers
    return len(numbers)


@subroutine
def word_at(data: Bytes, at: int, end: int) -> Any:
    """Return the eight bytes at `at`, with 0 from `end` on."""
    size = end - at
    if at + 8 <= len(data):
        word: Any = load_u64(data, at)
        return word if size >= 8 else word & _mask(size)
    word = np.uint64(0)
    for i in range(min(size, 8)):
        word |= np.uint64(data[at + i]) << np.uint64(8 * i)
    return word


@subroutine
def longest_form(
    word: Any,
    size: int,
    slot_symbols: NDArray[np.uint64],
    slot_masks: NDArray[np.uint64],
    slot_forms: NDArray[np.uint16],
    short: NDArray[np.uint16],
) -> Any:
    """Return the form of the longest symbol that begins `word`, of which `size` bytes count, at least one.

    There are no branches: which symbol is next cannot be predicted.
    """
    slot = _slot(word)
    form: Any = np.int64(load_u16(slot_forms, slot * 2))
    place: Any = np.int64(word & _FIRST_TWO) if size > 1 else PAIRS + np.int64(word & BYTE)
    shorter: Any = np.int64(load_u16(short, place * 2))
    fits = (word & load_u64(slot_masks, slot * 8) == load_u64(slot_symbols, slot * 8)) & (form >> 8 <= size)
    return form if fits else shorter


def symbols_of(table: Table) -> dict[bytes, int]:
    """Return the code of each symbol."""
    slot_symbols, _, slot_forms, short = table
    numbers = {}
    for symbol, form in zip(slot_symbols.tolist(), slot_forms.tolist(), strict=True):
        if form:
            numbers[symbol.to_bytes(8, "little")[: form >> 8]] = form & 0xFF
    for word, form in enumerate(short.tolist()):
        if form & 0xFF != ESCAPE:
            numbers[(word % PAIRS).to_bytes(2, "little")[: form >> 8]] = form & 0xFF
    return numbers
