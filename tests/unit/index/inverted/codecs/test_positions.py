from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import CorruptError
from lance_duck.index.inverted.codecs import positions
from lance_duck.index.inverted.codecs.blocks import BlockForm
from lance_duck.index.inverted.codecs.positions import PositionStream

Frequencies = st.lists(st.lists(st.integers(1, 4) | st.sampled_from([127, 128, 129, 300]), max_size=300), max_size=3)


def random_positions(frequencies: list[list[int]], seed: int) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(seed)
    flat = [n for each in frequencies for n in each]
    found = [np.cumsum(random.integers(0, 1 << random.integers(0, 20), n)) for n in flat]
    return (
        np.cumsum([0, *map(len, frequencies)]).astype(np.int64),
        np.array(flat, np.uint32),
        np.concatenate([np.empty(0, np.int64), *found]).astype(np.uint32),
    )


@given(Frequencies, st.integers(0, 99), st.sampled_from([128, 256]))
def test_encoded_positions_decode_to_the_same_positions(frequencies, seed, size) -> None:
    bounds, counts, expected = random_positions(frequencies, seed)
    stream = positions.encode(bounds, counts, expected, BlockForm(size))
    found = positions.decode(stream, bounds, counts, BlockForm(size), "positions")
    np.testing.assert_array_equal(found, expected)


@given(Frequencies, st.integers(0, 99))
def test_encoded_format_1_positions_decode_to_the_same_positions(frequencies, seed) -> None:
    bounds, counts, expected = random_positions(frequencies, seed)
    lists = positions.encode_old(bounds, counts, expected)
    np.testing.assert_array_equal(positions.decode_old(lists, bounds, counts, "positions"), expected)


def test_a_position_stream_has_the_documented_layout() -> None:
    bounds, counts = np.array([0, 2, 3]), np.array([2, 1, 1], np.uint32)
    stream = positions.encode(bounds, counts, np.array([3, 300, 7, 1], np.uint32), BlockForm())
    assert stream.values.to_pylist() == [bytes([3, 0xA9, 2, 7]), bytes([1])]
    assert stream.starts.to_pylist() == [[0], [0]]


def test_format_1_positions_have_the_documented_layout() -> None:
    counts = np.array([2, 128, 129], np.uint32)
    found = np.concatenate([[5, 9], np.arange(128), np.arange(129)]).astype(np.uint32)
    (term,) = positions.encode_old(np.array([0, 3]), counts, found).to_pylist()
    assert term[0] == [(2).to_bytes(4, "little"), bytes([5, 0, 0, 0, 9, 0, 0, 0])]
    assert [len(part) for part in term[1]] == [4, 4 + 1 + 16]
    assert [len(part) for part in term[2]] == [4, 4 + 1 + 16, 4]


def test_a_varint_only_stream_is_read() -> None:
    counts = np.full(200, 1, np.uint32)
    found = np.arange(200, dtype=np.uint32) % 100
    plain = PositionStream(
        positions.large_binary(found.astype(np.uint8), np.array([0, 200])),
        positions.list_array(positions.pa.array(np.array([0, 128], np.uint32)), np.array([0, 2])),
        False,
    )
    decoded = positions.decode(plain, np.array([0, 200]), counts, BlockForm(), "positions")
    np.testing.assert_array_equal(decoded, found)


def test_damaged_streams_give_an_error_or_positions() -> None:
    bounds, counts, expected = random_positions([[1, 2, 3] * 60, [4]], 1)
    stream = positions.encode(bounds, counts, expected, BlockForm())
    data, offsets = positions.bytes_and_offsets(stream.values)
    refused = 0
    for i in range(len(data)):
        broken = data.copy()
        broken[i] ^= 0x85
        values = positions.large_binary(broken, offsets)
        try:
            found = positions.decode(PositionStream(values, stream.starts, True), bounds, counts, BlockForm(), "x")
        except CorruptError:
            refused += 1
            continue
        assert len(found) == len(expected)
    assert refused


def test_impossible_frequencies_are_corrupt() -> None:
    stream = positions.encode(np.array([0, 1]), np.array([1], np.uint32), np.array([1], np.uint32), BlockForm())
    with pytest.raises(CorruptError, match="at most 128"):
        positions.decode(stream, np.array([0, 1]), np.array([1 << 31], np.uint32), BlockForm(), "positions")
