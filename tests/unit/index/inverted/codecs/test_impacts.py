from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.index.inverted.codecs import impacts
from lance_duck.index.inverted.codecs.arrays import binary_lists_of
from lance_duck.index.inverted.codecs.blocks import BlockForm
from lance_duck.kernels import status
from lance_duck.kernels.postings.impacts import decode_impacts

Pairs = list[tuple[int, int]]


def code_of(length: int) -> int:
    bits = length.bit_length()
    return length if bits < 4 else ((length >> (bits - 4)) & 7) | ((bits - 3) << 3)


def frontier(pairs: Pairs) -> Pairs:
    """Pairs that no other surpasses in both."""
    best: Pairs = []
    for frequency, code in sorted(set(pairs), key=lambda pair: (pair[1], -pair[0])):
        if not best or frequency > best[-1][0]:
            best.append((frequency, code))
    return best


def decoded(lists: object) -> list[tuple[int, Pairs]]:
    blobs = binary_lists_of(lists, "impacts")
    count, size = len(blobs.offsets) - 1, len(blobs.data)
    last, bounds = np.empty(count, np.int64), np.empty(count + 1, np.int64)
    frequencies, codes = np.empty(size, np.uint32), np.empty(size, np.uint8)
    assert decode_impacts(blobs.data, blobs.offsets, last, bounds, frequencies, codes) == status.OK
    spans = pairwise(bounds)
    pairs = [list(zip(frequencies[a:b].tolist(), codes[a:b].tolist(), strict=True)) for a, b in spans]
    return list(zip(last.tolist(), pairs, strict=True))


@given(st.lists(st.integers(0, (1 << 32) - 1) | st.integers(0, 40), min_size=1))
def test_length_codes_map_to_their_least_length(lengths) -> None:
    codes = impacts.length_codes(np.array(lengths, np.uint32))
    assert codes.tolist() == [code_of(length) for length in lengths]
    floors = impacts.length_floors()[codes]
    assert (floors <= np.array(lengths, np.uint32)).all()
    np.testing.assert_array_equal(impacts.length_codes(floors), codes)


@given(st.integers(0, 99), st.lists(st.integers(1, 300) | st.just(9000), min_size=1, max_size=3))
def test_impact_entries_hold_the_frontiers_of_blocks_and_groups(seed, lengths) -> None:
    random = np.random.default_rng(seed)
    tokens = random.integers(1, 1 << random.integers(1, 24), 10_000).astype(np.uint32)
    ids = np.concatenate([np.sort(random.choice(len(tokens), n, replace=False)) for n in lengths]).astype(np.uint32)
    frequencies = random.integers(1, 1 << random.integers(1, 16), len(ids)).astype(np.uint32)
    bounds = np.cumsum([0, *lengths]).astype(np.int64)
    entries = decoded(impacts.encode(bounds, ids, frequencies, impacts.length_codes(tokens), BlockForm()))
    expected = []
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        for step in (128, 128 * 32):
            for at in range(low, high, step):
                stop = min(at + step, high)
                codes = [code_of(int(tokens[i])) for i in ids[at:stop]]
                expected.append((ids[stop - 1], frontier(list(zip(frequencies[at:stop].tolist(), codes, strict=True)))))
    assert entries == expected


def test_impact_entries_have_the_documented_layout() -> None:
    tokens = np.array([1, 3, 20, 3], np.uint32)
    ids, frequencies = np.arange(4, dtype=np.uint32), np.array([1, 2, 4, 1], np.uint32)
    lists = impacts.encode(np.array([0, 4]), ids, frequencies, impacts.length_codes(tokens), BlockForm())
    entry = bytes([3, 3, 0, 1, 2, 3, 18 - 3])
    assert lists.to_pylist() == [[entry, entry]]


def test_damaged_entries_are_detected_or_read() -> None:
    random = np.random.default_rng(1)
    lists = impacts.encode(
        np.array([0, 400]),
        np.arange(400, dtype=np.uint32),
        random.integers(1, 50, 400).astype(np.uint32),
        impacts.length_codes(random.integers(1, 5000, 400).astype(np.uint32)),
        BlockForm(),
    )
    blobs = binary_lists_of(lists, "impacts")
    count, size = len(blobs.offsets) - 1, len(blobs.data)
    refused = 0
    for i in range(size):
        data = blobs.data.copy()
        data[i] ^= 0xC7
        room = (
            np.empty(count, np.int64),
            np.empty(count + 1, np.int64),
            np.empty(size, np.uint32),
            np.empty(size, np.uint8),
        )
        refused += decode_impacts(data, blobs.offsets, *room) != status.OK
    assert refused
