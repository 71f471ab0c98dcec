"""Takes manifests and data files apart and puts them together again, so that one message in them can be changed."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from corruption.messages import variants
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message

from lance_duck.wire.pb import encodings20_pb2, encodings21_pb2, encodings23_pb2, file2_pb2, file_pb2, table_pb2

MAGIC = b"LANC"
Variants = Iterator[tuple[str, Callable[[], bytes]]]
"""Pairs of a name and a function that creates the changed file, because only a few of many are used."""
_ENCODINGS: dict[str, type[Message]] = {
    "ArrayEncoding": encodings20_pb2.ArrayEncoding,
    "PageLayout": encodings21_pb2.PageLayout,
    "PlanarLayout": encodings23_pb2.PlanarLayout,
}


def manifest_path(table: Path) -> Path:
    """Return the manifest of the latest version."""
    return min((table / "_versions").glob("*.manifest"))


def read_manifest(data: bytes) -> table_pb2.Manifest:
    """Parse the manifest section."""
    (place,) = struct.unpack_from("<Q", data, len(data) - 16)
    (size,) = struct.unpack_from("<I", data, place)
    return table_pb2.Manifest.FromString(data[place + 4 : place + 4 + size])


def with_manifest(data: bytes, manifest: table_pb2.Manifest) -> bytes:
    """Return the file with another manifest section."""
    (place,) = struct.unpack_from("<Q", data, len(data) - 16)
    body = manifest.SerializeToString()
    return data[:place] + struct.pack("<I", len(body)) + body + data[-16:]


def with_segments(data: bytes, change: Callable[[table_pb2.IndexSection], None]) -> bytes:
    """Return the file of a manifest with another list of index segments, which is its first section."""
    manifest = read_manifest(data)
    (size,) = struct.unpack_from("<I", data, 0)
    (place,) = struct.unpack_from("<Q", data, len(data) - 16)
    section = table_pb2.IndexSection.FromString(data[4 : 4 + size])
    change(section)
    body = section.SerializeToString()
    manifest.transaction_section += len(body) - size
    head = struct.pack("<I", len(body)) + body + data[4 + size : place]
    last = manifest.SerializeToString()
    return head + struct.pack("<I", len(last)) + last + struct.pack("<Q", len(head)) + data[-8:]


def forget_index_sizes(table: Path) -> None:
    """Remove the sizes of index files from the manifest."""

    def clear(section: table_pb2.IndexSection) -> None:
        for segment in section.indices:
            for file in segment.files:
                file.size_bytes = 0

    path = manifest_path(table)
    path.write_bytes(with_segments(path.read_bytes(), clear))


def forget_sizes(table: Path) -> None:
    """Remove all file sizes from the manifest, so that readers open damaged files."""
    path = manifest_path(table)
    manifest = read_manifest(path.read_bytes())
    for fragment in manifest.fragments:
        for file in fragment.files:
            file.file_size_bytes = 0
    path.write_bytes(with_manifest(path.read_bytes(), manifest))


def manifest_variants(data: bytes) -> Variants:
    """Yield the file with each single change of its manifest."""
    for name, changed in variants(read_manifest(data)):
        yield name, partial(with_manifest, data, changed)


def metadata_start(data: bytes) -> int:
    """Return where the column metadata of a data file begins; all that follows describes the file."""
    return int(struct.unpack_from("<Q", data, len(data) - 40)[0])


def legacy_metadata_start(data: bytes) -> int:
    """Return where the manifest of a data file of version 0.1 begins; metadata and footer follow it."""
    (place,) = struct.unpack_from("<Q", data, len(data) - 16)
    (size,) = struct.unpack_from("<I", data, place)
    return int(file_pb2.Metadata.FromString(data[place + 4 : place + 4 + size]).manifest_position)


def legacy_variants(data: bytes) -> Variants:
    """Yield a data file of version 0.1 with each single change of its metadata, and of its manifest."""
    (place,) = struct.unpack_from("<Q", data, len(data) - 16)
    (size,) = struct.unpack_from("<I", data, place)
    metadata = file_pb2.Metadata.FromString(data[place + 4 : place + 4 + size])
    for name, changed in variants(metadata):
        yield f"metadata: {name}", partial(_with_message, data[:place], changed, data[-16:])
    start = metadata.manifest_position
    (size,) = struct.unpack_from("<I", data, start)
    for name, manifest in variants(table_pb2.Manifest.FromString(data[start + 4 : start + 4 + size])):
        yield f"manifest: {name}", partial(_with_manifest_0_1, data, start, place, manifest)


def _with_message(head: bytes, message: Message, tail: bytes) -> bytes:
    body = message.SerializeToString()
    return head + struct.pack("<I", len(body)) + body + tail


def _with_manifest_0_1(data: bytes, start: int, metadata: int, manifest: Message) -> bytes:
    head = _with_message(data[:start], manifest, b"")
    return head + data[metadata:-16] + struct.pack("<Q", len(head)) + data[-8:]


def _columns(data: bytes) -> list[bytes]:
    _, table, _, _, count, _, _ = struct.unpack_from("<QQQIIHH", data, len(data) - 40)
    entries = [struct.unpack_from("<QQ", data, table + 16 * i) for i in range(count)]
    return [data[place : place + size] for place, size in entries]


def _with_columns(data: bytes, columns: list[bytes]) -> bytes:
    """Return the file with other column metadata; data and global buffers keep their offsets."""
    start, _, buffers, num_buffers, _, major, minor = struct.unpack_from("<QQQIIHH", data, len(data) - 40)
    body, entries = b"", b""
    for column in columns:
        entries += struct.pack("<QQ", start + len(body), len(column))
        body += column
    globals_ = data[buffers : buffers + 16 * num_buffers]
    tail = struct.pack(
        "<QQQIIHH", start, start + len(body), start + len(body) + len(entries), num_buffers, len(columns), major, minor
    )
    return data[:start] + body + entries + globals_ + tail + MAGIC


def with_length(data: bytes, num_rows: int) -> bytes:
    """Return a data file, or a file of an index, whose descriptor has another number of rows."""
    entries, num_buffers = struct.unpack_from("<QI", data, len(data) - 24)
    (place, size), *others = [struct.unpack_from("<QQ", data, entries + 16 * i) for i in range(num_buffers)]
    descriptor = file_pb2.FileDescriptor.FromString(data[place : place + size])
    descriptor.length = num_rows
    body = descriptor.SerializeToString()
    table = b"".join(struct.pack("<QQ", *each) for each in [(len(data), len(body)), *others])
    footer = bytearray(data[-40:])
    struct.pack_into("<Q", footer, 16, len(data) + len(body))
    return data + body + table + bytes(footer)


def column_variants(data: bytes) -> Variants:
    """Yield the data file with each single change in the metadata of one of its columns, encodings included."""
    columns = _columns(data)
    for i, column in enumerate(columns):
        for name, changed in _metadata_variants(column):
            yield f"column {i}: {name}", partial(_with_columns, data, [*columns[:i], changed, *columns[i + 1 :]])


def _metadata_variants(column: bytes) -> Iterator[tuple[str, bytes]]:
    metadata = file2_pb2.ColumnMetadata.FromString(column)
    for name, changed in variants(metadata):
        yield name, changed.SerializeToString()
    for p, page in enumerate(metadata.pages[:2]):
        wrapped = AnyMessage.FromString(page.encoding.direct.encoding)
        kind = _ENCODINGS[wrapped.type_url.rpartition(".")[2]]
        for name, changed in variants(kind.FromString(wrapped.value)):
            copy = file2_pb2.ColumnMetadata.FromString(column)
            other = AnyMessage(type_url=wrapped.type_url, value=changed.SerializeToString())
            copy.pages[p].encoding.direct.encoding = other.SerializeToString()
            yield f"page {p} {name}", copy.SerializeToString()
