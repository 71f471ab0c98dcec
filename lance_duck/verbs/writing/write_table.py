"""Writing data to a new or an existing table."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lance_duck import lazy
from lance_duck.arguments import unknown_value
from lance_duck.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from lance_duck.snapshot import CommitLock, Location, Snapshot, open_snapshot, versions
from lance_duck.store import local_path, new_folder
from lance_duck.verbs.public.bases import new_bases, snapshot_bases, with_base_options
from lance_duck.verbs.writing.settings import WriteSettings, auto_cleanup_config
from lance_duck.verbs.writing.staged import (
    StagedRows,
    commit_added,
    commit_created,
    commit_replaced,
    stage_append,
    staging_new,
)
from lance_duck.wire import flags
from lance_duck.write.inputs import reading

if TYPE_CHECKING:
    from lance_duck.write import vectors
else:
    vectors = lazy.modules(globals(), "lance_duck.write", "vectors")

MODES: Final = ("create", "append", "overwrite")


def write_table(
    data: Any,
    target: str | os.PathLike[str] | Snapshot,
    schema: pa.Schema | None = None,
    mode: str = "create",
    settings: WriteSettings | None = None,
    append: Callable[[pa.RecordBatchReader, Snapshot, WriteSettings], Snapshot] | None = None,
) -> Snapshot:
    """Write data to a new or an existing table: see `write_dataset`.

    Args:
        data: Data in any form that `to_reader` accepts.
        target: Path or URI of the table, or a version of it.
        schema: Schema for data that does not include one.
        mode: One of `MODES`.
        settings: Other arguments of `write_dataset`.
        append: Adds rows to a version of the table. Defaults to an append without a check of keys.

    Returns:
        The new version.
    """
    settings = settings or WriteSettings()
    if mode not in MODES:
        raise unknown_value("unknown mode", mode, MODES, "mode")
    current = current_version(target, settings, is_append=mode == "append")
    if current is not None and mode == "create":
        raise AlreadyExistsError(
            "dataset already exists",
            where=current.uri,
            remedy='use mode="append" to add rows, or mode="overwrite" to replace them',
        )
    if current is not None and settings.initial_bases:
        raise InvalidInputError(
            f"Cannot register new bases in {mode.capitalize()} mode", where="initial_bases", remedy="see add_bases"
        )
    if current is not None and settings.enable_stable_row_ids and not current.has_stable_row_ids:
        raise InvalidInputError(
            "the table does not have stable row ids",
            where="enable_stable_row_ids",
            expected="False, because only new tables can enable them",
            remedy="write a new table with enable_stable_row_ids=True",
        )
    auto_cleanup_config(settings), settings.properties
    is_append = current is not None and mode == "append"
    with reading(data, schema) as given:
        _check_metadata(given.schema)
        reader, columns = _with_vectors(given, settings, current if is_append else None)
        if current is None:
            return _create(reader, columns, target, settings, mode)
        flags.check_writable(current.manifest.writer_flags, current.uri)
        if is_append:
            return (append or _append)(reader, current, settings)
        staged = staging_new(columns, current.location, current.base_paths, settings, current).write(reader)
        return commit_replaced(staged, current, settings)


def _append(reader: pa.RecordBatchReader, current: Snapshot, settings: WriteSettings) -> Snapshot:
    return commit_added(stage_append(reader, current, settings), current, settings)


def _with_vectors(
    reader: pa.RecordBatchReader, settings: WriteSettings, table: Snapshot | None
) -> tuple[pa.RecordBatchReader, pa.Schema]:
    """Return the batches and columns to write. For existing tables, `vector_columns` is only validated."""
    if settings.vector_columns is None:
        return reader, reader.schema
    wanted = vectors.parse_vector_columns(settings.vector_columns)
    if table is None:
        return vectors.with_vectors(reader, wanted)
    vectors.check_vectors(wanted, table.schema.arrow)
    return reader, reader.schema


def _create(
    reader: pa.RecordBatchReader, columns: pa.Schema, target: Any, settings: WriteSettings, mode: str
) -> Snapshot:
    bases = {base.id: base for base in new_bases(settings.initial_bases or (), {}, "initial_bases")}
    options = with_base_options(settings.storage_options, settings.base_store_params, bases)
    location = new_location(target, options, settings.commit_lock)
    with new_folder(local_path(location.uri)):
        staged = staging_new(columns, location, bases, settings).write(reader)
        return commit_created(staged, settings, lambda: _joined(target, settings, mode, staged, bool(bases)))


def _joined(target: Any, settings: WriteSettings, mode: str, staged: StagedRows, has_bases: bool) -> Snapshot | None:
    """Return the version of a table that another writer just created, if the rows fit it. Returns None otherwise."""
    snapshot = current_version(target, settings) if mode == "append" and not has_bases else None
    return snapshot if snapshot is not None and snapshot.schema.fields == staged.schema.fields else None


def new_location(target: Any, storage_options: Mapping[str, str], commit_lock: CommitLock | None = None) -> Location:
    """Return the location of a new table.

    Raises:
        InvalidInputError: The target is not a path or URI.
    """
    if not isinstance(target, str | os.PathLike) or not os.fspath(target):
        raise InvalidInputError("not a table path", where="uri", expected="a path or URI", found=repr(target))
    return Location.of(target, storage_options, commit_lock)


def current_version(target: Any, settings: WriteSettings, *, is_append: bool = False) -> Snapshot | None:
    """Return the newest version of the target table, or None if it does not exist.

    Args:
        target: Path or URI of the table, or a version of it.
        settings: Other arguments of `write_dataset`.
        is_append: Whether rows are appended. If so, a version that is probably the newest is sufficient.
    """
    lock = settings.commit_lock
    if isinstance(target, Snapshot):
        place = target.location
        is_open = lock is None or lock is place.commit_lock
        if not is_open:
            return open_snapshot(place.uri, None, None, place.storage_options, lock)
        return target if is_append and versions.seems_newest(target.store, target.manifest) else target.checkout()
    new_location(target, {})
    try:
        snapshot = open_snapshot(target, storage_options=settings.storage_options, commit_lock=lock)
    except NotFoundError:
        return None
    options = with_base_options(settings.storage_options, settings.base_store_params, snapshot_bases(snapshot))
    return open_snapshot(target, None, None, options, lock) if settings.base_store_params else snapshot


def _check_metadata(schema: pa.Schema) -> None:
    for metadata in [schema.metadata, *(field.metadata for field in schema)]:
        for key, value in (metadata or {}).items():
            try:
                key.decode(), value.decode()
            except UnicodeDecodeError:
                raise InvalidInputError(
                    f"schema metadata {key!r} is not valid UTF-8",
                    where="schema",
                    remedy="encode it, for example as base64",
                ) from None
