"""Exact search: neighbours equal the plain reference for every type, metric, filter and query count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.index.vector.metric import distances

ROWS, DIM = 600, 12
FLOATS = {"half": pa.float16(), "single": pa.float32(), "double": pa.float64()}


def vectors(numbers: np.ndarray, type_: pa.DataType, gone: tuple[int, ...] = ()) -> pa.Array:
    mask = np.zeros(len(numbers), bool)
    mask[list(gone)] = True
    values = pa.array(numbers.ravel()).cast(type_)
    return pa.FixedSizeListArray.from_arrays(values, numbers.shape[1], mask=pa.array(mask))


def numbers(seed: int = 0) -> np.ndarray:
    found = np.random.default_rng(seed).standard_normal((ROWS, DIM)).astype(np.float16).astype(np.float32)
    found[20] = found[10]
    found[3, 2], found[4, 1], found[5] = np.nan, np.inf, 0
    return found


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "row ids"])
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    single = vectors(numbers(), pa.float32(), (7, 8))
    bits = np.random.default_rng(1).integers(0, 256, (ROWS, DIM)).astype(np.uint8)
    data = pa.table(
        {
            "id": range(ROWS),
            **{name: vectors(numbers(), type_, (7, 8)) for name, type_ in FLOATS.items()},
            "bits": vectors(bits, pa.uint8()),
            "inner": pa.StructArray.from_arrays([single], ["v"]),
        }
    )
    place = tmp_path_factory.mktemp("nearest") / "t.lance"
    made = ld.write_dataset(data, place, max_rows_per_file=250, enable_stable_row_ids=request.param)
    made.delete("id % 5 = 1")
    return made


def expected(metric: str, query: np.ndarray, k: int, keep: np.ndarray | None = None) -> list[int]:
    found = distances(metric, query[None].astype(np.float32), numbers())[0]
    found[[7, 8]] = np.nan
    found[np.arange(ROWS) % 5 == 1] = np.nan
    if keep is not None:
        found[~keep] = np.nan
    order = np.lexsort((np.arange(ROWS), found))
    return order[~np.isnan(found[order])][:k].tolist()


def ids(table: ld.LanceDataset, nearest: dict[str, Any], **options: Any) -> list[int]:
    found: list[int] = table.to_table(columns=["id"], nearest=nearest, **options)["id"].to_pylist()
    return found


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("column", [*FLOATS, "inner.v"])
@pytest.mark.parametrize("k", [1, 10, 1000])
def test_neighbours_equal_those_of_the_reference(table: ld.LanceDataset, column: str, metric: str, k: int) -> None:
    query = numbers()[10]
    assert ids(table, {"column": column, "q": query, "k": k, "metric": metric}) == expected(metric, query, k)


def test_rows_at_equal_distance_are_ordered_by_address(table: ld.LanceDataset) -> None:
    found = table.search(numbers()[10], 2, "single", columns=["id"])
    assert found.to_pydict() == {"id": [10, 20], "_distance": [0.0, 0.0]}


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_batched_queries_find_the_same_rows_as_single_queries(table: ld.LanceDataset, metric: str) -> None:
    queries = np.random.default_rng(2).standard_normal((40, DIM)).astype(np.float32)
    wanted = {"column": "single", "k": 7, "metric": metric}
    found = table.to_table(columns=["id"], nearest={**wanted, "q": queries})
    assert found.schema.names == ["query_index", "id", "_distance"]
    assert found.schema.field("query_index").type == pa.int32()
    one = [table.to_table(columns=["id"], nearest={**wanted, "q": query}) for query in queries]
    assert found["query_index"].to_pylist() == [i for i, each in enumerate(one) for _ in range(each.num_rows)]
    assert found.select(["id", "_distance"]).equals(pa.concat_tables(one).combine_chunks())


def test_batched_searches_of_tiny_doubles_are_exact(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    short = random.standard_normal((60, 4)) * 1e-22
    ds = ld.write_dataset(pa.table({"id": range(60), "v": vectors(short, pa.float64())}), tmp_path / "t.lance")
    queries = random.standard_normal((64, 4)) * 1e-22
    found = ds.to_table(["id"], nearest={"column": "v", "q": queries, "k": 9})
    each = [ds.to_table(["id"], nearest={"column": "v", "q": query, "k": 9})["id"].to_pylist() for query in queries]
    assert found["id"].to_pylist() == [i for ids in each for i in ids]


@pytest.mark.parametrize("text", ["id >= 300", "id % 2 = 0", "id in (14, 400, 402)", "id = 5000", "single is not null"])
def test_a_prefilter_applies_before_the_search(table: ld.LanceDataset, text: str) -> None:
    kept = table.to_table(columns=["id"], filter=text)["id"].to_numpy()
    keep = np.isin(np.arange(ROWS), kept)
    query = numbers()[10]
    nearest = {"column": "single", "q": query, "k": 6}
    assert ids(table, nearest, filter=text) == expected("l2", query, 6, keep)
    assert table.scanner(columns=["id"], nearest=nearest, filter=text).count_rows() == len(
        expected("l2", query, 6, keep)
    )


def test_a_postfilter_leaves_fewer_rows(table: ld.LanceDataset) -> None:
    query = numbers()[10]
    nearest = {"column": "single", "q": query, "k": 10}
    wanted = [row for row in expected("l2", query, 10) if row >= 300]
    assert ids(table, nearest, filter="id >= 300", prefilter=False) == wanted


def test_filtered_datasets_and_fragments_can_be_searched(table: ld.LanceDataset) -> None:
    query = numbers()[10]
    part = table.filter("id >= 100")
    nearest = {"column": "single", "q": query, "k": 4}
    assert ids(part, nearest) == expected("l2", query, 4, np.arange(ROWS) >= 100)
    assert ids(table, nearest, fragments=[1]) == expected("l2", query, 4, np.arange(ROWS) // 250 == 1)
    fragment = table.get_fragment(2)
    assert fragment is not None
    found = fragment.scanner(columns=["id"], nearest=nearest).to_table()["id"].to_pylist()
    assert found == expected("l2", query, 4, np.arange(ROWS) // 250 == 2)


def test_distance_ranges_are_applied(table: ld.LanceDataset) -> None:
    query = numbers()[10]
    every = table.search(query, 1000, "single", columns=["id"])
    known = every["_distance"].to_numpy()
    low, high = float(known[30]), float(known[90])
    found = table.search(query, 1000, "single", columns=["id"], distance_range=(low, high))
    assert found["id"].to_pylist() == every["id"].to_numpy()[(known >= low) & (known < high)].tolist()
    assert table.search(query, 5, "single", distance_range=(high, low)).num_rows == 0
    assert table.search([query] * 9, 3, "single", distance_range=(low, None))["_distance"].to_pylist()[0] == low


def test_binary_vectors_use_hamming_distance(table: ld.LanceDataset) -> None:
    query = np.random.default_rng(3).integers(0, 256, DIM).astype(np.uint8)
    stored = np.random.default_rng(1).integers(0, 256, (ROWS, DIM)).astype(np.uint8)
    known = distances("hamming", query[None], stored)[0]
    known[np.arange(ROWS) % 5 == 1] = np.inf
    order = np.lexsort((np.arange(ROWS), known))[:8]
    found = table.search(query, 8, "bits", columns=["id"])
    assert found.to_pydict() == {"id": order.tolist(), "_distance": known[order].tolist()}


def test_columns_keep_the_requested_order(table: ld.LanceDataset) -> None:
    nearest = {"column": "single", "q": numbers()[10], "k": 2}
    several = {**nearest, "q": numbers()[10:12]}

    def names(given: dict[str, Any], **options: Any) -> list[str]:
        scanner = table.scanner(nearest=given, **options)
        assert scanner.to_table().schema == scanner.projected_schema
        return list(scanner.projected_schema.names)

    assert names(nearest) == [*table.schema.names, "_distance"]
    assert names(nearest, columns=[]) == ["_distance"]
    assert names(nearest, columns=["_distance", "id"]) == ["_distance", "id"]
    assert names(nearest, columns=["id"], with_row_id=True, with_row_address=True) == [
        *("id", "_distance", "_rowid", "_rowaddr")
    ]
    assert names(nearest, columns=["_rowid", "id"]) == ["_rowid", "id", "_distance"]
    assert names(nearest, columns={"x": "id + 1", "d": "_distance"}) == ["x", "d"]
    assert names(nearest, columns=["id"], disable_scoring_autoprojection=True) == ["id"]
    assert names(several, columns=["id", "query_index"]) == ["query_index", "id", "_distance"]


def test_limit_offset_and_order(table: ld.LanceDataset) -> None:
    query = numbers()[10]
    nearest = {"column": "single", "q": query, "k": 6}
    wanted = expected("l2", query, 6)
    assert ids(table, nearest, limit=3) == wanted[:3]
    assert ids(table, nearest, offset=4) == wanted[4:]
    assert ids(table, nearest, limit=2, offset=1) == wanted[1:3]
    assert ids(table, nearest, order_by=["id"]) == sorted(wanted)
    last = ld.ColumnOrdering("_distance", ascending=False)
    assert ids(table, nearest, order_by=[last], limit=2) == wanted[::-1][:2]
    batches = list(table.to_batches(columns=["id"], nearest=nearest, batch_size=4))
    assert [batch.num_rows for batch in batches] == [4, 2]


def test_one_thread_finds_the_same(table: ld.LanceDataset) -> None:
    nearest = {"column": "double", "q": numbers()[2], "k": 20}
    assert ids(table, nearest, use_threads=False) == ids(table, nearest)


@pytest.mark.parametrize(
    "q",
    [
        [0.5] * DIM,
        tuple([0.5] * DIM),
        np.full(DIM, 0.5, np.float64),
        np.full(DIM, 0.5, np.float16),
        pa.array([0.5] * DIM),
        pa.chunked_array([[0.5] * DIM]),
        pa.scalar([0.5] * DIM, pa.list_(pa.float32(), DIM)),
        pa.scalar([0.5] * DIM, pa.list_(pa.float64())),
        [np.float32(0.5)] * DIM,
    ],
)
def test_a_query_vector_may_have_any_form(table: ld.LanceDataset, q: Any) -> None:
    assert ids(table, {"column": "single", "q": q, "k": 5}) == expected("l2", np.full(DIM, 0.5), 5)


@pytest.mark.parametrize(
    "q",
    [
        [[1.0] * DIM, [0.0] * DIM],
        np.array([[1.0] * DIM, [0.0] * DIM]),
        [np.ones(DIM), np.zeros(DIM)],
        [pa.array([1.0] * DIM), pa.array([0.0] * DIM)],
        pa.array([[1.0] * DIM, [0.0] * DIM], pa.list_(pa.float32(), DIM)),
        pa.array([[1] * DIM, [0] * DIM], pa.list_(pa.int8())),
    ],
)
def test_several_query_vectors_may_have_any_form(table: ld.LanceDataset, q: Any) -> None:
    wanted = [*expected("l2", np.ones(DIM), 3), *expected("l2", np.zeros(DIM), 3)]
    assert ids(table, {"column": "single", "q": q, "k": 3}) == wanted


@pytest.mark.parametrize("as_query", [np.asarray, list, pa.array, lambda q: np.stack([q, q])])
def test_a_query_on_a_double_column_keeps_full_precision(tmp_path: Path, as_query: Callable[[Any], Any]) -> None:
    vectors = np.array([[1e8, 0.1], [1e8 + 1, 0.1]])
    array = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 2)
    ds = ld.write_dataset(pa.table({"id": [0, 1], "v": array}), tmp_path / "t.lance")
    found = ds.to_table(nearest={"column": "v", "q": as_query(vectors[1]), "k": 1})
    assert set(found["id"].to_pylist()) == {1}
    assert set(found["_distance"].to_pylist()) == {0.0}
    with pytest.raises(ld.LanceDuckError, match="finite"):  # distances are float32
        ds.to_table(nearest={"column": "v", "q": as_query(np.array([1e300, 0])), "k": 1})


def test_a_zero_query_has_no_cosine_distance(table: ld.LanceDataset) -> None:
    queries = np.stack([np.zeros(DIM), numbers()[10]])
    found = table.search(queries, 2, "single", metric="cosine", columns=["id"])
    assert found["query_index"].to_pylist() == [1, 1]


@pytest.mark.parametrize(
    ("nearest", "error", "words"),
    [
        ({"k": 0}, ValueError, "Nearest-K must be > 0 but got 0"),
        ({"k": 2.5}, TypeError, "whole number"),
        ({"q": [1.0] * 5}, ValueError, f"Query vector size 5 does not match index column size {DIM}"),
        ({"q": [1.0] * (2 * DIM)}, ValueError, "does not match"),
        ({"q": []}, ValueError, "query"),
        ({"q": None}, TypeError, "array of floats"),
        ({"q": "abc"}, TypeError, "array of floats"),
        ({"q": ["a"] * DIM}, TypeError, "array of floats"),
        ({"q": [None] * DIM}, ValueError, "null"),
        ({"q": [float("nan")] * DIM}, ValueError, "finite"),
        ({"q": np.full(DIM, 1e300)}, ValueError, "finite"),
        ({"q": np.zeros((2, 2, DIM))}, ValueError, "shape"),
        ({"q": [[1.0] * DIM, [1.0] * 3]}, ValueError, "same length"),
        ({"column": "nope"}, KeyError, "is not in the dataset"),
        ({"column": "id"}, TypeError, "must be a vector"),
        ({"column": 3}, TypeError, "name"),
        ({"metric": "foo"}, ValueError, "'foo' is not supported"),
        ({"metric": "hamming"}, ValueError, "does not support"),
        ({"column": "bits", "metric": "l2"}, ValueError, "does not support"),
        ({"column": "bits", "q": [0.5] * DIM}, ValueError, "0 to 255"),
        ({"nprobes": 0}, ValueError, "Nprobes must be > 0"),
        ({"minimum_nprobes": 5, "maximum_nprobes": 2}, ValueError, "minimum_nprobes must be <= maximum_nprobes"),
        ({"refine_factor": 0}, ValueError, "Refine factor must be 1 or more got 0|Refine factor"),
        ({"ef": -1}, ValueError, "ef must be > 0"),
        ({"distance_range": (1,)}, ValueError, "distance_range must be a tuple"),
        ({"distance_range": (float("nan"), 3)}, ValueError, "NaN"),
        ({"bogus": 1}, TypeError, "bogus"),
    ],
)
def test_invalid_searches_are_rejected(
    table: ld.LanceDataset, nearest: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(ld.LanceDuckError, match=words) as caught:
        table.scanner(nearest={"column": "single", "q": [1.0] * DIM, **nearest})
    assert isinstance(caught.value, error)
    assert isinstance(caught.value, ValueError)


def test_invalid_search_arguments_are_rejected(table: ld.LanceDataset) -> None:
    with pytest.raises(TypeError):
        table.scanner(nearest="single")
    with pytest.raises(TypeError, match="'q' is missing"):
        table.scanner(nearest={"column": "single"})
    with pytest.raises(ld.UnsupportedError, match="include_deleted_rows"):
        table.scanner(nearest={"column": "single", "q": [1.0] * DIM}, include_deleted_rows=True, with_row_id=True)
    with pytest.raises(ld.InvalidInputError, match="one vector column"):
        table.search([1.0] * DIM)


def test_result_column_names_cannot_be_table_columns(tmp_path: Path) -> None:
    data = pa.table({"_distance": [1.0], "v": vectors(np.ones((1, 4), np.float32), pa.float32())})
    made = ld.write_dataset(data, tmp_path / "t.lance")
    with pytest.raises(ld.InvalidInputError, match="_distance"):
        made.search([1.0] * 4)


def test_an_empty_table_returns_no_neighbours(tmp_path: Path) -> None:
    data = pa.table({"id": pa.array([], pa.int64()), "v": vectors(np.ones((0, 4), np.float32), pa.float32())})
    made = ld.write_dataset(data, tmp_path / "t.lance")
    found = made.search([1.0] * 4, 10**12)
    assert found.schema.names == ["id", "v", "_distance"]
    assert found.num_rows == 0


def test_plans_show_how_a_search_runs(table: ld.LanceDataset) -> None:
    nearest = {"column": "single", "q": numbers()[10], "k": 3, "distance_range": (0.5, None)}
    scanner = table.scanner(nearest=nearest, filter="id > 3", limit=2)
    text = scanner.explain_plan()
    assert "search: 3 nearest of single to 1 query, metric l2" in text
    assert "distances: 0.5 <= _distance" in text
    assert "without an index: no index" in text
    assert "fragments: 0 through the index, 3 compared vector by vector" in text
    assert "filter: id > 3" in text
    assert "took: " in scanner.analyze_plan()
    assert "use_index is false" in table.scanner(nearest={**nearest, "use_index": False}).explain_plan()


def test_fast_search_without_an_index_finds_nothing(table: ld.LanceDataset) -> None:
    assert ids(table, {"column": "single", "q": numbers()[10]}, fast_search=True) == []
    with pytest.raises(ld.UnsupportedError, match="fast_search"):
        table.to_table(fast_search=True)


@pytest.mark.parametrize("upper", [None, 30.0])
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_HNSW_FLAT"])
def test_a_refined_search_finds_rows_beyond_its_candidates(tmp_path: Path, kind: str, upper: float | None) -> None:
    stored = numbers()
    stored[4, 1] = 0  # no index holds infinite numbers
    data = pa.table({"id": range(ROWS), "v": vectors(stored, pa.float32())})
    made = ld.write_dataset(data, tmp_path / "t.lance", max_rows_per_file=400)
    made.create_index("v", kind, num_partitions=2)
    made.insert(data.slice(0, 50))
    nearest = {"column": "v", "q": numbers()[:3] * 0 + numbers()[10], "k": 5, "nprobes": 2, "refine_factor": 2}
    for lower in (0.5, 28.0, 10.0**6):
        bounded = {**nearest, "distance_range": (lower, upper)}
        found = made.to_table(columns=["id"], nearest=bounded)
        assert found.equals(made.to_table(columns=["id"], nearest={**bounded, "use_index": False}))
        assert found.num_rows == (0 if lower > 28 else 15)
