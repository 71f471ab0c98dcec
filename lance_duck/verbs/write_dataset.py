"""Data become a table, or rows of one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from lance_duck.commit import commit, create_table, run_again
from lance_duck.commit.operations import Append, Operation, Overwrite
from lance_duck.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from lance_duck.scan.projection import HIDDEN
from lance_duck.snapshot import Location, Snapshot, open_snapshot
from lance_duck.verbs.bases import new_bases, snapshot_bases, target_bases, with_base_options
from lance_duck.verbs.fitting import check_still_fits, fitting
from lance_duck.verbs.new_columns import without_pandas
from lance_duck.verbs.write_settings import WriteSettings, auto_cleanup_config
from lance_duck.wire import flags
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.manifest import BasePath
from lance_duck.wire.schema import Schema
from lance_duck.wire.schema_out import schema_from_arrow
from lance_duck.write.files import discard_fragments, write_fragments
from lance_duck.write.inputs import to_reader
from lance_duck.write.options import Base, storage_version

MODES: Final = ("create", "append", "overwrite")


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
        raise InvalidInputError(
            f"Cannot register new bases in {mode.capitalize()} mode", where="initial_bases", remedy="see add_bases"
        )
    reader = to_reader(data, schema)
    _check_metadata(reader.schema)
    if current is None:
        return _create(reader, target, settings, mode)
    flags.check_writable(current.manifest.writer_flags, current.uri)
    return _append(reader, current, settings) if mode == "append" else _overwrite(reader, current, settings)


@dataclass(frozen=True)
class Staged:
    """Fragments that are written and not committed; `sync` is called before another process commits them.

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

    def sync(self) -> None:
        """Make the files safe on the disk; they are deleted where that fails."""
        try:
            self.location.store().sync()
        except StoreError:
            self.discard()
            raise

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


def _create(reader: pa.RecordBatchReader, target: Any, settings: WriteSettings, mode: str) -> Snapshot:
    bases = {base.id: base for base in new_bases(settings.initial_bases or (), {}, "initial_bases")}
    location = new_location(target, with_base_options(settings.storage_options, settings.base_store_params, bases))
    config, properties = auto_cleanup_config(settings), settings.properties
    staged = stage_new(reader, location, bases, settings)
    operation = Overwrite(staged.schema, staged.fragments, config, tuple(bases.values()))

    def create() -> Snapshot:
        try:
            return create_table(
                location,
                operation,
                data_storage_version=storage_version(settings.data_storage_version),
                stable_row_ids=settings.enable_stable_row_ids,
                v2_manifest_paths=settings.enable_v2_manifest_paths,
                properties=properties,
            )
        except AlreadyExistsError:
            # Somebody else was faster: where the table is the one that this would have been, the rows go there.
            found = current_version(target, settings) if mode == "append" and not bases else None
            if found is None or found.schema.fields != staged.schema.fields:
                raise
            return _add(staged, found, properties)

    return staged.commit(create)


def _append(reader: pa.RecordBatchReader, current: Snapshot, settings: WriteSettings) -> Snapshot:
    properties = settings.properties
    staged = stage_append(reader, current, settings)
    return staged.commit(lambda: _add(staged, current, properties))


def _add(staged: Staged, current: Snapshot, properties: Mapping[str, str] | None) -> Snapshot:
    operation = Append(staged.fragments)

    def guard(newest: Snapshot) -> None:
        check_still_fits(staged.schema, newest)

    def attempt(snapshot: Snapshot) -> Snapshot:
        guard(snapshot)
        return commit(snapshot, operation, guard=guard, properties=properties)

    return run_again(current, attempt)


def _overwrite(reader: pa.RecordBatchReader, current: Snapshot, settings: WriteSettings) -> Snapshot:
    properties = settings.properties
    staged = stage_new(reader, current.location, current.base_paths, settings, current)
    operation: Operation = Overwrite(staged.schema, staged.fragments)
    return staged.commit(
        lambda: run_again(current, lambda snapshot: commit(snapshot, operation, properties=properties))
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


def _check_metadata(schema: pa.Schema) -> None:
    for metadata in [schema.metadata, *(field.metadata for field in schema)]:
        for key, value in (metadata or {}).items():
            try:
                key.decode(), value.decode()
            except UnicodeDecodeError:
                raise InvalidInputError(
                    f"metadata {key!r} is not valid utf8", where="schema", remedy="encode it, for example as base64"
                ) from None
