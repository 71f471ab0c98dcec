"""Nearest neighbours: the rows and distances that pylance gives, exactly and through indexes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.arrow import bfloat16_array

import lance_duck as ld
from lance_duck.index.vector.metric import distances

ROWS, DIM, K = 3000, 16, 10
TYPES = {"half": pa.float16(), "single": pa.float32(), "double": pa.float64()}
FILTERS = [None, "g < 50", "g = 7", "g = 1000"]


def column(numbers: np.ndarray, type_: pa.DataType) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(numbers.ravel()).cast(type_), numbers.shape[1])


def rows(first: int, count: int) -> pa.Table:
    rng = np.random.default_rng(first)
    centres = 2 * np.random.default_rng(99).standard_normal((20, DIM))
    found = (centres[rng.integers(0, 20, count)] + rng.standard_normal((count, DIM))).astype(np.float16)
    numbers = found.astype(np.float32)
    bits = rng.integers(0, 256, (count, DIM)).astype(np.uint8)
    columns = {name: column(numbers, type_) for name, type_ in TYPES.items()}
    ids = range(first, first + count)
    return pa.table({"id": ids, "g": rng.integers(0, 100, count), **columns, "bits": column(bits, pa.uint8())})


def queries(count: int) -> np.ndarray:
    found: np.ndarray = rows(10**6, count)["single"].combine_chunks().flatten().to_numpy()
    return found.reshape(count, DIM)


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "row ids"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    place = str(tmp_path_factory.mktemp("nearest") / "t.lance")
    made = lance.write_dataset(rows(0, ROWS), place, max_rows_per_file=1000, enable_stable_row_ids=request.param)
    made.delete("id % 7 = 2")
    return place


def check_same(place: str, nearest: dict[str, Any], **options: Any) -> None:
    theirs = lance.dataset(place).to_table(columns=["id"], nearest=nearest, **{"prefilter": True, **options})
    ours = ld.dataset(place).to_table(columns=["id"], nearest=nearest, **options)
    assert ours.schema.equals(theirs.schema)
    assert ours.num_rows == theirs.num_rows
    for name in ours.schema.names:
        if name == "_distance":
            known, found = theirs[name].to_numpy(), ours[name].to_numpy()
            np.testing.assert_allclose(found, known, rtol=2e-5, atol=2e-5)
        else:
            assert ours[name].to_pylist() == theirs[name].to_pylist()


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("name", TYPES)
def test_exact_search_finds_the_same_rows(place: str, name: str, metric: str) -> None:
    nearest = {"column": name, "k": K, "metric": metric}
    for text in FILTERS:
        check_same(place, {**nearest, "q": queries(1)[0]}, filter=text)
    check_same(place, {**nearest, "q": queries(12)})
    check_same(place, {**nearest, "q": queries(1)[0]}, filter="g < 50", prefilter=False)


def test_hamming_searches_equal_those_of_pylance(place: str) -> None:
    query = np.random.default_rng(4).integers(0, 256, DIM).astype(np.uint8)
    theirs = lance.dataset(place).to_table(columns=["id"], nearest={"column": "bits", "q": query, "k": 40})
    ours = ld.dataset(place).search(query, 40, "bits", columns=["id"])
    assert ours["_distance"].to_pylist() == theirs["_distance"].to_pylist()


@pytest.mark.parametrize(
    "options",
    [
        {"limit": 4},
        {"limit": 4, "offset": 3},
        {"offset": 9},
        {"order_by": ["id"]},
        {"with_row_id": True, "with_row_address": True},
    ],
)
def test_options_of_a_scan(place: str, options: dict[str, Any]) -> None:
    check_same(place, {"column": "single", "q": queries(1)[0], "k": K}, **options)


@pytest.mark.parametrize("bounds", [(10, 20), (None, 15), (15, None), (20, 10)])
def test_distance_ranges_return_the_same_rows_as_pylance(place: str, bounds: Any) -> None:
    check_same(place, {"column": "single", "q": queries(1)[0], "k": 50, "distance_range": bounds})


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "row ids"])
@pytest.mark.parametrize(
    ("kind", "parameters"),
    [("IVF_FLAT", {}), ("IVF_PQ", {"num_sub_vectors": 8}), ("IVF_SQ", {}), ("IVF_HNSW_FLAT", {})],
)
def test_index_searches_return_k_live_rows(tmp_path: Path, kind: str, parameters: dict[str, int], stable: bool) -> None:
    place = str(tmp_path / "t.lance")
    theirs = lance.write_dataset(rows(0, ROWS), place, max_rows_per_file=1000, enable_stable_row_ids=stable)
    theirs.create_index("single", kind, metric="l2", num_partitions=8, **parameters)
    theirs = lance.write_dataset(rows(ROWS, 500), place, mode="append")
    theirs.delete("id % 7 = 2")
    theirs.update({"g": "7"}, where="id % 50 = 0")
    ours = ld.dataset(place)
    hits = total = 0
    for query in queries(8):
        for text in FILTERS:
            nearest = {"column": "single", "q": query, "k": K, "nprobes": 4, "refine_factor": 4}
            exact = ours.to_table(columns=["id"], nearest={**nearest, "use_index": False}, filter=text)
            found = ours.to_table(columns=["id"], nearest=nearest, filter=text)
            assert found.num_rows == exact.num_rows
            assert all(row % 7 != 2 for row in found["id"].to_pylist())
            hits += len(set(found["id"].to_pylist()) & set(exact["id"].to_pylist()))
            total += exact.num_rows
    assert hits >= 0.9 * total
    text = ours.scanner(nearest={"column": "single", "q": queries(1)[0]}).explain_plan()
    assert f"VectorIndexQuery: single_idx ({kind}, segments" in text
    other = ours.scanner(nearest={"column": "single", "q": queries(1)[0], "metric": "dot"}).explain_plan()
    assert "index 'single_idx' measures l2, not dot" in other


def test_fast_search_returns_the_same_rows_as_pylance(tmp_path: Path) -> None:
    place = str(tmp_path / "t.lance")
    made = lance.write_dataset(rows(0, ROWS), place)
    made.create_index("single", "IVF_FLAT", num_partitions=4)
    lance.write_dataset(rows(ROWS, 500), place, mode="append")
    query = rows(ROWS, 500)["single"][3].values
    nearest = {"column": "single", "q": query, "k": 5, "nprobes": 4}
    ours = ld.dataset(place)
    assert ours.to_table(columns=["id"], nearest=nearest)["id"].to_pylist()[0] == ROWS + 3
    check_same(place, nearest, fast_search=True)
    check_same(place, nearest)
    assert all(row < ROWS for row in ours.to_table(nearest=nearest, fast_search=True, filter="g < 9")["id"].to_pylist())


def test_a_broken_segment_is_reported_once_and_its_rows_are_scanned(tmp_path: Path) -> None:
    place = tmp_path / "t.lance"
    made = lance.write_dataset(rows(0, ROWS), str(place))
    made.create_index("single", "IVF_FLAT", num_partitions=4)
    for file in place.glob("_indices/*/auxiliary.idx"):
        file.write_bytes(file.read_bytes()[:-200])
    ours = ld.dataset(place)
    nearest = {"column": "single", "q": queries(1)[0], "k": K}
    with pytest.warns(ld.IndexWarning, match="cannot be used, so its rows are scanned"):
        found = ours.to_table(columns=["id"], nearest=nearest)
    assert found.equals(ours.to_table(columns=["id"], nearest={**nearest, "use_index": False}))
    assert found.equals(ours.to_table(columns=["id"], nearest=nearest))
    assert "is not used: " in ours.scanner(nearest=nearest).explain_plan()
    assert "the file size differs from the manifest" in ours.scanner(nearest=nearest).explain_plan()


def test_bfloat16_is_searched_although_pylance_rejects_it(tmp_path: Path) -> None:
    numbers = queries(60)
    brain = (numbers.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    values = bfloat16_array(brain.ravel().tolist())
    data = pa.table({"id": range(60), "v": pa.FixedSizeListArray.from_arrays(values, DIM)})
    lance.write_dataset(data, str(tmp_path / "t.lance"))
    found = ld.dataset(tmp_path / "t.lance").search(brain[7], 5, columns=["id"])
    known = distances("l2", brain[7][None], brain)[0]
    assert found["id"].to_pylist() == np.argsort(known)[:5].tolist()
    np.testing.assert_allclose(found["_distance"].to_numpy(), np.sort(known)[:5], rtol=1e-6)
