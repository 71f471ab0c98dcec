"""Training of FSST symbol tables on a sample, in rounds.

Each round encodes the sample with the symbols of the previous round, and counts codes and pairs of consecutive codes.
It keeps the symbols and pairs that replace the most bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.block import VariableWidth
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.memory import Bytes
from lance_duck.kernels.texts import fsst_table as kernels
from lance_duck.kernels.texts.fsst_encode import KINDS, count_codes
from lance_duck.kernels.texts.take import gather_variable

SAMPLE: Final = 1 << 15
"""Sample size, in bytes."""
SMALL: Final = 1 << 20
"""If all values together have fewer bytes than this, training uses half a sample and fewer rounds, because there is
less to gain."""
PIECE: Final = 512
"""Length of a sampled piece of a value, in bytes."""
ROUNDS: Final = 7
FEWER_ROUNDS: Final = 5
MAX_SYMBOL: Final = 8
ALONE: Final = 2
"""Gain of a one-byte symbol, which saves an escape."""
LEAST: Final = 3
"""Minimum number of occurrences of a symbol in the sample."""


@dataclass(frozen=True, slots=True, eq=False)
class SymbolTable:
    """A table of symbols.

    Attributes:
        symbols: uint64 (n,), little-endian, n <= 255: the symbol of each code.
        lengths: uint8 (n,), number of bytes of each symbol.
        places: Lookup table for kernels: see `kernels/texts/fsst_table.py`.
    """

    symbols: NDArray[np.uint64]
    lengths: Bytes
    places: kernels.Table


def train_on(values: VariableWidth) -> SymbolTable:
    """Train a symbol table on a sample of the values."""
    small = int(values.offsets[-1]) - int(values.offsets[0]) < SMALL
    sample = sample_values(values, 0, SAMPLE // 2 if small else SAMPLE)
    return train(sample, FEWER_ROUNDS if small else ROUNDS)


def train(sample: VariableWidth, rounds: int = ROUNDS) -> SymbolTable:
    """Train a symbol table on sample values."""
    table = _table(np.empty(0, np.uint64), np.empty(0, np.uint8))
    singles, pairs = np.empty(KINDS, np.int32), np.empty(KINDS * KINDS, np.int32)
    for turn in range(rounds):
        singles[:] = pairs[:] = 0
        count_codes(readonly(sample.data), readonly(sample.offsets), table.places, singles, pairs)
        table = _table(*_best(table, singles, pairs, turn < rounds - 1))
    return table


def sample_values(values: VariableWidth, seed: int, size: int = SAMPLE) -> VariableWidth:
    """Return slices of sampled values, about `size` bytes in total, or less for a small block."""
    starts, lengths = values.offsets[:-1], np.diff(values.offsets)
    mean = max(1, int(np.minimum(lengths[:: max(1, len(lengths) // 1024)], PIECE).mean()))
    count = min(values.count, size // mean + 1)
    rng = np.random.default_rng(seed)
    bounds = np.linspace(0, values.count, count + 1)
    positions = (bounds[:-1] + rng.random(count) * np.diff(bounds)).astype(np.int64)
    sizes = lengths[positions].astype(np.int64)
    skipped = (rng.random(count) * np.maximum(sizes - PIECE + 1, 1)).astype(np.int64)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.minimum(sizes, PIECE), out=offsets[1:])
    data = np.empty(int(offsets[-1]), np.uint8)
    gather_variable(readonly(values.data), starts[positions].astype(np.int64) + skipped, offsets, data)
    return VariableWidth(offsets, data)


def _table(symbols: NDArray[np.uint64], lengths: Bytes) -> SymbolTable:
    """Build a table from as many symbols as fit, in order."""
    slots = kernels.SLOTS
    places = (
        np.empty(slots, np.uint64),
        np.empty(slots, np.uint64),
        np.empty(slots, np.uint16),
        np.empty(kernels.SHORT, np.uint16),
    )
    candidates = np.empty(kernels.MAX_SYMBOLS, np.int64)
    count = kernels.fill_table(symbols, lengths, *places, candidates)
    return SymbolTable(symbols[candidates[:count]], lengths[candidates[:count]], places)


def _best(
    table: SymbolTable, singles: NDArray[np.int32], pairs: NDArray[np.int32], grow: bool
) -> tuple[NDArray[np.uint64], Bytes]:
    """Return symbol candidates. The first one replaces the most bytes. `grow` also adds pairs of symbols."""
    symbols = np.concatenate([np.arange(256, dtype=np.uint64), table.symbols])
    lengths = np.concatenate([np.ones(256, np.int64), table.lengths.astype(np.int64)])
    alone = np.flatnonzero(singles >= LEAST)
    joined = np.flatnonzero(pairs >= LEAST) if grow else np.empty(0, np.int64)
    first, second = joined // KINDS, joined % KINDS
    grows = lengths[first] < MAX_SYMBOL
    first, second, joined = first[grows], second[grows], joined[grows]
    size = np.minimum(lengths[first] + lengths[second], MAX_SYMBOL)
    spare = (64 - 8 * size).astype(np.uint64)
    word = symbols[first] | symbols[second] << (8 * lengths[first]).astype(np.uint64)
    words = np.concatenate([symbols[alone], word << spare >> spare])
    sizes = np.concatenate([lengths[alone], size])
    counts = np.concatenate([singles[alone], pairs[joined]]).astype(np.int64)
    gains = counts * np.where(sizes == 1, ALONE, sizes)
    return _merge(words, sizes, gains)


def _merge(
    words: NDArray[np.uint64], sizes: NDArray[np.int64], gains: NDArray[Any]
) -> tuple[NDArray[np.uint64], Bytes]:
    """Return the distinct symbols, highest gain first."""
    order = np.lexsort((words, sizes))
    words, sizes, gains = words[order], sizes[order], gains[order]
    first = np.ones(len(words), bool)
    first[1:] = (words[1:] != words[:-1]) | (sizes[1:] != sizes[:-1])
    places = np.flatnonzero(first)
    if not len(places):
        return words, sizes.astype(np.uint8)
    total = np.add.reduceat(gains, places)
    best = places[np.argsort(-total, kind="stable")]
    return words[best], sizes[best].astype(np.uint8)
