"""Joins each row of a query DataFrame with its nearest rows in a table.

    many queries, or a small table   partitions of queries; each task searches the table for its own queries
    few queries, a large table       groups of fragments that share an index segment; each task searches its group for
                                     all queries, a window keeps the nearest, and their columns are fetched

A worker opens the table once and caches index data for all tasks that it runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  the customary name
from pyspark.sql.types import ArrayType, NumericType, StructType

from lance_duck.arguments import checked_call, unknown_column
from lance_duck.dataset import LanceDataset
from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.nearest.best import Neighbours
from lance_duck.scan.nearest.options import Nearest, vector_column
from lance_duck.scan.nearest.queries import Queries
from lance_duck.scan.nearest.result import DISTANCE, QUERY, ResultLayout, layout
from lance_duck.scan.nearest.route import route
from lance_duck.scan.nearest.scan import NearestScan
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ROW_ADDRESS, ColumnsLike
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.spark.costs import JOINED_ROWS, QUERIES, QUERY_BYTES, SEARCHED_BYTES
from lance_duck.spark.io.types import Declaration, spark_schema
from lance_duck.spark.jobs.work_splits import check_parallelism, shares
from lance_duck.spark.table_ref import TableRef, pin
from lance_duck.spark.workers import map_batches


@checked_call
def knn_join(
    spark: SparkSession,
    queries_df: DataFrame,
    uri: str | os.PathLike[str],
    column: str = "vector",
    query_column: str = "q",
    k: int = 10,
    *,
    metric: str | None = None,
    nprobes: int | None = None,
    ef: int | None = None,
    refine_factor: int | None = None,
    recall: float | None = None,
    filter: FilterLike | None = None,  # noqa: A002  the name in other methods
    columns: ColumnsLike | None = None,
    use_index: bool = True,
    prefilter: bool = True,
    distance_range: tuple[float | None, float | None] | None = None,
    with_row_id: bool = False,
    with_row_address: bool = False,
    version: int | str | tuple[str | None, int | str | None] | None = None,
    storage_options: Mapping[str, str] | None = None,
    parallelism: int | None = None,
) -> DataFrame:
    """Join each query with its nearest rows in a table, like `LanceDataset.search`.

    The result is the same as in a search without Spark. Rows that an index covers are searched with the index, and all
    other rows are compared one by one. The result stays on the table version at the time of the call, even if the frame
    is computed several times.

    Args:
        spark: Spark session, classic or Connect.
        queries_df: The queries. For a large table, up to `QUERIES` queries are collected when the join is defined.
        uri: Path or URI of the table.
        column: Vector column of the table.
        query_column: Column of `queries_df` with arrays of numbers. A null query does not match any row.
        k: Number of rows for each query.
        metric: "l2", "cosine", "dot" or "hamming". Defaults to the metric of the index, or "l2" without an index.
        nprobes: Number of index partitions to search. By default, it is derived from `recall`.
        ef: Number of candidates of a graph search.
        refine_factor: Factor of k. That number of candidates is re-ranked by the original vectors.
        recall: Share of true neighbours to find, if `nprobes`, `ef` and `refine_factor` are not set. Defaults to 0.95.
        filter: Condition on rows of the table: SQL text, (SQL text, parameters) or a pyarrow expression.
        columns: Columns of the table: names, or a mapping from names to SQL expressions. By default, all columns.
        use_index: If False, all vectors are compared.
        prefilter: If False, the filter is applied to the k nearest rows, and fewer than k rows may remain.
        distance_range: Lower (inclusive) and upper (exclusive) bound of distances. None means that a side is unbounded.
        with_row_id: Add `_rowid`.
        with_row_address: Add `_rowaddr`.
        version: Version number, tag name, or (branch, number or tag). By default, the newest version.
        storage_options: Settings of the object store.
        parallelism: Number of fragment groups for few queries. By default, it depends on the table.

    Returns:
        Query columns, table columns, and `_distance` (float). For each query, the rows are ordered by distance, nearest
        first.

    Raises:
        NotFoundError: The table or the version does not exist.
        InvalidInputError: The search is invalid for this table, or both sides have a column with the same name. Queries
            with a wrong length, or with values that are not numbers, may raise this error only when the frame is
            computed.
        UnsupportedError: A column has a type that Spark does not support.
    """
    check_parallelism(parallelism)
    place = TableRef.of(uri, storage_options)
    table = place.dataset(version)
    nearest = {"column": column, "k": k, "metric": metric, "nprobes": nprobes, "ef": ef}
    nearest |= {"refine_factor": refine_factor, "use_index": use_index, "recall": recall}
    nearest |= {"distance_range": distance_range}
    options = {"columns": columns, "filter": filter, "prefilter": prefilter}
    options |= {"with_row_id": with_row_id, "with_row_address": with_row_address}
    search = _KnnSearch(place, pin(table), nearest, options)
    search.check(table)
    join = _Join(search, query_column, tuple(queries_df.columns))
    _check_queries(queries_df, query_column)
    result = join.schema(table, queries_df)
    groups = search.groups(table.handle.snapshot, parallelism) if prefilter or filter is None else []
    few = _few(queries_df, query_column) if len(groups) > 1 else None
    if few is None:
        return map_batches(queries_df, join.answers, result)
    query_vectors = _Asked.of(few.column(query_column).combine_chunks())
    if len(query_vectors.rows):
        query_vectors.queries(search.scan(table))  # raises errors for invalid queries early
    return join.by_groups(spark, few, groups, result)


@dataclass(frozen=True)
class _KnnSearch:
    """A search of the table. Can be pickled.

    Attributes:
        version: See `TableRef.pinned`.
        nearest: See `ScanOptions.nearest`, without queries.
        options: See `ScanOptions`.
    """

    place: TableRef
    version: int | tuple[str, int]
    nearest: Mapping[str, Any]
    options: Mapping[str, Any]

    def check(self, table: LanceDataset) -> None:
        """Check that the search is valid for the table."""
        self.scan(table).schema(is_batch=True)

    def scan(self, table: LanceDataset, **others: Any) -> NearestScan:
        """Return the search, ready to run with queries."""
        options = ScanOptions(
            **{**self.options, **others}, nearest=self.nearest, batch_size=JOINED_ROWS, use_threads=False
        )
        return NearestScan(table.handle.table, options)

    def opened(self) -> LanceDataset:
        """Return the open table. Called in a task."""
        return self.place.pinned(self.version)

    def layout(self, snapshot: Snapshot) -> ResultLayout:
        """Return the result columns that follow the query number."""
        return layout(
            snapshot.schema,
            self.options["columns"],
            is_batch=True,
            with_row_id=self.options["with_row_id"],
            with_row_address=self.options["with_row_address"],
        )

    def groups(self, snapshot: Snapshot, parallelism: int | None) -> list[tuple[int, ...]]:
        """Return the fragments of each task. Fragments of one segment stay together."""
        dim, dtype = _form(snapshot, self.nearest["column"])
        nearest = Nearest.of(self.nearest, TableScan(snapshot))
        way = route(snapshot, nearest, snapshot.fragments.id_set)
        fewest = SEARCHED_BYTES // (dim * dtype.itemsize)
        splits = shares(snapshot, parallelism, way.open, fewest)
        return [tuple(sorted(mine)) for _, mine in way.segments] + splits


@dataclass(frozen=True)
class _Join:
    """The query side of the join. It can be pickled.

    Attributes:
        search: The search of the table.
        query: Name of the query column.
        names: Column names of the query DataFrame.
    """

    search: _KnnSearch
    query: str
    names: tuple[str, ...]

    def schema(self, table: LanceDataset, queries: DataFrame) -> StructType:
        """Return the schema declared to Spark."""
        declared = self.declared(table.handle.snapshot)
        query_names = {name.lower() for name in self.names}
        both = [field.name for field in declared if field.name.lower() in query_names]
        if both:
            raise InvalidInputError(
                "the queries and the table have columns with the same name",
                where="knn_join",
                found=", ".join(both),
                remedy="leave them out, rename them with columns={new name: name}, or rename the queries "
                "with withColumnRenamed",
            )
        return StructType([*queries.schema.fields, *declared.fields])

    def declared(self, snapshot: Snapshot) -> StructType:
        """Return the declared columns of the table."""
        layout_schema = self.search.layout(snapshot).schema
        return spark_schema(pa.schema([field for field in layout_schema if field.name != QUERY]))

    def answers(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield result rows for a partition of queries. Called in a task."""
        table = self.search.opened()
        scan = self.search.scan(table)
        declaration = Declaration(self.declared(table.handle.snapshot), scan.schema(is_batch=True))
        for batch in batches:
            query_vectors = _Asked.of(batch.column(self.query))
            if not len(query_vectors.rows):
                continue
            for rows in scan.batches(query_vectors.queries(scan)):
                yield self._paired(batch, query_vectors.rows[rows.column(QUERY).to_numpy()], declaration.apply(rows))

    def by_groups(
        self, spark: SparkSession, queries: pa.Table, groups: Sequence[tuple[int, ...]], result: StructType
    ) -> DataFrame:
        """Return the frame of the join for few queries."""
        search, k = self.search, self.search.nearest["k"]
        vectors = queries.column(self.query).combine_chunks()

        def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from search_group(search, vectors, groups[number])

        def take(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from self._taken(queries, batch)

        hits = map_batches(
            spark.range(0, len(groups), 1, len(groups)), find, "query long, distance float, address long"
        )
        nearest = Window.partitionBy("query").orderBy("distance", "address")
        best = hits.withColumn("rank", F.row_number().over(nearest)).where(F.col("rank") <= k)
        return map_batches(best.sortWithinPartitions("query", "rank"), take, result)

    def _taken(self, queries: pa.Table, hits: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        table = self.search.opened()
        columns = self.search.layout(table.handle.snapshot)
        declaration = Declaration(self.declared(table.handle.snapshot), columns.schema)
        for start in range(0, hits.num_rows, JOINED_ROWS):
            piece = hits.slice(start, JOINED_ROWS)
            rows, addresses = piece.column("query").to_numpy(), piece.column("address").to_numpy().view(np.uint64)
            neighbours = Neighbours(rows, piece.column("distance").to_numpy(), addresses)
            batch = columns.batch(table.handle.table.taker, neighbours)
            yield self._paired(queries, rows, declaration.apply(batch))

    def _paired(
        self, queries: pa.RecordBatch | pa.Table, rows: NDArray[np.int64], neighbours: pa.RecordBatch
    ) -> pa.RecordBatch:
        query_rows = queries.take(pa.array(rows))
        arrays = [c.combine_chunks() if isinstance(c, pa.ChunkedArray) else c for c in query_rows.columns]
        return pa.RecordBatch.from_arrays([*arrays, *neighbours.columns], [*self.names, *neighbours.schema.names])


def search_group(search: _KnnSearch, queries: pa.Array, fragments: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """Yield the nearest rows in some fragments, with query number, distance and address."""
    table = search.opened()
    bare = replace(search, options={**search.options, "columns": [ROW_ADDRESS], "with_row_address": False})
    scan = replace(bare, options={**bare.options, "with_row_id": False}).scan(table, fragments=list(fragments))
    query_vectors = _Asked.of(queries)
    if not len(query_vectors.rows):
        return
    for neighbours in scan.batches(query_vectors.queries(scan)):
        rows = pa.array(query_vectors.rows[neighbours.column(QUERY).to_numpy()])
        addresses = pa.array(neighbours.column(ROW_ADDRESS).to_numpy().view(np.int64))
        yield pa.record_batch([rows, neighbours.column(DISTANCE), addresses], names=["query", "distance", "address"])


@dataclass(frozen=True)
class _Asked:
    """The non-null queries.

    Attributes:
        rows: Positions of these queries, int64.
        column: Their vectors.
    """

    rows: NDArray[np.int64]
    column: pa.Array

    @classmethod
    def of(cls, column: pa.Array) -> _Asked:
        rows = np.flatnonzero(np.asarray(column.is_valid()))
        return cls(rows, column.drop_null() if len(rows) < len(column) else column)

    def queries(self, scan: NearestScan) -> Queries:
        """Return the queries as numbers."""
        numbers = self.column
        if pa.types.is_decimal(numbers.type.value_type):  # Spark's type for array(0.5, 1.5)
            numbers = numbers.cast(pa.list_(pa.float64()))
        return scan.queries({"q": numbers})


def _form(snapshot: Snapshot, column: str) -> tuple[int, np.dtype[Any]]:
    vectors = vector_column(TableScan(snapshot), column)
    return vectors.dim, vectors.dtype


def _check_queries(queries: DataFrame, name: str) -> None:
    if name not in queries.columns:
        raise unknown_column(name, queries.columns, "queries")
    kind = queries.schema[name].dataType
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, NumericType):
        raise WrongTypeError(
            "queries", where=f"column {name!r}", expected="arrays of numbers", found=kind.simpleString()
        )


def _few(queries: DataFrame, name: str) -> pa.Table | None:
    """Return the queries, or None if there are too many to send to every task."""
    frame_rows = queries.limit(QUERIES + 1).toArrow()
    return None if frame_rows.num_rows > QUERIES or frame_rows.nbytes > QUERY_BYTES else frame_rows
