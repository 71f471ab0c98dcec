"""Adds columns from a DataFrame. Tasks write one file per fragment, and the driver commits once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TypedDict
from uuid import UUID, uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the customary name
from pyspark.sql.types import BinaryType, IntegralType, StructField, StructType

from lance_duck.arguments import checked_call, unknown_column
from lance_duck.commit import run_again
from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.redact import shown
from lance_duck.scan.projection import ROW_ADDRESS, ROW_ID
from lance_duck.snapshot import Snapshot
from lance_duck.spark.io.columns import table_schema
from lance_duck.spark.jobs.frame_tasks import run_frame
from lance_duck.spark.jobs.work_splits import check_parallelism
from lance_duck.spark.sql.views import refresh_views
from lance_duck.spark.table_ref import TableRef
from lance_duck.spark.verbs.merge_jobs import ADDRESS, KEY, TableKeys, frame_keys
from lance_duck.spark.workers import map_batches
from lance_duck.verbs.change import transaction_properties as properties_of
from lance_duck.verbs.columns.parts import ColumnValues, check_same_rows, commit_columns, plan_columns, write_values
from lance_duck.verbs.merge.plan import MergePlan
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.key_bytes import key_bytes
from lance_duck.wire.fragment import DataFile, Fragment
from lance_duck.wire.schema import Schema


class ColumnFigures(TypedDict):
    """Number of rows with new values, and number of fragments with a new file."""

    num_rows: int
    num_fragments: int


@checked_call
def add_columns(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    df: DataFrame,
    on: str = ROW_ADDRESS,
    *,
    vector_columns: Mapping[str, int | str] | None = None,
    not_null: Iterable[str] = (),
    version: int | None = None,
    storage_options: Mapping[str, str] | None = None,
    parallelism: int | None = None,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
) -> ColumnFigures:
    """Add the columns of a DataFrame to a table. Only the new columns are written, one file per fragment.

    In table rows that are not in the DataFrame, the new columns are null. Fragments without matching rows are not
    changed.

    Args:
        spark: Spark session, classic or Connect.
        uri: Path or URI of the table.
        df: Frame with `on` and the new columns. Spark caches it during the change.
        on: Join key: "_rowaddr" (from `ls.read(…, row_address=True)`), "_rowid", or a column of the table. DataFrame
            rows with a null or unknown key are ignored. An unknown address is an error, because its row may have moved.
        vector_columns: Vector length by column, as for `ls.write`.
        not_null: New non-nullable columns, which require a value for each row of the table.
        version: The table version to which the addresses in the frame refer. Defaults to the newest version. Rows that
            were changed since this version are rejected.
        storage_options: Settings of the object store.
        parallelism: Number of writing tasks. By default, Spark decides.
        commit_message: Message to store with the transaction.
        transaction_properties: Properties to store with the transaction.

    Returns:
        {"num_rows", "num_fragments"}: number of rows with new values, and number of fragments with a new file.

    Raises:
        NotFoundError: The table does not exist.
        InvalidInputError: A column already exists, two DataFrame rows match one table row, an address does not exist,
            or a value cannot be cast to the column's type.
        CommitConflictError: Another writer changed rows to which the addresses may refer.
    """
    check_parallelism(parallelism)
    place = TableRef.of(uri, storage_options)
    properties = properties_of(commit_message, transaction_properties)
    start = place.dataset().handle.base
    base = start if version is None else place.dataset(version).handle.snapshot
    vectors = {name: str(size) for name, size in (vector_columns or {}).items()}
    job = _Job.of(place, df, on, start, vectors, frozenset(not_null))
    is_kept = df.storageLevel.useMemory or df.storageLevel.useDisk
    if not is_kept:
        df.persist()

    def attempt(snapshot: Snapshot) -> ColumnFigures:
        if job.is_by_address(snapshot):
            check_same_rows(base, snapshot)
        return _attempt(spark, job, df, snapshot, parallelism, properties)

    try:
        figures = run_again(start, attempt)
    finally:
        if not is_kept:
            df.unpersist()
    refresh_views(spark, place)
    return figures


def _attempt(
    spark: SparkSession,
    job: _Job,
    df: DataFrame,
    snapshot: Snapshot,
    parallelism: int | None,
    properties: Mapping[str, str] | None,
) -> ColumnFigures:
    plan = plan_columns(snapshot, job.new)
    rows, version, new = job.placed(spark, df, snapshot), snapshot.version, plan.new
    fragment = F.shiftrightunsigned(F.col(ADDRESS), 32)
    partitions = rows.repartition(fragment) if parallelism is None else rows.repartition(parallelism, fragment)
    with UncommittedFiles(snapshot, transaction=uuid4()) as draft:
        transaction = draft.transaction
        parts = run_frame(
            spark,
            partitions.sortWithinPartitions(ADDRESS),
            lambda batches: _write(job, version, new, batches, transaction),
            note=lambda part: draft.note_fragments([_bare(file) for file in part.files.values()]),
            words=f"columns are added to {shown(job.place.uri)}",
        )
        files = {fragment_id: file for part in parts for fragment_id, file in part.files.items()}
        commit_columns(snapshot, plan, files, draft, properties)
    return {"num_rows": sum(part.rows for part in parts), "num_fragments": len(files)}


@dataclass(frozen=True)
class _WrittenColumns:
    """Output of a task.

    Attributes:
        files: New files by fragment id.
        rows: Number of rows with new values.
    """

    files: Mapping[int, DataFile]
    rows: int


@dataclass(frozen=True)
class _Job:
    """The columns to add, and the join key. It can be pickled.

    Attributes:
        on: The join key.
        names: New columns of the frame.
        new: Types of these columns in the table.
    """

    place: TableRef
    on: str
    names: tuple[str, ...]
    new: pa.Schema

    @classmethod
    def of(
        cls,
        place: TableRef,
        df: DataFrame,
        on: str,
        snapshot: Snapshot,
        vectors: Mapping[str, str],
        strict: frozenset[str],
    ) -> _Job:
        """Build the job, after checking the arguments."""
        names = tuple(name for name in df.columns if name != on)
        if on not in df.columns or len(names) + 1 != len(df.columns):
            raise InvalidInputError(
                f"column {on!r} is missing, or a name is duplicated", where="frame", found=", ".join(df.columns)
            )
        if on not in (ROW_ADDRESS, ROW_ID, *snapshot.schema.names):
            raise unknown_column(on, [*snapshot.schema.names, ROW_ADDRESS, ROW_ID], snapshot.uri)
        if not names:
            raise InvalidInputError(
                "the frame does not have columns to add", where="frame", expected=f"columns other than {on!r}"
            )
        if unknown := sorted(strict.difference(names)):
            raise InvalidInputError("not_null", expected=f"names from {', '.join(names)}", found=", ".join(unknown))
        if on in (ROW_ADDRESS, ROW_ID) and not isinstance(df.schema[on].dataType, IntegralType):
            kind = df.schema[on].dataType.simpleString()
            raise WrongTypeError("invalid row addresses", where=f"column {on!r}", expected="whole numbers", found=kind)
        arrow = table_schema(StructType([df.schema[name] for name in names]), vectors)
        new = pa.schema([field.with_nullable(field.name not in strict) for field in arrow])
        plan_columns(snapshot, new)
        return cls(place, on, names, new)

    def is_by_address(self, snapshot: Snapshot) -> bool:
        """Return whether the frame has row addresses."""
        return self.on == ROW_ADDRESS or (self.on == ROW_ID and not snapshot.has_stable_row_ids)

    def placed(self, spark: SparkSession, df: DataFrame, snapshot: Snapshot) -> DataFrame:
        """Return the rows of the frame that match a table row, with the column ADDRESS."""
        if self.is_by_address(snapshot):
            return df.withColumn(ADDRESS, F.col(self.on).cast("long")).drop(self.on).where(F.col(ADDRESS).isNotNull())
        table = TableKeys(self.place, snapshot.version, MergePlan((self.on,))).frame(spark, snapshot, None)
        schema = Schema(tuple(field for field in snapshot.schema.fields if field.name == self.on))
        on, names = self.on, list(self.names)

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch.select(names).append_column(KEY, _keys(batch, schema, on))

        fields = [*(df.schema[name] for name in names), StructField(KEY, BinaryType())]
        keyed = map_batches(df, run, StructType(fields))
        # Spark cannot estimate the size of data that tasks read, and assumes that the data is small.
        return keyed.join(table.hint("merge"), KEY).drop(KEY)


def _keys(batch: pa.RecordBatch, schema: Schema, on: str) -> pa.Array:
    if on == ROW_ID:
        return key_bytes([batch.column(on).cast(pa.uint64())], [on])
    return frame_keys(batch, schema, [on])


def _write(
    job: _Job, version: int, new: Schema, batches: Iterator[pa.RecordBatch], transaction: UUID | None
) -> _WrittenColumns:
    """Write the new columns for the rows of a task, fragment by fragment."""
    snapshot = job.place.pinned(version).handle.snapshot
    files: dict[int, DataFile] = {}
    count = 0
    with UncommittedFiles(snapshot) as draft:
        for fragment_id, pieces in groupby(_pieces(batches, job.names), key=lambda piece: piece[0]):
            file, rows = write_values(snapshot, new, fragment_id, (piece[1] for piece in pieces), transaction)
            count += rows
            if file is not None:
                files[fragment_id] = file
                draft.note_fragments([_bare(file)])
    return _WrittenColumns(files, count)


def _pieces(batches: Iterable[pa.RecordBatch], names: Sequence[str]) -> Iterator[tuple[int, ColumnValues]]:
    """Yield pairs of a fragment id and the values for rows of that fragment."""
    for batch in batches:
        addresses = batch.column(ADDRESS).to_numpy()
        fragments = addresses >> 32
        edges = [0, *(np.flatnonzero(np.diff(fragments)) + 1).tolist(), batch.num_rows]
        rows = batch.select(list(names))
        for start, stop in pairwise(edges):
            if start < stop:
                offsets = addresses[start:stop] & 0xFFFFFFFF
                yield int(fragments[start]), ColumnValues(offsets, rows.slice(start, stop - start))


def _bare(file: DataFile) -> Fragment:
    return Fragment(0, (file,), None, 0, None, None, None)
