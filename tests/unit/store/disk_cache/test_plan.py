from __future__ import annotations

from typing import Final

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.store.disk_cache.blocks import PAGE
from lance_duck.store.disk_cache.plan import ReadPieces, pages_of, ranges_to_fetch, split

SIZE: Final = 200 * PAGE + 17
CONTENT: Final = np.random.default_rng(0).integers(0, 256, SIZE, np.uint8)
RANGES: Final = st.lists(
    st.tuples(st.integers(0, SIZE - 1), st.integers(1, 3 * PAGE)).map(lambda r: (r[0], min(r[1], SIZE - r[0]))),
    min_size=1,
    max_size=20,
)


@given(RANGES, st.sets(st.integers(0, 200)))
def test_ranges_are_cut_from_pages_and_fetched_ranges(ranges: list[tuple[int, int]], cached: set[int]) -> None:
    starts, lengths = [r[0] for r in ranges], [r[1] for r in ranges]
    wanted = pages_of(starts, lengths)
    found = {page: CONTENT[page * PAGE : (page + 1) * PAGE] for page in wanted & cached}
    runs = ranges_to_fetch(wanted - cached, SIZE)
    pieces = ReadPieces(found, {offset: CONTENT[offset : offset + size] for offset, size in runs})
    for start, length in ranges:
        assert np.array_equal(pieces.cut(start, length), CONTENT[start : start + length])


@given(st.sets(st.integers(0, 200), min_size=1))
def test_fetched_ranges_contain_the_pages_and_few_others(pages: set[int]) -> None:
    runs = ranges_to_fetch(pages, SIZE)
    fetched = [offset // PAGE + place for offset, size in runs for place in range(-(-size // PAGE))]
    assert pages <= set(fetched)
    assert len(fetched) == len(set(fetched)) <= 9 * len(pages)
    assert all(offset + size <= SIZE for offset, size in runs)


def test_pages_at_a_distance_are_fetched_alone() -> None:
    assert ranges_to_fetch([0, 50, 100], SIZE) == [(page * PAGE, PAGE) for page in (0, 50, 100)]


def test_a_fetched_range_is_split_into_pages() -> None:
    pages = split(PAGE, CONTENT[PAGE : 3 * PAGE + 5])
    assert {page: len(data) for page, data in pages.items()} == {1: PAGE, 2: PAGE, 3: 5}
