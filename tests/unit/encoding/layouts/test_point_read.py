"""Kernels that take single values out of chunks, against their plain references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lance_duck.encoding.block import FixedWidth
from lance_duck.encoding.codec_checks import WORDS
from lance_duck.encoding.codecs.bitpacking import InlineBitpacking, OutOfLineBitpacking
from lance_duck.kernels import status
from lance_duck.kernels.jit import readonly
from lance_duck.kernels.pages import point_read, point_read_packed

SEEDS = st.integers(0, 1 << 32)


def both(kernel, reference, *arguments, out):
    """Return the results of a kernel and its reference for the same arguments, each with a separate output array."""
    found, expected = [np.zeros_like(a) for a in out], [np.zeros_like(a) for a in out]
    results = kernel(*arguments, *found), reference(*arguments, *expected)
    return results, found, expected


def agree(kernel, reference, *arguments, out):
    results, found, expected = both(kernel, reference, *arguments, out=out)
    assert results[0] == results[1]
    if results[0] == status.OK:
        for left, right in zip(found, expected, strict=True):
            np.testing.assert_array_equal(left, right)
    return results[0]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@settings(max_examples=30)
@given(seed=SEEDS)
def test_packed_values_equal_those_of_whole_blocks(bits, seed):
    rng = np.random.default_rng(seed)
    counts = rng.choice([1, 7, 1000, 1024, 1025, 3000], int(rng.integers(1, 4)))
    values = rng.integers(0, 1 << int(rng.integers(0, bits + 1)), int(counts.sum()), np.uint64, endpoint=False)
    block = FixedWidth(bits, values.astype(WORDS[bits]).view(np.uint8), len(values))
    ((data, ends),) = InlineBitpacking(bits).encode_chunks(block, counts)
    starts = np.append(0, ends[:-1])
    before = np.append(0, np.cumsum(counts)[:-1])
    chunk = rng.integers(0, len(counts), 8)
    place = rng.integers(0, counts[chunk])
    out = np.zeros(8, WORDS[bits])
    found = point_read_packed.unpack_some(readonly(data), place, starts[chunk], (ends - starts)[chunk], out)
    assert found == status.OK
    np.testing.assert_array_equal(out, values[before[chunk] + place].astype(WORDS[bits]))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@settings(max_examples=30)
@given(seed=SEEDS)
def test_packed_values_of_any_bytes(bits, seed):
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 256, 3000).astype(np.uint8)
    data[: bits // 8] = 0
    data[0] = rng.integers(0, bits + 2)
    starts = rng.choice([0, 0, 8, 2000], 6).astype(np.int64)
    sizes = np.minimum(rng.choice([0, 4, 1100, 3000], 6), len(data) - starts)
    places = rng.integers(0, 2100, 6)
    arguments = readonly(data), places, starts, sizes
    agree(
        point_read_packed.unpack_some,
        point_read_packed.unpack_some_reference,
        *arguments,
        out=[np.zeros(6, WORDS[bits])],
    )


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@settings(max_examples=30)
@given(seed=SEEDS)
def test_fixed_width_packed_values_equal_the_reference(bits, seed):
    rng = np.random.default_rng(seed)
    width = int(rng.integers(1, bits + 1))
    data = rng.integers(0, 256, 20_000).astype(np.uint8)
    counts = rng.choice([1, 5, 1023, 1024, 1030], 6).astype(np.int64)
    places = rng.integers(0, counts)
    full, tail = counts // 1024 * width * 128, counts % 1024
    raw = full + tail * (bits // 8)
    sizes = np.where(rng.random(6) < 0.4, raw, full + (tail > 0) * width * 128)
    sizes = np.where(rng.random(6) < 0.1, sizes // 2, sizes)
    arguments = readonly(data), places, counts, rng.integers(0, 8, 6), sizes, width
    out = [np.zeros(6, WORDS[bits])]
    agree(point_read_packed.unpack_some_fixed, point_read_packed.unpack_some_fixed_reference, *arguments, out=out)


def test_an_impossible_count_is_rejected():
    data, one = readonly(np.zeros(64, np.uint8)), np.ones(1, np.int64)
    arguments = data, one, one << 62, one * 0, one * 64, 16, np.zeros(1, np.uint16)
    assert point_read_packed.unpack_some_fixed(*arguments) == status.TOO_SHORT
    texts = data, one << 62, one * 0, one * 64, 8, one.copy(), np.zeros(2, np.int64)
    assert point_read.find_texts(*texts) == status.TOO_SHORT
    assert OutOfLineBitpacking(16, 1).width == 1


@pytest.mark.parametrize("width", [4, 8])
@settings(max_examples=30)
@given(seed=SEEDS)
def test_values_of_any_length(width, seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 20))
    ends = np.sort(rng.integers(0, 60, count + 1)) + (count + 1) * width
    if rng.random() < 0.3:
        ends[rng.integers(0, count + 1)] = rng.integers(0, 1 << 20)
    data = np.zeros(1000, np.uint8)
    data[8 : 8 + len(ends) * width] = ends.astype(f"<u{width}").view(np.uint8)
    places = rng.integers(0, count + 2, 5)
    starts, sizes = np.full(5, 8), np.full(5, (count + 1) * width + int(rng.integers(0, 80)))
    out = [np.zeros(5, np.int64), np.zeros(6, np.int64)]
    agree(point_read.find_texts, point_read.find_texts_reference, readonly(data), places, starts, sizes, width, out=out)


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("levels", [0, 1])
@settings(max_examples=30)
@given(seed=SEEDS)
def test_chunk_buffer_positions_equal_the_reference(levels, width, seed):
    rng = np.random.default_rng(seed)
    counts = rng.choice([4, 8, 16], 4)
    sizes = rng.integers(1, 6, 4) * 8
    items, offsets = (np.append(0, np.cumsum(a)) for a in (counts, sizes))
    data = np.zeros(int(offsets[-1]), np.uint8)
    for count, begin in zip(counts, offsets, strict=False):
        header = [count, *rng.integers(0, 20, levels)]
        raw = np.array(header, "<u2").tobytes() + int(rng.integers(0, 24)).to_bytes(width, "little")
        data[begin : begin + 8] = np.frombuffer(raw.ljust(8, b"\0")[:8], np.uint8)
    rows = rng.integers(-1 if rng.random() < 0.2 else 0, items[-1] + (rng.random() < 0.2), 6)
    arguments = readonly(data), readonly(offsets), readonly(items), readonly(rows), levels, width
    agree(point_read.find_values, point_read.find_values_reference, *arguments, out=[np.zeros((6, 6), np.int64)])
