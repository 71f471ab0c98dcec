"""Stable sorting of keys.

Each key is packed with its position into a 64-bit word. Sorting these words is several times as fast as sorting the
positions by key. Keys that do not fit are truncated, and ties are then sorted by the remaining bits. Long byte keys are
sorted eight bytes at a time: all keys by the first eight bytes, then only the ties by the next eight.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lance_duck.index.btree.costs import SORT_PASSES, SORT_SAMPLE
from lance_duck.index.btree.keys import BTreeKeys, ByteKeys, FixedKeys, Int64s
from lance_duck.kernels.keys.search import head_words
from lance_duck.kernels.status import check_status

Words = NDArray[np.uint64]

_BITS: Final = 64
_WORD: Final = 8
_WORD_MASK: Final = (1 << 64) - 1


def order_of(keys: BTreeKeys) -> Int64s:
    """Return the stable sort order of keys, as positions."""
    if len(keys) < 2:
        return np.arange(len(keys))
    if isinstance(keys, ByteKeys):
        return _order_of_bytes(keys)
    assert isinstance(keys, FixedKeys)
    if keys.array.dtype.kind == "S":
        return _order_of_wide(keys.array)
    return _order_of_words(_words(keys.array))


def _words(array: NDArray[Any]) -> Words:
    """Convert integers to unsigned words with the same order. The least word is 0."""
    if array.dtype.kind == "u":
        words: Words = array.astype(np.uint64)
        words -= words.min()
        return words
    wide = array.astype(np.int64)
    result: Words = wide.view(np.uint64)
    return result - np.uint64(int(wide.min()) & _WORD_MASK)


def _order_of_words(words: Words) -> Int64s:
    count = len(words)
    place_bits = int(count - 1).bit_length()
    cut = max(0, int(words.max()).bit_length() + place_bits - _BITS)
    packed = words >> np.uint64(cut)
    packed <<= np.uint64(place_bits)
    packed |= np.arange(count, dtype=np.uint64)
    packed.sort()
    same = _same_heads(packed, place_bits) if cut else None
    if same is not None and np.count_nonzero(same) > count // 8:
        del packed, same  # large arrays are released as early as possible
        low = _order_of_words(words & np.uint64((1 << cut) - 1))
        return low[_order_of_words(words[low] >> np.uint64(cut))]
    packed &= np.uint64((1 << place_bits) - 1)
    order = packed.view(np.int64)
    if same is not None and same.any():
        _settle(words, order, same)
    return order


def _same_heads(packed: Words, place_bits: int) -> NDArray[np.bool_]:
    """Return, for each word except the first, whether it has the same head as the word before it."""
    heads = packed >> np.uint64(place_bits)
    same: NDArray[np.bool_] = heads[1:] == heads[:-1]
    return same


def _settle(words: Words, order: Int64s, same: NDArray[np.bool_]) -> None:
    """Sort the positions of words with equal heads by all bits of these words, in place."""
    later = np.append(False, same)
    among = np.flatnonzero(later | np.append(same, False))
    group = np.cumsum(~later[among])
    order[among] = order[among][np.lexsort((words[order[among]], group))]


def _order_of_wide(array: NDArray[Any]) -> Int64s:
    """Return the sort order of fixed-width bytes."""
    width = array.dtype.itemsize
    padded = np.zeros((len(array), -(-width // _WORD) * _WORD), np.uint8)
    padded[:, :width] = np.ascontiguousarray(array).view(np.uint8).reshape(len(array), width)
    words = padded.view(">u8")
    return _order_by_passes(len(array), words.shape[1], lambda step, places: words[places, step].astype(np.uint64))


def _order_of_bytes(keys: ByteKeys) -> Int64s:
    order = _order_of_repeated(keys)
    if order is not None:
        return order
    head = _common_prefix(keys)
    steps = -(-(int(np.diff(keys.offsets).max()) - head) // _WORD)
    if steps > SORT_PASSES:
        return _order_of_array(keys.array())

    def words(step: int, places: Int64s) -> Words:
        if step == steps:  # keys that differ only in trailing zeros are sorted by size
            return np.asarray(keys.offsets[places + 1] - keys.offsets[places], np.uint64)
        result = np.empty(len(places), np.uint64)
        check_status(head_words(keys.offsets, keys.data, head + step * _WORD, places, result), "B-tree")
        return result

    return _order_by_passes(len(keys), steps + 1, words)


def _order_by_passes(count: int, steps: int, words: Callable[[int, Int64s], Words]) -> Int64s:
    """Return the sort order by successive words. Each word only sorts the keys whose previous words are equal."""
    step = 0
    result = words(0, np.arange(count))
    while step + 1 < steps and result.min() == result.max():
        step += 1
        result = words(step, np.arange(count))
    result -= result.min()
    order = _order_of_words(result)
    result = result[order]
    same = np.append(False, result[1:] == result[:-1])
    tied = np.arange(count) if same.any() else np.empty(0, np.int64)
    while same.any() and step + 1 < steps:
        step += 1
        among = np.flatnonzero(same | np.append(same[1:], False))
        group, tied = np.cumsum(~same)[among], tied[among]
        result = words(step, order[tied])
        result -= result.min()
        suborder = _order_of_words(result)
        suborder = suborder[_order_of_words(group[suborder].view(np.uint64))]
        order[tied] = order[tied][suborder]
        result, group = result[suborder], group[suborder]
        same = np.append(False, (result[1:] == result[:-1]) & (group[1:] == group[:-1]))
    return order


def _order_of_repeated(keys: ByteKeys) -> Int64s | None:
    """Return the sort order of keys with few distinct values. Returns None for few keys or many distinct values."""
    count = len(keys)
    array = keys.array()
    if count < SORT_SAMPLE or len(pc.unique(array.take(np.arange(0, count, count // SORT_SAMPLE)))) > SORT_SAMPLE // 4:
        return None
    coded = array.dictionary_encode()
    if len(coded.dictionary) > count // 4:
        return None
    rank = np.empty(len(coded.dictionary), np.uint64)
    rank[_order_of_array(coded.dictionary)] = np.arange(len(rank), dtype=np.uint64)
    return _order_of_words(rank[coded.indices.to_numpy()])


def _order_of_array(array: pa.Array) -> Int64s:
    order: Int64s = pc.sort_indices(array).to_numpy().astype(np.int64)
    return order


def _common_prefix(keys: ByteKeys) -> int:
    """Return the length of the keys' longest common prefix, in bytes."""
    ends = pc.min_max(keys.array())
    low, high = (ends[name].as_py() for name in ("min", "max"))
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    return min(same, len(low))
