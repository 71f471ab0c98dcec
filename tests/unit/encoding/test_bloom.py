from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.encoding.bloom import blocks_for, hash_keys, hash_values, insert, may_hold_any, new_filter
from lance_duck.errors import CorruptError
from lance_duck.kernels.keys.bits import find_hashes_reference, insert_hashes_reference
from lance_duck.kernels.keys.xxhash import xxh64_reference

hashes = st.lists(st.integers(0, 2**64 - 1), max_size=20)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"", 0xEF46DB3751D8E999),
        (b"a", 0xD24EC4F1A98C6E5B),
        (b"abc", 0x44BC2CF5AD770999),
        (b"message digest", 0x066ED728FCEEB3BE),
        (b"12345678901234567890123456789012345678901234567890123456789012345678901234567890", 0xE04A477F19EE145D),
    ],
)
def test_hashes_equal_the_published_vectors(key: bytes, expected: int) -> None:
    assert hash_keys([key]).tolist() == [expected]
    assert xxh64_reference(key, [0, len(key)]) == [expected]


@given(st.lists(st.binary(max_size=100), max_size=8))
def test_hashes_equal_the_reference(keys: list[bytes]) -> None:
    data = b"".join(keys)
    offsets = np.cumsum([0, *map(len, keys)])
    assert hash_keys(keys).tolist() == xxh64_reference(data, offsets.tolist())


@pytest.mark.parametrize("offsets", [[-1, 2], [2, 1], [0, 4]])
def test_offsets_outside_the_data_are_rejected(offsets: list[int]) -> None:
    with pytest.raises(CorruptError, match="ascending offsets, at most 3"):
        hash_values(np.zeros(3, np.uint8), np.array(offsets))


@given(hashes, hashes, st.sampled_from([1, 2, 3, 1024]))
def test_bloom_filters_equal_the_reference(inside: list[int], asked: list[int], blocks: int) -> None:
    words, plain = new_filter(blocks), new_filter(blocks)
    insert(words, np.array(inside, np.uint64))
    insert_hashes_reference(plain, inside)
    assert np.array_equal(words, plain)
    both = np.stack([words, new_filter(blocks)])
    found = may_hold_any(both, np.array(asked, np.uint64))
    assert found.tolist() == find_hashes_reference(both, asked)
    assert found[0] or not set(inside) & set(asked)


@pytest.mark.parametrize(
    ("items", "probability", "blocks"),
    [
        *((8192, 0.00057, 1024), (100, 0.01, 8), (1, 0.5, 1), (1000, 1e-5, 256), (50_000, 0.1, 2048), (3, 0.999, 1)),
        *((300, 0.25, 8), (200, 1e-15, 262144), (1, 0.0, 4194304), (2**40, 0.01, 4194304), (0, 0.1, 1)),
    ],
)
def test_bloom_filter_sizes_follow_the_specification(items: int, probability: float, blocks: int) -> None:
    assert blocks_for(items, probability) == blocks
