"""Prepared filters, and lookups by a key, return what scans return."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, LanceDuckError, UnsupportedError, WrongTypeError
from lance_duck.scan.table_scan import TableScan
from lance_duck.store.request import watched

ROWS = 60


def rows(first: int, count: int = ROWS) -> pa.Table:
    numbers = np.arange(first, first + count)
    return pa.table(
        {
            "id": numbers,
            "small": pa.array(numbers % 7, pa.int8()),
            "name": [f"name {number % 9}" for number in numbers],
            "price": pa.array([Decimal(number) / 4 for number in numbers.tolist()], pa.decimal128(9, 2)),
            "real": numbers / 2,
        }
    )


def table(folder: Path, stable: bool = False) -> ld.LanceDataset:
    dataset = ld.write_dataset(rows(0), folder / "t.lance", max_rows_per_file=25, enable_stable_row_ids=stable)
    for column in ("id", "small", "name", "real"):
        dataset.create_scalar_index(column, "BTREE")
    return dataset


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    """Return a table that no test changes."""
    return table(tmp_path_factory.mktemp("prepared"))


def outcome(read: Any) -> Any:
    """Return the rows, or the class and text of an error."""
    try:
        found = read()
    except LanceDuckError as error:
        return type(error), str(error)
    return found.schema, found.to_pylist()


def scanned(dataset: ld.LanceDataset, text: str, values: Any, **options: Any) -> Any:
    """Read the rows by a scan, which counts its reads."""
    with watched():
        return outcome(lambda: dataset.to_table(filter=text, parameters=list(values), **options))


VALUES = [
    0,
    7,
    59,
    -1,
    300,
    1 << 70,
    True,
    None,
    7.0,
    7.5,
    "7",
    "name 3",
    "x'y",
    b"7",
    Decimal(7),
    np.int64(7),
    "\ud800",
]


@pytest.mark.parametrize("text", ["id = ?", "name=?", "small = ?", "real = ?", "price = ?", "ID = ?", "_rowid = ?"])
def test_any_value_means_the_same_as_in_a_scan(indexed: ld.LanceDataset, text: str) -> None:
    one = indexed.prepare(text, columns=["id", "name"])
    for value in VALUES:
        assert outcome(lambda value=value: one(value)) == scanned(indexed, text, [value], columns=["id", "name"]), value


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("id > ? AND small = ?", [20, 3]),
        ("id IN (?, ?, ?)", [3, 4, 100]),
        ("id = ? + 1", [3]),
        ("lower(name) = ? -- ?", ["name 2"]),
        ("name = '?' OR id = ?", [8]),
        ("id < 5", []),
        ("id = 5", []),
        ("nothing = ?", [3]),
    ],
)
def test_any_filter_can_be_prepared(indexed: ld.LanceDataset, text: str, values: list[Any]) -> None:
    one = indexed.prepare(text, with_row_id=True)
    assert outcome(lambda: one(*values)) == scanned(indexed, text, values, with_row_id=True)


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["_rowid", "price", "id"]},
        {"columns": {"twice": "id * 2"}},
        {"columns": []},
        {"with_row_id": True, "with_row_address": True},
        {"limit": 1, "offset": 1},
        {"order_by": ["id"]},
        {"fragments": [0]},
        {"use_scalar_index": False},
    ],
    ids=str,
)
def test_prepared_filters_take_the_options_of_scans(indexed: ld.LanceDataset, options: dict[str, Any]) -> None:
    one = indexed.prepare("name = ?", **options)
    assert outcome(lambda: one("name 3")) == scanned(indexed, "name = ?", ["name 3"], **options)
    found = one.rows("name 3")
    assert found == [tuple(row.values()) for row in one("name 3").to_pylist()]


@pytest.mark.parametrize(
    "text", ["id = 7", " id=-7 ", "name = 'name 3'", "id = '7'", "name = 7", "id = 007", "small = 300", "id = 7.0"]
)
def test_a_filter_with_a_constant_finds_what_a_scan_finds(indexed: ld.LanceDataset, text: str) -> None:
    dataset, fresh = ld.dataset(indexed.uri), ld.dataset(indexed.uri)
    for _ in range(2):
        found = outcome(lambda: dataset.to_table(columns=["id", "name"], filter=text))
        assert found == outcome(lambda: fresh.scanner(columns=["id", "name"], filter=text).to_table())


def test_a_lookup_by_a_key_does_not_scan(indexed: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = ld.dataset(indexed.uri)
    one = dataset.prepare("id = ?", columns=["name"])
    expected = one(7)

    def fail(*_: Any) -> Any:
        raise AssertionError("a scan")

    monkeypatch.setattr(TableScan, "table", fail)
    assert one(7).equals(expected)
    assert one.rows(7) == [("name 7",)]
    assert one.rows(-1) == []
    assert dataset.to_table(columns=["name"], filter="id = 7").equals(expected)


@pytest.mark.parametrize("stable", [False, True])
def test_calls_read_the_version_of_the_dataset(tmp_path: Path, stable: bool) -> None:
    dataset = table(tmp_path, stable)
    older = ld.dataset(dataset.uri)
    one, one_older = dataset.prepare("id = ?"), older.prepare("id = ?")

    def check() -> None:
        for value in (3, 4, 45, 65, 200):
            assert outcome(lambda value=value: one(value)) == scanned(dataset, "id = ?", [value])

    dataset.delete("id = 3")
    check()
    dataset.insert(rows(ROWS, 9))
    check()
    dataset.update({"name": "'new'"}, where="id = 45")
    check()
    dataset.optimize.optimize_indices()
    dataset.optimize.compact_files()
    check()
    dataset.drop_columns(["id"])
    with pytest.raises(LanceDuckError, match="id"):
        one(4)
    assert one_older(3).num_rows == 1
    older.checkout_version(dataset.version - 1)
    assert one_older(45)["name"].to_pylist() == ["name 0"]


def test_threads_find_the_same(indexed: ld.LanceDataset) -> None:
    one = indexed.prepare("id = ?", columns=["id"])
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(one.rows, range(ROWS)))
    assert found == [[(number,)] for number in range(ROWS)]


def test_default_options_apply(indexed: ld.LanceDataset) -> None:
    dataset = ld.dataset(indexed.uri, default_scan_options={"with_row_id": True})
    assert dataset.prepare("id = ?", columns=["id"])(3).column_names == ["id", "_rowid"]
    filtered = indexed.filter("small = 3")
    assert filtered.prepare("id = ?").rows(4) == []


def test_wrong_arguments_are_refused(indexed: ld.LanceDataset) -> None:
    one = indexed.prepare("id = ? OR small = ?")
    for values in ((), (1,), (1, 2, 3)):
        with pytest.raises(InvalidInputError, match=f"number of values.*expected 2, found {len(values)}"):
            one(*values)
    with pytest.raises(WrongTypeError, match="SQL text"):
        indexed.prepare(3)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="named"):
        indexed.prepare("id = $key")
    with pytest.raises(UnsupportedError, match="nearest"):
        indexed.prepare("id = ?", nearest={"column": "v"})
    with pytest.raises(LanceDuckError, match="nothing"):
        indexed.prepare("id = ?", columns=["nothing"])
    with pytest.raises(WrongTypeError, match="limt"):
        indexed.prepare("id = ?", limt=3)  # type: ignore[call-arg]


def test_a_closed_filter_raises_and_releases_its_memory(indexed: ld.LanceDataset) -> None:
    dataset = ld.dataset(indexed.uri)
    with dataset.prepare("id = ?") as one:
        assert one.rows(1)[0][0] == 1
        assert dataset.cache_stats()["prepared_searches"] == one.nbytes > 0
        assert "id = ?" in repr(one)
    assert dataset.cache_stats()["prepared_searches"] == one.nbytes == 0
    assert "closed" in repr(one)
    with pytest.raises(InvalidInputError, match="closed"):
        one(1)
