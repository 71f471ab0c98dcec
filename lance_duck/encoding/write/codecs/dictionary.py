"""Dictionary encoding of repeated values, and an estimate of its benefit."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lance_duck.encoding.arrow.take import slice_block, take
from lance_duck.encoding.block import Block, Dictionary, FixedWidth, VariableWidth
from lance_duck.encoding.write.costs import (
    DICTIONARY_DIVISOR,
    DICTIONARY_ITEMS,
    DICTIONARY_NEW,
    DICTIONARY_VALUES,
    SAMPLE,
    SAMPLE_PIECES,
)
from lance_duck.encoding.write.options import EncodingOptions
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.texts.dictionary_encode import number_fixed, number_variable


def find_dictionary(
    block: FixedWidth | VariableWidth,
    choice: EncodingOptions,
    otherwise: float,
    runs: int,
    compress: Callable[[Block], int] | None = None,
) -> tuple[Dictionary, float] | None:
    """Dictionary-encode values, in order of first occurrence.

    Args:
        block: The values. Fixed-width values must have 64 or 128 bits.
        choice: Encoding options of the field.
        otherwise: Size of the values without a dictionary, in bytes.
        runs: Upper bound of the number of runs of equal values.
        compress: Returns the stored size of items, in bytes. None if they are stored uncompressed. Called only if
            uncompressed items would be too large.

    Returns:
        The dictionary and its approximate size in bytes, or None if that exceeds the field's size ratio.
    """
    most = min(block.count // max(1, choice.dict_divisor or DICTIONARY_DIVISOR), DICTIONARY_ITEMS)
    if block.count < DICTIONARY_VALUES or most < 1:
        return None
    budget = otherwise * choice.dict_size_ratio
    distinct = _estimate(block)
    if distinct is None or distinct > most:
        return None
    if compress is None and _places_bytes(block.count, distinct, runs) + distinct * _item_bytes(block) > budget:
        return None
    dictionary = _number(block, most)
    if dictionary is None:
        return None
    items = _items(block, dictionary[1])
    places, size = _places_bytes(block.count, items.count, runs), _items_bytes(items)
    if compress is not None and places + size > budget:
        size = compress(items)
    return (Dictionary(dictionary[0], items), places + size) if places + size <= budget else None


def expected_distinct(sample: VariableWidth) -> float | None:
    """Estimate the distinct count from a sample. Returns None if nearly all sampled values are distinct."""
    dictionary = _number(sample, max(1, sample.count))
    assert dictionary is not None
    return _distinct(len(dictionary[1]), sample.count)


def sample_places(count: int) -> NDArray[np.int64] | None:
    """Return the positions of a sample of `count` values, in runs spread over all values. None selects all values."""
    if count <= SAMPLE:
        return None
    bounds = np.linspace(0, count, SAMPLE_PIECES + 1).astype(np.int64)
    neighbours = SAMPLE // SAMPLE_PIECES
    starts = np.random.default_rng(0).integers(bounds[:-1], bounds[1:] - neighbours + 1)
    return (starts[:, None] + np.arange(neighbours)).reshape(-1)


def _items(block: FixedWidth | VariableWidth, firsts: NDArray[np.int64]) -> Block:
    """Return the distinct values. Offsets keep the column's width, from which readers infer the type."""
    items = take(block, firsts)
    if isinstance(block, VariableWidth) and isinstance(items, VariableWidth):
        offsets: Any = items.offsets.astype(block.offsets.dtype, copy=False)
        return VariableWidth(offsets, items.data)
    return items


def _items_bytes(block: Block) -> int:
    """Return the size of uncompressed items, in bytes."""
    if isinstance(block, VariableWidth):
        return int(block.offsets[-1]) - int(block.offsets[0]) + block.offsets.itemsize * block.count
    assert isinstance(block, FixedWidth)
    return block.count * block.bits // 8


def _item_bytes(block: FixedWidth | VariableWidth) -> float:
    if isinstance(block, FixedWidth):
        return block.bits / 8
    return (int(block.offsets[-1]) - int(block.offsets[0])) / block.count + block.offsets.itemsize


def _places_bytes(count: int, distinct: float, runs: int) -> float:
    """Estimate the size of indices, in bytes. A run takes 5 bytes."""
    return min(count * max(1, log2(distinct + 1)) / 8, runs * 5)


def _estimate(block: FixedWidth | VariableWidth) -> float | None:
    """Estimate the distinct count. Returns None if nearly all sampled values are distinct."""
    places = sample_places(block.count)
    if places is None:
        return 1.0
    dictionary = _number(take(block, places), SAMPLE)
    assert dictionary is not None
    return _distinct(len(dictionary[1]), SAMPLE)


def _distinct(sample_distinct: int, sample: int) -> float | None:
    """Estimate the distinct count from a sample's distinct count. Returns None if nearly all sampled values differ."""
    if sample_distinct > sample * DICTIONARY_NEW:
        return None
    low, high = float(sample_distinct), float(sample_distinct) * 64
    while high - low > 1:
        middle = (low + high) / 2
        low, high = (middle, high) if middle * (1 - exp(-sample / middle)) < sample_distinct else (low, middle)
    return high


def _number(block: Block, most: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]] | None:
    """Number the distinct values. Returns each value's number, and the first position of each number.

    Returns None if there are more than `most` distinct values.
    """
    places, firsts = np.empty(block.count, np.uint32), np.empty(most, np.int64)
    table = np.full(1 << (2 * most).bit_length(), -1, np.int32)
    if isinstance(block, VariableWidth):
        offsets: NDArray[Any] = block.offsets
        count = number_variable(readonly(offsets), readonly(block.data), places, firsts, table)
    else:
        assert isinstance(block, FixedWidth)
        fixed = slice_block(block, 0, block.count)
        assert isinstance(fixed, FixedWidth)
        count = number_fixed(readonly(fixed.data), fixed.bits // 64, places, firsts, table)
    return None if count < 0 else (places, firsts[:count])
