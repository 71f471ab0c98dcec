"""A table as the source of a stream. The stream returns new rows, version by version.

New rows come from the fragments that a version added (see `verbs.inserted_rows`). `stream_offsets` describes the
offsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from lance_duck.dataset import LanceDataset
from lance_duck.errors import InvalidInputError, NotFoundError, UnsupportedError
from lance_duck.scan.projection import HIDDEN
from lance_duck.spark.brief_errors import brief_errors
from lance_duck.spark.costs import LARGEST_PARTITION, STREAM_PARTITION_ROWS
from lance_duck.spark.io.options import ReadOptions
from lance_duck.spark.io.source import chosen, opened_version
from lance_duck.spark.io.stream_offsets import NewFragment, Offset, Walk
from lance_duck.spark.io.stream_options import Limits, StreamOptions
from lance_duck.spark.io.types import Declaration, arrow_type
from lance_duck.verbs.inserted_rows import unchanged_fragments

# Spark supports batch limits since 4.2.
if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow

    LIMITS_READS: bool
else:
    try:
        from pyspark.sql.streaming.datasource import (
            ReadAllAvailable,
            ReadLimit,
            ReadMaxFiles,
            SupportsTriggerAvailableNow,
        )

        LIMITS_READS = True
    except ImportError:
        ReadLimit = ReadMaxFiles = object

        class ReadAllAvailable:
            """The unlimited read limit. The class does not exist in older versions of Spark."""

        class SupportsTriggerAvailableNow:
            """A source that supports Trigger.AvailableNow. The class does not exist in older versions of Spark."""

        LIMITS_READS = False


@dataclass(frozen=True)
class StreamPartition(InputPartition):
    """The fragments that one task reads, ordered by version."""

    readings: tuple[tuple[int, tuple[int, ...]], ...]


@brief_errors
class LanceStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the new rows of a table, batch by batch.

    Args:
        read_options: The table, and the columns and rows to read.
        options: Start, batch limits, and treatment of changed rows.
        schema: The schema declared to Spark.

    Raises:
        NotFoundError: The table does not exist.
        UnsupportedError: Batch limits require a newer version of Spark, or an option is not available in streams.
    """

    def __init__(self, read_options: ReadOptions, options: StreamOptions, schema: StructType) -> None:
        _check(read_options, options)
        self._read_options = read_options
        self._options = options
        self._schema = schema
        table = opened_version(read_options)
        self._declared = table.version
        self._fields = {field.name: field for field in table.handle.snapshot.schema.fields}
        self._walk: Walk | None = Walk(table, options)
        self._target: Offset | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state that workers need, without the driver's cache of versions."""
        return self.__dict__ | {"_walk": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark defines the names
        """Return the first offset of a query without a checkpoint."""
        return self._way.begin().json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return a placeholder limit, because the options contain the real limits."""
        limits = self._options.limits
        return ReadMaxFiles(limits.files or 1 << 30) if limits.any else ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:  # noqa: N802
        """Return the end of the next batch.

        Raises:
            InvalidInputError: The batch would begin with a version that changed rows. See `StreamOptions`.
            NotFoundError: The batch would begin with a version that was cleaned up.
        """
        target = self._target or self._newest()
        if start is None:
            return target.json()
        begin = Offset.of(start)
        limits = Limits() if limit is None or isinstance(limit, ReadAllAvailable) else self._options.limits
        return self._way.advance(begin, max(begin, target), limits).json()

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the newest offset of the table."""
        return self._newest().json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Stop the stream at the current newest version."""
        self._target = self._newest()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Plan partitions in order. Small fragments share a partition.

        Raises:
            InvalidInputError: A version in between changed rows.
            NotFoundError: A version in between was cleaned up.
        """
        begin, until = Offset.of(start), Offset.of(end)
        pieces = [(step, piece) for step in self._way.steps(begin, until) for piece in step.pieces]
        files_by_fragment = {p.fragment: p.files for step, p in pieces if p.files is not None and not step.snapshot}
        final = until.version if until.index else until.version - 1
        newer = (
            self._unchanged(files_by_fragment, final)
            if any(step.version != final for step, _ in pieces)
            else frozenset()
        )
        return _packed([(final if p.fragment in newer and not s.snapshot else s.version, p) for s, p in pieces])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield batches in the schema declared to Spark.

        Raises:
            InvalidInputError: A column is no longer in the table.
        """
        assert isinstance(partition, StreamPartition)
        for version, fragments in partition.readings:
            table = self._table(version)
            missing = self._later_columns(table)
            declaration: Declaration | None = None
            for batch in table.to_batches(**self._scan(missing), fragments=fragments):
                whole = self._with_nulls(batch, missing)
                declaration = declaration or Declaration(self._schema, whole.schema)
                yield from declaration.pieces(whole)

    @property
    def _way(self) -> Walk:
        if self._walk is None:
            self._walk = Walk(opened_version(self._read_options), self._options)
        return self._walk

    def _newest(self) -> Offset:
        return Offset(self._way.newest() + 1)

    def _table(self, version: int) -> LanceDataset:
        """Return a version, cached by the worker."""
        branch = self._read_options.branch
        return self._read_options.place.pinned(version if branch is None else (branch, version))

    def _unchanged(self, files_by_fragment: Mapping[int, tuple[str, ...]], version: int) -> frozenset[int]:
        """Return the fragments that are unchanged in a newer version. Workers then only open that version."""
        try:
            now = self._way.at(version)
        except NotFoundError:
            return frozenset()
        return unchanged_fragments(files_by_fragment, now) if set(self._plain) <= set(now.schema.names) else frozenset()

    @property
    def _plain(self) -> list[str]:
        """Names of the columns that are read directly, without SQL. Empty if the options map names to SQL."""
        if isinstance(self._read_options.columns, dict):
            return []
        return [name for name in self._schema.names if name not in HIDDEN]

    def _later_columns(self, table: LanceDataset) -> frozenset[str]:
        """Return the columns that a version does not have yet.

        Raises:
            InvalidInputError: A column was dropped or renamed.
        """
        missing = frozenset(self._plain) - frozenset(table.schema.names)
        there = {field.id: field for field in table.handle.snapshot.schema.fields} if missing else {}
        for name in missing:
            current = there.get(self._fields[name].id) if name in self._fields else None
            is_renamed = current is not None and current.name not in self._fields
            if table.version > self._declared or not self._schema[name].nullable or is_renamed:
                raise InvalidInputError(
                    f"column {name!r} of a stream is not in version {table.version}",
                    where=self._read_options.place.uri,
                    found=None if current is None else repr(current.name),
                    remedy="start the query again with the table's current columns, or with a startingVersion",
                )
        return missing

    def _scan(self, missing: frozenset[str]) -> dict[str, Any]:
        """Return the scan arguments for a version."""
        read_options = self._read_options
        return {
            "columns": chosen(read_options, [name for name in self._schema.names if name not in missing]),
            "filter": read_options.filter,
            "batch_size": read_options.batch_size,
            "blob_handling": read_options.blob_handling,
            "use_scalar_index": read_options.use_scalar_index,
        }

    def _with_nulls(self, batch: pa.RecordBatch, missing: frozenset[str]) -> pa.RecordBatch:
        for name in missing:
            kind = arrow_type(self._schema[name].dataType, name)
            batch = batch.append_column(name, pa.nulls(batch.num_rows, kind))
        return batch


def _check(read_options: ReadOptions, options: StreamOptions) -> None:
    if options.limits.any and not LIMITS_READS:
        raise UnsupportedError(
            "limits per trigger need a newer Spark",
            expected="pyspark 4.2 or newer",
            remedy="leave out maxFilesPerTrigger, maxRowsPerTrigger and maxBytesPerTrigger",
        )
    if read_options.version is not None or read_options.timestamp is not None:
        raise UnsupportedError(
            "a stream cannot read a single version", remedy="set startingVersion or startingTimestamp"
        )
    if read_options.contains_null is None:
        raise UnsupportedError(
            "a stream does not support contains_null=auto",
            found="rows of later versions, which may hold nulls",
            remedy="leave out the option, or set it to false, which makes nulls an error",
        )
    if read_options.log is not None:
        raise UnsupportedError("a stream cannot read a write-ahead log", remedy="leave out log")
    if read_options.limit is not None:
        raise UnsupportedError("a stream does not support limit", remedy="limit each batch with maxRowsPerTrigger")


def _packed(fragments: Sequence[tuple[int, NewFragment]]) -> list[InputPartition]:
    packs: list[list[tuple[int, list[int]]]] = []
    rows = size = 0
    for version, piece in fragments:
        if not packs or rows + piece.rows > STREAM_PARTITION_ROWS or size + piece.size > LARGEST_PARTITION:
            packs.append([])
            rows = size = 0
        rows, size = rows + piece.rows, size + piece.size
        if not packs[-1] or packs[-1][-1][0] != version:
            packs[-1].append((version, []))
        packs[-1][-1][1].append(piece.fragment)
    return [StreamPartition(tuple((v, tuple(ids)) for v, ids in pack)) for pack in packs]
