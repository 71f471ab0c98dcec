from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError, UnsupportedError
from lance_duck.file.blob_store import BlobStore
from lance_duck.file.blobs.file import BlobFile
from lance_duck.file.blobs.places import (
    DEDICATED,
    EXTERNAL,
    INLINE,
    MANAGED,
    PACKED,
    BlobPlace,
    as_values,
    blob_places,
    inline_extents,
    read_places,
)
from lance_duck.file.reader import LanceFile
from lance_duck.store import ByteSource, open_source, open_store, run
from lance_duck.wire.paths import blob_file
from lance_duck.wire.pb import file_pb2
from lance_duck.wire.schema import BLOB_V1_SCAN, BLOB_V2_SCAN


class Memory:
    """A source that counts requests."""

    remote = False

    def __init__(self, data: bytes, path: str = "memory") -> None:
        self.path = path
        self.size = len(data)
        self.asked: list[tuple[int, int]] = []
        self._data = np.frombuffer(data, np.uint8)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[np.ndarray]:
        self.asked += ranges
        return [self._data[offset : offset + size] for offset, size in ranges]


def file_over(source: ByteSource, beside: BlobStore | None = None) -> LanceFile:
    return LanceFile(source, (2, 2), 1, 1, file_pb2.FileDescriptor(), [], [], beside=beside)


def refuse(base_id: int, name: str) -> ByteSource:
    raise CorruptError(f"no base path {base_id}", where=name)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data" / "f").mkdir(parents=True)
    (tmp_path / blob_file("f.lance", 1)).write_bytes(b"packedtogether")
    (tmp_path / blob_file("f.lance", 2)).write_bytes(b"alone")
    (tmp_path / "outside.bin").write_bytes(b"0123456789")
    (tmp_path / "_blobs").mkdir()
    (tmp_path / "_blobs" / "m.blob").write_bytes(b"managed")
    return tmp_path


@pytest.fixture
def file(folder: Path) -> LanceFile:
    def external(base_id: int, name: str) -> ByteSource:
        return open_store(folder).open(name) if base_id else open_source(name)

    return file_over(Memory(b"..inline.."), BlobStore(open_store(folder), "f.lance", True, external))


def described(*rows: tuple[int, int, int, int, str] | None) -> pa.StructArray:
    names = BLOB_V2_SCAN.names
    return pa.array([None if row is None else dict(zip(names, row, strict=True)) for row in rows], BLOB_V2_SCAN)


def test_version_1_descriptions_point_into_the_data_file() -> None:
    file = file_over(Memory(b"0123456789"))
    pairs = [(2, 3), (1, 0), (0, 0), None]
    array = pa.array([None if p is None else {"position": p[0], "size": p[1]} for p in pairs], BLOB_V1_SCAN)
    places = blob_places(array, file)
    assert places == [BlobPlace(file, INLINE, 2, 3), None, BlobPlace(file, INLINE, 0, 0), None]
    assert [part.tobytes() for part in run(read_places(places))] == [b"234", b"", b"", b""]


def test_inline_packed_dedicated_and_external_blobs_are_read(file: LanceFile, folder: Path) -> None:
    uri = (folder / "outside.bin").as_uri()
    rows = described(
        (INLINE, 2, 6, 0, ""),
        None,
        (PACKED, 6, 8, 1, ""),
        (DEDICATED, 0, 5, 2, ""),
        (EXTERNAL, 0, 0, 0, uri),
        (EXTERNAL, 3, 4, 7, "outside.bin"),
        (INLINE, 64, 0, 0, ""),
    )
    places = blob_places(rows, file)
    assert [place and place.size for place in places] == [6, None, 8, 5, None, 4, 0]
    found = [part.tobytes() for part in run(read_places(places))]
    assert found == [b"inline", b"", b"together", b"alone", b"0123456789", b"3456", b""]
    assert blob_places(rows.slice(3, 1), file) == [BlobPlace(file, DEDICATED, 0, 5, 2, "")]
    assert blob_places(rows.slice(0, 0), file) == []


def test_more_files_than_the_descriptor_limit_are_read_in_rounds(tmp_path: Path) -> None:
    (tmp_path / "data" / "f").mkdir(parents=True)
    numbers = range(1, 151)
    for i in numbers:
        (tmp_path / blob_file("f.lance", i)).write_bytes(b"%d" % i)
    file = file_over(Memory(b""), BlobStore(open_store(tmp_path), "f.lance", True, refuse))
    places = [BlobPlace(file, DEDICATED, 0, len(str(i)), i) for i in numbers]
    block = as_values(run(read_places(places)))
    assert block.data.tobytes() == b"".join(b"%d" % i for i in numbers)
    assert block.offsets[:3].tolist() == [0, 1, 2]
    assert block.count == 150
    assert as_values([]).count == 0


def test_sidecars_of_a_plain_base_path_lie_in_its_root(tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    (tmp_path / blob_file("f.lance", 3, is_dataset_root=False)).write_bytes(b"abc")
    store = BlobStore(open_store(tmp_path), "f.lance", False, refuse)
    assert store.sidecar(3).size == 3
    with pytest.raises(NotFoundError):
        store.sidecar(4)


@pytest.mark.parametrize(
    "row",
    [
        (INLINE, 5, 6, 0, ""),
        (INLINE, 2**64 - 1, 1, 0, ""),
        (INLINE, 0, 2**64 - 1, 0, ""),
        (PACKED, 14, 1, 1, ""),
        (DEDICATED, 0, 6, 2, ""),
        (EXTERNAL, 11, 0, 1, "outside.bin"),
        (EXTERNAL, 9, 2, 1, "outside.bin"),
        (MANAGED, 6, 2, 0, "_blobs/m.blob"),
        (MANAGED, 2**64 - 1, 2**64 - 1, 0, "_blobs/m.blob"),
    ],
)
def test_blobs_beyond_the_end_are_corrupt(file: LanceFile, row: tuple[int, int, int, int, str]) -> None:
    places = blob_places(described(row), file)
    with pytest.raises(CorruptError, match="beyond the end"):
        run(read_places(places))
    assert places[0] is not None
    with BlobFile(places[0]) as blob, pytest.raises(CorruptError, match="beyond the end"):
        blob.read(1)


def test_unsupported_blob_kinds_are_rejected() -> None:
    file = file_over(Memory(b""))
    with pytest.raises(CorruptError, match="kind"):
        blob_places(described((5, 0, 1, 0, "")), file)
    with pytest.raises(UnsupportedError, match="need the whole table"):
        BlobPlace(file, PACKED, 0, 1, 1).extent()


def test_managed_blobs_are_resolved_from_the_table_root(file: LanceFile, folder: Path) -> None:
    rows = described((MANAGED, 2, 4, 0, "_blobs/m.blob"), (MANAGED, 9, 0, 0, "_blobs/gone.blob"), None)
    found = run(read_places(blob_places(rows, file)))
    assert [part.tobytes() for part in found] == [b"nage", b"", b""]
    (place,) = blob_places(described((MANAGED, 0, 1, 0, "_blobs/gone.blob")), file)
    assert place is not None
    with pytest.raises(NotFoundError):
        place.extent()


@pytest.mark.parametrize(
    "name", ["", "outside.bin", "../x.blob", "_blobs/../x.blob", "/etc/passwd", "_blobs/a/b.blob", "_blobs/a\0.blob"]
)
def test_other_managed_blob_paths_are_corrupt(file: LanceFile, name: str) -> None:
    (place,) = blob_places(described((MANAGED, 0, 1, 7, name)), file)
    assert place is not None
    with pytest.raises(CorruptError, match="invalid blob path"):
        place.extent()


def test_a_missing_blob_is_read_from_its_base_path(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    base = BlobStore(open_store(other), "f.lance", True, lambda base_id, name: open_store(folder).open(name))
    (place,) = blob_places(described((MANAGED, 0, 7, 3, "_blobs/m.blob")), file_over(Memory(b""), base))
    assert [part.tobytes() for part in run(read_places([place]))] == [b"managed"]


def test_external_files_have_full_names_or_stay_below_their_base(file: LanceFile) -> None:
    for base_id, name in ((0, "outside.bin"), (0, ""), (7, "../secret"), (7, "")):
        with pytest.raises(InvalidInputError):
            BlobPlace(file, EXTERNAL, 0, 0, base_id, name).extent()
    with pytest.raises(UnsupportedError):
        BlobPlace(file, EXTERNAL, 0, 0, 0, "ftp://host/name").extent()


def test_uris_that_are_not_utf8_are_corrupt() -> None:
    file = file_over(Memory(b"", "here"))
    fields = [pa.array([0], type_) for type_ in (pa.uint8(), pa.uint64(), pa.uint64(), pa.uint32())]
    raw = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    array = pa.StructArray.from_arrays([*fields, raw], fields=list(BLOB_V2_SCAN))
    with pytest.raises(CorruptError, match="UTF-8"):
        blob_places(array, file)


def test_inline_blobs_are_read_as_extents() -> None:
    found = inline_extents(described((INLINE, 3, 4, 0, ""), None, (INLINE, 64, 0, 0, "")))
    assert found is not None
    positions, sizes = found
    assert (positions[[0, 2]].tolist(), sizes.tolist()) == ([3, 64], [4, 0, 0])
    assert inline_extents(described((INLINE, 3, 4, 0, ""), (PACKED, 0, 4, 1, ""))) is None
    assert inline_extents(described()) is not None
