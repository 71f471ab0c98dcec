"""write_dataset: create a table, or append rows to it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Unpack

import pyarrow as pa

from lance_duck import lazy
from lance_duck.arguments import checked_call, declared_arguments
from lance_duck.dataset import LanceDataset
from lance_duck.errors import InvalidInputError
from lance_duck.maintenance.auto_cleanup import auto_cleanup
from lance_duck.scan.table_scan import TableScan
from lance_duck.verbs.writing.settings import WriteArguments, WriteSettings
from lance_duck.verbs.writing.write_table import write_table

if TYPE_CHECKING:
    from lance_duck.verbs.public import named_tables
else:
    named_tables = lazy.modules(globals(), "lance_duck.verbs.public", "named_tables")


@checked_call
def write_dataset(
    data_obj: Any,
    uri: str | os.PathLike[str] | LanceDataset | None = None,
    schema: pa.Schema | None = None,
    mode: str = "create",
    *,
    namespace_client: Any = None,
    table_id: Sequence[str] | None = None,
    **settings: Unpack[WriteArguments],
) -> LanceDataset:
    """Write data to a table and return the table at its new version.

    Args:
        data_obj: A pyarrow Table, RecordBatch, RecordBatchReader, Dataset or Scanner; batches and a schema; a pandas or
            polars DataFrame; a DuckDB relation; a list of dicts; a dict of arrays; or any object with
            `__arrow_c_stream__`.
        uri: Path or URI of the table, or a handle to it. "memory://name" is an in-memory table that exists until the
            process ends. "memory://" creates a new in-memory table with a generated name (`LanceDataset.uri`).
        schema: Schema for data that does not include one.
        mode: "create" creates a table and fails if it exists. "append" adds rows, matching columns by name, or creates
            the table. "overwrite" replaces rows and schema in a new version, or creates the table. Settings and older
            versions remain.
        max_rows_per_file: Maximum number of rows per data file, and therefore per fragment.
        max_rows_per_group: Rows per batch in 0.1 files. Later file versions do not have batches.
        max_bytes_per_file: File size at which a new file begins, in bytes.
        data_cache_bytes: Size of the buffer for values of incomplete pages of all columns, in bytes.
        max_page_bytes: Maximum size of a page's values, in bytes.
        progress: A function that is regularly called with a `WriteProgress`, or True to print the progress. Also
            accepts a `FragmentWriteProgress`.
        storage_options: Object store settings.
        data_storage_version: "2.2" (default, alias "stable"), "2.1", "2.0", or "0.1" (alias "legacy"). Version 0.1 is
            for readers from before 2024. In 0.1 files, only string and binary columns can contain nulls. An existing
            table keeps its version by default. A table cannot mix 0.1 files with later versions.
        use_legacy_format: Deprecated. False means "stable", and True means "legacy".
        enable_v2_manifest_paths: Whether to use manifest names with which the newest version is found without a full
            listing. Without effect on existing tables: see `LanceDataset.migrate_manifest_paths_v2`.
        enable_stable_row_ids: Whether rows of a new table keep their `_rowid` when they move. True is rejected for an
            existing table without stable row ids.
        auto_cleanup_options: {"interval": versions, "older_than_seconds": age}, stored as settings of a new table.
            Without effect on existing tables: see `LanceDataset.optimize.enable_auto_cleanup`.
        commit_message: Message to store with the transaction. See `read_transaction`.
        transaction_properties: Key-value pairs of strings to store with the transaction.
        initial_bases: Base paths of a new table (`DatasetBasePath`): additional locations for its data files.
        target_bases: Names or paths of the base paths to which data files are written, round-robin.
        target_all_bases: True writes to the table root and all base paths, False to all base paths.
        base_store_params: Object store settings of base paths, by path.
        external_blob_mode: "reference" stores the URIs of external blobs, "ingest" copies their bytes into the table.
        allow_external_blob_outside_bases: Allow references to any location. By default, they must point to files below
            base paths that are not table roots.
        blob_pack_file_size_threshold: Maximum size of a file with several blobs, in bytes. Defaults to 1 GiB.
        vector_columns: List columns that a new table stores as searchable vectors. {"v": 128} sets the dimension, and
            {"v": "float16[128]"} also sets the value type. ["v"] uses the dimension of the first non-null value.
            Existing tables keep their column types.
        namespace_client: Catalog that resolves the table and registers new ones: see `lance_duck.dataset`.
        table_id: Name of the table in that catalog, as a list of its parts.
        commit_lock: Held while the version is published: see `lance_duck.dataset`.
        settings: Accepts `max_rows_per_file` and the arguments after it. pylance's `session` is not supported.

    Raises:
        AlreadyExistsError: The table exists, and the mode is "create".
        InvalidInputError: The data does not match the table, or an argument is invalid.
        UnsupportedError: A type or file version cannot be written, or an argument is not supported.
        CommitConflictError: The table changed during the write, and the rows do not match its new schema.
        StoreError: The disk or the object store failed. After any error, the table does not have a new version.
    """
    write = WriteSettings.of(declared_arguments(write_dataset, settings, WriteArguments, _REMEDIES))
    if namespace_client is not None or table_id is not None:
        uri, options = named_tables.named_place(uri, namespace_client, table_id, write.storage_options, mode)
        write = replace(write, storage_options=options)
    target = _target(uri)
    snapshot = write_table(data_obj, target, schema, mode, write)
    auto_cleanup(snapshot)
    return LanceDataset(uri.uri if isinstance(uri, LanceDataset) else os.fspath(target), table=TableScan(snapshot))


_REMEDIES: Final = MappingProxyType(
    {
        "session": None,
    }
)

_NAMELESS: Final = "memory://"


def _target(uri: Any) -> Any:
    if uri is None:
        raise InvalidInputError("not a table path", where="uri", expected="a path, a URI or a LanceDataset")
    if uri == _NAMELESS:
        return f"{_NAMELESS}{uuid.uuid4()}"
    return uri.handle.snapshot if isinstance(uri, LanceDataset) else uri


__all__ = ["write_dataset"]
