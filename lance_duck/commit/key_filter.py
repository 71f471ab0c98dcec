"""Keys that an Update inserted, kept in its transaction as a split block Bloom filter.

    1024 blocks of 8 words of 32 bits, little-endian. A key sets one bit in each word of one block:
    h = XXH64(key), block (h >> 32) * 1024 >> 32, word i: bit (low 32 bits of h) * salt_i mod 2^32 >> 27

    key: UTF-8 or bytes as they are, integers as 8 bytes little-endian; of several columns, each followed by a 0 byte

The size is always the same, so that any two filters can be compared; what it fails to tell apart counts as equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.commit.xxhash import xxh64
from lance_duck.wire.pb import transaction_pb2

KeyExistenceFilter = transaction_pb2.Transaction.KeyExistenceFilter

_ITEMS, _PROBABILITY = 8192, 0.00057
_BLOCKS = 1024
_SALT = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31], np.uint32
)
# With more keys every filter meets every other one: all bits are set at once.
_MOST_KEYS = 1 << 15


def key_filter(field_ids: Sequence[int], columns: Sequence[pa.Array | pa.ChunkedArray]) -> KeyExistenceFilter | None:
    """Build the filter of some keys; None when they are of a type for which no filter is defined.

    Args:
        field_ids: Fields of the key.
        columns: Their values, of one length; rows with a null have no key.
    """
    if not all(_is_plain(column.type) for column in columns):
        return None
    words = np.zeros((_BLOCKS, len(_SALT)), np.uint32)
    if len(columns[0]) > _MOST_KEYS:
        words[:] = 0xFFFFFFFF
    else:
        _insert(words, xxh64(list(_keys(columns))))
    data = words.astype("<u4").tobytes()
    bloom = KeyExistenceFilter.BloomFilter(
        bitmap=data, num_bits=8 * len(data), number_of_items=_ITEMS, probability=_PROBABILITY
    )
    return KeyExistenceFilter(field_ids=field_ids, bloom=bloom)


def may_share_keys(ours: KeyExistenceFilter, theirs: KeyExistenceFilter) -> bool:
    """Whether two filters may hold one key; also where they cannot be compared."""
    kinds = {ours.WhichOneof("data"), theirs.WhichOneof("data")}
    if list(ours.field_ids) != list(theirs.field_ids) or len(kinds) != 1 or None in kinds:
        return True
    if kinds == {"exact"}:
        return not set(ours.exact.hashes).isdisjoint(theirs.exact.hashes)
    a, b = ours.bloom, theirs.bloom
    if len(a.bitmap) != len(b.bitmap) or len(a.bitmap) % 32 or (_shape(a) != _shape(b)):
        return True
    common = np.frombuffer(a.bitmap, "<u4") & np.frombuffer(b.bitmap, "<u4")
    return bool(common.reshape(-1, 8).all(axis=1).any())


def _shape(bloom: KeyExistenceFilter.BloomFilter) -> tuple[int, float]:
    return bloom.number_of_items or _ITEMS, bloom.probability or _PROBABILITY


def _is_plain(kind: pa.DataType) -> bool:
    integers = (pa.int32(), pa.int64(), pa.uint32(), pa.uint64())
    return kind in (*integers, pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def _keys(columns: Sequence[pa.Array | pa.ChunkedArray]) -> Iterator[bytes]:
    for row in zip(*(column.to_pylist() for column in columns), strict=True):
        if any(value is None for value in row):
            continue
        parts = [_bytes(value) for value in row]
        yield parts[0] if len(parts) == 1 else b"".join(part + b"\0" for part in parts)


def _bytes(value: str | bytes | int) -> bytes:
    if isinstance(value, int):
        return (value & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")
    return value.encode() if isinstance(value, str) else value


def _insert(words: NDArray[np.uint32], hashes: NDArray[np.uint64]) -> None:
    blocks = ((hashes >> np.uint64(32)) * np.uint64(_BLOCKS) >> np.uint64(32)).astype(np.int64)
    low = (hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    with np.errstate(over="ignore"):
        bits = np.uint32(1) << ((low[:, None] * _SALT) >> np.uint32(27))
    np.bitwise_or.at(words, blocks, bits)
