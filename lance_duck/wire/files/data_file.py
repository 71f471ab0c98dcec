"""Data file entries in manifests: names, fields and versions.

DataFile  {1 path, 2 field ids, 3 a column for each field, 4, 5 version, 6 size, 7 base path}
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from lance_duck.errors import CorruptError
from lance_duck.wire.pb import table_pb2

TOMBSTONE = -2

LEGACY: Final = "0.1"

UNSTABLE: Final = "2.3"
"""A file version that is read but not written, because its encodings may change."""

_OLD_VERSIONS = {(0, 0): LEGACY, (0, 1): LEGACY, (0, 2): LEGACY, (0, 3): "2.0"}


@dataclass(frozen=True, slots=True)
class DataFile:
    """A file with some columns of all rows of a fragment.

    Attributes:
        path: Name of the file, relative to data/ or to the base path.
        fields: Field ids. -2 marks a field that another file now stores.
        column_indices: Column of each field in the file, or -1 if the field is not stored. Empty for 0.1 files.
        file_version: (major, minor), as stored in the manifest.
        file_size: Size of the file in bytes, or None if the manifest does not store it.
        base_id: Id of the base path that the name is relative to, or None for the root of the table.
    """

    path: str
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    file_version: tuple[int, int]
    file_size: int | None
    base_id: int | None

    @property
    def version(self) -> str:
        """File format version: "0.1", "2.0", "2.1". The file itself may declare a different version."""
        return version_text(self.file_version)

    @property
    def exact_size(self) -> int | None:
        """Size of the file in bytes, or None if it is unknown.

        Sizes of 0.1 files are ignored, because pylance 1 to 4 record sizes that are too small.
        """
        return None if self.version == LEGACY else self.file_size

    def column_of(self, field_id: int) -> int | None:
        """Return the column of a field in this file, or None if the file does not store the field separately.

        In 0.1 files, the column of a field is its id.
        """
        if not self.column_indices and self.version == LEGACY:
            return field_id if field_id in self.fields and field_id >= 0 else None
        try:
            column = self.column_indices[self.fields.index(field_id)]
        except (ValueError, IndexError):
            return None
        return column if column >= 0 else None


def version_text(version: tuple[int, int]) -> str:
    """Return the name of a file version, such as "2.1", given (major, minor) as stored in manifests."""
    return _OLD_VERSIONS.get(version) or "{}.{}".format(*version)


def data_file_from_proto(proto: table_pb2.DataFile, where: str) -> DataFile:
    """Build a data file from its message.

    Raises:
        CorruptError: The numbers of column indices and of fields differ.
    """
    fields, columns = tuple(proto.fields), tuple(proto.column_indices)
    if columns and len(columns) != len(fields):
        raise CorruptError(
            "wrong number of column indices in a data file",
            where=f"{where}: {proto.path}",
            expected=len(fields),
            found=len(columns),
        )
    return DataFile(
        proto.path,
        fields,
        columns,
        (proto.file_major_version, proto.file_minor_version),
        proto.file_size_bytes or None,
        proto.base_id if proto.HasField("base_id") else None,
    )
