"""The Arrow extension type `lance.blob.v2` for blobs to write.

    struct<data: large_binary, uri: string[, position: uint64, size: uint64]>

Exactly one of data and uri is not null. Position and size select a range of an external file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lance_duck.arguments import checked_call, suggest_names
from lance_duck.errors import InvalidInputError
from lance_duck.redact import shown
from lance_duck.wire.logical import BLOB_V2

_MEMBERS = (("data", pa.large_binary()), ("uri", pa.string()), ("position", pa.uint64()), ("size", pa.uint64()))
_KEYS = {
    "inline_size_threshold": ("lance-encoding:blob-inline-size-threshold", 0),
    "dedicated_size_threshold": ("lance-encoding:blob-dedicated-size-threshold", 1),
    "pack_file_size_threshold": ("lance-encoding:blob-pack-file-size-threshold", 1),
}


@suggest_names
@dataclass(frozen=True)
class Blob:
    """A blob to write: its bytes, an external file, or a range of an external file.

    Attributes:
        data: The bytes.
        uri: URI of the external file.
        position: First byte of the range. Default: the whole file.
        size: Size of the range in bytes, at least 1.

    Raises:
        InvalidInputError: Both or neither of data and uri are given, or only one of position and size.
    """

    data: bytes | None = None
    uri: str | None = None
    position: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.uri is None):
            members = "none" if self.data is None else "both"
            raise InvalidInputError(
                "a Blob needs either data or a uri", expected="one of them", found=members, remedy="None is a null blob"
            )
        if self.uri == "":
            raise InvalidInputError("the Blob has an empty uri")
        part = (self.position, self.size)
        if (part[0] is None) != (part[1] is None) or (part[0] is not None and self.uri is None):
            raise InvalidInputError(
                "invalid byte range of a Blob", expected="a uri with both position and size", found=part
            )
        if part[0] is not None and part[1] is not None and (part[0] < 0 or part[1] < 1):
            raise InvalidInputError("invalid byte range of a Blob", expected="position >= 0 and size >= 1", found=part)

    def __repr__(self) -> str:
        uri = None if self.uri is None else shown(self.uri)
        return f"Blob(data={self.data!r}, uri={uri!r}, position={self.position!r}, size={self.size!r})"

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview) -> Blob:
        """Return a blob of these bytes."""
        return Blob(bytes(data))

    @staticmethod
    def from_uri(uri: str, position: int | None = None, size: int | None = None) -> Blob:
        """Return a blob for an external file or a range of it."""
        return Blob(None, uri, position, size)

    @staticmethod
    def empty() -> Blob:
        """Return an empty blob, which is not null."""
        return Blob(b"")


class BlobType(pa.ExtensionType):  # type: ignore[misc]
    """The type of blob columns in data to write.

    Args:
        storage: The struct, with two or four members (the default).

    Raises:
        InvalidInputError: The storage type is not this struct.
    """

    def __init__(self, storage: pa.DataType | None = None) -> None:
        storage = pa.struct(list(_MEMBERS)) if storage is None else storage
        layout = [(member.name, member.type) for member in storage] if pa.types.is_struct(storage) else storage
        if layout not in (list(_MEMBERS[:2]), list(_MEMBERS)):
            raise InvalidInputError(
                f"the storage type of {BLOB_V2} is wrong", expected=pa.struct(list(_MEMBERS)), found=storage
            )
        super().__init__(storage, BLOB_V2)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> BlobType:
        return cls(storage)

    def __arrow_ext_class__(self) -> type:
        return BlobArray

    def __reduce__(self) -> tuple[Any, ...]:
        return BlobType, (self.storage_type,)


class BlobArray(pa.ExtensionArray):  # type: ignore[misc]
    """Blobs to be written. See `blob_array`."""

    @classmethod
    def from_pylist(cls, values: Iterable[Any]) -> BlobArray:
        """See `blob_array`."""
        blobs = [None if value is None else _blob(value) for value in values]
        members = [
            pa.array([None if blob is None else getattr(blob, name) for blob in blobs], kind) for name, kind in _MEMBERS
        ]
        mask = pa.array([blob is None for blob in blobs], pa.bool_())
        storage = pa.StructArray.from_arrays(members, fields=[pa.field(*member) for member in _MEMBERS], mask=mask)
        array: BlobArray = pa.ExtensionArray.from_storage(BlobType(), storage)
        return array


@checked_call
def blob_array(values: Iterable[Any]) -> BlobArray:
    """Return an array of blobs.

    Args:
        values: Bytes, the URI of an external file (str), `Blob`, or None for a null.

    Raises:
        InvalidInputError: A value has an unsupported type, or a URI is empty.
    """
    return BlobArray.from_pylist(values)


@checked_call
def blob_field(
    name: str,
    *,
    nullable: bool = True,
    inline_size_threshold: int | None = None,
    dedicated_size_threshold: int | None = None,
    pack_file_size_threshold: int | None = None,
) -> pa.Field:
    """Return an Arrow field for a column of blobs.

    Args:
        name: Name of the column.
        nullable: Whether the column may contain nulls.
        inline_size_threshold: Maximum size of a blob stored in the data file, in bytes. Default: 64 KiB.
        dedicated_size_threshold: Maximum size of a blob that shares a file with other blobs, in bytes. Default: 4 MiB.
        pack_file_size_threshold: Maximum size of a file with several blobs, in bytes. Default: 1 GiB.

    Raises:
        InvalidInputError: A threshold is not an integer, or is too small.
    """
    settings = {
        "inline_size_threshold": inline_size_threshold,
        "dedicated_size_threshold": dedicated_size_threshold,
        "pack_file_size_threshold": pack_file_size_threshold,
    }
    metadata = {}
    for argument, value in settings.items():
        key, least = _KEYS[argument]
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value < 2**64:
            raise InvalidInputError(argument, expected=f"a whole number >= {least}", found=repr(value))
        metadata[key] = str(value)
    return pa.field(name, BlobType(), nullable, metadata or None)


def _blob(value: Any) -> Any:
    if isinstance(value, str):
        return Blob(uri=value)
    if isinstance(value, bytes | bytearray | memoryview):
        return Blob(bytes(value))
    if all(hasattr(value, name) for name, _ in _MEMBERS):
        return value
    raise InvalidInputError(
        "the value cannot be a blob", expected="bytes, a URI, Blob or None", found=type(value).__name__
    )


with contextlib.suppress(pa.ArrowKeyError):
    pa.register_extension_type(BlobType())
