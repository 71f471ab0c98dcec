"""Fragment metadata objects that users read, store and pass to commits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import index
from typing import Any

import numpy as np

from lance_duck.arguments import suggest_names
from lance_duck.errors import InvalidInputError
from lance_duck.rows import roaring_bytes, roaring_values
from lance_duck.store.base import normal_path
from lance_duck.verbs.handle import TableMethods
from lance_duck.verbs.public.files_in_place import data_file_at
from lance_duck.wire import fragment as wire
from lance_duck.wire.files.overlay import Overlay
from lance_duck.wire.limits import ROW_OFFSETS
from lance_duck.wire.paths import data_file

_SUFFIX_TYPES = {"arrow": "array", "bin": "bitmap"}


@dataclass(frozen=True)
class DataFile:
    """A data file, which stores some columns of all rows of a fragment. Compatible with pylance.

    Attributes:
        path: Path relative to the data directory.
        fields: Ids of the fields in the file. -2 marks a field that a newer file now stores.
        column_indices: Column index in the file, for each field.
        file_major_version: Major version of the file format.
        file_minor_version: Minor version of the file format.
        file_size_bytes: File size, or None if unknown.
        base_id: Id of the file's base path. None is the table root.
    """

    path: str
    fields: list[int]
    column_indices: list[int] = field(default_factory=list)
    file_major_version: int = 0
    file_minor_version: int = 0
    file_size_bytes: int | None = None
    base_id: int | None = None

    @staticmethod
    def create(dataset: TableMethods, path: str, *, base_id: int | None = None) -> DataFile:
        """Describe a data file in the table's data directory. Columns are matched by name.

        Args:
            dataset: The table.
            path: Name of the file, relative to the data directory.
            base_id: Id of the file's base path. None is the table root.

        Raises:
            NotFoundError: The file does not exist.
            InvalidInputError: A column does not exist in the table, or its type differs.
        """
        return data_file_of(data_file_at(dataset.handle.snapshot, path, base_id))


@dataclass(frozen=True)
class DeletionFile:
    """A file that lists the deleted rows of a fragment. `file_type` is "array" or "bitmap"."""

    read_version: int
    id: int
    file_type: str
    num_deleted_rows: int
    base_id: int | None = None

    def asdict(self) -> dict[str, Any]:
        """Return the attributes by name."""
        return asdict(self)

    def json(self) -> str:
        """Return the attributes as a JSON string."""
        return json.dumps(self.asdict())

    @staticmethod
    def from_json(data: str) -> DeletionFile:
        """Parse the result of `json`.

        Raises:
            InvalidInputError: `data` is not the JSON of a deletion file.
        """
        try:
            return DeletionFile(**json.loads(data))
        except (TypeError, ValueError) as error:
            raise InvalidInputError("not a deletion file", found=str(error)) from error

    def path(self, fragment_id: int, base_uri: str | None = None) -> str:
        """Return the path of the file, relative to the table root or below `base_uri`."""
        below = _wire_deletion_file(self).path(fragment_id)
        return below if base_uri is None else f"{base_uri.rstrip('/')}/{below}"


@dataclass(frozen=True)
class DataOverlayFile:
    """An overlay: a file with new values for some cells of a fragment.

    Attributes:
        data_file: The file.
        offsets: Physical row offsets, in any order: one list for all fields of the file, or a list per field. The file
            stores the values in ascending order of these offsets.
        committed_version: First version that the values apply to, or None if not committed yet.
    """

    data_file: DataFile
    offsets: Iterable[int] | Sequence[Iterable[int]]
    committed_version: int | None = None


@suggest_names
@dataclass(frozen=True)
class FragmentMetadata:
    """Fragment metadata. It can be compared, pickled, and converted to and from JSON.

    Attributes:
        id: Id of the fragment.
        files: Data files.
        physical_rows: Number of rows, including deleted rows.
        deletion_file: Deletion file, or None if no row is deleted.
        row_id_meta: Stable row ids: {"Inline": list of bytes} or {"External": file location}.
        created_at_version_meta: Creation version of each row, in the same form with lower-case keys.
        last_updated_at_version_meta: Last update version of each row, in the same form.
        overlays: Overlays with new cell values. Later ones override earlier ones.
    """

    id: int
    files: list[DataFile]
    physical_rows: int
    deletion_file: DeletionFile | None = None
    row_id_meta: Mapping[str, Any] | None = None
    created_at_version_meta: Mapping[str, Any] | None = None
    last_updated_at_version_meta: Mapping[str, Any] | None = None
    overlays: list[DataOverlayFile] = field(default_factory=list)

    @property
    def num_deletions(self) -> int:
        """Number of deleted rows."""
        return self.deletion_file.num_deleted_rows if self.deletion_file else 0

    @property
    def num_rows(self) -> int:
        """Number of live rows."""
        return self.physical_rows - self.num_deletions

    def to_json(self) -> dict[str, Any]:
        """Return the metadata as JSON-compatible values."""
        return asdict(self)

    @staticmethod
    def from_json(data: str | Mapping[str, Any]) -> FragmentMetadata:
        """Parse the result of `to_json`, or a JSON string with the same content.

        Raises:
            InvalidInputError: `data` is not the JSON of fragment metadata.
        """
        try:
            raw = dict(json.loads(data) if isinstance(data, str) else data)
            deletion = raw.pop("deletion_file", None)
            files = [DataFile(**file) for file in raw.pop("files")]
            overlays = [
                DataOverlayFile(**{**o, "data_file": DataFile(**o["data_file"])}) for o in raw.pop("overlays", ())
            ]
            raw["deletion_file"] = DeletionFile(**deletion) if deletion else None
            return FragmentMetadata(files=files, overlays=overlays, **raw)
        except (TypeError, KeyError, ValueError) as error:
            raise InvalidInputError("not the metadata of a fragment", found=str(error)) from error


def metadata_of(
    fragment: wire.Fragment, physical_rows: int | None = None, num_deletions: int | None = None
) -> FragmentMetadata:
    """Convert a manifest's fragment to metadata.

    Args:
        fragment: The fragment.
        physical_rows: Number of rows, including deleted rows. Defaults to the manifest's value.
        num_deletions: Number of deleted rows. Defaults to the manifest's value.
    """
    deletion = fragment.deletion_file
    count = fragment.num_deletions if num_deletions is None else num_deletions
    return FragmentMetadata(
        fragment.id,
        [data_file_of(file) for file in fragment.files],
        fragment.physical_rows if physical_rows is None else physical_rows,
        None if deletion is None else _deletion_file(deletion, count),
        _sequence(fragment.row_ids, str.capitalize),
        _sequence(fragment.created_at),
        _sequence(fragment.last_updated_at),
        [overlay_of(overlay, fragment.id) for overlay in fragment.overlays],
    )


def fragment_from(metadata: FragmentMetadata) -> wire.Fragment:
    """Convert metadata to a manifest's fragment.

    Raises:
        InvalidInputError: The metadata is invalid.
    """
    return wire.Fragment(
        metadata.id,
        tuple(data_file_from(file) for file in metadata.files),
        None if metadata.deletion_file is None else _wire_deletion_file(metadata.deletion_file),
        metadata.physical_rows,
        _wire_sequence(metadata.row_id_meta),
        _wire_sequence(metadata.created_at_version_meta),
        _wire_sequence(metadata.last_updated_at_version_meta),
        tuple(overlay_from(overlay) for overlay in metadata.overlays),
    )


def data_file_of(file: wire.DataFile) -> DataFile:
    """Convert a manifest's data file to pylance's class."""
    major, minor = file.file_version
    return DataFile(file.path, list(file.fields), list(file.column_indices), major, minor, file.file_size, file.base_id)


def overlay_of(overlay: Overlay, fragment_id: int) -> DataOverlayFile:
    """Convert a manifest's overlay to pylance's class.

    Raises:
        CorruptError: A bitmap is corrupt.
    """
    bitmaps = [roaring_values(b, f"fragment {fragment_id}", ROW_OFFSETS).tolist() for b in overlay.bitmaps]
    return DataOverlayFile(
        data_file_of(overlay.file), bitmaps[0] if overlay.is_shared else bitmaps, overlay.committed_version
    )


def overlay_from(overlay: DataOverlayFile) -> Overlay:
    """Convert pylance's overlay to the manifest's.

    Raises:
        InvalidInputError: The offsets are not row numbers, contain duplicates, or have the wrong number of lists.
    """
    path = overlay.data_file.path
    offsets: list[Any] = list(overlay.offsets)
    is_shared = not any(isinstance(each, Iterable) for each in offsets)
    try:
        bitmaps = [_bitmap(each, path) for each in ([offsets] if is_shared else offsets)]
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError("invalid offsets of a data overlay", where=path, found=str(error)) from error
    if not is_shared and len(bitmaps) != len(overlay.data_file.fields):
        fields = len(overlay.data_file.fields)
        raise InvalidInputError(
            "wrong number of offset lists in a data overlay", where=path, expected=fields, found=len(bitmaps)
        )
    return Overlay(data_file_from(overlay.data_file), tuple(bitmaps), overlay.committed_version or 0, is_shared)


def _bitmap(offsets: Iterable[int], path: str) -> bytes:
    rows = np.array([index(offset) for offset in offsets], np.uint32)
    values, counts = np.unique(rows, return_counts=True)
    if len(values) < len(rows):
        repeated = int(values[counts > 1][0])
        raise InvalidInputError("a row has two values in a data overlay", where=path, found=f"offset {repeated} twice")
    return roaring_bytes(values)


def _deletion_file(file: wire.DeletionFile, count: int) -> DeletionFile:
    return DeletionFile(file.read_version, file.id, _SUFFIX_TYPES[file.suffix], count, file.base_id)


def _sequence(content: bytes | wire.ExternalFile | None, spell: Callable[[str], str] = str) -> dict[str, Any] | None:
    if content is None:
        return None
    if isinstance(content, bytes):
        return {spell("inline"): list(content)}
    return {spell("external"): asdict(content)}


def data_file_from(file: DataFile) -> wire.DataFile:
    """Convert a `DataFile` to the manifest's data file.

    Raises:
        InvalidInputError: The path leaves the table root, so the file could not be read.
    """
    normal_path(data_file(file.path, is_dataset_root=file.base_id is None), "the root of the table")
    version = (file.file_major_version, file.file_minor_version)
    size = file.file_size_bytes or None
    return wire.DataFile(file.path, tuple(file.fields), tuple(file.column_indices), version, size, file.base_id)


def _wire_deletion_file(file: DeletionFile) -> wire.DeletionFile:
    suffix = next((suffix for suffix, name in _SUFFIX_TYPES.items() if name == file.file_type), None)
    if suffix is None:
        raise InvalidInputError(
            "unknown type of a deletion file", expected=" or ".join(_SUFFIX_TYPES.values()), found=repr(file.file_type)
        )
    return wire.DeletionFile(suffix, file.read_version, file.id, file.num_deleted_rows, file.base_id)


def _wire_sequence(sequence: Mapping[str, Any] | None) -> bytes | wire.ExternalFile | None:
    if sequence is None:
        return None
    try:
        ((place, value),) = sequence.items()
        return bytes(value) if place.lower() == "inline" else wire.ExternalFile(**value)
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError("invalid row ids or row versions of a fragment", found=str(error)) from error
