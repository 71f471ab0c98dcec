"""Columns that we write, at the edges of chunks and pages and of nested rows in every order: pylance reads them."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader as Theirs
from lance.file import LanceFileWriter as Writer
from oracle import nested_columns
from oracle.cases import Cases
from oracle.compare import assert_same
from oracle.kinds import build
from oracle.tables import KINDS

import lance_duck as ld
from lance_duck.errors import UnsupportedError
from lance_duck.file import LanceFileReader
from lance_duck.file.write.writer import FileWriter
from lance_duck.store import open_store
from lance_duck.wire.schema_write import schema_from_arrow

CASE_KIND = "written"
EDGES = (1, 2, 511, 512, 513, 1024, 1025, 4096, 4097)
EDGE_KINDS = """
    int64_random int64_small int8_small int32_sorted int16_runs int64_outliers float32_random float64_few bool_random
    string_few string_many string_mixed large_string_many binary_short date32 decimal128_18_4_few fsl_float32_16
    fsl_bool_3 fsl_int32_3_null_items list_int32_null_items list_string struct_null_children
"""
VERSIONS = ("2.1", "2.2")

PAIR = pa.struct([("a", pa.int32()), ("b", pa.string())])
INNER = pa.list_(pa.struct([("m", pa.list_(pa.int32()))]))
SHAPES = {
    "list": (pa.list_(pa.int32()), [[1, 2], [], None, [None, 3], [None]]),
    "list of lists": (
        pa.list_(pa.list_(pa.int32())),
        [[[1, 2], [3]], [], None, [[]], [None], [[None, 3], [4]], [[], [1]]],
    ),
    "list of structs": (
        pa.list_(PAIR),
        [[{"a": 1, "b": "x"}, {"a": 2}], [], None, [None, {"b": "y"}], [{}, {"a": 5}], [None]],
    ),
    "struct of list": (
        pa.struct([("l", pa.list_(pa.int32()))]),
        [{"l": [1, 2]}, {"l": []}, {}, None, {"l": [None, 3]}, {"l": [None]}],
    ),
    "struct of list of structs": (
        pa.struct([("l", pa.list_(PAIR))]),
        [{"l": [{"a": 1}, {"a": 2}]}, {"l": []}, {}, None, {"l": [None]}, {"l": [{}]}],
    ),
    "list of structs of lists": (
        INNER,
        [
            [{"m": [1, 2]}, {"m": [3]}],
            [{"m": []}, {"m": [1]}],
            [{}],
            None,
            [],
            [None, {"m": [1]}],
            [{"m": [None, 1]}],
        ],
    ),
    "struct of list of structs of lists": (
        pa.struct([("l", INNER)]),
        [
            {"l": [{"m": [1, 2]}, {"m": [3]}]},
            {"l": []},
            {},
            None,
            {"l": [None, {"m": [1]}]},
            {"l": [{"m": [None]}, {}]},
        ],
    ),
    "struct of struct": (
        pa.struct([pa.field("s", pa.struct([pa.field("a", pa.int32(), False)]), True)]),
        [{"s": {"a": 1}}, {"s": None}, None],
    ),
    "map": (pa.map_(pa.int32(), pa.int32()), [[(1, 2), (3, 4)], [], None, [(1, None)]]),
    "vector of structs": (pa.list_(PAIR, 2), [[{"a": 1}, {"b": "x"}], None, [None, {"a": 2}]]),
}
ONLY_22 = {"map", "vector of structs"}


def write(path: Path, table: pa.Table, version: str, page_bytes: int = 8 << 20, batch: int | None = None) -> None:
    store = open_store(str(path.parent))
    schema = schema_from_arrow(table.schema, version)
    with FileWriter(store.create(path.name), schema, version, page_bytes=page_bytes) as writer:
        for part in table.to_batches(batch):
            writer.write(part)
        writer.finish()


def compare(path: Path, table: pa.Table, rows: list[int], cases: Cases) -> None:
    """Compare both libraries' reads with the written rows, for whole columns and for some rows."""
    readers = {"pylance": Theirs(str(path)), "ours": LanceFileReader(str(path))}
    for who, reader in readers.items():
        whole = reader.read_all(batch_size=1 << 20).to_table()
        taken = reader.take_rows(rows).to_table()
        for name in table.column_names:
            expected = table[name].combine_chunks()
            with cases.case(f"{who}: {path.stem}: {name}", 2):
                assert_same(_as(expected, whole[name].type), whole[name].combine_chunks())
                assert_same(_as(expected.take(pa.array(rows)), taken[name].type), taken[name].combine_chunks())


def _as(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)


@pytest.mark.parametrize("version", VERSIONS)
def test_row_counts_at_the_edges_of_chunks(version: str, tmp_path: Path, cases: Cases) -> None:
    kinds = [k for k in KINDS if k.name in EDGE_KINDS.split()]
    for rows in EDGES:
        table = pa.table({k.name: build(k, "nulls", rows, rows) for k in kinds})
        path = tmp_path / f"{rows}.lance"
        write(path, table, version)
        places = sorted({0, rows - 1, rows // 2, *range(max(0, rows - 3), rows), *range(min(rows, 3))})
        compare(path, table, places, cases)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_nested_rows_of_all_types_round_trip(shape: str, version: str, tmp_path: Path, cases: Cases) -> None:
    if version == "2.1" and shape in ONLY_22:
        pytest.skip("2.2 only")
    type_, rows = SHAPES[shape]
    chosen = [[row] for row in rows] + [list(pair) for pair in itertools.combinations(rows, 2)] + [rows]
    table = pa.table({str(i): pa.array((some * 7)[:7], type_) for i, some in enumerate(chosen)})
    for page_bytes in (1, 1 << 20):
        path = tmp_path / f"{page_bytes}.lance"
        write(path, table, version, page_bytes)
        compare(path, table, [0, 2, 5], cases)


@pytest.mark.parametrize("version", VERSIONS)
def test_levels_without_values_round_trip(version: str, tmp_path: Path, cases: Cases) -> None:
    rng = np.random.default_rng(5)
    n = 150_000
    sparse = np.where(np.arange(n) % 40 == 0, 1, 0)
    clustered = np.where((np.arange(n) < 500) | (np.arange(n) > n - 500), 3, 0)
    inner = pa.array(np.concatenate([[0], np.cumsum(clustered)]).astype("int32"))
    nested = pa.ListArray.from_arrays(inner, nested_columns.null_ints(rng, int(clustered.sum())))
    outer = pa.array(np.array([0, n // 2 + 7, *[n] * (n - 1)], "int32"))
    flags = pa.array(rng.random(int(sparse.sum())) < 0.5)
    table = pa.table(
        {
            "sparse": pa.ListArray.from_arrays(
                pa.array(np.concatenate([[0], np.cumsum(sparse)]).astype("int32")), flags
            ),
            "clustered": nested,
            "few rows": pa.ListArray.from_arrays(outer, nested),
        }
    )
    write(tmp_path / "t.lance", table, version)
    compare(tmp_path / "t.lance", table, [0, 1, 39, 40, 499, 500, 70_000, n - 501, n - 500, n - 1], cases)


NO_BYTES = pa.binary(0)
NOTHINGS = {
    "values": pa.array([b""] * 5, NO_BYTES),
    "nulls": pa.array([b"", None, b"", None, b""], NO_BYTES),
    "all_null": pa.array([None] * 5, NO_BYTES),
    "lists": pa.array([[b"", b""], [], None, [b"", None], [None]], pa.list_(NO_BYTES)),
    "structs": pa.array([{"a": b""}, {"a": None}, None, {"a": b""}, {}], pa.struct([("a", NO_BYTES)])),
}


def test_zero_width_values_are_not_nulls(tmp_path: Path, cases: Cases) -> None:
    table = pa.table(NOTHINGS)
    write(tmp_path / "ours.lance", table, "2.2")
    with Writer(str(tmp_path / "theirs.lance"), table.schema) as writer:
        writer.write_batch(table)
    for name in ("ours", "theirs"):
        compare(tmp_path / f"{name}.lance", table, [0, 1, 3], cases)


def test_types_that_cannot_store_zero_width_values_are_rejected_by_name(tmp_path: Path) -> None:
    packed = pa.field("p", pa.struct([("a", NO_BYTES), ("b", pa.int32())]), metadata={"lance-encoding:packed": "true"})
    structs = pa.table([pa.array([{"a": b"", "b": 1}], packed.type)], schema=pa.schema([packed]))
    for version, table, where in (
        ("2.1", pa.table({"v": NOTHINGS["values"]}), "column v"),
        ("2.1", pa.table({"l": NOTHINGS["lists"]}), "column l"),
        ("2.2", structs, "column p"),
    ):
        with pytest.raises(UnsupportedError, match=f"{where}.*without bytes"):
            ld.write_dataset(table, tmp_path / "t.lance", data_storage_version=version)


@pytest.mark.parametrize("version", VERSIONS)
def test_pages_of_the_default_size(version: str, tmp_path: Path, cases: Cases) -> None:
    rng = np.random.default_rng(8)
    n = 1_200_000
    ends = np.concatenate([[0], np.cumsum(rng.integers(0, 4, n))]).astype("int32")
    struct = [
        pa.array(rng.integers(0, 9, n).astype("int8")),
        pa.array(rng.standard_normal(n), mask=rng.random(n) < 0.1),
    ]
    items = nested_columns.null_ints(rng, int(ends[-1]))
    table = pa.table(
        {
            "number": pa.array(rng.integers(0, 2**62, n), mask=rng.random(n) < 0.1),
            "text": pa.array(rng.integers(0, 10**6, n)).cast(pa.string()),
            "list": pa.ListArray.from_arrays(pa.array(ends, mask=np.append(rng.random(n) < 0.1, False)), items),
            "struct": pa.StructArray.from_arrays(struct, ["a", "b"], mask=pa.array(rng.random(n) < 0.2)),
        }
    )
    write(tmp_path / "t.lance", table, version, batch=100_000)
    compare(tmp_path / "t.lance", table, np.unique(rng.integers(0, n, 300)).tolist(), cases)


@pytest.mark.parametrize("version", VERSIONS)
def test_rows_larger_than_a_page(version: str, tmp_path: Path, cases: Cases) -> None:
    rng = np.random.default_rng(2)
    sizes = np.array([0, 400_000, 1, 0, 700_000, 3])
    ends = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype("int32"))
    total = int(sizes.sum())
    table = pa.table(
        {
            "numbers": pa.ListArray.from_arrays(ends, pa.array(rng.integers(0, 1 << 40, total))),
            "texts": pa.ListArray.from_arrays(ends, pa.array(rng.integers(0, 1 << 40, total)).cast(pa.string())),
            "text": pa.array(["a" * size for size in sizes]),
        }
    )
    write(tmp_path / "t.lance", table, version, page_bytes=1 << 20)
    compare(tmp_path / "t.lance", table, [0, 1, 3, 5], cases)
