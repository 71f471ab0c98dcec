from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.file.memory_file import MemorySink, MemorySource, WrittenTable

from lance_duck.errors import InvalidInputError, StoreError, UnsupportedError
from lance_duck.file.blobs.places import blob_places, read_places
from lance_duck.file.write.blob_options import BlobOptions, Thresholds
from lance_duck.file.write.writer import FileWriter
from lance_duck.store.request import run
from lance_duck.wire.blob_type import Blob, blob_array, blob_field
from lance_duck.wire.schema_write import schema_from_arrow

PLAIN = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
SMALL = blob_field("b", inline_size_threshold=4, dedicated_size_threshold=9, pack_file_size_threshold=20)
INLINE, PACKED, DEDICATED, EXTERNAL = range(4)


class Beside:
    """Sidecars in memory."""

    def __init__(self, written: WrittenTable) -> None:
        self._written = written

    def sidecar(self, blob_id: int) -> MemorySource:
        data = self._written.sidecars[blob_id].data
        assert data is not None
        return MemorySource(data)


def table(array: pa.Array, field: pa.Field) -> pa.Table:
    storage = array.storage if isinstance(array, pa.ExtensionArray) else array
    kind = field.type.storage_type if isinstance(field.type, pa.BaseExtensionType) else field.type
    names = {b"ARROW:extension:name": b"lance.blob.v2"} if kind != field.type else {}
    return pa.table([storage], pa.schema([pa.field("b", kind, metadata={**(field.metadata or {}), **names})]))


def blobs_of(written: WrittenTable) -> list[bytes | None]:
    object.__setattr__(written.file, "beside", Beside(written))
    places = blob_places(written.column("b"), written.file)
    return [None if p is None else data.tobytes() for p, data in zip(places, run(read_places(places)), strict=True)]


VALUES = st.lists(st.none() | st.binary(max_size=14) | st.just(b"x" * 9), max_size=40)


@settings(deadline=None)
@given(VALUES, st.sampled_from(["2.0", "2.1"]), st.sampled_from([30, 1 << 20]), st.sampled_from([3, 100]))
def test_plain_blobs_are_read_back(values: list[bytes | None], version: str, page_bytes: int, batch: int) -> None:
    array = pa.array([b"skipped", *values], pa.large_binary()).slice(1)
    written = WrittenTable(table(array, PLAIN), version, page_bytes, batch)
    assert blobs_of(written) == values
    assert not written.sidecars


@settings(deadline=None)
@given(VALUES, st.sampled_from([30, 1 << 20]), st.sampled_from([3, 100]))
def test_blobs_round_trip_in_every_storage_class(values: list[bytes | None], page_bytes: int, batch: int) -> None:
    written = WrittenTable(table(blob_array([b"skipped", *values]).slice(1), SMALL), "2.2", page_bytes, batch)
    assert blobs_of(written) == values
    kinds = [None if d is None else d["kind"] for d in written.column("b").to_pylist()]
    sizes = [None if v is None else INLINE if len(v) <= 4 else PACKED if len(v) <= 9 else DEDICATED for v in values]
    assert kinds == sizes


def test_a_pack_file_ends_before_it_exceeds_its_limit() -> None:
    values = [b"a" * 9, b"b" * 9, b"c" * 5, b"d" * 10, b"e" * 9, b"f" * 8]
    written = WrittenTable(table(blob_array(values), SMALL), "2.2")
    found = [(d["kind"], d["blob_id"], d["position"], d["size"]) for d in written.column("b").to_pylist()]
    assert found == [(1, 1, 0, 9), (1, 1, 9, 9), (1, 2, 0, 5), (2, 3, 0, 10), (1, 2, 5, 9), (1, 4, 0, 8)]
    assert {i: sink.data for i, sink in written.sidecars.items()} == {
        1: b"a" * 9 + b"b" * 9,
        2: b"c" * 5 + b"e" * 9,
        3: b"d" * 10,
        4: b"f" * 8,
    }


def test_nested_blobs_round_trip() -> None:
    kind = blob_array([]).type.storage_type
    field = pa.field("b", kind, metadata={"ARROW:extension:name": "lance.blob.v2"})
    struct = pa.StructArray.from_arrays(
        [blob_array([b"x", None, b"y"]).storage], fields=[field], mask=pa.array([False, False, True])
    )
    lists = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), blob_array([b"1", None, b"22"]).storage)
    lists = lists.cast(pa.list_(field))
    written = WrittenTable(pa.table({"s": struct, "l": lists.take(pa.array([0, 1, None]))}), "2.2")
    assert [s and (s["b"] and s["b"]["size"]) for s in written.column("s").to_pylist()] == [1, None, None]
    assert [x and [b and b["size"] for b in x] for x in written.column("l").to_pylist()] == [[1, None], [2], None]


@pytest.mark.parametrize(
    ("data", "uri", "found"),
    [(b"x", "file:///a", "both"), (None, None, "neither")],
)
def test_a_blob_requires_either_data_or_a_uri(data: Any, uri: Any, found: str) -> None:
    kind = pa.struct([("data", pa.large_binary()), ("uri", pa.string())])
    array = pa.array([{"data": b"", "uri": None}, None, {"data": data, "uri": uri}], kind)
    field = pa.field("b", kind, metadata={"ARROW:extension:name": "lance.blob.v2"})
    with pytest.raises(
        InvalidInputError,
        match=f"column b, row 2: a blob needs either data or a uri: expected one of them, found {found}",
    ):
        WrittenTable(pa.table([array], pa.schema([field])), "2.2")


def write(array: pa.Array, options: BlobOptions) -> WrittenTable:
    return WrittenTable(table(array, SMALL), "2.2", blobs=options)


def test_references_to_external_files() -> None:
    array = blob_array(["s3://b/x/y", Blob.from_uri("file:///base/a/b", 3, 4), "/base/c", None, b"own"])
    options = BlobOptions(allow_outside_bases=True, bases={2: "file:///base", 3: "/base/a/"})
    found = write(array, options).column("b").to_pylist()
    assert [d and (d["kind"], d["blob_id"], d["blob_uri"], d["position"], d["size"]) for d in found] == [
        (3, 0, "s3://b/x/y", 0, 0),
        (3, 3, "b", 3, 4),
        (3, 2, "c", 0, 0),
        None,
        (0, 0, "", found[4]["position"], 3),
    ]


@pytest.mark.parametrize("uri", ["s3://b/x", "file:///bases/x", "file:///base/../x", "/base", "x"])
def test_references_outside_the_base_paths_are_rejected(uri: str) -> None:
    with pytest.raises(InvalidInputError, match="outside the base paths"):
        write(blob_array([uri]), BlobOptions(bases={1: "/base"}))


def test_references_without_a_scheme_are_rejected() -> None:
    with pytest.raises(InvalidInputError, match="expected an absolute URI, found 'a/b'"):
        write(blob_array(["a/b"]), BlobOptions(allow_outside_bases=True))


def test_external_files_are_copied_on_request(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(range(40)))
    uri = (tmp_path / "f").as_uri()
    array = blob_array([uri, Blob.from_uri(uri, 1, 3), Blob.from_uri(uri, 5, 9), None, b"own"])
    written = write(array, BlobOptions("ingest"))
    assert blobs_of(written) == [bytes(range(40)), bytes([1, 2, 3]), bytes(range(5, 14)), None, b"own"]
    assert [d and d["kind"] for d in written.column("b").to_pylist()] == [2, 0, 1, None, 0]
    with pytest.raises(InvalidInputError, match="expected within 40 bytes, found 5 bytes at 38"):
        write(blob_array([Blob.from_uri(uri, 38, 5)]), BlobOptions("ingest"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"external_mode": "copy"}, "external_blob_mode: expected reference or ingest, found 'copy'"),
        ({"external_mode": "ingest", "allow_outside_bases": True}, "leave one of them out"),
        ({"pack_file_bytes": 0}, "blob_pack_file_size_threshold"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        BlobOptions(**options)


def test_field_thresholds_take_precedence_over_write_options() -> None:
    assert Thresholds.from_metadata({}, 7) == Thresholds(64 << 10, 4 << 20, 7)
    metadata = {"lance-encoding:blob-inline-size-threshold": "0", "lance-encoding:blob-pack-file-size-threshold": "9"}
    assert Thresholds.from_metadata(metadata, 7) == Thresholds(0, 4 << 20, 9)
    for text in ("-1", "x", ""):
        with pytest.raises(InvalidInputError, match="inline-size-threshold: expected a whole number"):
            Thresholds.from_metadata({"lance-encoding:blob-inline-size-threshold": text})


def test_sidecars_of_a_failed_file_are_aborted() -> None:
    sinks: list[MemorySink] = []

    def open_sidecar(blob_id: int) -> MemorySink:
        sinks.append(MemorySink(str(blob_id)))
        return sinks[-1]

    class Full(MemorySink):
        def _write(self, data: memoryview) -> None:
            raise StoreError("disk full")

    whole = table(blob_array([b"packed", b"in"]), SMALL)
    sink = Full()
    writer = FileWriter(sink, schema_from_arrow(whole.schema), open_sidecar=open_sidecar)
    writer.write(whole.to_batches()[0])
    with pytest.raises(StoreError, match="disk full"):
        writer.finish()
    assert sink.aborted
    assert [s.data for s in sinks if not s.aborted] == []


def test_large_blobs_require_a_table() -> None:
    whole = table(blob_array([b"too large"]), SMALL)
    with FileWriter(MemorySink(), schema_from_arrow(whole.schema)) as writer:
        writer.write(whole.to_batches()[0])
        with pytest.raises(UnsupportedError, match="write it to a table"):
            writer.finish()


def test_blobs_in_lists_need_2_2() -> None:
    kind = pa.list_(PLAIN.with_name("item"))
    with pytest.raises(UnsupportedError, match=r"column c.*cannot store blobs in lists.*2\.2"):
        WrittenTable(pa.table({"c": pa.array([[b"x"]], kind)}), "2.1")
