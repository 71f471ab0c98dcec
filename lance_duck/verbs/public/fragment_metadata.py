"""The metadata of a fragment, as users see it and pass it on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import index
from typing import Any

import numpy as np

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
    """A data file: some columns of all rows of a fragment, in pylance's shape.

    Attributes:
        path: Path below the folder of data files.
        fields: Ids of the fields in the file; -2 for one that another file has taken over.
        column_indices: Place in the file of the column of each field.
        file_major_version: Major version of the file format.
        file_minor_version: Minor version of the file format.
        file_size_bytes: Bytes of the file; None if unknown.
        base_id: Id of the base path of the file; None for the root of the table.
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
        """Describe a data file in the folder of a table; its columns are matched by name.

        Args:
            dataset: The table.
            path: Name of the file, in the folder of data files.
            base_id: Id of the base path of the file; None for the root of the table.

        Raises:
            NotFoundError: There is no such file.
            InvalidInputError: The file has a column that the table lacks, or of another type.
        """
        return data_file_of(data_file_at(dataset.handle.snapshot, path, base_id))


@dataclass(frozen=True)
class DeletionFile:
    """A file that lists the deleted rows of a fragment; `file_type` is "array" or "bitmap"."""

    read_version: int
    id: int
    file_type: str
    num_deleted_rows: int
    base_id: int | None = None

    def asdict(self) -> dict[str, Any]:
        """Return the attributes by name."""
        return asdict(self)

    def json(self) -> str:
        """Return the attributes as JSON text."""
        return json.dumps(self.asdict())

    @staticmethod
    def from_json(data: str) -> DeletionFile:
        """Build a deletion file from the result of `json`.

        Raises:
            InvalidInputError: The text is no such JSON.
        """
        try:
            return DeletionFile(**json.loads(data))
        except (TypeError, ValueError) as error:
            raise InvalidInputError("not a deletion file", found=str(error)) from error

    def path(self, fragment_id: int, base_uri: str | None = None) -> str:
        """Return the path of the file below `base_uri`, or below the root of the table."""
        below = _wire_deletion_file(self).path(fragment_id)
        return below if base_uri is None else f"{base_uri.rstrip('/')}/{below}"


@dataclass(frozen=True)
class DataOverlayFile:
    """An overlay: a file with new values of some cells of a fragment.

    Attributes:
        data_file: The file.
        offsets: Physical offsets of the rows, in any order: for all fields of the file, or a list for each field. The
            values of the file are those of the rows in ascending order.
        committed_version: Version from which on the values count; None if not committed yet.
    """

    data_file: DataFile
    offsets: Iterable[int] | Sequence[Iterable[int]]
    committed_version: int | None = None


@dataclass(frozen=True)
class FragmentMetadata:
    """The metadata of a fragment. It compares, pickles, and converts to JSON and back.

    Attributes:
        id: Number of the fragment.
        files: Its data files.
        physical_rows: Number of rows, deleted ones included.
        deletion_file: File of its deleted rows; None if there are none.
        row_id_meta: Stable row ids: {"Inline": bytes as numbers} or {"External": place of the file}.
        created_at_version_meta: Versions in which rows were created, likewise with lower-case keys.
        last_updated_at_version_meta: Versions in which rows were last updated, likewise.
        overlays: Overlays with new values of cells; later ones override earlier ones.
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
        """Number of living rows."""
        return self.physical_rows - self.num_deletions

    def to_json(self) -> dict[str, Any]:
        """Return the metadata in types that JSON has."""
        return asdict(self)

    @staticmethod
    def from_json(data: str | Mapping[str, Any]) -> FragmentMetadata:
        """Build the metadata from the result of `to_json`, or from its JSON text.

        Raises:
            InvalidInputError: `data` is no such JSON.
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
    """Return the metadata of a fragment of a manifest.

    Args:
        fragment: The fragment.
        physical_rows: Number of rows, deleted ones included; None to take it from the manifest.
        num_deletions: Number of deleted rows; None to take it from the manifest.
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
    """Return the fragment of a manifest that metadata describe.

    Raises:
        InvalidInputError: A part of the metadata is invalid.
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
    """Return a data file of a manifest in pylance's shape."""
    major, minor = file.file_version
    return DataFile(file.path, list(file.fields), list(file.column_indices), major, minor, file.file_size, file.base_id)


def overlay_of(overlay: Overlay, fragment_id: int) -> DataOverlayFile:
    """Return an overlay of a manifest in pylance's shape.

    Raises:
        CorruptError: A bitmap is broken.
    """
    bitmaps = [roaring_values(b, f"fragment {fragment_id}", ROW_OFFSETS).tolist() for b in overlay.bitmaps]
    return DataOverlayFile(
        data_file_of(overlay.file), bitmaps[0] if overlay.is_shared else bitmaps, overlay.committed_version
    )


def overlay_from(overlay: DataOverlayFile) -> Overlay:
    """Return the overlay of a manifest that is described in pylance's shape.

    Raises:
        InvalidInputError: The offsets are no numbers of rows, repeat one, or are not those of each field.
    """
    path = overlay.data_file.path
    offsets: list[Any] = list(overlay.offsets)
    is_shared = not any(isinstance(each, Iterable) for each in offsets)
    try:
        bitmaps = [_bitmap(each, path) for each in ([offsets] if is_shared else offsets)]
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInputError("offsets of a data overlay", where=path, found=str(error)) from error
    if not is_shared and len(bitmaps) != len(overlay.data_file.fields):
        fields = len(overlay.data_file.fields)
        raise InvalidInputError("lists of offsets of a data overlay", where=path, expected=fields, found=len(bitmaps))
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
    """Return the data file of a manifest that a `DataFile` describes.

    Raises:
        InvalidInputError: Its path leaves the root of the table, which nobody could read afterwards.
    """
    normal_path(data_file(file.path, is_dataset_root=file.base_id is None), "the root of the table")
    version = (file.file_major_version, file.file_minor_version)
    size = file.file_size_bytes or None
    return wire.DataFile(file.path, tuple(file.fields), tuple(file.column_indices), version, size, file.base_id)


def _wire_deletion_file(file: DeletionFile) -> wire.DeletionFile:
    suffix = next((suffix for suffix, name in _SUFFIX_TYPES.items() if name == file.file_type), None)
    if suffix is None:
        raise InvalidInputError(
            "type of a deletion file", expected=" or ".join(_SUFFIX_TYPES.values()), found=repr(file.file_type)
        )
    return wire.DeletionFile(suffix, file.read_version, file.id, file.num_deleted_rows, file.base_id)


def _wire_sequence(sequence: Mapping[str, Any] | None) -> bytes | wire.ExternalFile | None:
    if sequence is None:
        return None
    try:
        ((place, value),) = sequence.items()
        return bytes(value) if place.lower() == "inline" else wire.ExternalFile(**value)
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError("row ids or row versions of a fragment", found=str(error)) from error
