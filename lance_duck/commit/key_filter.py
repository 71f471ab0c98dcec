"""Keys that an Update inserted, stored in its transaction as a split block Bloom filter.

    1024 blocks in the layout of `encoding.bloom`
    key: UTF-8 or raw bytes, integers as 8 bytes little-endian; with several columns, each followed by a 0 byte

All filters have the same size, so that any two filters can be compared. Keys that collide count as equal.
The format does not define filters for other key types. pylance omits keys of these types, and treats a transaction
without a filter as a conflict. For keys of these types, this package searches the newer rows (`verbs.merge.guard`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lance_duck.encoding.bloom import blocks_for, hash_keys, insert, new_filter
from lance_duck.wire.pb import transaction_pb2

KeyExistenceFilter = transaction_pb2.Transaction.KeyExistenceFilter

_ITEMS, _PROBABILITY = 8192, 0.00057
_MOST_KEYS = 1 << 15
"""Maximum number of keys in a filter. With more keys, all bits are set, because the filter would match any filter
anyway."""


def key_filter(field_ids: Sequence[int], columns: Sequence[pa.Array | pa.ChunkedArray]) -> KeyExistenceFilter | None:
    """Build a filter of keys. Returns None for key types without a defined filter.

    Args:
        field_ids: Fields of the key.
        columns: Values of each field, of equal length. Rows that contain a null are skipped.
    """
    if not all(_is_plain(column.type) for column in columns):
        return None
    words = new_filter(blocks_for(_ITEMS, _PROBABILITY))
    if len(columns[0]) > _MOST_KEYS:
        words[:] = 0xFFFFFFFF
    else:
        insert(words, hash_keys(list(_keys(columns))))
    data = words.tobytes()
    bloom = KeyExistenceFilter.BloomFilter(
        bitmap=data, num_bits=8 * len(data), number_of_items=_ITEMS, probability=_PROBABILITY
    )
    return KeyExistenceFilter(field_ids=field_ids, bloom=bloom)


def may_share_keys(ours: KeyExistenceFilter, theirs: KeyExistenceFilter) -> bool:
    """Return whether two filters may share a key. Returns True if they cannot be compared."""
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
