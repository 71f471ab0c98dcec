from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import CorruptError
from lance_duck.index.inverted.codecs import blocks
from lance_duck.index.inverted.codecs.arrays import binary_lists_of
from lance_duck.index.inverted.codecs.blocks import BlockForm

FORMS = [BlockForm(128, False), BlockForm(128, True), BlockForm(256, True)]
LIMIT = 1 << 32


def random_postings(lengths: list[int], seed: int, spread: int) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(seed)
    gaps = [1 + (random.integers(0, spread, n) >> random.integers(0, 20, n)) for n in lengths]
    ids = np.concatenate([np.empty(0, np.int64), *(np.cumsum(each) - 1 for each in gaps)]).astype(np.uint32)
    frequencies = (1 + (random.integers(0, 1 << 31, len(ids)) >> random.integers(0, 40, len(ids)))).astype(np.uint32)
    return np.cumsum([0, *lengths]).astype(np.int64), ids, frequencies


def unpacked(data: bytes, width: int, lanes: int) -> list[int]:
    """Values of a group, bit by bit."""
    words = np.frombuffer(data[: width * lanes * 4], "<u4").reshape(width, lanes).tolist()
    streams = [sum(words[k][lane] << (32 * k) for k in range(width)) for lane in range(lanes)]
    return [(streams[i % lanes] >> (i // lanes * width)) & ((1 << width) - 1) for i in range(32 * lanes)]


@pytest.mark.parametrize("form", FORMS)
@given(
    st.lists(st.integers(0, 3) | st.integers(100, 600), max_size=5),
    st.integers(0, 1000),
    st.sampled_from([1, 9, 1 << 18]),
)
def test_encoded_postings_decode_to_the_same_postings(form, lengths, seed, spread) -> None:
    bounds, ids, frequencies = random_postings(lengths, seed, spread)
    scores = np.arange(form.counts(np.diff(bounds)).sum()).astype(np.float32)
    blobs = binary_lists_of(blocks.encode(bounds, ids, frequencies, scores, form), "postings")
    found = blocks.decode(blobs, np.array(lengths, np.int64), form, LIMIT, "postings")
    np.testing.assert_array_equal(found[0], ids)
    np.testing.assert_array_equal(found[1], frequencies)


def test_a_full_block_of_128_has_the_documented_layout() -> None:
    bounds, ids, frequencies = random_postings([128], 5, 1 << 18)
    (block,) = blocks.encode(bounds, ids, frequencies, np.array([1.5], np.float32), BlockForm())[0].as_py()
    score, first, width = struct.unpack_from("<fIB", block)
    assert (score, first, width) == (1.5, ids[0], int(np.diff(ids).max()).bit_length())
    assert unpacked(block[9:], width, 4) == [0, *np.diff(ids).tolist()]
    at = 9 + 16 * width
    assert block[at] == int(frequencies.max()).bit_length()
    assert unpacked(block[at + 1 :], block[at], 4) == frequencies.tolist()
    assert len(block) == at + 1 + 16 * block[at]


def test_a_full_block_of_256_patches_rare_frequencies() -> None:
    ids, frequencies = np.arange(256, dtype=np.uint32) * 3, np.ones(256, np.uint32)
    frequencies[[7, 200]] = 1000, 300
    (block,) = blocks.encode(np.array([0, 256]), ids, frequencies, np.empty(0, np.float32), BlockForm(256))[0].as_py()
    assert struct.unpack_from("<IB", block) == (0, 2)
    assert unpacked(block[5:], 2, 8) == [0] + [3] * 255
    width, exceptions = block[69:71]
    assert (width, exceptions) == (1, 2)
    assert unpacked(block[71:], 1, 8) == [int(f & 1) for f in frequencies]
    assert block[103:] == bytes([7, 0xF4, 0x03, 200, 0x96, 0x01])  # 1000 >> 1 and 300 >> 1


def test_short_lists_are_varints_or_words() -> None:
    bounds, ids, frequencies = np.array([0, 2]), np.array([300, 301], np.uint32), np.array([1, 5], np.uint32)
    scores = np.array([2], np.float32)
    score = struct.pack("<f", 2)
    varints = blocks.encode(bounds, ids, frequencies, scores, BlockForm())
    assert varints.to_pylist() == [[score + bytes([0xAC, 0x02, 1, 1, 5])]]
    words = blocks.encode(bounds, ids, frequencies, scores, BlockForm(128, False))
    assert words.to_pylist() == [[score + struct.pack("<4I", 300, 301, 1, 5)]]
    assert blocks.encode(bounds, ids, frequencies, scores, BlockForm(256)).to_pylist() == [[bytes([0xAC, 2, 1, 1, 5])]]


@pytest.mark.parametrize("form", FORMS)
def test_damaged_blocks_give_an_error_or_postings(form) -> None:
    lengths = np.array([300, 2, 40], np.int64)
    bounds, ids, frequencies = random_postings(lengths.tolist(), 2, 100)
    scores = np.zeros(form.counts(np.diff(bounds)).sum(), np.float32)
    lists = blocks.encode(bounds, ids, frequencies, scores, form)
    sound = binary_lists_of(lists, "postings")
    refused = 0
    for i in range(len(sound.data)):
        data = sound.data.copy()
        data[i] ^= 0xA5
        broken = blocks.BinaryLists(data, sound.offsets, sound.lists)
        try:
            found, counts = blocks.decode(broken, lengths, form, 1000, "postings")
        except CorruptError:
            refused += 1
            continue
        assert found.max() < 1000
        assert counts.min() > 0
    assert refused > len(sound.data) // 4


def test_impossible_posting_list_lengths_are_corrupt() -> None:
    bounds, ids, frequencies = random_postings([200], 2, 100)
    blobs = binary_lists_of(blocks.encode(bounds, ids, frequencies, np.zeros(2, np.float32), BlockForm()), "postings")
    for length in (0, 128, 257, 1 << 40):
        with pytest.raises(CorruptError, match="do not match"):
            blocks.decode(blobs, np.array([length]), BlockForm(), 1000, "postings")
    empty = blocks.BinaryLists(blobs.data, np.zeros(10_001, np.int64), np.array([0, 10_000]))
    with pytest.raises(CorruptError, match="at most 0"):
        blocks.decode(empty, np.array([1_280_000]), BlockForm(), 1 << 30, "postings")


def test_document_ids_out_of_range_are_rejected() -> None:
    bounds, ids, frequencies = random_postings([200], 2, 100)
    blobs = binary_lists_of(blocks.encode(bounds, ids, frequencies, np.zeros(2, np.float32), BlockForm()), "postings")
    with pytest.raises(CorruptError, match="out of range"):
        blocks.decode(blobs, np.array([200]), BlockForm(), int(ids.max()), "postings")
