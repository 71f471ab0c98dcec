"""Rows from cached columns equal those of a scan, after every change of the table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.changing import CHANGES, FAST, create, steps

import lance_duck as ld
from lance_duck.scan.read import column_cache
from lance_duck.scan.read.fragment_reader import ColumnCache
from lance_duck.scan.read.take import Taker

COLUMNS = ["id", "n", "real", "half", "day", "at", "holes", "flag", "text", "st", "st.x", "st.y", "v"]
HIDDEN = ["_rowid", "_rowaddr"]
NARROW = {"id", "n", "real", "half", "day", "at"}


@pytest.fixture(autouse=True)
def cached_at_once() -> Iterator[None]:
    """Cache columns from the second take on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_cache, "TAKES_BEFORE_CACHE", 2)
        yield


projections = st.none() | st.lists(st.sampled_from([*COLUMNS, *HIDDEN]), min_size=1, max_size=5, unique=True)


def reference(uri: str, version: int) -> pa.Table:
    """Return all rows of a version from a separate scan."""
    return ld.dataset(uri, version=version).to_table(columns=[*COLUMNS, *HIDDEN])


def nested(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as a take shows it: members of a struct inside of it."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        root, _, member = name.partition(".")
        if member:
            found.setdefault(root, {}).setdefault(member, value)
        else:
            found[root] = value
    return found


def check(dataset: ld.LanceDataset, columns: list[str] | None, draw: np.random.Generator) -> None:
    """Take rows, by position, by address, by row id and in a fragment, and compare them with the scan."""
    whole = reference(dataset.uri, dataset.version)
    names = dataset.schema.names if columns is None else columns
    wanted = whole.select(names)
    places = draw.integers(0, len(whole), 9) if len(whole) else np.empty(0, np.int64)
    expected = [nested(row) for row in wanted.take(pa.array(places)).to_pylist()]
    table = dataset.handle.table
    projection = table.projection(columns)
    assert dataset.take(places, columns).to_pylist() == expected
    addresses, ids = (whole[name].to_numpy()[places] for name in ("_rowaddr", "_rowid"))
    assert table.taker.by_address(addresses, projection).to_pylist() == expected
    assert table.taker.by_row_id(ids, projection).to_pylist() == expected
    for fragment in dataset.get_fragments()[:1]:
        mine = whole["_rowaddr"].to_numpy() >> 32 == fragment.fragment_id
        rows = wanted.filter(pa.array(mine))
        within = draw.integers(0, len(rows), 3) if len(rows) else np.empty(0, np.int64)
        assert fragment.take(within, columns).to_pylist() == [
            nested(row) for row in rows.take(pa.array(within)).to_pylist()
        ]


@settings(max_examples=settings.default.max_examples // 6)
@given(st.booleans(), steps(), st.lists(projections, min_size=1, max_size=3), st.integers(0, 99))
def test_taken_rows_equal_scanned_rows(
    stable_row_ids: bool, changes: list[tuple[str, int]], asked: list[list[str] | None], seed: int
) -> None:
    draw = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        dataset = create(f"{folder}/t.lance", stable_row_ids=stable_row_ids)
        handles = [dataset]
        for name, number in [("", 0), *changes]:
            if name:
                handles.append(ld.dataset(dataset.uri, version=dataset.version, storage_options=FAST))
                CHANGES[name](dataset, number)
            for handle in handles[-2:]:
                for columns in asked:
                    check(handle, columns, draw)


@settings(max_examples=settings.default.max_examples // 10)
@given(steps(), st.lists(projections, min_size=4, max_size=8), st.integers(0, 99))
def test_threads_take_the_same_rows(changes: list[tuple[str, int]], asked: list[Any], seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(4) as threads:
        dataset = create(f"{folder}/t.lance", stable_row_ids=False)
        for name, number in changes:
            CHANGES[name](dataset, number)
        draws = [np.random.default_rng([seed, turn]) for turn in range(len(asked))]
        list(threads.map(check, [dataset] * len(asked), asked, draws))


def test_narrow_columns_and_strings_are_cached(tmp_path: Any) -> None:
    dataset = create(str(tmp_path / "t.lance"), stable_row_ids=False)
    for _ in range(2):
        dataset.take([1, 2, 3])
    kept = dataset.handle.table.taker.decoded
    widths = [dataset.schema.field(name).type.bit_width // 8 for name in NARROW]
    texts = dataset.to_table(columns=["text"])["text"].to_pylist()
    assert kept.nbytes == 60 * sum(widths) + sum(len(text) + 4 for text in texts)
    CHANGES["update"](dataset, 1)
    assert dataset.handle.table.taker.decoded is not kept


@given(st.integers(1, 40), st.integers(0, 800), projections, steps())
@settings(max_examples=settings.default.max_examples // 6)
def test_rows_are_the_same_with_the_cache_and_without(
    rows_of_a_take: int, limit: int, columns: list[str] | None, changes: list[tuple[str, int]]
) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(column_cache, "MOST_BYTES", limit // 2)
        patch.setattr(column_cache, "ROWS_DECODED_IN_A_TAKE", rows_of_a_take)
        dataset = create(f"{folder}/t.lance", stable_row_ids=False)
        for name, number in changes:
            CHANGES[name](dataset, number)
        table, draw = dataset.handle.table, np.random.default_rng(limit)
        on, off = (Taker(table.snapshot, ColumnCache(), cache_bytes=size) for size in (limit, 0))
        projection, count = table.projection(columns), dataset.count_rows()
        for _ in range(5):
            places = draw.integers(0, count, 9 if count else 0)
            assert on.by_position(places, projection).equals(off.by_position(places, projection))
        assert on.decoded.nbytes <= limit
        assert off.decoded.nbytes == 0
