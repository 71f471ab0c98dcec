"""The kernels of MinHash equal plain references, and refuse arguments that do not match."""

from __future__ import annotations

import numpy as np
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_duck.kernels.jit import readonly
from lance_duck.kernels.tokens.minhash import band_keys, common_counts, shingle_hashes

WORDS = [b"a", b"bb", b"a longer word of more than thirty-two bytes", b""]
NUMBERS = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=6)


def int64s(values: list[int]) -> np.ndarray:
    return readonly(np.array(values, np.int64))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(0, 3), max_size=6), max_size=4), st.integers(1, 4))
def test_shingles_are_hashed_as_joined_words(documents: list[list[int]], size: int) -> None:
    counts = [max(len(tokens) - size + 1, 1) if tokens else 0 for tokens in documents]
    expected = [
        xxhash.xxh64_intdigest(b"\x1f".join(WORDS[token] for token in tokens[at : at + size]), 42)
        for tokens, count in zip(documents, counts, strict=True)
        for at in range(count)
    ]
    hashes = np.zeros(sum(counts), np.uint64)
    data = readonly(np.frombuffer(b"".join(WORDS), np.uint8))
    starts = int64s([0, *np.cumsum([len(word) for word in WORDS]).tolist()])
    tokens = readonly(np.array([token for each in documents for token in each], np.uint32))
    bounds = int64s([0, *np.cumsum([len(each) for each in documents]).tolist()])
    first = int64s([0, *np.cumsum(counts).tolist()])
    scratch = np.zeros(1000, np.uint8)
    assert shingle_hashes(data, starts, tokens, bounds, size, scratch, first, hashes)
    assert hashes.tolist() == expected
    if len(tokens):
        wrong = readonly(np.full(len(tokens), 9, np.uint32))
        assert not shingle_hashes(data, starts, wrong, bounds, size, scratch, first, hashes)
        assert not shingle_hashes(data, starts, tokens, bounds, size, scratch[:0], first, hashes)


@settings(max_examples=40, deadline=None)
@given(NUMBERS, st.lists(st.tuples(*[st.integers(0, 2**64 - 1)] * 3), min_size=4, max_size=4))
def test_band_keys_are_hashes_of_the_values_of_a_band(hashes: list[int], factors: list[tuple[int, int, int]]) -> None:
    top = 2**64 - 1
    signature = [(c * min(a * x + b & top for x in hashes) & top) >> 48 for a, b, c in factors]
    halves = [b"".join(value.to_bytes(2, "little") for value in signature[at : at + 2]) for at in (0, 2)]
    expected = [band << 56 | xxhash.xxh64_intdigest(half, 42) & (1 << 56) - 1 for band, half in enumerate(halves)]
    a, b, c = (readonly(np.array(column, np.uint64)) for column in zip(*factors, strict=True))
    keys, least, band = np.zeros((1, 2), np.uint64), np.zeros(4, np.uint64), np.zeros(4, np.uint8)
    values, first = readonly(np.array(hashes, np.uint64)), int64s([0, len(hashes)])
    assert band_keys(values, first, a, b, c, least, band, keys)
    assert keys[0].tolist() == expected
    assert not band_keys(values, int64s([0, 99]), a, b, c, least, band, keys)
    assert not band_keys(values, first, a, b, c, least, band[:2], keys)
    assert not band_keys(values, first, a, b, c, least[:1], band, keys)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sets(st.integers(0, 9)), min_size=2, max_size=2))
def test_common_shingles_are_counted(sets: list[set[int]]) -> None:
    hashes = readonly(np.array([value for each in sets for value in sorted(each)], np.uint64))
    first = int64s([0, len(sets[0]), len(sets[0]) + len(sets[1])])
    counts = np.zeros(1, np.int64)
    assert common_counts(hashes, first, int64s([0]), int64s([1]), counts)
    assert counts[0] == len(sets[0] & sets[1])
    assert not common_counts(hashes, first, int64s([0]), int64s([2]), counts)
