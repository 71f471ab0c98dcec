"""Prepared searches for words and prepared filters that live over many versions find what scans find."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.changing import CHANGES, create, steps

import lance_duck as ld
from lance_duck.errors import LanceDuckError, ReferencedError
from lance_duck.query import FullTextOperator, MatchQuery
from lance_duck.store.request import watched

WORDS = st.sampled_from(["row", "1", "-7", "row 40 41", '"row 3"', "none"])
COLUMNS = st.sampled_from([["id"], ["id", "text", "n"], ["_rowid", "day"], ["st", "_rowaddr"], None])
KEYS = st.lists(st.integers(-1, 70) | st.sampled_from([1003, 1 << 64, None, "3", 3.0]), min_size=1, max_size=3)
SEVERAL = "text = ? OR id = ?"
SEARCHES = st.fixed_dictionaries(
    {"k": st.integers(1, 9), "columns": COLUMNS},
    optional={
        "filter": st.sampled_from(["n = 1", "id < 0"]),
        "prefilter": st.booleans(),
        "limit": st.integers(0, 7),
        "offset": st.integers(0, 3),
        "fast_search": st.booleans(),
    },
)


def index(dataset: ld.LanceDataset, number: int) -> None:
    dataset.create_scalar_index("id", "BTREE" if number % 3 else "BITMAP", replace=True)
    dataset.create_scalar_index("text", "INVERTED", with_position=bool(number % 2), replace=True)


def optimize(dataset: ld.LanceDataset, number: int) -> None:
    dataset.optimize.optimize_indices()


MORE = {each.__name__: each for each in (index, optimize)}


def outcome(read: Any) -> Any:
    """Return the rows, or the class and text of an error."""
    try:
        found = read()
    except LanceDuckError as error:
        return type(error), str(error)
    return (found.schema, found.to_pylist()) if isinstance(found, pa.Table) else [each.tolist() for each in found]


def columns_of(read: Any) -> Any:
    return [column.to_numpy() for column in read().columns]


Asked = tuple[Any, Any]
"""What is asked of a prepared object, and the same by a scan."""


def searches(near: Any, fresh: ld.LanceDataset, words: list[str], search: dict[str, Any]) -> Iterator[Asked]:
    named = {**search, "columns": ["_rowid", "_score"]}
    for q in [*words, MatchQuery("row 5", "text", operator=FullTextOperator.AND)]:
        ordinary = partial(fresh.search, q, column="text" if isinstance(q, str) else None)
        yield partial(near, q), partial(ordinary, **search)
        yield partial(near.ids, q), partial(columns_of, partial(ordinary, **named))


def filters(dataset: ld.LanceDataset, fresh: ld.LanceDataset, prepared: Any, columns: Any, key: Any) -> Iterator[Asked]:
    one, several = prepared
    ordinary = partial(fresh.to_table, columns)
    yield partial(one, key), partial(ordinary, "id = ?", parameters=[key])
    yield partial(several, "row 3", key), partial(ordinary, SEVERAL, parameters=["row 3", key])
    yield partial(dataset.to_table, columns, f"id = {key}"), partial(ordinary, f"id = {key}")


@settings(max_examples=settings.default.max_examples // 20)
@given(
    st.booleans(),
    steps("index", "optimize"),
    SEARCHES,
    st.lists(WORDS, min_size=1, max_size=3),
    COLUMNS,
    KEYS,
)
def test_prepared_queries_follow_the_versions_of_their_dataset(
    stable: bool, changes: list[tuple[str, int]], search: dict[str, Any], words: list[str], columns: Any, keys: Any
) -> None:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as threads:
        dataset = create(f"{folder}/t.lance", stable_row_ids=stable)
        index(dataset, 1)
        near = dataset.prepare_search("text", **search)
        prepared = dataset.prepare("id = ?", columns), dataset.prepare(SEVERAL, columns)
        for name, number in [("", 0), *changes]:
            if name:
                with suppress(ReferencedError):  # a cast of a concurrently indexed column
                    (CHANGES | MORE)[name](dataset, number)
            fresh = ld.dataset(dataset.uri, version=dataset.version)
            pairs = [*searches(near, fresh, words, search)]
            pairs += [pair for key in keys for pair in filters(dataset, fresh, prepared, columns, key)]
            with watched():
                expected = [outcome(ordinary) for _, ordinary in pairs]
            assert list(threads.map(outcome, [ask for ask, _ in pairs])) == expected
