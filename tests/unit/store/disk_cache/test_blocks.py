from __future__ import annotations

import io
from dataclasses import replace
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.store.disk_cache.blocks import (
    BLOCK,
    HEADER_BYTES,
    PAGE,
    PAGES,
    ObjectVersion,
    encode_block,
    read_block,
)
from lance_duck.store.request import Bytes

SIZE: Final = 2 * BLOCK + 3 * PAGE + 5
OBJECT: Final = ObjectVersion(bytes(range(32)), SIZE, 77)
CONTENT: Final = np.random.default_rng(0).integers(0, 256, SIZE, np.uint8)
NUMBERS: Final = st.integers(0, 2)


def page(number: int) -> Bytes:
    return CONTENT[number * PAGE : (number + 1) * PAGE]


def pages_in(number: int) -> list[int]:
    return [each for each in range(number * PAGES, (number + 1) * PAGES) if each * PAGE < SIZE]


def written(number: int, pages: set[int]) -> bytes:
    return b"".join(piece.tobytes() for piece in encode_block(OBJECT, number, {each: page(each) for each in pages}))


def read(
    data: bytes, number: int, wanted: set[int] | None = None, version: ObjectVersion = OBJECT
) -> dict[int, Bytes] | None:
    return read_block(io.BytesIO(data), len(data), version, number, wanted)


@given(NUMBERS, st.data())
def test_a_block_returns_the_wanted_pages_that_it_has(number: int, data: st.DataObject) -> None:
    some = st.sets(st.sampled_from(pages_in(number)), min_size=1)
    present, wanted = data.draw(some), data.draw(some)
    found = read(written(number, present), number, wanted)
    assert found is not None
    assert found.keys() == present & wanted
    assert all(np.array_equal(found[each], page(each)) and not found[each].flags.writeable for each in found)
    everything = read(written(number, present), number)
    assert everything is not None
    assert everything.keys() == present


@given(NUMBERS, st.data())
def test_a_flipped_byte_is_never_returned(number: int, data: st.DataObject) -> None:
    present = data.draw(st.sets(st.sampled_from(pages_in(number)), min_size=1, max_size=2))
    block = bytearray(written(number, present))
    place = data.draw(st.one_of(st.integers(0, HEADER_BYTES - 1), st.integers(0, len(block) - 1)))
    block[place] ^= data.draw(st.integers(1, 255))
    assert read(bytes(block), number) is None
    for each in sorted(present):  # a damaged page does not harm the others
        found = read(bytes(block), number, {each})
        assert found is None or np.array_equal(found[each], page(each))


@given(NUMBERS, st.data())
def test_a_block_of_another_length_is_refused(number: int, data: st.DataObject) -> None:
    block = written(number, set(pages_in(number)[:2]))
    cut = data.draw(st.integers(0, len(block) - 1))
    assert read(block[:cut], number) is None
    assert read(block + bytes(data.draw(st.integers(1, 100))), number) is None


@pytest.mark.parametrize(
    "other", [replace(OBJECT, tag=78), replace(OBJECT, size=SIZE - 1), replace(OBJECT, name=bytes(32))]
)
def test_a_block_of_another_object_is_refused(other: ObjectVersion) -> None:
    assert read(written(0, {0}), 0, {0}, other) is None
    assert read(written(0, {0}), 1, {PAGES}) is None
