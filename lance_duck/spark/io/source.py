"""Reads a version of a table in Spark. Plans the partitions on the driver, and reads them in tasks.

The driver pins the version. One task may read several small fragments. Several tasks may share a large fragment, and
each reads a range of addresses. Filters of queries are not pushed down, because Spark would reuse the filtered rows for
other queries over the same DataFrame. Instead, the filter is an option.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from lance_duck import lazy
from lance_duck.arrow.types import storage_type
from lance_duck.dataset import LanceDataset, dataset
from lance_duck.lazy import uncollected
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ROW_ADDRESS
from lance_duck.scan.scanner import LanceScanner
from lance_duck.spark.brief_errors import brief_errors
from lance_duck.spark.costs import (
    BATCH_BYTES,
    CUT_ROWS,
    FEWEST_ROWS,
    LARGEST_PARTITION,
    LOOKED_INTO,
    MOST_PARTITIONS,
    OPENING_BYTES,
    PARTITIONS,
    SMALLEST_PARTITION,
)
from lance_duck.spark.io.options import ReadOptions
from lance_duck.spark.io.types import Declaration, spark_schema
from lance_duck.spark.table_ref import pin
from lance_duck.store import CACHE_OPTION, local_path
from lance_duck.wire.fragment import Fragment

if TYPE_CHECKING:
    from lance_duck.store import disk_cache
else:
    disk_cache = lazy.modules(globals(), "lance_duck.store", "disk_cache")


@dataclass(frozen=True)
class ReadPartition:
    """A fragment, or a range of its rows. The range also counts deleted rows."""

    fragment: int
    start: int | None = None
    stop: int | None = None


@dataclass(frozen=True)
class LancePartition(InputPartition):
    """Input of one task: whole fragments, an address range in one fragment, or `limit` rows after `offset` rows."""

    pieces: tuple[ReadPartition, ...]
    limit: int | None = None
    offset: int | None = None


@brief_errors
class LanceReader(DataSourceReader):
    """Reader of one version of a table.

    Args:
        options: The table, and the columns and rows to read.
        schema: The schema declared to Spark.
        version: See `TableRef.pinned`. With None, the version in the options is read.

    Raises:
        NotFoundError: The table or the version does not exist.
        InvalidInputError: A column is unknown, or the filter is invalid.
        WrongTypeError: A column cannot be converted to the requested type.
    """

    def __init__(self, options: ReadOptions, schema: StructType, version: int | tuple[str, int] | None = None) -> None:
        self._options = options
        self._schema = schema
        table = opened_version(options, version)
        self._version = pin(table)
        self._view = None if options.log is None else table
        Declaration(schema, self._scanner(table, None).projected_schema)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the partitions to read, in table order. Empty if the table is empty."""
        table = self._view or opened_version(self._options, self._version)
        return partitions(table, self._options, self._schema.names)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a partition, in the schema declared to Spark.

        Raises:
            InvalidInputError: Spark cannot represent a value.
        """
        if not isinstance(partition, LancePartition):  # Spark passes another object if there are no partitions
            return
        scanner = self._scanner(self._view or self._options.place.pinned(self._version), partition)
        reader = scanner.to_reader()
        declaration = Declaration(self._schema, reader.schema)
        for batch in reader:
            yield from declaration.pieces(batch)
        if CACHE_OPTION in dict(self._options.place.storage_options):
            disk_cache.wait_for_blocks()  # Spark may kill the worker

    def _scanner(self, table: LanceDataset, partition: LancePartition | None) -> LanceScanner:
        options = self._options
        pieces = () if partition is None else partition.pieces
        is_local = local_path(table.uri) is not None  # threads only help if they wait for requests
        scanner: LanceScanner = table.scanner(
            chosen(options, self._schema.names),
            filter=_within(pieces[0], options.filter) if pieces and pieces[0].start is not None else options.filter,
            fragments=[piece.fragment for piece in pieces],
            limit=None if partition is None else partition.limit,
            offset=None if partition is None else partition.offset,
            batch_size=options.batch_size,
            batch_size_bytes=BATCH_BYTES if is_local else None,
            use_threads=not is_local,
            blob_handling=options.blob_handling,
            use_scalar_index=options.use_scalar_index,
        )
        return scanner


def opened_version(options: ReadOptions, version: int | tuple[str, int] | None = None) -> LanceDataset:
    """Open the version that the options select, or a pinned version.

    Raises:
        NotFoundError: The table, version, tag or branch does not exist.
    """
    if version is None and options.timestamp is not None:
        place = options.place
        settings = dict(place.storage_options)
        return dataset(place.uri, asof=options.timestamp, storage_options=settings, log=options.log)
    reference = options.version if options.branch is None else (options.branch, options.version)
    if options.log is not None:
        place = options.place
        return dataset(place.uri, reference, storage_options=dict(place.storage_options), log=options.log)
    return options.place.dataset(reference if version is None else version)


def declared(options: ReadOptions, table: LanceDataset) -> StructType:
    """Return the schema to declare to Spark for a version.

    Raises:
        InvalidInputError: A column is unknown, or the filter is invalid.
        UnsupportedError: A column has a type that Spark does not support.
    """
    scanner = table.scanner(
        chosen(options, None),
        filter=options.filter,
        with_row_id=options.row_id,
        with_row_address=options.row_address,
        blob_handling=options.blob_handling,
    )
    return spark_schema(scanner.projected_schema, _without_null_items(options, table, scanner.projected_schema))


def _without_null_items(options: ReadOptions, table: LanceDataset, schema: pa.Schema) -> Container[str]:
    """Return the vector columns that do not contain null items, according to the option or the files."""
    if options.contains_null or (options.contains_null is None and len(table.handle.snapshot.fragments) > LOOKED_INTO):
        return ()
    vectors = [field.name for field in schema if pa.types.is_fixed_size_list(storage_type(field.type))]
    if options.contains_null is False:
        return vectors
    sources = options.columns if isinstance(options.columns, Mapping) else {}
    stored = {name: sources.get(name, name) for name in vectors}
    return {
        name
        for name, source in stored.items()
        if source in table.schema.names and table.handle.table.has_no_null_items(source)
    }


def chosen(options: ReadOptions, names: Sequence[str] | None) -> list[str] | dict[str, str] | None:
    """Return the columns of a scan: the columns in the options, restricted to `names` if given."""
    columns = options.columns
    if isinstance(columns, Mapping):
        return {name: columns.get(name, name) for name in (columns if names is None else names)}
    if names is None:
        return None if columns is None else list(columns)
    return list(names)


def partitions(table: LanceDataset, options: ReadOptions, names: Sequence[str]) -> list[InputPartition]:
    """Split a version into partitions. `names` lists the columns to read."""
    with uncollected():
        return _limited(table, options) if options.limit is not None else _packed(table, options, names)


def _packed(table: LanceDataset, options: ReadOptions, names: Sequence[str]) -> list[InputPartition]:
    """Plan a read without a limit. Small fragments are grouped, and large fragments are split."""
    fragments = _weighed(table, options, names)
    total = sum(weight for _, _, weight in fragments)
    usual = min(max(total // PARTITIONS, SMALLEST_PARTITION), LARGEST_PARTITION)
    target = options.max_partition_bytes or max(usual, total // MOST_PARTITIONS)
    target = max(1, min(target, -(-total // options.min_partitions)))
    expected = (
        table.handle.table.index_estimate(options.filter) if options.filter and options.use_scalar_index else None
    )
    if expected is not None and expected <= FEWEST_ROWS:
        return [LancePartition(tuple(ReadPartition(one.id) for one, _, _ in fragments))] if fragments else []
    tasks: list[LancePartition] = []
    pack: list[ReadPartition] = []
    filled = 0
    for fragment, rows, weight in fragments:
        if weight > target and (options.filter is None or options.use_scalar_index):
            tasks += [*_whole(pack), *_cut(table, options, fragment, rows, -(-weight // target))]
            pack, filled = [], 0
            continue
        if pack and filled + weight > target:
            tasks += _whole(pack)
            pack, filled = [], 0
        pack.append(ReadPartition(fragment.id))
        filled += weight
    return [*tasks, *_whole(pack)]


def _whole(pack: list[ReadPartition]) -> list[LancePartition]:
    """Return the task that reads several whole fragments. Empty without fragments."""
    return [LancePartition(tuple(pack))] if pack else []


def _weighed(table: LanceDataset, options: ReadOptions, names: Sequence[str]) -> list[tuple[Fragment, int, int]]:
    """Return the fragments with their row counts and the approximate bytes to read."""
    plain = [name for name in names if name in table.schema.names] if not isinstance(options.columns, dict) else None
    width = table.handle.table.plan(ScanOptions(columns=plain, blob_handling=options.blob_handling)).width
    whole = table.handle.table.plan(ScanOptions(blob_handling=options.blob_handling)).width
    weights = []
    for fragment in table.handle.snapshot.fragments:
        rows = table.handle.snapshot.physical_rows(fragment)
        size = sum(file.file_size or 0 for file in fragment.files)
        weight = max(rows * width, size * width // max(whole, 1)) + OPENING_BYTES
        weights.append((fragment, rows, weight))
    return weights


def _cut(
    table: LanceDataset, options: ReadOptions, fragment: Fragment, rows: int, parts: int
) -> Iterator[LancePartition]:
    """Split a fragment into row ranges.

    With a filter, they are address ranges, because indexes can filter by address.
    """
    step = max(CUT_ROWS, -(-rows // parts // CUT_ROWS) * CUT_ROWS)
    if options.filter is None:
        whole, live = (ReadPartition(fragment.id),), table.handle.snapshot.num_rows(fragment)
        for start in range(0, live, step):
            yield LancePartition(whole, min(step, live - start), start)
        return
    for start in range(0, rows, step):
        yield LancePartition((ReadPartition(fragment.id, start, min(start + step, rows)),))


def _limited(table: LanceDataset, options: ReadOptions) -> list[InputPartition]:
    """Plan a read with a limit.

    With a filter, one task reads all rows. Otherwise, only the fragments that contain the first rows are read.
    """
    assert options.limit is not None
    fragments = list(table.handle.snapshot.fragments)
    if options.filter is not None:
        pieces = tuple(ReadPartition(fragment.id) for fragment in fragments)
        return [LancePartition(pieces, options.limit)] if pieces and options.limit else []
    partitions: list[InputPartition] = []
    remaining = options.limit
    for fragment in fragments:
        if remaining <= 0:
            break
        rows = table.handle.snapshot.num_rows(fragment)
        partitions.append(LancePartition((ReadPartition(fragment.id),), min(remaining, rows)))
        remaining -= rows
    return partitions


def _within(piece: ReadPartition, filter: str | None) -> str:  # noqa: A002 - the name of the option
    """Return the filter, restricted to an address range. Indexes can evaluate it without reading other rows."""
    first = piece.fragment << 32
    assert piece.start is not None
    assert piece.stop is not None
    range_ = f"{ROW_ADDRESS} >= {first + piece.start} AND {ROW_ADDRESS} < {first + piece.stop}"
    return range_ if filter is None else f"({filter}\n) AND {range_}"
