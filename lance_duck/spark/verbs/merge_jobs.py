"""Merges in Spark tasks. Spark joins source and table keys, tasks write rows, and the driver commits once.

    source → keys as bytes ─┐
    table  → keys, addresses┴→ join → by fragment, new rows by key → sorted by address, key → MergePart → one Update

The source is computed once and cached during the merge. Keys are compared as bytes (`verbs.rows.key_bytes`). The result
is therefore the same as without Spark, and does not depend on Spark's types.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn
from uuid import UUID, uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the customary name
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from lance_duck.arguments import checked_call, checked_calls
from lance_duck.commit import run_again
from lance_duck.errors import IncompatibleError, UnsupportedError
from lance_duck.redact import shown
from lance_duck.snapshot import Snapshot
from lance_duck.spark.costs import DRIVER_DELETIONS, SOURCE_KEYS
from lance_duck.spark.io.types import arrow_schema
from lance_duck.spark.jobs.failures import as_ours
from lance_duck.spark.jobs.frame_tasks import run_frame
from lance_duck.spark.jobs.jobs import run_jobs
from lance_duck.spark.jobs.work_splits import check_parallelism, shares
from lance_duck.spark.sql.views import refresh_views
from lance_duck.spark.table_ref import TableRef
from lance_duck.spark.workers import map_batches
from lance_duck.verbs.merge.builder import MergeInsertBuilder
from lance_duck.verbs.merge.commit import MergeResult, commit_merge, joined_parts, merge_newest
from lance_duck.verbs.merge.parts import MergePart, Pairs, table_keys, write_part
from lance_duck.verbs.merge.plan import MergePlan
from lance_duck.verbs.merge.source import MergeSource
from lance_duck.verbs.rows.draft import UncommittedFiles
from lance_duck.verbs.rows.key_bytes import key_bytes
from lance_duck.verbs.rows.keys import KeyIndex
from lance_duck.verbs.rows.rows_moved import Offsets, RowDeletion, delete_offsets
from lance_duck.wire.schema import Schema
from lance_duck.write.coerce import coerce
from lance_duck.write.options import WriteOptions

KEY, ORDER, ADDRESS, LOST = "__lance_key", "__lance_order", "__lance_address", "__lance_lost"


@checked_call
def merge_insert(
    spark: SparkSession,
    df: DataFrame,
    uri: str | os.PathLike[str],
    on: str | list[str] | tuple[str, ...] | None = None,
    *,
    storage_options: Mapping[str, str] | None = None,
    parallelism: int | None = None,
) -> SparkMerge:
    """Start a merge of a DataFrame into a table in Spark tasks, like `LanceDataset.merge_insert`.

        ls.merge_insert(spark, df, uri, on="id").when_matched_update_all().when_not_matched_insert_all().execute()

    Args:
        spark: Spark session, classic or Connect.
        df: The source. Spark computes it once, and caches it until the merge is complete.
        uri: Path or URI of the table.
        on: Key columns. Rows match if their key values are equal. Null never matches. Defaults to the unenforced
            primary key.
        storage_options: Settings of the object store.
        parallelism: Number of writing tasks. Each task writes separate fragments. By default, Spark chooses the number
            by the size of the rows (`spark.sql.adaptive.advisoryPartitionSizeInBytes`).

    Raises:
        NotFoundError: The table does not exist.
        InvalidInputError: A column does not exist, `on` is missing, or the table does not have a primary key.
    """
    return SparkMerge(spark, df, TableRef.of(uri, storage_options), on, parallelism)


@checked_calls
class SparkMerge(MergeInsertBuilder):
    """Builder of a merge, with the methods of `LanceDataset.merge_insert`.

    If source rows share a key, `source_dedupe_behavior("first_seen")` uses the first of them, in order of partitions.
    """

    def __init__(
        self,
        spark: SparkSession,
        df: DataFrame,
        place: TableRef,
        on: str | list[str] | tuple[str, ...] | None,
        parallelism: int | None,
    ) -> None:
        check_parallelism(parallelism)
        super().__init__(place.dataset(), on)
        self._spark, self._df, self._place, self._parallelism = spark, df, place, parallelism

    def execute(self, data_obj: Any = None, *, schema: pa.Schema | None = None) -> MergeResult:
        """Run the merge with one join and one commit. A conditional merge that changes no row is not committed.

        If a conflicting change is committed first, the join and the commit are repeated.

        Args:
            data_obj: Not supported, because the source is the DataFrame.
            schema: Not supported.

        Returns:
            {"num_inserted_rows", "num_updated_rows", "num_deleted_rows"}

        Raises:
            InvalidInputError: The source does not match the table's columns, repeats a key, or matches rows although
                matches are forbidden. Or a condition is invalid, or the merge does not have an action.
            CommitConflictError: At each retry, other writers committed first, or a conflicting change was committed.
        """
        if data_obj is not None or schema is not None:
            _unsupported("another source than the frame")
        plan = self._plan
        plan.check()
        if plan.write_mode == "rewrite_columns":
            _unsupported("write_mode rewrite_columns")
        if plan.target_bases is not None or plan.target_all_bases is not None:
            _unsupported("target_bases")
        start = self._dataset.handle.base
        source = _Source.of(self._df, start, plan)
        frame = source.frame.persist()
        try:
            work = partial(merge_newest, attempt=partial(self._attempt, source=source))
            after, result = run_again(start, work, plan.retries, plan.timeout.total_seconds())
        finally:
            frame.unpersist()
        self._dataset.handle.move_to(after)
        refresh_views(self._spark, self._place)
        return result

    def execute_uncommitted(self, data_obj: Any, *, schema: pa.Schema | None = None) -> NoReturn:
        """Raise UnsupportedError: Spark merges do not support this."""
        _unsupported("execute_uncommitted")

    def analyze_plan(self, data_obj: Any, *, schema: pa.Schema | None = None) -> NoReturn:
        """Raise UnsupportedError: Spark merges do not support this."""
        _unsupported("analyze_plan")

    def _attempt(self, snapshot: Snapshot, source: _Source) -> tuple[Snapshot, MergeResult]:
        plan, place, version = self._plan, self._place, snapshot.version
        source.check(snapshot)
        pairs = source.joined(self._spark, TableKeys(place, version, plan), snapshot, self._parallelism)
        names = source.names
        with UncommittedFiles(snapshot, transaction=uuid4()) as draft:
            storage, transaction = plan.data_storage_version, draft.transaction
            parts = run_frame(
                self._spark,
                pairs,
                lambda batches: _write(place, version, plan, names, batches, storage, transaction),
                note=lambda part: draft.note_fragments(part.fragments),
                words=f"rows are merged into {shown(place.uri)}",
            )
            delete = _deleter(self._spark, place, snapshot, draft)
            result = joined_parts(snapshot, plan, names, parts, delete)
            return commit_merge(draft, result, self._said)


@dataclass(frozen=True)
class _Source:
    """The source frame, with its keys.

    Attributes:
        frame: The source rows, with the additional columns KEY and ORDER.
        names: Columns of the source.
        schema: Key columns of the table.
    """

    frame: DataFrame
    names: tuple[str, ...]
    schema: Schema

    @classmethod
    def of(cls, df: DataFrame, snapshot: Snapshot, plan: MergePlan) -> _Source:
        """Check the columns of a frame, and add the join key."""
        names = tuple(df.columns)
        MergeSource(arrow_schema(df.schema).empty_table(), snapshot.schema, plan.on)
        schema = Schema(tuple(field for field in snapshot.schema.fields if field.name in plan.on))
        on = plan.on
        fields = [*df.schema.fields, StructField(ORDER, LongType(), False), StructField(KEY, BinaryType())]

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield batch.append_column(KEY, frame_keys(batch, schema, on))

        numbered_rows = df.withColumn(ORDER, F.monotonically_increasing_id())
        return cls(map_batches(numbered_rows, run, StructType(fields)), names, schema)

    def check(self, snapshot: Snapshot) -> None:
        """Raise IncompatibleError if a version has different key columns."""
        now = {field.name: field.storage_type for field in snapshot.schema.fields}
        if any(now.get(field.name) != field.storage_type for field in self.schema.fields):
            raise IncompatibleError(
                "the key columns were changed concurrently", where=snapshot.uri, remedy="start the merge again"
            )

    def joined(self, spark: SparkSession, table: TableKeys, snapshot: Snapshot, parallelism: int | None) -> DataFrame:
        """Return pairs of source rows and table rows, with the partitions and order that `merge_parts` requires."""
        plan = table.plan
        few = None if plan.by_source_delete else self._few()
        target = table.frame(spark, snapshot, few)
        # Spark cannot estimate the size of data that tasks read, and assumes that the data is small.
        target = target.hint("broadcast" if few is not None else "merge")
        how = "full_outer" if plan.by_source_delete else "left_outer"
        pairs = self.frame.join(
            target.withColumnRenamed(KEY, f"{KEY}_of_table"), F.col(KEY) == F.col(f"{KEY}_of_table"), how
        )
        pairs = pairs.drop(f"{KEY}_of_table").where(F.col(ORDER).isNotNull() | F.col(LOST))
        partitions = pairs.repartition(_cut()) if parallelism is None else pairs.repartition(parallelism, _cut())
        return partitions.sortWithinPartitions(F.col(ADDRESS).asc_nulls_last(), F.col(KEY), F.col(ORDER))

    def _few(self) -> pa.Table | None:
        """Return the keys of a small source, or None if the source is large."""
        names = [field.name for field in self.schema.fields]
        columns = [F.col(f"`{name.replace('`', '``')}`") for name in names]
        with as_ours():
            keys = self.frame.select(columns).limit(SOURCE_KEYS + 1).toArrow()
        return None if keys.num_rows > SOURCE_KEYS else keys


@dataclass(frozen=True)
class TableKeys:
    """The keys of a table's rows, for the join. Can be pickled."""

    place: TableRef
    version: int
    plan: MergePlan

    def frame(self, spark: SparkSession, snapshot: Snapshot, few: pa.Table | None) -> DataFrame:
        """Return KEY, ADDRESS and LOST of the rows. Given source keys, most rows with other keys are omitted."""
        jobs = shares(snapshot)
        table = self

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from table.rows(jobs[number], few)

        columns = f"{KEY} binary, {ADDRESS} long, {LOST} boolean"
        return map_batches(spark.range(0, len(jobs), 1, max(1, len(jobs))), run, columns)

    def rows(self, fragments: tuple[int, ...], few: pa.Table | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some fragments. Called in a task."""
        snapshot = self.place.pinned(self.version).handle.snapshot
        sought = None
        if few is not None:
            schema = Schema(tuple(field for field in snapshot.schema.fields if field.name in self.plan.on))
            typed = pa.Table.from_batches(
                coerce(few.to_batches(), schema), pa.schema([(f.name, f.storage_type) for f in schema.fields])
            )
            sought = KeyIndex([typed.column(name) for name in self.plan.on], self.plan.on)
            if not sought.count:
                return
        for keys, addresses, lost in table_keys(snapshot, self.plan, fragments, sought):
            columns = [keys, pa.array(addresses.view(np.int64)), pa.array(lost)]
            yield pa.record_batch(columns, names=[KEY, ADDRESS, LOST])


def frame_keys(batch: pa.RecordBatch, schema: Schema, on: Sequence[str]) -> pa.Array:
    """Return the keys of a batch of the frame, as bytes.

    Args:
        batch: The rows.
        schema: Key columns of the table.
        on: Names of the key columns, in order.
    """
    if not batch.num_rows:
        return pa.nulls(0, pa.binary())
    (typed,) = coerce([batch.select([field.name for field in schema.fields])], schema)
    return key_bytes([typed.column(name) for name in on], on)


def _cut() -> Column:
    """Return the partitioning expression: the fragment of the matching row, the key, or an arbitrary value."""
    fragment = F.shiftrightunsigned(F.col(ADDRESS), 32)
    by_key = F.when(F.col(KEY).isNull(), F.xxhash64(F.col(ORDER))).otherwise(F.xxhash64(F.col(KEY)))
    return F.coalesce(fragment, -1 - F.pmod(by_key, F.lit(1 << 40)))


def _write(
    place: TableRef,
    version: int,
    plan: MergePlan,
    names: tuple[str, ...],
    batches: Iterator[pa.RecordBatch],
    storage: str | None,
    transaction: UUID | None,
) -> MergePart:
    """Write the part of a merge for the pairs of a task."""
    snapshot = place.pinned(version).handle.snapshot
    options = WriteOptions(data_storage_version=storage or snapshot.data_storage_version, transaction=transaction)
    with UncommittedFiles(snapshot) as draft:
        part = write_part(snapshot, plan, (_pairs(batch, names) for batch in batches), options, draft)
        snapshot.store.sync()
    return part


def _pairs(batch: pa.RecordBatch, names: tuple[str, ...]) -> Pairs:
    addresses = batch.column(ADDRESS)
    return Pairs(
        batch.select(list(names)),
        batch.column(KEY),
        np.asarray(addresses.is_valid()),
        addresses.fill_null(0).to_numpy().view(np.uint64),
        np.asarray(batch.column(ORDER).is_valid()),
    )


def _deleter(
    spark: SparkSession, place: TableRef, snapshot: Snapshot, draft: UncommittedFiles
) -> Callable[[Offsets], RowDeletion]:
    """Return a function that writes deletion files. For many fragments, Spark tasks write them."""

    def note(deletion: RowDeletion) -> None:
        for fragment in deletion.updated:
            assert fragment.deletion_file is not None
            draft.note(fragment.deletion_file.path(fragment.id))

    def delete(rows: Offsets) -> RowDeletion:
        if len(rows) <= DRIVER_DELETIONS:
            return delete_offsets(snapshot, rows, draft)
        ids = sorted(rows)
        jobs = [rows.only(ids[start : start + DRIVER_DELETIONS]) for start in range(0, len(ids), DRIVER_DELETIONS)]
        version = snapshot.version
        words = f"rows of {shown(place.uri)} are deleted"
        return RowDeletion.joined(
            run_jobs(spark, lambda job: _delete(place, version, job), jobs, note=note, words=words)
        )

    return delete


def _delete(place: TableRef, version: int, rows: Offsets) -> RowDeletion:
    snapshot = place.pinned(version).handle.snapshot
    with UncommittedFiles(snapshot) as draft:
        deletion = delete_offsets(snapshot, rows, draft)
        snapshot.store.sync()
    return deletion.packed


def _unsupported(what: str) -> NoReturn:
    raise UnsupportedError(
        f"{what} is not supported in Spark", where="merge_insert", remedy="use LanceDataset.merge_insert"
    )
