"""LanceDataset: one version of a Lance table, as a pyarrow Dataset that DuckDB reads through its native protocol."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self, Unpack
from weakref import ref

import pyarrow as pa
import pyarrow.dataset as pads

from lance_duck import lazy
from lance_duck.arguments import checked_call, checked_calls, refuse_unsupported
from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.optimize import Upkeep
from lance_duck.redact import shown
from lance_duck.scan.arguments import CountArguments, HeadArguments, ScanArguments, TakeArguments
from lance_duck.scan.arrow import in_memory
from lance_duck.scan.blobs.methods import BlobReads
from lance_duck.scan.duckdb.nodes import predicate_from_node
from lance_duck.scan.duckdb.pushed import ByCaller
from lance_duck.scan.duckdb.source import ScanSource
from lance_duck.scan.filters import FilterLike, compared
from lance_duck.scan.options import ROW_NAMES, ScanOptions, checked_defaults
from lance_duck.scan.polars.methods import PolarsFrames
from lance_duck.scan.predicate.tree import Predicate
from lance_duck.scan.projection import ColumnsLike
from lance_duck.scan.scanner import LanceScanner
from lance_duck.scan.searches.methods import Searches
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import CommitLock, Snapshot, Version, open_snapshot
from lance_duck.store import with_cache
from lance_duck.verbs.columns.methods import ColumnChanges
from lance_duck.verbs.handle import Handle
from lance_duck.verbs.indexes.methods import IndexChanges
from lance_duck.verbs.other_names import OtherNames
from lance_duck.verbs.row_methods import RowChanges
from lance_duck.verbs.versions.commits import Commits
from lance_duck.verbs.versions.config import ConfigChanges
from lance_duck.verbs.versions.delta import Lineage
from lance_duck.verbs.versions.history import History
from lance_duck.verbs.versions.properties import VersionProperties
from lance_duck.verbs.versions.versions import VersionChanges, refuse_both

if TYPE_CHECKING:
    from lance_duck import fragment as fragment_handle
    from lance_duck.log import view as log_views
    from lance_duck.maintenance import auto_cleanup
    from lance_duck.scan import sql_query
    from lance_duck.scan.indexes import indexed_columns as indexed
    from lance_duck.scan.searches import request as search_request
    from lance_duck.verbs import markup
    from lance_duck.verbs.public import bases, named_tables
else:
    fragment_handle = lazy.modules(globals(), "lance_duck", "fragment")
    log_views = lazy.modules(globals(), "lance_duck.log", "view")
    auto_cleanup = lazy.modules(globals(), "lance_duck.maintenance", "auto_cleanup")
    sql_query = lazy.modules(globals(), "lance_duck.scan", "sql_query")
    indexed = lazy.modules(globals(), "lance_duck.scan.indexes", "indexed_columns")
    search_request = lazy.modules(globals(), "lance_duck.scan.searches", "request")
    markup = lazy.modules(globals(), "lance_duck.verbs", "markup")
    bases, named_tables = lazy.modules(globals(), "lance_duck.verbs.public", "bases", "named_tables")

_REMEDIES: Final = MappingProxyType({"session": None})


@checked_call
def dataset(
    uri: str | os.PathLike[str] | None = None,
    version: Version | None = None,
    asof: datetime | date | str | None = None,
    block_size: int | None = None,
    commit_lock: CommitLock | None = None,
    index_cache_size: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    default_scan_options: Mapping[str, Any] | None = None,
    *,
    metadata_cache_size_bytes: int | None = None,
    index_cache_size_bytes: int | None = None,
    read_params: Mapping[str, Any] | None = None,
    namespace_client: Any = None,
    table_id: Sequence[str] | None = None,
    base_store_params: Mapping[str, Mapping[str, str]] | None = None,
    cache: str | os.PathLike[str] | None = None,
    log: str | None = None,
    **refused: Any,
) -> LanceDataset:
    """Open a Lance table.

    Args:
        uri: Path or URI of the table. None if `namespace_client` supplies it.
        version: A version number, a tag, or (branch, number or tag). Defaults to the latest version. (branch, None) is
            the latest version of a branch.
        asof: Open the newest version committed before this time. Times without a time zone are local.
        block_size: Without effect: reads are sized by columns and batches.
        commit_lock: Called with the version number of each commit through this handle. The context manager that it
            returns is entered before the version becomes visible. The store still resolves races between writers. A
            handle can only be pickled if its lock can be pickled, for example a module-level function.
        index_cache_size: Without effect: all tables share one memory limit for open indexes.
        storage_options: Object store settings.
        default_scan_options: Default arguments of `LanceDataset.scanner`. Arguments that select or order rows are not
            allowed. With `with_row_id` or `with_row_address`, `LanceDataset.schema` includes `_rowid` or `_rowaddr`.
        metadata_cache_size_bytes: Without effect: see `index_cache_size`.
        index_cache_size_bytes: Without effect: see `index_cache_size`.
        read_params: Without effect: see `block_size`.
        namespace_client: Catalog that resolves the table's location and store settings: a
            `lance_namespace.LanceNamespace` or the result of `connect_namespace`.
        table_id: Name of the table in that catalog, as a list of its parts.
        base_store_params: Object store settings of base paths, by path.
        cache: A local folder that caches the files of a table in an object store. Same as the storage option `cache`.
        log: Also read rows that are only in the write-ahead log of LanceDB (MemWAL): "flushed" reads its SSTables,
            "fresh" also its newest entries. The dataset cannot be changed, and its rows do not have row ids. None reads
            the main table alone.
        refused: pylance's `session` is not supported.

    Raises:
        NotFoundError: The table, version, tag or branch does not exist.
        InvalidInputError: Both a version and a time are given.
        UnsupportedError: An argument is not supported.
        FormatError: The table cannot be read.
    """
    refuse_unsupported(dataset, refused, _REMEDIES)
    if namespace_client is not None or table_id is not None:
        uri, storage_options = named_tables.named_place(uri, namespace_client, table_id, storage_options, None)
    if uri is None:
        raise WrongTypeError("uri", expected="a path or URI", found="None of type NoneType")
    storage_options = with_cache(storage_options, cache)
    if base_store_params:
        snapshot = open_snapshot(uri, version, asof, storage_options)
        storage_options = bases.with_base_options(storage_options, base_store_params, snapshot.base_paths)
    if log is not None:
        table = TableScan(log_views.open_view(uri, version, asof, storage_options, log))
        return LanceDataset(uri, default_scan_options=default_scan_options, table=table)
    return LanceDataset(uri, version, asof, storage_options, default_scan_options, commit_lock)


@checked_calls
class LanceDataset(
    pads.UnionDataset,  # type: ignore[misc]
    ScanSource,
    BlobReads,
    Searches,
    PolarsFrames,
    VersionProperties,
    History,
    Lineage,
    VersionChanges,
    Upkeep,
    ConfigChanges,
    RowChanges,
    ColumnChanges,
    IndexChanges,
    Commits,
    OtherNames,
):
    """One version of a Lance table, as a pyarrow Dataset for pyarrow, pandas, polars, dask and DuckDB.

    Args:
        uri: Path or URI of the table.
        version: See `dataset`.
        asof: See `dataset`.
        storage_options: See `dataset`.
        table: An open version of the table. If given, `version`, `asof` and `storage_options` are ignored.

    Attributes:
        handle: The version that the dataset reads. Changes move it to the new version.
    """

    handle: Handle

    def __init__(
        self,
        uri: str | os.PathLike[str],
        version: Version | None = None,
        asof: datetime | date | str | None = None,
        storage_options: Mapping[str, str] | None = None,
        default_scan_options: Mapping[str, Any] | None = None,
        commit_lock: CommitLock | None = None,
        *,
        table: TableScan | None = None,
    ) -> None:
        self._defaults = checked_defaults(default_scan_options) if default_scan_options else {}
        refuse_both(version, asof, "dataset")
        if table is None:
            table = TableScan(open_snapshot(uri, version, asof, storage_options, commit_lock))
        self.handle = _DatasetHandle(self, os.fspath(uri), table)
        self._show(table)

    def _show(self, table: TableScan) -> None:
        """Expose the rows of a version to pyarrow."""
        pads.UnionDataset.__init__(self, table.snapshot.schema.scan_arrow, [table.as_pieces()])

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self.uri, self.handle.snapshot, self.handle.table.restriction, self._defaults)

    @property
    def schema(self) -> pa.Schema:
        """The columns, as Arrow types."""
        schema = self.handle.snapshot.schema.arrow
        if not self._defaults:
            return schema
        names = [name for option, name in ROW_NAMES.items() if self._defaults.get(option)]
        return pa.schema([*schema, *(pa.field(name, pa.uint64()) for name in names)], schema.metadata)

    @property
    def partition_expression(self) -> Any:
        """Always true, because Lance tables do not have partition columns."""
        return pa.compute.scalar(True)

    # Other versions.

    def checkout_version(self, version: Version | None = None, asof: datetime | date | str | None = None) -> Self:
        """Open another version: a number, a tag, or (branch, number or tag). (branch, None) is the branch's newest.

        Raises:
            NotFoundError: The version does not exist.
            WrongTypeError: Neither a version nor a time is given.
        """
        if version is None and asof is None:
            raise WrongTypeError("missing 1 required positional argument: 'version'", where="checkout_version")
        refuse_both(version, asof, "checkout_version")
        snapshot = self.handle.snapshot.checkout(version, asof)
        moved = snapshot.location.uri != self.handle.snapshot.location.uri
        table = TableScan(snapshot, self.handle.table.restriction)
        return type(self)(snapshot.uri if moved else self.uri, default_scan_options=self._defaults, table=table)

    def checkout_latest(self) -> None:
        """Move this handle to the newest version."""
        self.handle.checkout(self.handle.snapshot.checkout())

    # Rows.

    def scan(
        self,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        **options: Unpack[ScanArguments],
    ) -> LanceScanner:
        """Plan a scan. Nothing is read until the scanner's result is consumed.

        Args:
            columns: Column names in output order, or SQL expressions by output name. "a.b" selects a struct field.
                Hidden columns such as `_rowid` are selected by name. Defaults to all columns.
            filter: Condition as a SQL string, (SQL string, parameters), pyarrow expression or `lance_duck.query` query.
            limit: Maximum number of rows.
            offset: Number of rows to skip first.
            nearest: Return the rows nearest to a query vector, with their `_distance`. A dict with "column", "q", and
                optionally "k" (default: `limit` plus `offset`, or 10), "metric", "use_index", "distance_range",
                "recall" and others. "recall" (default 0.95) is the share of true neighbours that an index search finds.
                "nprobes", "ef" and "refine_factor" override it. Without `prefilter=False`, only rows that pass the
                filter are searched.
            batch_size: Maximum number of rows per batch.
            options: Other arguments. See `lance_duck.scan.options.ScanOptions`.

        Raises:
            InvalidInputError: A column is unknown, or the filter is invalid.
            UnsupportedError: An option is not supported.
        """
        rows = {"columns": columns, "filter": filter, "limit": limit, "offset": offset, "nearest": nearest}
        arguments = {**options, **rows, "batch_size": batch_size}
        if self._defaults:
            arguments = {**self._defaults, **{name: each for name, each in arguments.items() if each is not None}}
        scan = ScanOptions.of(arguments)
        return LanceScanner(
            self.handle.table, scan, handle=lambda fragment: fragment_handle.LanceFragment(self, fragment.id)
        )

    scanner = ByCaller(scan, ScanSource.pushed_scanner)

    def to_table(
        self,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        **options: Unpack[ScanArguments],
    ) -> pa.Table:
        """Read rows into memory. Takes the same arguments as `scanner`."""
        if self._defaults or (nearest is None and not options.get("full_text_query") and not compared(filter)):
            return self.scan(columns, filter, limit, offset, nearest, batch_size, **options).to_table()
        rows = {"columns": columns, "filter": filter, "limit": limit, "offset": offset, "nearest": nearest}
        return search_request.read_table(self.handle.table, {**options, **rows, "batch_size": batch_size})

    def to_batches(
        self,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
        limit: int | None = None,
        offset: int | None = None,
        nearest: Mapping[str, Any] | None = None,
        batch_size: int | None = None,
        **options: Unpack[ScanArguments],
    ) -> Iterator[pa.RecordBatch]:
        """Read rows batch by batch. Takes the same arguments as `scanner`."""
        return self.scan(columns, filter, limit, offset, nearest, batch_size, **options).to_batches()

    def to_pandas(
        self,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
        **options: Unpack[CountArguments],
    ) -> Any:
        """Read rows into a pandas DataFrame. Takes the same arguments as `scanner`."""
        return self.to_table(columns, filter, **options).to_pandas()

    def sql(self, sql: str) -> sql_query.SqlQueryBuilder:
        """Build a SQL query on this version. The query refers to it as "dataset".

        `ds.sql("SELECT id FROM dataset WHERE x > 3").build().to_batch_records()` runs DuckDB SQL, like
        `lance_duck.connect`. `EXPLAIN` is supported. Statements that change tables are rejected.
        """
        return sql_query.SqlQueryBuilder(sql_query.SqlRequest(sql, LanceDataset(self.uri, table=self.handle.table)))

    def count_rows(
        self,
        filter: FilterLike | None = None,  # noqa: A002
        **options: Unpack[CountArguments],
    ) -> int:
        """Return the number of rows. Without a filter, only metadata is read. Takes the same options as `scanner`."""
        table = self.handle.table
        if filter is None and not options and table.restriction is None:
            return table.snapshot.count_rows()
        if isinstance(filter, str) and not options and not self._defaults:  # a scanner is not needed
            return table.count(table.plan(ScanOptions(columns=[], filter=filter)))
        return self.scan(columns=[], filter=filter, **options).count_rows()

    def head(self, num_rows: int, **options: Unpack[HeadArguments]) -> pa.Table:
        """Return the first rows. Takes the same options as `scanner`."""
        arguments: dict[str, Any] = {**options, "limit": num_rows}
        return self.scan(**arguments).to_table()

    def slice(self, start: int, end: int, columns: ColumnsLike | None = None) -> pa.Table:
        """Return the rows from position `start` up to, but not including, `end`."""
        if not 0 <= start <= end:
            raise InvalidInputError("slice", expected="0 <= start <= end", found=f"{start} and {end}")
        return self.scan(columns, offset=start, limit=end - start).to_table()

    def take(self, indices: Any, columns: ColumnsLike | None = None, **options: Unpack[TakeArguments]) -> pa.Table:
        """Return the rows at these positions, in the order of `indices`. Repeated positions repeat their row.

        Takes the same options as `scanner`.

        Raises:
            InvalidInputError: A position is negative or past the last row.
        """
        if self.handle.table.restriction is not None or any(value is not None for value in options.values()):
            return self.scan(columns, **options).take(indices)
        projection = self.handle.table.projection(columns)
        taker = self.handle.table.taker
        return taker.table(taker.by_position, indices, projection)

    def take_rows(self, row_ids: Any, columns: ColumnsLike | None = None) -> pa.Table:
        """Return rows by `_rowid`, in the order of `row_ids`, with repetitions. Deleted rows are skipped."""
        projection = self.handle.table.projection(columns)
        taker = self.handle.table.taker
        return taker.table(taker.by_row_id, row_ids, projection)

    _take_rows = take_rows

    def sample(
        self,
        num_rows: int,
        columns: ColumnsLike | None = None,
        randomize_order: bool = True,
        **options: Unpack[TakeArguments],
    ) -> pa.Table:
        """Return random rows, without repetition. Takes the same options as `scanner`.

        Raises:
            InvalidInputError: The table has fewer than `num_rows` rows.
        """
        total = self.count_rows()
        if not 0 <= num_rows <= total:
            raise InvalidInputError("sample", expected=f"0 to {total} rows", found=num_rows)
        places = random.sample(range(total), num_rows)
        return self.take(places if randomize_order else sorted(places), columns, **options)

    # Fragments.

    def get_fragments(self, filter: FilterLike | None = None) -> list[fragment_handle.LanceFragment]:  # noqa: A002
        """Return handles to the fragments. With a filter, only to fragments that contain matching rows."""
        fragments = self.handle.snapshot.fragments
        if filter is None:
            return [fragment_handle.LanceFragment(self, fragment_id) for fragment_id in fragments.ids()]
        options = ScanOptions(columns=[], filter=filter)
        plans = ((fragment, self.handle.table.plan(options, fragment)) for fragment in fragments)
        return [
            fragment_handle.LanceFragment(self, fragment.id)
            for fragment, plan in plans
            if self.handle.table.has_rows(plan)
        ]

    def get_fragment(self, fragment_id: int) -> fragment_handle.LanceFragment | None:
        """Return a handle to a fragment, or None if the fragment does not exist."""
        return (
            fragment_handle.LanceFragment(self, fragment_id)
            if fragment_id in self.handle.snapshot.fragments.ids()
            else None
        )

    def fragment_ids(self) -> list[int]:
        """Return the fragment ids, in scan order."""
        return self.handle.snapshot.fragments.ids()

    # Methods of pyarrow datasets.

    def filter(self, expression: FilterLike) -> Self:
        """Return the dataset restricted to rows that pass a filter. Nothing is read yet."""
        table = self.handle.table.restricted(expression)
        return type(self)(self.uri, default_scan_options=self._defaults, table=table)

    sort_by, join, join_asof = in_memory.sort_by, in_memory.join, in_memory.join_asof

    def __len__(self) -> int:
        return self.count_rows()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scan().to_reader().__arrow_c_stream__(requested_schema)

    # DuckDB's scan protocol.

    @property
    def obj(self) -> LanceDataset:
        """The dataset itself, with the attribute name that DuckDB expects."""
        return self

    def rows(self) -> int:
        """Return the table's row count without any filter. DuckDB plans joins with it."""
        return self.handle.snapshot.count_rows()

    def accepts(self, predicate: Any) -> bool:
        """Return whether the scan applies a DuckDB filter. True if the result is exact and the filter saves work."""
        accepted = predicate_from_node(predicate, self.schema)
        return accepted is not None and self.handle.table.filter_pays(accepted)

    def duckdb_reader(
        self, schema: pa.Schema, predicate: Predicate | None, *, any_form: bool = False
    ) -> pa.RecordBatchReader:
        """See `ScanSource.duckdb_reader`."""
        return self.handle.table.predicate_reader(schema, predicate, any_form=any_form)

    def indexed_columns(self) -> frozenset[str]:
        """See `ScanSource.indexed_columns`."""
        return indexed.indexed_columns(self.handle.snapshot)

    def index_estimate(self, predicate: FilterLike) -> int | None:
        """See `ScanSource.index_estimate`."""
        return self.handle.table.index_estimate(predicate)

    def __repr__(self) -> str:
        return f"<LanceDataset {shown(self.handle.uri)!r}, version {self.version}>"

    def _repr_html_(self) -> str:
        """Return a description as HTML. Reads only metadata."""
        return "".join(markup.table_html(self.handle.uri, self.handle.snapshot))


class _DatasetHandle(Handle):
    """The handle of a dataset. When it moves to a new version, it updates the dataset for pyarrow.

    The reference to the dataset is weak, because a cycle would keep the dataset's caches in memory after its last use.
    """

    def __init__(self, dataset: LanceDataset, uri: str, table: TableScan) -> None:
        super().__init__(uri, table)
        self._dataset = ref(dataset)

    def checkout(self, snapshot: Snapshot) -> None:
        super().checkout(snapshot)
        dataset = self._dataset()
        if dataset is not None:
            dataset._show(self.table)

    def move_to(self, snapshot: Snapshot) -> None:
        is_new = snapshot.version != self.snapshot.version
        super().move_to(snapshot)
        if is_new:
            auto_cleanup.auto_cleanup(snapshot)


def _reopen(uri: str, snapshot: Snapshot, restriction: Any, defaults: Mapping[str, Any]) -> LanceDataset:
    return LanceDataset(uri, default_scan_options=defaults, table=TableScan(snapshot, restriction))
