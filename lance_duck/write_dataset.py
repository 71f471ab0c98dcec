"""write_dataset: makes a table, or adds rows to one."""

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
    """Write data to a table, and return it at its new version.

    Args:
        data_obj: A pyarrow Table, RecordBatch, RecordBatchReader, Dataset or Scanner, batches with their schema, a
            pandas or polars frame, a DuckDB relation, a list of dicts, a dict of arrays, or anything with
            `__arrow_c_stream__`.
        uri: Path or URI of the table, or a handle on it. "memory://name" is a table in memory, for as long as the
            process lives; "memory://" alone a new one each time, with a name of its own (`LanceDataset.uri`).
        schema: Schema of data that have none of their own.
        mode: "create" makes a table and fails where there is one. "append" adds rows, to the columns of the same
            names, or makes the table. "overwrite" replaces rows and schema by a new version, or makes the table;
            settings and older versions stay.
        max_rows_per_file: Rows of a data file at most, which are those of a fragment.
        max_rows_per_group: Rows of a batch in files of version 0.1; files of version 2 have no batches.
        max_bytes_per_file: Size after which a file is ended.
        data_cache_bytes: Bytes of values that wait for their pages to be full, over all columns.
        max_page_bytes: Bytes of values of a page at most.
        progress: A function that is called with `WriteProgress` now and then; True prints it. Or an observer that is
            told of each fragment.
        storage_options: Settings of the object store.
        data_storage_version: "2.2", which is the default and "stable", "2.1", "2.0", or "0.1", which is "legacy": for
            readers of before 2024, with nulls in texts and bytes only. A table that exists keeps its version unless
            another is given; no table has files of version 0.1 and of later ones at once.
        use_legacy_format: Deprecated; False is "stable", True "legacy".
        enable_v2_manifest_paths: Name manifests so that the newest is found without listing all. Without effect on a
            table that exists: see `LanceDataset.migrate_manifest_paths_v2`.
        enable_stable_row_ids: Whether rows of a new table keep their `_rowid` when they move. True is refused for a
            table that exists without them.
        auto_cleanup_options: {"interval": versions, "older_than_seconds": age}, kept as settings of a new table.
            Without effect on a table that exists: see `LanceDataset.optimize.enable_auto_cleanup`.
        commit_message: Message that is stored with the transaction; see `read_transaction`.
        transaction_properties: Texts by name that are stored with the transaction.
        initial_bases: Base paths, as `DatasetBasePath`, for a new table: other places for its data files.
        target_bases: Names or paths of base paths that the files go to, one after the other.
        target_all_bases: True: to the root of the table and all base paths; False: to all base paths.
        base_store_params: Settings of the object stores of base paths, by path.
        external_blob_mode: "reference" keeps the URIs of external blobs, "ingest" copies their bytes into the table.
        allow_external_blob_outside_bases: Let references lead anywhere, not only into base paths of the table that are
            no roots of tables.
        blob_pack_file_size_threshold: Bytes of a file with several blobs; 1 GiB.
        vector_columns: Columns of lists that a new table stores as vectors, which can be searched: {"v": 128}, or
            {"v": "float16[128]"} with another type of numbers; ["v"] finds the length from the first value that is not
            null. A table that exists already decides the types of its columns.
        namespace_client: Catalog that says where the table is, and is told of a new one: see `lance_duck.dataset`.
        table_id: Parts of the name of the table in that catalog.
        commit_lock: Held while the version appears: see `lance_duck.dataset`.
        settings: The arguments from `max_rows_per_file` on, by name. pylance's `session` is not supported.

    Raises:
        AlreadyExistsError: The table exists, and the mode is "create".
        InvalidInputError: The data does not fit the table, or an argument is invalid.
        UnsupportedError: A type or a file version cannot be written, or an argument is not supported.
        CommitConflictError: The table was changed meanwhile, and the rows do not fit it any more.
        StoreError: The disk or the object store failed. Whatever fails, there is no new version.
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
        raise InvalidInputError("not a path of a table", where="uri", expected="a path, a URI or a LanceDataset")
    if uri == _NAMELESS:
        return f"{_NAMELESS}{uuid.uuid4()}"
    return uri.handle.snapshot if isinstance(uri, LanceDataset) else uri


__all__ = ["write_dataset"]
