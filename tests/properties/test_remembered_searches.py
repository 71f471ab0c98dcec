"""Repeated searches with cached state find the same rows as uncached searches."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.changing import CHANGES, DIM, FAST, create, steps

import lance_duck as ld
from lance_duck.errors import LanceDuckError, ReferencedError

LOOKS = st.fixed_dictionaries(
    {},
    optional={
        "k": st.integers(1, 9),
        "metric": st.sampled_from(["l2", "cosine", "dot"]),
        "nprobes": st.integers(1, 3),
        "use_index": st.booleans(),
        "refine_factor": st.integers(1, 3),
        "exact_distance": st.booleans(),
    },
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "columns": st.sampled_from(
            [None, ["id"], ["id", "_distance", "n"], ["v"], ["_rowid", "text"], {"twice": "n * 2"}]
        ),
        "filter": st.sampled_from(
            ["n = 1", "id % 3 = 1", "n < 3 AND id % 2 = 0", "id < 0", "st.x > 3", "text LIKE 'row 1%'"]
        ),
        "prefilter": st.booleans(),
        "limit": st.integers(0, 7),
        "offset": st.integers(0, 3),
        "with_row_id": st.booleans(),
        "with_row_address": st.booleans(),
        "use_threads": st.booleans(),
        "use_scalar_index": st.booleans(),
        "disable_scoring_autoprojection": st.booleans(),
    },
)
QUERIES = st.lists(st.sampled_from(["one", "one as list", "doubles", "batch of 1", "batch"]), min_size=2, max_size=3)


@st.composite
def related(draw: st.DrawFn) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Draw a search, and variants with one difference each."""
    look, options = draw(LOOKS), draw(OPTIONS)
    others = [(look | {name: value}, options) for name, value in draw(LOOKS).items()]
    others += [(look, options | {name: value}) for name, value in draw(OPTIONS).items()]
    return [(look, options), *others]


def query(form: str, rng: np.random.Generator) -> Any:
    shape = {"batch of 1": (1, DIM), "batch": (3, DIM)}.get(form, (DIM,))
    vectors = rng.integers(-3, 4, shape) + 0.5
    return (
        vectors.tolist() if form == "one as list" else vectors.astype(np.float64 if form == "doubles" else np.float32)
    )


def index(dataset: ld.LanceDataset, number: int) -> None:
    kinds = ["IVF_FLAT", "IVF_SQ", "IVF_FLAT"]
    metric = ["l2", "cosine", "dot"][number % 3]
    dataset.create_index("v", kinds[number % 3], metric=metric, num_partitions=2 + number % 2, replace=True)


def scalar_index(dataset: ld.LanceDataset, number: int) -> None:
    dataset.create_scalar_index("n" if number % 2 else "id", "BTREE", replace=True)


def optimize(dataset: ld.LanceDataset, number: int) -> None:
    dataset.optimize.optimize_indices()


MORE = {each.__name__: each for each in (index, scalar_index, optimize)}


def outcome(ask: Any) -> Any:
    """Return the rows, or the class and text of an error."""
    try:
        found = ask()
    except LanceDuckError as error:
        return type(error), str(error)
    return found.schema, found.to_pylist()


def check(dataset: ld.LanceDataset, look: dict[str, Any], options: dict[str, Any], forms: list[str], seed: int) -> None:
    """Search alternately with a caching handle and with a new one."""
    rng = np.random.default_rng(seed)
    for form in forms:
        nearest = {"column": "v", "q": query(form, rng), **look}
        fresh = ld.dataset(dataset.uri, version=dataset.version)
        expected = outcome(lambda fresh=fresh, nearest=nearest: fresh.scanner(nearest=nearest, **options).to_table())
        assert outcome(lambda nearest=nearest: dataset.to_table(nearest=nearest, **options)) == expected


@settings(max_examples=settings.default.max_examples // 13)
@given(
    steps("index", "index", "scalar_index", "optimize"),
    related(),
    QUERIES,
    st.integers(0, 99),
)
@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_a_cached_search_finds_the_same_rows_as_a_new_one(
    stable_row_ids: bool, changes: list[tuple[str, int]], asked: list[Any], forms: list[str], seed: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        dataset = create(f"{folder}/t.lance", stable_row_ids=stable_row_ids)
        handles = [dataset]
        for name, number in [("", 0), *changes]:
            if name:
                handles.append(ld.dataset(dataset.uri, version=dataset.version, storage_options=FAST))
                with suppress(ReferencedError):  # a cast of a concurrently indexed column
                    (CHANGES | MORE)[name](dataset, number)
            for handle in handles[-2:]:
                for look, options in asked:
                    check(handle, look, options, forms, seed)


@settings(max_examples=settings.default.max_examples // 10)
@given(related(), QUERIES, st.booleans())
def test_threads_find_the_same(asked: list[Any], forms: list[str], indexed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(4) as threads:
        dataset = create(f"{folder}/t.lance", stable_row_ids=False)
        if indexed:
            index(dataset, 0)
        jobs = [(look, options, seed) for seed in range(2) for look, options in asked]
        list(threads.map(lambda job: check(dataset, job[0], job[1], forms, job[2]), jobs))


CHANGED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(({name: value}, {}) for name, value in {"k": 3, "metric": "cosine", "nprobes": 1, "use_index": False}.items()),
    *(
        ({}, {name: value})
        for name, value in {
            "columns": ["text"],
            "filter": "n = 1",
            "limit": 2,
            "offset": 1,
            "with_row_id": True,
            "with_row_address": True,
            "disable_scoring_autoprojection": True,
        }.items()
    ),
    ({}, {"filter": "n = 2"}),
    ({}, {"filter": "n = 1", "prefilter": False}),
    ({"k": True}, {}),
]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    dataset = create(str(tmp_path_factory.mktemp("searches") / "t.lance"), stable_row_ids=False)
    index(dataset, 0)
    return dataset


@pytest.mark.parametrize("one", range(len(CHANGED)))
def test_searches_with_one_different_option_are_cached_separately(indexed: ld.LanceDataset, one: int) -> None:
    handle = ld.dataset(indexed.uri)
    for look, options in ({}, {}), CHANGED[one], ({}, {"filter": "n = 1"}), CHANGED[one], ({}, {}):
        check(handle, look, options, ["one", "batch"], seed=1)
