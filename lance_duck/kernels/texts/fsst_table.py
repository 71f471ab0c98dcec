"""The FSST symbol table, which finds the longest matching symbol, and its kernels.

A match takes two lookups. Symbols of three or more bytes are in a hash table of their first three bytes. Each slot
holds one symbol. If several symbols have the same first three bytes, only one of them is in the table. The next two
bytes of the input select a shorter symbol:

    slots   symbol, mask of its bytes, form. Empty slots have mask 0 and symbol 1, which no masked word equals
    short   for each pair of bytes: form of the pair's symbol, else of the first byte's symbol, else of an escape; then,
            for each byte: form of its symbol, else of an escape
    form    code | size of the symbol in bytes << 8; code 255 is an escape, of one byte
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
"""A symbol table: symbols, masks and forms of the slots, then the short forms."""


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
    """Assign codes to symbols in order until all codes are used. Skips symbols whose slot is occupied.

    Args:
        symbols: Bytes of each symbol, little-endian, zero-padded. All distinct.
        lengths: Size of each symbol, 1 to 8 bytes.
        slot_symbols: (SLOTS,), output.
        slot_masks: (SLOTS,), output.
        slot_forms: (SLOTS,), output.
        short: (SHORT,), output.
        symbol_numbers: (MAX_SYMBOLS,), output: the symbol of each code.

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
    """Reference implementation in plain Python."""
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
    """Load the eight bytes at `at`, with zeros from `end` on."""
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
    """Return the form of the longest symbol that matches the first `size` bytes of `word`, with size >= 1.

    The code does not branch, because the next symbol is unpredictable.
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
