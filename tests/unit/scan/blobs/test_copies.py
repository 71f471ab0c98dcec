from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.scan.blobs.copies import kept_blobs, written_batches
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.table_scan import TableScan

FIELD = ld.blob_field("b", inline_size_threshold=4, dedicated_size_threshold=9, pack_file_size_threshold=20)
VALUES = [b"in", None, b"", b"packed", b"dedicated blob", b"pack2", b"x"]
LOCAL = {"fsync": "false"}


def batches(dataset: ld.LanceDataset, most: int = 1 << 20, **options: Any) -> list[pa.RecordBatch]:
    return list(written_batches(TableScan(dataset.handle.snapshot), ScanOptions(**options), most))


def data_of(parts: list[pa.RecordBatch], name: str = "b") -> list[bytes | None]:
    return [None if row is None else row["data"] for part in parts for row in part.column(name).to_pylist()]


@pytest.fixture
def dataset(tmp_path: Path) -> ld.LanceDataset:
    columns = [pa.array(range(7)), ld.blob_array(VALUES)]
    table = pa.table(columns, pa.schema([pa.field("i", pa.int64()), FIELD]))
    return ld.write_dataset(table, tmp_path / "t", max_rows_per_file=4, storage_options=LOCAL)


def test_blobs_of_every_kind_are_returned_as_bytes(dataset: ld.LanceDataset) -> None:
    parts = batches(dataset)
    assert data_of(parts) == VALUES
    assert [part.schema.names for part in parts] == [["i", "b"]] * 2
    assert parts[0].column("b").type == FIELD.type.storage_type


def test_batches_limit_blob_bytes_but_have_at_least_one_row(dataset: ld.LanceDataset) -> None:
    assert [part.num_rows for part in batches(dataset, 8)] == [4, 1, 2]
    assert data_of(batches(dataset, 1)) == VALUES


def test_filters_columns_and_addresses_are_kept(dataset: ld.LanceDataset) -> None:
    dataset.delete("i = 2")
    (first, second) = batches(dataset, columns=["b"], filter="i % 2 = 0", with_row_address=True)
    assert data_of([first, second]) == [b"in", b"dedicated blob", b"x"]
    assert second.schema.names == ["b", "_rowaddr"]
    assert second.column("_rowaddr").to_pylist() == [1 << 32, (1 << 32) + 2]


def test_tables_without_blobs_use_the_normal_scan(tmp_path: Path) -> None:
    dataset = ld.write_dataset(pa.table({"i": [1, 2]}), tmp_path / "t", storage_options=LOCAL)
    assert [part.to_pydict() for part in batches(dataset)] == [{"i": [1, 2]}]


def test_nested_blobs_are_returned_as_bytes(tmp_path: Path) -> None:
    plain = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    array = pa.StructArray.from_arrays(
        [pa.array([b"xy", None, b"z", b""], pa.large_binary())],
        fields=[plain],
        mask=pa.array([False, False, True, False]),
    )
    for version in ("2.1", "2.2"):
        uri = tmp_path / version
        dataset = ld.write_dataset(pa.table({"s": array}), uri, data_storage_version=version, storage_options=LOCAL)
        found = [s and s["b"] for part in batches(dataset, 1) for s in part.column("s").to_pylist()]
        data = [b["data"] if isinstance(b, dict) else b for b in found]
        assert data == [b"xy", None, None, b""]
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 2, 3], pa.int32()), ld.blob_array([b"1", None, b"22"]).storage)
    field = pa.field("item", FIELD.type.storage_type, metadata={"ARROW:extension:name": "lance.blob.v2"})
    table = pa.table({"l": lists.cast(pa.list_(field))})
    dataset = ld.write_dataset(table, tmp_path / "l", storage_options=LOCAL)
    found = [[b and b["data"] for b in row] for part in batches(dataset, 1) for row in part.column("l").to_pylist()]
    assert found == [[b"1", None], [], [b"22"]]


def test_external_references_are_kept(tmp_path: Path) -> None:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "f").write_bytes(b"0123456789")
    uri = (folder / "f").as_uri()
    values = [b"own", ld.Blob.from_uri(uri, 2, 3), None, uri]
    table = pa.table({"i": range(4), "b": ld.blob_array(values)})
    bases = [ld.DatasetBasePath(folder.as_uri(), "outside")]
    dataset = ld.write_dataset(table, tmp_path / "t", initial_bases=bases, storage_options=LOCAL)
    (part,) = batches(dataset)
    nothing = {"data": None, "uri": None, "position": None, "size": None}
    assert part.column("b").to_pylist() == [
        nothing | {"data": b"own"},
        {"data": None, "uri": uri, "position": 2, "size": 3},
        None,
        nothing | {"uri": uri},
    ]
    options = kept_blobs(dataset.handle.snapshot)
    assert options.place(uri, "") == (1, "f")
    assert options.place("s3://elsewhere/x", "") == (0, "s3://elsewhere/x")


def test_compaction_keeps_references_and_copies_other_blobs(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    values = [*VALUES, (tmp_path / "f").as_uri()]
    table = pa.table([pa.array(range(8)), ld.blob_array(values)], pa.schema([pa.field("i", pa.int64()), FIELD]))
    uri, options = tmp_path / "t", {"allow_external_blob_outside_bases": True, "storage_options": LOCAL}
    dataset = ld.write_dataset(table, uri, max_rows_per_file=3, **options)
    kinds = dataset.to_table()["b"].combine_chunks().field("kind").to_pylist()
    dataset.optimize.compact_files()
    assert len(dataset.get_fragments()) == 1
    assert dataset.to_table()["b"].combine_chunks().field("kind").to_pylist() == kinds
    assert [data for _, data in dataset.read_blobs("b", indices=range(8))] == [*VALUES, b"0123456789"]
