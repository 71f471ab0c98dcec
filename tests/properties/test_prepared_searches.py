"""Prepared searches that live over many versions find the same rows as searches that are planned each time."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.changing import CHANGES, DIM, create, steps

import lance_duck as ld
from lance_duck.errors import LanceDuckError, ReferencedError
from lance_duck.store.request import watched

KINDS = ("IVF_HNSW_SQ", "IVF_HNSW_FLAT", "IVF_FLAT", "IVF_SQ", None)
ARGUMENTS = st.fixed_dictionaries(
    {"k": st.integers(1, 9)},
    optional={
        "columns": st.sampled_from([["id"], ["id", "_distance", "n"], ["_rowid", "text"], ["real", "_rowaddr"], []]),
        "filter": st.sampled_from(["n = 1", "id % 3 = 1", "id < 0", "id >= 0"]),
        "prefilter": st.booleans(),
        "limit": st.integers(0, 7),
        "offset": st.integers(0, 3),
        "metric": st.sampled_from(["l2", "cosine", "dot"]),
        "refine_factor": st.integers(1, 3),
        "ef": st.integers(1, 40),
        "use_index": st.booleans(),
        "with_row_id": st.booleans(),
        "distance_range": st.sampled_from([(None, 9.0), (1.0, None)]),
    },
)


def index(dataset: ld.LanceDataset, number: int) -> None:
    kind = KINDS[number % 4]
    assert kind is not None
    dataset.create_index("v", kind, metric=["l2", "cosine", "dot"][number % 3], num_partitions=1, replace=True)


def optimize(dataset: ld.LanceDataset, number: int) -> None:
    dataset.optimize.optimize_indices()


MORE = {each.__name__: each for each in (index, optimize)}


def outcome(ask: Any) -> Any:
    """Return the rows, or the class and text of an error."""
    try:
        found = ask()
    except LanceDuckError as error:
        return type(error), str(error)
    if isinstance(found, pa.Table):
        return found.schema, found.to_pylist()
    return [each.tolist() for each in found]


def expected(dataset: ld.LanceDataset, q: Any, arguments: dict[str, Any]) -> tuple[Any, Any]:
    """Return the rows, and the row ids with distances, of a new handle's ordinary search."""
    fresh = ld.dataset(dataset.uri, version=dataset.version)
    with watched():
        rows = outcome(lambda: fresh.search(q, column="v", **arguments))
        named = {**arguments, "columns": ["_rowid", "_distance"], "with_row_id": None}
        ids = outcome(lambda: tuple(column.to_numpy() for column in fresh.search(q, column="v", **named).columns))
    return rows, ids


def queries(seed: int) -> list[np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    return [*(rng.integers(-3, 4, (2, DIM)) + 0.5).astype(np.float32), np.zeros(DIM, np.float32)]


@settings(max_examples=settings.default.max_examples // 8)
@given(
    st.booleans(),
    steps("index", "index", "optimize"),
    st.integers(0, 3),
    st.lists(ARGUMENTS, min_size=1, max_size=2),
    st.integers(0, 99),
)
def test_prepared_searches_follow_the_versions_of_their_dataset(
    stable: bool, changes: list[tuple[str, int]], kind: int, asked: list[dict[str, Any]], seed: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as threads:
        dataset = create(f"{folder}/t.lance", stable_row_ids=stable)
        index(dataset, kind)
        prepared = [(dataset.prepare_search("v", **arguments), arguments) for arguments in asked]
        for name, number in [("", 0), *changes]:
            if name:
                with suppress(ReferencedError):  # a cast of a concurrently indexed column
                    (CHANGES | MORE)[name](dataset, number)
            for near, arguments in prepared:
                for q in queries(seed):
                    rows, ids = expected(dataset, q, arguments)
                    found = threads.map(lambda do, q=q: outcome(lambda: do(q)), [near, near.ids, near, near.ids])
                    assert list(found) == [rows, ids] * 2
