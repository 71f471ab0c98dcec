"""Kernel that counts FSST codes, from which better symbols are made."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.kernels.jit import kernel
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.texts.fsst import ESCAPE
from lance_duck.kernels.texts.fsst_encode import SLACK, compress_reference
from lance_duck.kernels.texts.fsst_table import BYTE, Table, longest_form, symbols_of, word_at
from lance_duck.kernels.texts.variable import Offsets

KINDS: Final = 512
"""Kinds of codes that are counted: escaped bytes, then 256 + code."""


@kernel
def count_codes(
    data: Bytes,
    offsets: Offsets,
    table: Table,
    singles: NDArray[np.int32],
    pairs: NDArray[np.int32],
) -> None:
    """Count the codes that `compress` would write; a symbol of several bytes counts as its first byte, too.

    Args:
        data: See `compress`.
        offsets: See `compress`.
        table: See `compress`.
        singles: (KINDS,), added to: occurrences of each escaped byte and of each code.
        pairs: (KINDS * KINDS,), added to: occurrences of one after another, at [first * KINDS + second].
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
    """Compute the plain reference from the codes, in Python."""
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
