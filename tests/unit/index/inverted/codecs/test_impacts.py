from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import CorruptError
from lance_duck.index.inverted import layout
from lance_duck.index.inverted.codecs import impacts
from lance_duck.index.inverted.codecs.arrays import BinaryLists, binary_lists_of
from lance_duck.index.inverted.codecs.blocks import BlockForm
from lance_duck.kernels import status
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.postings.impacts import gather_terms

Pairs = list[tuple[int, int]]
NORMS: Final = readonly(np.linspace(0.5, 9, 256))


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


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte, at = data[at], at + 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def entry_of(data: bytes) -> tuple[int, Pairs]:
    last, at = varint(data, 0)
    count, at = varint(data, at)
    frequency, code, pairs = 0, 0, []
    for _ in range(count):
        word, at = varint(data, at)
        step, at = (data[at], at + 1) if word & 1 else (1, at)
        frequency, code = frequency + (word >> 1) + 1, code + step
        pairs.append((frequency, code))
    assert at == len(data)
    return last, pairs


def decoded(lists: pa.ListArray) -> list[tuple[int, Pairs]]:
    return [entry_of(entry) for entries in lists.to_pylist() for entry in entries]


def gathered(blocks: BinaryLists, entries: BinaryLists, lengths: list[int], rows: list[int]) -> tuple[int, Any, Any]:
    """Return the status of the kernel, its copies, and its last documents and bounds. Terms have the weights 1, 2, …"""
    values, size = blocks.size_of(np.array(rows), "blocks")
    out = np.empty(size, np.uint8), *(np.empty(n, np.int64) for n in (values + 1, len(rows) + 1, len(rows)))
    last, bounds = np.empty(values, np.int64), np.empty(values)
    status = gather_terms(
        (blocks.data, blocks.offsets, blocks.lists),
        (entries.data, entries.offsets, entries.lists),
        readonly(np.array(lengths)),
        readonly(np.array(rows)),
        readonly(np.arange(1, 1 + len(rows), dtype=np.float32)),
        NORMS,
        (128, 4, 10_000),
        out,
        last,
        bounds,
    )
    return status, out, (last, bounds)


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
    lists = impacts.encode(bounds, ids, frequencies, impacts.length_codes(tokens), BlockForm())
    entries = decoded(lists)
    check_gathered(lists, lengths, random.permutation(len(lengths)).tolist())
    expected = []
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        for step in (128, 128 * 32):
            for at in range(low, high, step):
                stop = min(at + step, high)
                codes = [code_of(int(tokens[i])) for i in ids[at:stop]]
                expected.append((ids[stop - 1], frontier(list(zip(frequencies[at:stop].tolist(), codes, strict=True)))))
    assert entries == expected


def check_gathered(lists: pa.ListArray, lengths: list[int], rows: list[int]) -> None:
    """Check that terms are copied in the order of `rows`, and that bounds are the greatest scores of entries."""
    values = [[bytes([row, block]) * 64 for block in range(-(-length // 128))] for row, length in enumerate(lengths)]
    blocks = binary_lists_of(pa.array(values, pa.list_(pa.large_binary())), "blocks")
    code, out, (last, bounds) = gathered(blocks, binary_lists_of(lists, "impacts"), lengths, rows)
    assert code == status.OK
    data, offsets, firsts, copied = (each.tolist() for each in out)
    copies = [bytes(data[low:high]) for low, high in pairwise(offsets)]
    assert [copies[low:high] for low, high in pairwise(firsts)] == [values[row] for row in rows]
    assert copied == [lengths[row] for row in rows]
    entries = [
        (*entry_of(entry), weight)
        for weight, row in enumerate(rows, start=1)
        for entry in lists[row].as_py()[: len(values[row])]
    ]
    assert last.tolist() == [entry[0] for entry in entries]
    expected = [weight * max(2.2 * f / (f + NORMS[code]) for f, code in pairs) for _, pairs, weight in entries]
    np.testing.assert_allclose(bounds, expected, rtol=1e-6)


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
    entries = binary_lists_of(lists, "impacts")
    blocks = binary_lists_of(pa.array([[b"x" * 128] * 4], pa.list_(pa.large_binary())), "blocks")
    refused = 0
    for i in range(int(entries.offsets[4])):
        data = entries.data.copy()
        data[i] ^= 0xC7
        damaged = BinaryLists(readonly(data), entries.offsets, entries.lists)
        refused += gathered(blocks, damaged, [400], [0])[0] != status.OK
    assert refused


@pytest.mark.parametrize(
    ("blocks", "entries", "lengths", "row"),
    [
        ([0, 4], [0, 5], [400], 1),
        ([0, 4], [0, 5], [400], -1),
        ([0, 4], [0, 4], [400], 0),
        ([0, 4], [0, 6], [400], 0),
        ([0, 4], [1, 6], [400], 0),
        ([0, 4], [0, 5], [513], 0),
        ([0, 4], [0, 5], [-1], 0),
        ([0, 3], [0, 5], [400], 0),
    ],
)
def test_lists_that_contradict_each_other_are_refused(
    blocks: list[int], entries: list[int], lengths: list[int], row: int
) -> None:
    postings = binary_lists_of(pa.array([[b"x" * 128] * 4], pa.list_(pa.large_binary())), "blocks")
    impact_lists = binary_lists_of(pa.array([[bytes([i, 1, 0]) for i in range(1, 6)]], layout.BLOBS), "impacts")
    assert gathered(postings, impact_lists, [400], [0])[0] == status.OK
    damaged = [
        BinaryLists(each.data, each.offsets, readonly(np.array(lists)))
        for each, lists in ((postings, blocks), (impact_lists, entries))
    ]
    try:
        code = gathered(damaged[0], damaged[1], lengths, [row])[0]
    except CorruptError:
        return
    assert code & 0xFF in (status.BAD_OFFSETS, status.BAD_LENGTH)
