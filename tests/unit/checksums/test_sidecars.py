"""Digests of sidecars, in the data file."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.checksums.container import mark
from lance_duck.checksums.digests import BLOCK, StreamDigests, digests
from lance_duck.checksums.sidecars import read_sidecar_block, read_sidecar_mark, sidecar_block, sidecar_mark
from lance_duck.errors import CorruptError

SIZES = st.sampled_from([0, 1, 100, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK])


@given(st.lists(SIZES, max_size=6))
def test_stream_digests_equal_those_of_the_whole(sizes: list[int]) -> None:
    data = np.random.default_rng(0).bytes(sum(sizes))
    stream, at = StreamDigests(), 0
    for size in sizes:
        stream.update(data[at : at + size])
        at += size
        assert stream.digests().tolist() == digests(data[:at]).tolist()


@given(st.dictionaries(st.integers(1, 1 << 31), SIZES, max_size=4))
def test_a_sidecar_block_returns_the_stored_digests(sizes: dict[int, int]) -> None:
    sidecars = [(blob_id, size, digests(bytes(size))) for blob_id, size in sizes.items()]
    block = sidecar_block(sidecars)
    found = read_sidecar_block(block, "f")
    assert {blob_id: (c.extents.tolist(), c.digests.tolist()) for blob_id, c in found.items()} == {
        blob_id: ([[0, size]], sums.tolist()) for blob_id, size, sums in sidecars
    }


@given(st.binary(max_size=200), st.integers(0, 1599))
def test_a_contradictory_sidecar_block_is_damaged(data: bytes, bit: int) -> None:
    block = bytearray(sidecar_block([(1, 70_000, digests(bytes(70_000))), (9, 5, digests(b"12345"))]))
    block[bit // 8 % 24] ^= 1 << bit % 8
    for changed in (data, bytes(block), bytes(block[:-8])):
        try:
            read_sidecar_block(changed, "f")
        except CorruptError:
            continue
        assert len(changed) % 8 == 0


def test_the_sidecar_mark_precedes_the_digest_mark() -> None:
    descriptor = b"fields" + sidecar_mark(640, 48) + mark(704, 128)
    assert read_sidecar_mark(descriptor) == (640, 48)
    assert read_sidecar_mark(b"fields of a descriptor without" + mark(704, 128)) is None
    assert read_sidecar_mark(b"") is None


def test_an_empty_sidecar_block_is_rejected() -> None:
    with pytest.raises(CorruptError, match="blobs beside it"):
        read_sidecar_block(b"", "f")
