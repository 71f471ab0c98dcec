"""A B-tree search equals a comparison with each value."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.btree_values import TYPES, satisfies, values_and_query

from lance_duck.index.btree.keys import key_maker
from lance_duck.index.btree.kind import BTREE
from lance_duck.index.btree.order import order_of
from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.kind import ROW, VALUE, BuildOptions, MergeInput, ScalarIndex
from lance_duck.index.query import Query
from lance_duck.store import Store, open_store


@pytest.fixture(scope="module")
def folder() -> Iterator[Store]:
    with tempfile.TemporaryDirectory() as path:
        yield open_store(path, {"fsync": "false"})


def rows_of(values: pa.Array, rows: np.ndarray) -> pa.RecordBatchReader:
    table = pa.table({VALUE: values, ROW: rows.astype(np.uint64)})
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=5))


def built(folder: Store, values: pa.Array, rows: np.ndarray, options: BuildOptions) -> ScalarIndex:
    with SegmentWriter(folder) as writer:
        details = BTREE.build(rows_of(values, rows), writer, options)
    return BTREE.open(SegmentReader(folder, writer.directory), values.type, details)


def expected(values: pa.Array, query: Query, rows: np.ndarray) -> list[int]:
    return sorted(int(row) for value, row in zip(values, rows, strict=True) if satisfies(value, query))


@given(values_and_query(), st.integers(1, 5), st.booleans(), st.randoms())
@settings(deadline=None, max_examples=70)
def test_a_search_finds_exactly_the_matching_rows(folder, case, page_rows, spills, random) -> None:
    values, query = case
    rows = np.array(random.sample(range(1 << 40), len(values)), np.uint64)
    options = BuildOptions(parameters={"zone_size": page_rows}, memory_limit=600 if spills else 1 << 30)
    index = built(folder, values, rows, options)
    answer = index.search(query)
    found = expected(values, query, rows)
    assert answer.is_exact
    assert sorted(answer.sure) == found
    estimate = index.estimate(query)
    assert estimate is None or estimate >= len(found)


@given(values_and_query(), st.integers(1, 5), st.sampled_from([600, 1 << 30]), st.randoms())
@settings(deadline=None, max_examples=70)
def test_merged_segments_find_exactly_the_matching_rows(folder, case, page_rows, limit, random) -> None:
    values, query = case
    rows = np.array(random.sample(range(1 << 40), len(values)), np.uint64)
    cuts = sorted(random.randint(0, len(values)) for _ in range(3))
    options = BuildOptions(parameters={"zone_size": page_rows}, memory_limit=limit)
    pieces = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, len(values)], strict=True)]
    parts = [MergeInput(built(folder, values[s], rows[s], options), moved) for s in pieces[:-1]]
    with SegmentWriter(folder) as writer:
        details = BTREE.merge(parts, rows_of(values[pieces[-1]], rows[pieces[-1]]), writer, options)
    index = BTREE.open(SegmentReader(folder, writer.directory), values.type, details)
    names, lives = moved(rows)
    names[cuts[-1] :], lives[cuts[-1] :] = rows[cuts[-1] :], True
    assert sorted(index.search(query).sure) == expected(values.filter(pa.array(lives)), query, names[lives])


def moved(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Odd rows get lost, the others get other names."""
    return rows ^ np.uint64(1 << 41), rows % 2 == 0


@given(st.data())
@settings(deadline=None, max_examples=70)
def test_keys_sort_in_total_order_and_the_sort_is_stable(data) -> None:
    one, make = TYPES[data.draw(st.sampled_from(sorted(TYPES)))]
    values = make(data.draw(st.lists(one, max_size=40)))
    maker = key_maker(values.type)
    assert maker is not None
    keys = maker(values)
    order = order_of(keys)
    assert sorted(order.tolist()) == list(range(len(values)))
    ordered = keys.take(order)
    assert ordered.is_ascending()
    first = ordered.places(ordered, False)
    assert all(a < b for a, b, x, y in zip(order, order[1:], first, first[1:], strict=False) if x == y)
