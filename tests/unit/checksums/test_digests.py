"""Digests of buffers, block by block."""

from __future__ import annotations

import numpy as np
import pytest
import xxhash

from lance_duck.checksums.digests import BLOCK, digest, digests, num_blocks


def test_each_block_has_a_digest_and_the_last_may_be_shorter() -> None:
    data = bytes(range(256)) * (BLOCK // 128)
    expected = [xxhash.xxh3_64_intdigest(data[:BLOCK]), xxhash.xxh3_64_intdigest(data[BLOCK:])]
    assert digests(data).tolist() == expected
    assert digests(data + b"x").tolist() == [*expected, digest(b"x")]


@pytest.mark.parametrize("data", [b"", np.empty(0, np.float64)])
def test_an_empty_buffer_does_not_have_digests(data: object) -> None:
    assert digests(data).tolist() == []


def test_a_buffer_of_any_type_is_its_bytes() -> None:
    numbers = np.arange(1000.0)
    assert digests(numbers).tolist() == digests(numbers.tobytes()).tolist() == digests(memoryview(numbers)).tolist()


def test_the_digest_of_empty_bytes_matches_the_specification() -> None:
    assert digest(b"") == 0x2D06800538D394C2


def test_blocks_are_counted() -> None:
    assert num_blocks([0, 1, BLOCK, BLOCK + 1]).tolist() == [0, 1, 1, 2]
