"""Data become a table, or rows of one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from lance_duck.commit import commit, create_table, run_again
from lance_duck.commit.operations import Append, Operation, Overwrite
from lance_duck.errors import (
    AlreadyExistsError,
    CommitConflictError,
    IncompatibleError,
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
)
from lance_duck.file.write.blob_options import BlobOptions
from lance_duck.scan.projection import HIDDEN
from lance_duck.snapshot import Location, Snapshot, open_snapshot
from lance_duck.store import open_source
from lance_duck.verbs.bases import new_bases, snapshot_bases, target_bases, with_base_options
from lance_duck.verbs.change import transaction_properties
from lance_duck.verbs.new_columns import without_pandas
from lance_duck.wire import flags
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.manifest import BasePath
from lance_duck.wire.schema import Field, Schema
from lance_duck.wire.schema_out import schema_from_arrow
from lance_duck.write.files import discard_fragments, write_fragments
from lance_duck.write.inputs import to_reader
from lance_duck.write.options import Base, WriteOptions, WriteProgress, storage_version

_UNITS: Final = {"year": 31_557_600, "month": 2_630_016, "day": 86_400, "h": 3600, "m": 60, "s": 1}

MODES: Final = ("create", "append", "overwrite")


@dataclass(frozen=True, kw_only=True)
class WriteSettings:
    """Arguments of `write_dataset`, by its names; see there."""

    max_rows_per_file: int = WriteOptions.max_rows_per_file
    max_rows_per_group: int | None = WriteOptions.max_rows_per_group
    max_bytes_per_file: int = WriteOptions.max_bytes_per_file
    data_cache_bytes: int | None = None
    max_page_bytes: int | None = None
    progress: Callable[[WriteProgress], None] | bool | None = None
    storage_options: Mapping[str, str] | None = None
    data_storage_version: str | None = None
    enable_v2_manifest_paths: bool = True
    enable_stable_row_ids: bool = False
    auto_cleanup_options: Mapping[str, int] | None = None
    commit_message: str | None = None
    transaction_properties: Mapping[str, str] | None = None
    initial_bases: Sequence[Any] | None = None
    target_bases: Sequence[str] | None = None
    target_all_bases: bool | None = None
    base_store_params: Mapping[str, Mapping[str, str]] | None = None
    external_blob_mode: str = "reference"
    allow_external_blob_outside_bases: bool = False
    blob_pack_file_size_threshold: int | None = None

    @property
    def properties(self) -> dict[str, str] | None:
        """What the transaction says of itself."""
        return transaction_properties(self.commit_message, self.transaction_properties)

    def blobs(self, location: Location, bases: Mapping[int, BasePath]) -> BlobOptions:
        """What becomes of blobs, in a table with these base paths."""
        return BlobOptions(
            self.external_blob_mode,
            bool(self.allow_external_blob_outside_bases),
            {i: location.base_uri(base) for i, base in bases.items() if not base.is_dataset_root},
            self.blob_pack_file_size_threshold,
            lambda uri: open_source(uri, location.options_for(uri)),
        )

    def options(self, version: str | None, bases: Sequence[Base | None], blobs: BlobOptions) -> WriteOptions:
        """How the files are written, in a version where the caller did not choose one."""
        return WriteOptions(
            max_rows_per_file=self.max_rows_per_file,
            max_rows_per_group=self.max_rows_per_group or WriteOptions.max_rows_per_group,
            max_bytes_per_file=self.max_bytes_per_file,
            data_storage_version=self.data_storage_version or version,
            bases=bases,
            blobs=blobs,
            progress=_progress(self.progress),
        )


def write_table(
    data: Any,
    target: str | os.PathLike[str] | Snapshot,
    schema: pa.Schema | None = None,
    mode: str = "create",
    settings: WriteSettings | None = None,
) -> Snapshot:
    """Write data to a new table, or to one that there is; see `write_dataset`.

    Args:
        data: Whatever `to_reader` takes.
        target: Where the table is, or a version of it.
        schema: Of data that do not know theirs.
        mode: One of `MODES`.
        settings: Everything else.

    Returns:
        The new version.
    """
    settings = settings or WriteSettings()
    if mode not in MODES:
        raise InvalidInputError("unknown mode", where="mode", expected=", ".join(MODES), found=repr(mode))
    current = current_version(target, settings)
    if current is not None and mode == "create":
        raise AlreadyExistsError(
            "dataset already exists",
            where=current.uri,
            remedy='mode="append" adds rows, mode="overwrite" replaces them',
        )
    if current is not None and settings.initial_bases:
        raise InvalidInputError("only a new table takes initial_bases", where="initial_bases", remedy="see add_bases")
    reader = to_reader(data, schema)
    _check_metadata(reader.schema)
    if current is None:
        return _create(reader, target, settings)
    flags.check_writable(current.manifest.writer_flags, current.uri)
    return _append(reader, current, settings) if mode == "append" else _overwrite(reader, current, settings)


@dataclass(frozen=True)
class Staged:
    """Fragments that are written and not committed.

    Attributes:
        schema: What they were written with: of a table that exists the columns that the data have.
        fragments: The fragments, without numbers.
        location: The table.
        bases: Where the files are.
    """

    schema: Schema
    fragments: tuple[Fragment, ...]
    location: Location
    bases: tuple[Base | None, ...] = ()

    def discard(self) -> None:
        """Delete the files. Never raises."""
        discard_fragments(self.location.store(), self.fragments, self.bases)

    def commit(self, do: Callable[[], Snapshot]) -> Snapshot:
        """Commit; the files are deleted where that is known to have failed."""
        try:
            return do()
        except (CommitConflictError, InvalidInputError, AlreadyExistsError, UnsupportedError):
            self.discard()
            raise


def stage_append(reader: pa.RecordBatchReader, snapshot: Snapshot, settings: WriteSettings) -> Staged:
    """Write rows for a table that there is; columns may be missing where they may be null.

    Raises:
        InvalidInputError: The data do not fit the table.
    """
    schema = fitting(snapshot.schema, without_pandas(reader.schema))
    return _stage(reader, schema, snapshot.location, snapshot.base_paths, settings, snapshot.data_storage_version)


def stage_new(
    reader: pa.RecordBatchReader,
    location: Location,
    bases: Mapping[int, BasePath],
    settings: WriteSettings,
    replaced: Snapshot | None = None,
) -> Staged:
    """Write rows for a new schema.

    Raises:
        InvalidInputError: A name comes twice or is reserved.
        UnsupportedError: A type that cannot be stored.
    """
    version = settings.data_storage_version or (None if replaced is None else replaced.data_storage_version)
    first = 0
    if replaced is not None and replaced.manifest.writer_flags & flags.KEPT_FIELD_IDS:
        first = replaced.manifest.proto.max_allocated_field_id + 1
    schema = schema_from_arrow(without_pandas(reader.schema), storage_version(version), first)
    reserved = [name for name in schema.names if name in HIDDEN]
    if reserved:
        raise InvalidInputError(f"column {reserved[0]!r} has a reserved name", where="schema", remedy="rename it")
    return _stage(reader, schema, location, bases, settings, version)


def fitting(schema: Schema, found: pa.Schema) -> Schema:
    """The columns of a table that data have; members of structs likewise.

    Raises:
        InvalidInputError: The data have other columns, or lack some that may not be null.
    """
    unknown = [name for name in found.names if name not in schema.names]
    missing = [field.name for field in schema.fields if field.name not in found.names and not field.nullable]
    if unknown or missing:
        what = f"columns {', '.join(map(repr, unknown))} are not in the table" if unknown else ""
        lack = f"columns {', '.join(map(repr, missing))} are missing and cannot be null" if missing else ""
        raise InvalidInputError(
            " and ".join(filter(None, (what, lack))), where="data", expected=", ".join(schema.names) or "none"
        )
    present = {field.name: field for field in found}
    kept = tuple(_prune(field, present[field.name].type) for field in schema.fields if field.name in present)
    return replace(schema, fields=kept)


def _prune(field: Field, kind: pa.DataType) -> Field:
    if field.logical_type != "struct" or field.is_packed or field.blob_version or not pa.types.is_struct(kind):
        return field
    members = {kind.field(i).name: kind.field(i).type for i in range(kind.num_fields)}
    children = tuple(
        _prune(child, members[child.name]) if child.name in members else child
        for child in field.children
        if child.name in members or not child.nullable
    )
    return replace(field, children=children) if children else field


def _stage(
    reader: pa.RecordBatchReader,
    schema: Schema,
    location: Location,
    bases: Mapping[int, BasePath],
    settings: WriteSettings,
    version: str | None,
) -> Staged:
    targets = target_bases(location, bases, settings.target_bases, settings.target_all_bases)
    options = settings.options(version, targets, settings.blobs(location, bases))
    fragments = write_fragments(location.store(), schema, reader, options)
    return Staged(schema, tuple(fragments), location, tuple(targets))


def _create(reader: pa.RecordBatchReader, target: Any, settings: WriteSettings) -> Snapshot:
    bases = {base.id: base for base in new_bases(settings.initial_bases or (), {}, "initial_bases")}
    location = new_location(target, with_base_options(settings.storage_options, settings.base_store_params, bases))
    staged = stage_new(reader, location, bases, settings)
    operation = Overwrite(staged.schema, staged.fragments, _auto_cleanup(settings), tuple(bases.values()))
    return staged.commit(
        lambda: create_table(
            location,
            operation,
            data_storage_version=storage_version(settings.data_storage_version),
            stable_row_ids=settings.enable_stable_row_ids,
            v2_manifest_paths=settings.enable_v2_manifest_paths,
            properties=settings.properties,
        )
    )


def _append(reader: pa.RecordBatchReader, current: Snapshot, settings: WriteSettings) -> Snapshot:
    staged = stage_append(reader, current, settings)

    def attempt(snapshot: Snapshot) -> Snapshot:
        if snapshot.version != current.version:
            check_still_fits(staged.schema, snapshot)
        return commit(snapshot, Append(staged.fragments), properties=settings.properties)

    return staged.commit(lambda: run_again(current, attempt))


def _overwrite(reader: pa.RecordBatchReader, current: Snapshot, settings: WriteSettings) -> Snapshot:
    staged = stage_new(reader, current.location, current.base_paths, settings, current)
    operation: Operation = Overwrite(staged.schema, staged.fragments)
    return staged.commit(
        lambda: run_again(current, lambda snapshot: commit(snapshot, operation, properties=settings.properties))
    )


def check_still_fits(written: Schema, snapshot: Snapshot) -> None:
    """Refuse to add rows to a version whose columns are not those that they were written for.

    Raises:
        IncompatibleError: A column is gone or has another type, or one that may not be null is new.
    """
    now = {field.id: field for field in snapshot.schema.walk()}
    have = {field.id: field for field in written.walk()}
    for field_id, field in have.items():
        other = now.get(field_id)
        if other is None or other.logical_type != field.logical_type or (field.nullable and not other.nullable):
            raise IncompatibleError(
                f"column {field.name!r} was dropped or changed meanwhile", where=snapshot.uri, remedy="write again"
            )
    for field_id, field in now.items():
        if field_id not in have and not field.nullable and (field.parent_id < 0 or field.parent_id in have):
            raise IncompatibleError(
                f"column {field.name!r}, which cannot be null, came meanwhile", where=snapshot.uri, remedy="write again"
            )


def new_location(target: Any, storage_options: Mapping[str, str]) -> Location:
    """Where a table will be.

    Raises:
        InvalidInputError: The target is no path or URI.
    """
    if not isinstance(target, str | os.PathLike) or not os.fspath(target):
        raise InvalidInputError("no place for a table", where="uri", expected="a path or URI", found=repr(target))
    return Location.of(target, storage_options)


def current_version(target: Any, settings: WriteSettings) -> Snapshot | None:
    """The newest version of the table that is written to; None when there is none."""
    if isinstance(target, Snapshot):
        return target.checkout()
    new_location(target, {})
    try:
        found = open_snapshot(target, storage_options=settings.storage_options)
    except NotFoundError:
        return None
    options = with_base_options(settings.storage_options, settings.base_store_params, snapshot_bases(found))
    return open_snapshot(target, storage_options=options) if settings.base_store_params else found


def _auto_cleanup(settings: WriteSettings) -> dict[str, str]:
    given = settings.auto_cleanup_options
    if given is None:
        return {}
    try:
        interval, seconds = int(given["interval"]), int(given["older_than_seconds"])
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(
            "auto_cleanup_options", expected="interval and older_than_seconds", found=repr(given)
        ) from error
    return {"lance.auto_cleanup.interval": str(interval), "lance.auto_cleanup.older_than": _duration(seconds)}


def _duration(seconds: int) -> str:
    """Text for a time span, as in "2days 1h 1m 1s"."""
    parts = []
    for name, size in _UNITS.items():
        count, seconds = divmod(seconds, size)
        if count:
            plural = "s" if count > 1 and len(name) > 1 else ""
            parts.append(f"{count}{name}{plural}")
    return " ".join(parts) or "0s"


def _check_metadata(schema: pa.Schema) -> None:
    for metadata in [schema.metadata, *(field.metadata for field in schema)]:
        for key, value in (metadata or {}).items():
            try:
                key.decode(), value.decode()
            except UnicodeDecodeError:
                raise InvalidInputError(
                    f"metadata {key!r} is not valid utf8", where="schema", remedy="encode it, for example as base64"
                ) from None


def _progress(given: Any) -> Callable[[WriteProgress], None] | None:
    if given is None or given is False:
        return None
    if given is True:
        return _print_progress
    if not callable(given):
        raise InvalidInputError("progress", expected="True or a function", found=repr(given))
    found: Callable[[WriteProgress], None] = given
    return found


def _print_progress(progress: WriteProgress) -> None:
    text = f"\r{progress.rows:,} rows, {progress.bytes:,} bytes, {progress.files:,} files "
    print(text, end="", file=sys.stderr, flush=True)
