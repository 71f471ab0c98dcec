"""Bitmap and label list indexes: files equal those of pylance, and pylance uses and maintains them."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader

import lance_duck as ld
from lance_duck.rows.row_set_bytes import read_row_address_map

NEGATIVE_NAN = np.array([0xFFF8000000000001], np.uint64).view(np.float64)[0]
FLOATS = [1.5, None, math.nan, NEGATIVE_NAN, 0.0, -0.0, math.inf, -math.inf, 1.5, 5e-324]
MOMENTS = [datetime(2024, 2, 29, tzinfo=UTC), None, datetime(1900, 1, 1, tzinfo=UTC)]

COLUMNS: dict[str, pa.Array] = {
    "double": pa.array(FLOATS),
    "float": pa.array(FLOATS, pa.float32()),
    "half": pa.array(np.array([1.5, -0.0, 0.0, math.nan, 1.5], np.float16)),
    "int8": pa.array([3, -1, None, 3], pa.int8()),
    "uint64": pa.array([2**64 - 1, None, 0], pa.uint64()),
    "bool": pa.array([True, None, False, True]),
    "string": pa.array(["b", "", None, "a", "é", "a", "Z", "𝄞", "\uffff"]),
    "large string": pa.array(["b", "", None, "b"], pa.large_string()),
    "binary": pa.array([b"b", b"", None, b"\xff\x00", b"b"]),
    "large binary": pa.array([b"b", b"", None], pa.large_binary()),
    "fixed binary": pa.array([b"bb", None, b"aa", b"bb"], pa.binary(2)),
    "decimal": pa.array([Decimal("1.50"), None, Decimal("-3.00"), Decimal("1.50")], pa.decimal128(10, 2)),
    "decimal256": pa.array([Decimal("1.50"), None, Decimal("-3.00")], pa.decimal256(50, 2)),
    "date": pa.array([date(2020, 1, 1), None, date(1900, 1, 1)]),
    "date64": pa.array([date(2020, 1, 1), None, date(1900, 1, 1)], pa.date64()),
    "time": pa.array([time(23, 59), None, time(0)], pa.time64("us")),
    "timestamp": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
    "duration": pa.array([timedelta(1), None, timedelta(-1)], pa.duration("ms")),
    "all null": pa.nulls(3, pa.int32()),
    "no row": pa.array([], pa.int32()),
}
LISTS: dict[str, pa.Array] = {
    "strings": pa.array([["a", "b"], None, [], [None], ["c", None], ["b", "b"], ["a"]]),
    "large lists": pa.array([["a"], None, ["b", "a"]], pa.large_list(pa.string())),
    "doubles": pa.array([[1.0, math.nan], None, [-0.0], [0.0, NEGATIVE_NAN]]),
    "decimals": pa.array([[Decimal("1.5")], [None]], pa.list_(pa.decimal128(5, 2))),
}
CASES = [
    *(pytest.param("BITMAP", column, id=name) for name, column in COLUMNS.items()),
    *(pytest.param("LABEL_LIST", column, id=f"list of {name}") for name, column in LISTS.items()),
]


def write(path: Path, column: pa.Array, *, stable: bool = False, rows: int = 1 << 20) -> str:
    data = pa.table({"id": np.arange(len(column)), "x": column})
    lance.write_dataset(data, str(path), max_rows_per_file=rows, enable_stable_row_ids=stable)
    return str(path)


def index_file(uri: str) -> tuple[Any, dict[str, str], bytes | None]:
    """Keys, rows by key, metadata and null lists of the only index of a table."""
    (file,) = Path(uri).glob("_indices/*/bitmap_page_lookup.lance")
    reader = LanceFileReader(str(file))
    table, metadata = reader.read_all().to_table(), reader.metadata()
    buffers = [file.read_bytes()[b.position :][: b.size] for b in metadata.global_buffers[1:]]
    keys = table["keys"].combine_chunks()
    raw = keys if pa.types.is_floating(keys.type) else None
    bits = None if raw is None else raw.fill_null(0).to_numpy().tobytes()
    maps = [list(read_row_address_map(each, uri)) for each in table["bitmaps"].to_pylist()]
    exact = {k: v for k, v in table.schema.metadata.items() if not k.startswith(b"lance_duck:")}
    found = (keys.type, bits, keys.is_null().to_pylist(), [] if bits else keys.to_pylist(), maps, table.schema.names)
    return found, {k.decode(): v.decode() for k, v in exact.items()}, buffers[0] if buffers else None


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(("kind", "column"), CASES)
def test_index_files_equal_those_of_pylance(tmp_path: Path, kind: str, column: pa.Array, stable: bool) -> None:
    theirs = write(tmp_path / "theirs.lance", column, stable=stable, rows=4)
    ours = write(tmp_path / "ours.lance", column, stable=stable, rows=4)

    lance.dataset(theirs).create_scalar_index("x", kind)
    ld.dataset(ours).create_scalar_index("x", kind)

    assert index_file(ours) == index_file(theirs)
    if len(column):
        (one,), (other,) = lance.dataset(ours).describe_indices(), lance.dataset(theirs).describe_indices()
        assert (one.type_url, one.num_rows_indexed) == (other.type_url, other.num_rows_indexed)
        assert lance.dataset(ours).stats.index_stats("x_idx")["indices"] == other_stats(theirs)


def other_stats(uri: str) -> Any:
    return lance.dataset(uri).stats.index_stats("x_idx")["indices"]


FILTERS = {
    "int": ["x = 3", "x != 3", "x IN (1, 4, 99)", "x > 2 AND x <= 5", "x IS NULL", "x IS NOT NULL", "NOT (x < 4)"],
    "string": ["x = 'v3'", "x != 'v3'", "x IN ('v1', '', 'no')", "x > 'v2' AND x <= 'v5'", "x IS NULL", "x < 'v1'"],
    "list": [
        "array_has(x, 'v3')",
        "array_has_any(x, ['v1', 'no'])",
        "array_has_all(x, ['v1', 'v2'])",
        "NOT array_has(x, 'v1')",
        "NOT array_has_all(x, ['v1', 'v2'])",
    ],
}


def column_of(kind: str, numbers: np.ndarray) -> pa.Array:
    holes = [n % 5 == 4 for n in numbers.tolist()]
    match kind:
        case "int":
            return pa.array(numbers % 7, mask=np.array(holes))
        case "string":
            return pa.array(
                [None if h else "" if n % 7 == 6 else f"v{n % 7}" for n, h in zip(numbers, holes, strict=True)]
            )
    lists = [[f"v{n % 4}", f"v{n % 3}", None][: n % 4] for n in numbers.tolist()]
    return pa.array([None if h else each for h, each in zip(holes, lists, strict=True)], pa.list_(pa.string()))


def ids(dataset: Any, filter_: str, **options: Any) -> list[int]:
    found: list[int] = dataset.scanner(columns=["id"], filter=filter_, **options).to_table()["id"].to_pylist()
    return sorted(found)


def check(uri: str, kind: str) -> None:
    """Check that pylance uses the index, and that both libraries give the same answers with and without it."""
    theirs, ours = lance.dataset(uri), ld.dataset(uri)
    for filter_ in FILTERS[kind]:
        plan = theirs.scanner(filter=filter_).explain_plan()
        assert "ScalarIndexQuery" in plan, plan
        expected = ids(theirs, filter_, use_scalar_index=False)
        assert ids(theirs, filter_) == expected, filter_
        assert ids(ours, filter_) == expected, filter_
        assert ids(ours, filter_, use_scalar_index=False) == expected, filter_
        assert ours.count_rows(filter_) == len(expected), filter_


Change = Callable[[Any, str], object]


def appended(dataset: Any, kind: str) -> None:
    start = dataset.count_rows() + 1000
    numbers = np.arange(start, start + 25)
    module = lance if isinstance(dataset, lance.LanceDataset) else ld
    module.write_dataset(pa.table({"id": numbers, "x": column_of(kind, numbers)}), dataset.uri, mode="append")


CHANGES: dict[str, Change] = {
    "append": appended,
    "delete": lambda ds, _: ds.delete("id % 9 = 2"),
    "update": lambda ds, kind: ds.update(
        {"x": {"int": "2", "string": "'v2'", "list": "make_array('v3', 'v0')"}[kind]}, where="id % 11 = 3"
    ),
    "optimize": lambda ds, _: ds.optimize.optimize_indices(),
    "compact": lambda ds, _: ds.optimize.compact_files(target_rows_per_fragment=60),
}


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", ["int", "string", "list"])
def test_pylance_maintains_a_bitmap_index_built_by_lance_duck(tmp_path: Path, kind: str, stable: bool) -> None:
    uri = write(tmp_path / "t.lance", column_of(kind, np.arange(100)), stable=stable, rows=30)
    ld.dataset(uri).create_scalar_index("x", "LABEL_LIST" if kind == "list" else "BITMAP")
    check(uri, kind)

    for change in ("append", "delete", "optimize", "update", "compact", "optimize", "append", "optimize"):
        CHANGES[change](lance.dataset(uri), kind)
        check(uri, kind)


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", ["int", "list"])
def test_lance_duck_maintains_a_bitmap_index_built_by_pylance(tmp_path: Path, kind: str, stable: bool) -> None:
    uri = write(tmp_path / "t.lance", column_of(kind, np.arange(100)), stable=stable, rows=30)
    lance.dataset(uri).create_scalar_index("x", "LABEL_LIST" if kind == "list" else "BITMAP")

    for change in ("append", "optimize", "delete", "compact", "append", "optimize"):
        CHANGES[change](ld.dataset(uri), kind)
        check(uri, kind)


def test_pylance_finds_values_with_many_rows_and_many_values(tmp_path: Path) -> None:
    rows = 200_000
    data = pa.table({"id": np.arange(rows), "few": np.arange(rows) // 70_000, "many": np.arange(rows) % 50_000})
    uri = str(tmp_path / "t.lance")
    lance.write_dataset(data, uri, max_rows_per_file=90_000)
    for name in ("few", "many"):
        ld.dataset(uri).create_scalar_index(name, "BITMAP")

    theirs = lance.dataset(uri)
    for filter_, count in (("few = 1", 70_000), ("few >= 1", 130_000), ("many = 7", 4), ("many < 100", 400)):
        assert "ScalarIndexQuery" in theirs.scanner(filter=filter_).explain_plan()
        assert theirs.count_rows(filter_) == count
        assert ld.dataset(uri).count_rows(filter_) == count


@pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable_ids"])
def test_label_lists_that_pylance_rewrote_in_place_are_scanned(stable: bool, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    data = pa.table({"id": range(8), "x": pa.array([["a", "c"], ["b"]] * 4)})
    dataset = lance.write_dataset(data, uri, max_rows_per_file=4, enable_stable_row_ids=stable)
    dataset.create_scalar_index("x", "LABEL_LIST")
    changed = pa.table({"id": range(4), "x": pa.array([["b"]] * 4)})
    fragment, fields = dataset.get_fragment(0).update_columns(changed.to_reader(), "id", "id")
    operation = lance.LanceOperation.Update(updated_fragments=[fragment], fields_modified=fields)
    lance.LanceDataset.commit(uri, operation, read_version=dataset.version)
    ours = ld.dataset(uri)
    assert ours.to_table(filter="array_has(x, 'a')")["id"].to_pylist() == [4, 6]
    assert ours.to_table(filter="array_has(x, 'b')")["id"].to_pylist() == [0, 1, 2, 3, 5, 7]
