"""Data files and fragments that we write: pylance reads and commits them; they are rolled like its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance.file import LanceFileReader as Theirs
from lance.file import LanceFileWriter as TheirWriter
from oracle.compare import assert_tables_same
from oracle.kinds import VERSIONS

from lance_duck.file import LanceFileReader, LanceFileWriter
from lance_duck.store import open_store
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.pb import table_pb2
from lance_duck.wire.schema_write import metadata_to_proto, schema_from_arrow, schema_to_proto
from lance_duck.write import WriteOptions, to_reader, write_new_fragments


def commit(uri: str, schema: pa.Schema, fragments: list[Fragment]) -> lance.LanceDataset:
    """A table of our fragments, committed by pylance."""
    described = [_described(number, fragment) for number, fragment in enumerate(fragments)]
    return lance.LanceDataset.commit(uri, lance.LanceOperation.Overwrite(schema, described))


def _described(number: int, fragment: Fragment) -> lance.FragmentMetadata:
    files = [
        {
            "path": file.path,
            "fields": list(file.fields),
            "column_indices": list(file.column_indices),
            "file_major_version": file.file_version[0],
            "file_minor_version": file.file_version[1],
            "file_size_bytes": file.file_size,
            "base_id": None,
        }
        for file in fragment.files
    ]
    return lance.FragmentMetadata.from_json(
        json.dumps({"id": number, "files": files, "deletion_file": None, "physical_rows": fragment.physical_rows})
    )


def write(uri: Path, table: pa.Table, version: str, **options: Any) -> list[Fragment]:
    schema = schema_from_arrow(table.schema, version)
    store = open_store(uri, {"fsync": "false"})
    return write_new_fragments(store, schema, to_reader(table), WriteOptions(data_storage_version=version, **options))


@pytest.mark.parametrize("version", VERSIONS)
def test_single_files_are_readable_by_both_libraries(tmp_path: Path, version: str) -> None:
    table = pa.table(
        {"i": range(1000), "s": [f"text {i % 50}" for i in range(1000)], "l": [[i] * (i % 4) for i in range(1000)]}
    )
    options = {"checksums": "false"}  # the descriptor describes them
    with LanceFileWriter(tmp_path / "ours", table.schema, version=version, storage_options=options) as ours:
        ours.write_batch(table)
        ours.add_schema_metadata("k", "v")
        assert ours.add_global_buffer(b"more") == 1
    with TheirWriter(str(tmp_path / "theirs"), table.schema, version=version) as theirs:
        theirs.write_batch(table)
        theirs.add_schema_metadata("k", "v")
    found, expected = Theirs(str(tmp_path / "ours")), Theirs(str(tmp_path / "theirs"))
    assert_tables_same(expected.read_all().to_table(), found.read_all().to_table())
    assert bytes(found.read_global_buffer(1)) == b"more"
    described = LanceFileReader(tmp_path / "theirs").metadata()
    for name in ("schema", "num_rows", "major_version", "minor_version"):
        assert getattr(LanceFileReader(tmp_path / "ours").metadata(), name) == getattr(described, name)
    assert LanceFileReader(tmp_path / "ours").read_global_buffer(0) == bytes(expected.read_global_buffer(0))


@pytest.mark.parametrize("version", VERSIONS)
def test_single_files_with_blobs(tmp_path: Path, version: str) -> None:
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table([[b"ab", None, b"", b"x" * 100_000], [1, 2, 3, 4]], schema=pa.schema([blob, ("i", pa.int64())]))
    with LanceFileWriter(tmp_path / "ours", version=version) as ours:
        ours.write_batch(table)
    assert_tables_same(table, Theirs(str(tmp_path / "ours")).read_all().to_table())


@pytest.mark.parametrize(
    ("rows", "limit", "batch"), [(10, 10, 4), (10, 3, 4), (11, 5, 11), (2500, 1000, 1024), (2000, 1000, 700)]
)
def test_files_are_split_at_the_same_rows_as_in_pylance(tmp_path: Path, rows: int, limit: int, batch: int) -> None:
    reader = pa.table({"x": range(rows)}).to_reader(batch)
    theirs = lance.write_dataset(reader, tmp_path / "theirs", max_rows_per_file=limit)
    ours = write(tmp_path / "ours", pa.table({"x": range(rows)}), "2.2", max_rows_per_file=limit)
    assert [f.physical_rows for f in ours] == [f.physical_rows for f in theirs.get_fragments()]


@pytest.mark.parametrize("version", VERSIONS)
def test_pylance_adds_columns_to_written_files_and_compacts_them(tmp_path: Path, version: str) -> None:
    table = pa.table({"i": range(1000), "s": [str(i) for i in range(1000)]})
    dataset = commit(str(tmp_path), table.schema, write(tmp_path, table, version, max_rows_per_file=100))
    dataset.add_columns({"j": "i + 1"})
    dataset.delete("i % 3 = 0")
    dataset.optimize.compact_files()
    expected = [{"i": i, "s": str(i), "j": i + 1} for i in range(1000) if i % 3]
    assert dataset.to_table().sort_by("i").to_pylist() == expected
    dataset.validate()


PACKED = {"lance-encoding:packed": "true"}
KEY = {"lance-schema:unenforced-primary-key": "true", "lance-schema:unenforced-primary-key:position": "2"}
INNER = pa.struct([pa.field("x", pa.int32(), nullable=False), ("y", pa.list_(pa.string()))])
FIELDS = [
    *(pa.field(str(kind), kind) for kind in (pa.null(), pa.bool_(), pa.float16(), pa.large_string(), pa.binary_view())),
    *(pa.field(str(kind), kind) for kind in (pa.binary(3), pa.date64(), pa.time64("ns"), pa.duration("ms"))),
    *(pa.field(str(kind), kind) for kind in (pa.timestamp("us", "UTC"), pa.timestamp("s"), pa.decimal256(50, -3))),
    *(pa.field(f"list {i}", pa.list_(kind)) for i, kind in enumerate((pa.int8(), INNER, pa.list_(pa.int8())))),
    *(
        pa.field(f"vector {i}", pa.list_(kind, 2))
        for i, kind in enumerate((pa.float32(), INNER, pa.list_(pa.int8(), 2)))
    ),
    *(pa.field("struct", INNER, metadata={"b": "1", "a": "2"}), pa.field("no fields", pa.struct([]))),
    *(pa.field("map", pa.map_(pa.string(), INNER)), pa.field("packed", pa.struct([("a", pa.int8())]), metadata=PACKED)),
    *(pa.field("uuid", pa.uuid()), pa.field("json", pa.json_()), pa.field("bool8", pa.bool8())),
    pa.field("tensor", pa.fixed_shape_tensor(pa.float32(), (2, 2))),
    pa.field("own", pa.int32(), metadata={"ARROW:extension:name": "my.own", "ARROW:extension:metadata": "{}"}),
    pa.field("key", pa.int32(), nullable=False, metadata=KEY),
    pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true", "k": "v"}),
]


def test_written_schemas_equal_those_of_pylance_byte_for_byte(tmp_path: Path) -> None:
    arrow = pa.schema(FIELDS, metadata={"k": "v", "a": "ü"})
    lance.write_dataset(arrow.empty_table(), tmp_path)
    (path,) = (tmp_path / "_versions").glob("*.manifest")
    data = path.read_bytes()
    start = int.from_bytes(data[-16:-8], "little") + 4
    manifest = table_pb2.Manifest.FromString(data[start : start + int.from_bytes(data[start - 4 : start], "little")])
    ours = schema_from_arrow(arrow)
    for theirs, field in zip(manifest.fields, schema_to_proto(ours), strict=True):
        assert field.SerializeToString(deterministic=True) == theirs.SerializeToString(deterministic=True), theirs.name
    assert metadata_to_proto(ours.metadata) == dict(manifest.schema_metadata)
