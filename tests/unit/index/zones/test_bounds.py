from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.index.segments import Segments
from unit.index.zone_cases import VALUES, queries, satisfies

from lance_duck.index.query import Between, Except, Null, Query
from lance_duck.index.zones.bounds import read_bounds, zone_masks
from lance_duck.index.zones.build import collect

NAMES = [*VALUES, "double", "double", "float", "half", "string", "binary"]
SIZE = 3


def asks_for_nulls(query: Query) -> bool:
    return isinstance(query, Null) or (isinstance(query, Except) and isinstance(query.query, Null))


@settings(max_examples=60)
@given(st.data())
def test_possible_and_certain_zones_equal_the_reference(data: st.DataObject) -> None:
    type_, choice = VALUES[data.draw(st.sampled_from(NAMES))]
    some = data.draw(st.lists(st.sampled_from([*choice, None]), min_size=1, max_size=3))
    given_ = [data.draw(st.sampled_from([*some, *choice])) for _ in range(4 * SIZE)]
    values = pa.array(given_, type_)
    statistics, _ = collect(Segments.reader(values, None, 5), SIZE)
    zones = (statistics.low, statistics.high, statistics.nulls, statistics.nans, statistics.zones.length)
    bounds = read_bounds(*zones, "here")
    plain = values.to_pylist()
    for _ in range(8):
        query = data.draw(queries(type_).filter(lambda query: not asks_for_nulls(query)))
        may, surely = zone_masks(bounds, query)
        for zone, begin in enumerate(range(0, len(plain), SIZE)):
            present = [satisfies(value, query) for value in plain[begin : begin + SIZE] if value is not None]
            assert may[zone] or not any(present), (query, plain[begin : begin + SIZE])
            assert not surely[zone] or all(present), (query, plain[begin : begin + SIZE])
    assert np.array_equal(statistics.zones.length, [SIZE] * 4)


def test_all_ranges_of_floats_are_right() -> None:
    some = [None, -math.inf, -1.5, -0.0, 0.0, 1.5, math.inf, math.nan]
    pairs = [*itertools.product(some, repeat=2)]
    statistics, _ = collect(Segments.reader(pa.array([*itertools.chain(*pairs)], pa.float64()), None, 50), 2)
    zones = (statistics.low, statistics.high, statistics.nulls, statistics.nans, statistics.zones.length)
    bounds = read_bounds(*zones, "here")
    ends = [None if value is None else pa.scalar(value) for value in some]
    for low, high, low_open, high_open in itertools.product(ends, ends, (False, True), (False, True)):
        between = Between(low, high, low_open, high_open)
        inside = {repr(value): satisfies(value, between) for value in some}
        may, surely = zone_masks(bounds, between)
        may_not, surely_not = zone_masks(bounds, Except(between))
        for zone, pair in enumerate(pairs):
            found = [inside[repr(value)] for value in pair if value is not None]
            assert may[zone] or not any(found), (between, pair)
            assert not surely[zone] or all(found), (between, pair)
            assert may_not[zone] or all(found), (between, pair)
            assert not surely_not[zone] or not any(found), (between, pair)
