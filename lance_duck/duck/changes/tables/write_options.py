"""Options and rows of statements that write a table: CREATE TABLE … WITH (…) and COPY … TO."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.changes.target import dataset_of
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.tables.statement_versions import with_one_version
from lance_duck.duck.wide_offsets import open_stream, run_with_wide_offsets
from lance_duck.errors import FormatError, LanceDuckError, NotFoundError, warn_of_table
from lance_duck.maintenance.auto_cleanup import auto_cleanup
from lance_duck.snapshot import Location, open_snapshot
from lance_duck.snapshot.publish import forget_table
from lance_duck.store import local_path
from lance_duck.verbs.merge.primary_key import append_with_keys
from lance_duck.verbs.versions.versions import check_is_table, drop_table
from lance_duck.verbs.writing.settings import WriteSettings
from lance_duck.verbs.writing.write_table import write_table
from lance_duck.write.inputs import ROWS_AT_ONCE
from lance_duck.write.relations import relation_reader, with_narrow_offsets
from lance_duck.write.vectors import parse_vector_columns
from lance_duck.write_dataset import write_dataset

WRITE_OPTIONS: Final = (
    "data_storage_version",
    "enable_stable_row_ids",
    "enable_v2_manifest_paths",
    "max_rows_per_file",
    "max_rows_per_group",
    "max_bytes_per_file",
    "vector_columns",
)
"""Arguments of `write_dataset` that are options with the same names."""


def write_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `write_dataset` arguments for the options. Other options are skipped."""
    arguments = {name: values[name] for name in WRITE_OPTIONS if values.get(name) is not None}
    if "data_storage_version" in arguments:  # may also be a number: 2.1
        arguments["data_storage_version"] = str(arguments["data_storage_version"])
    return arguments


def write_query(
    session: ChangeSession, query: str, uri: str, checked_name: str | None = None, **arguments: Any
) -> LanceDataset:
    """Write the rows of a query with `write_new_table`. Repeated column names are numbered, as in native tables.

    DuckDB numbers the columns of a subquery: a second `id` is `id_1`.
    """

    def write(is_wide: bool) -> LanceDataset:
        rows = session.relation(query, {})
        if len(set(map(folded, rows.columns))) < len(rows.columns):
            rows = session.relation(f"SELECT * FROM (\n{query}\n)", {})  # noqa: S608
        with open_stream(session.native) as is_widened, ExitStack() as opened:
            reader = relation_reader(rows, ROWS_AT_ONCE, opened)
            narrow = with_narrow_offsets(reader) if is_wide or is_widened else reader
            return write_new_table(narrow, uri, checked_name, **arguments)

    return with_one_version(lambda: run_with_wide_offsets(session.native, write))


def write_new_table(
    rows: pa.Table | pa.RecordBatchReader, uri: str, checked_name: str | None = None, **arguments: Any
) -> LanceDataset:
    """Write rows as `write_dataset` does. Names in `vector_columns` are case-insensitive.

    A table with a damaged newest manifest is removed if the mode is `overwrite`.

    Args:
        rows: The rows.
        uri: Path of the table.
        checked_name: Name of the table, for errors about repeated primary keys. None does not check appended rows.
        arguments: Arguments of `write_dataset`.
    """
    forms = parse_vector_columns(arguments.pop("vector_columns", None))
    if forms:
        arguments["vector_columns"] = {_as_in(rows.schema.names, name): form for name, form in forms.items()}
    if checked_name is not None and arguments["mode"] == "append":
        mode = arguments.pop("mode")
        append = partial(append_with_keys, name=checked_name)
        snapshot = write_table(rows, uri, None, mode, WriteSettings.of(arguments), append)
        auto_cleanup(snapshot)
        return dataset_of(snapshot)
    try:
        return write_dataset(rows, uri, **arguments)
    except FormatError:
        location = Location.of(uri, arguments.get("storage_options"))
        if arguments.get("mode") != "overwrite" or not is_unreadable(location):
            raise
        with _removed(location) as target:
            return write_dataset(rows, target, **arguments)


def is_unreadable(location: Location) -> bool:
    """Return whether a location has a table that cannot be opened."""
    try:
        open_snapshot(location.uri, storage_options=location.storage_options)
    except NotFoundError:
        return False
    except FormatError:
        return True
    return False


@contextmanager
def _removed(location: Location) -> Iterator[str]:
    """Remove a table while a new one is written. If that fails, a local table is restored.

    Yields:
        Where to write the new table: the target of a symbolic link.
    """
    path = local_path(location.uri)
    if path is None:
        drop_table(location.uri, location.storage_options)
        yield location.uri
        return
    check_is_table(location.store())
    path = os.path.realpath(path)
    aside = f"{path}#{uuid4().hex}"
    os.rename(path, aside)
    try:
        forget_table(location.store())
        yield path
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        os.rename(aside, path)
        raise
    try:
        drop_table(aside)
    except (LanceDuckError, OSError) as error:
        warn_of_table(f"the table was replaced, but its old files remain in {aside}: {error}")


def _as_in(columns: Sequence[str], name: str) -> str:
    """Return a name with the same case as in the columns."""
    same = [column for column in columns if folded(column) == folded(name)]
    return name if name in columns or len(same) != 1 else same[0]
