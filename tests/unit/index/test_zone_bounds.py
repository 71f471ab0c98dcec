from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.index.segments import Segments
from unit.index.zone_cases import VALUES, queries, satisfies

from lance_duck.index.query import Except, Null, Query
from lance_duck.index.zone_bounds import read_bounds, zone_masks
from lance_duck.index.zone_statistics import collect

NAMES = [*VALUES, "double", "double", "float", "half", "string", "binary"]
SIZE = 3


def asks_for_nulls(query: Query) -> bool:
    return isinstance(query, Null) or (isinstance(query, Except) and isinstance(query.query, Null))


@settings(max_examples=150)
@given(st.data())
def test_zones_that_may_and_zones_that_surely_do(data: st.DataObject) -> None:
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
