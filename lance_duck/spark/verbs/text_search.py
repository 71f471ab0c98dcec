"""Full-text search of a table in tasks. Fragments of the same index segment are searched by one task.

Scores are the same as without Spark, because each task uses the statistics of all rows. Tasks also analyse the rows
that indexes do not cover. The best rows of all tasks are combined into one frame. Its other columns are fetched last.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the customary name

from lance_duck.arguments import checked_call
from lance_duck.dataset import LanceDataset
from lance_duck.errors import WrongTypeError
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ROW_ADDRESS, ROW_ID, ColumnsLike
from lance_duck.scan.scored.layout import DOC_INDEX, SCORE, ScoreLayout, score_field, score_layout
from lance_duck.scan.text.filter import with_text_filter
from lance_duck.scan.text.request import text_search_arguments
from lance_duck.scan.text.scan import TextScan
from lance_duck.snapshot import Snapshot
from lance_duck.spark.costs import JOINED_ROWS
from lance_duck.spark.io.types import Declaration, spark_schema
from lance_duck.spark.jobs.work_splits import check_parallelism, shares
from lance_duck.spark.table_ref import TableRef, pin
from lance_duck.spark.workers import map_batches

_ELEMENT: Final = "element"
"""Column with the indices of a list element in its enclosing lists. Null if the documents are rows."""
_HITS: Final = f"score float, row_id long, address long, {_ELEMENT} array<long>"
_PLACES: Final = pa.list_(pa.int64())


@checked_call
def search(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    query: Any,
    k: int = 10,
    column: str | None = None,
    *,
    filter: FilterLike | None = None,  # noqa: A002  the name in other methods
    columns: ColumnsLike | None = None,
    prefilter: bool = True,
    with_row_id: bool = False,
    with_row_address: bool = False,
    version: int | str | tuple[str | None, int | str | None] | None = None,
    storage_options: Mapping[str, str] | None = None,
    parallelism: int | None = None,
) -> DataFrame:
    """Find the rows of a table that match words, like `LanceDataset.search`.

    The result stays on the table version at the time of the call, even if the frame is computed several times.

    Args:
        spark: Spark session, classic or Connect.
        uri: Path or URI of the table.
        query: Words, a query of `lance_duck.query` or its JSON form.
        k: Maximum number of rows.
        column: Column to search. Defaults to all columns with a full-text index, or else to the only string column.
        filter: Condition on rows: SQL text, (SQL text, parameters), a pyarrow expression or a query.
        columns: Column names, or a mapping from names to SQL expressions. By default, all columns.
        prefilter: If False, the filter is applied to the k best rows, and fewer than k rows may remain.
        with_row_id: Add `_rowid`.
        with_row_address: Add `_rowaddr`.
        version: Version number, tag name, or (branch, number or tag). By default, the newest version.
        storage_options: Settings of the object store.
        parallelism: Target number of tasks for rows that indexes do not cover. By default, it depends on the table.

    Returns:
        The columns of the table and `_score` (float), highest score first, then by row id. If documents are list
        elements, each matching element has a row, and `_doc_index` (array of long) contains its position.

    Raises:
        NotFoundError: The table or the version does not exist.
        InvalidInputError: The search is invalid for this table.
        UnsupportedError: A column has a type that Spark does not support.
    """
    check_parallelism(parallelism)
    if isinstance(query, list | tuple | np.ndarray):
        remedy = "knn_join(spark, queries, uri) finds nearest vectors; in SQL lance_vector_search does"
        raise WrongTypeError("query", where="search", expected="words", found=type(query).__name__, remedy=remedy)
    place = TableRef.of(uri, storage_options)
    table = place.dataset(version)
    arguments = text_search_arguments(query, k, column, {"filter": filter, "prefilter": prefilter})
    arguments |= {"columns": columns, "with_row_id": with_row_id, "with_row_address": with_row_address}
    work = _TextSearch(place, pin(table), arguments)
    return work.frame(spark, table, parallelism)


@dataclass(frozen=True)
class _TextSearch:
    """A full-text search of a table. Can be pickled.

    Attributes:
        version: See `TableRef.pinned`.
        arguments: Arguments of a scan.
    """

    place: TableRef
    version: int | tuple[str, int]
    arguments: Mapping[str, Any]

    def frame(self, spark: SparkSession, table: LanceDataset, parallelism: int | None) -> DataFrame:
        """Return the frame of the result."""
        snapshot = table.handle.snapshot
        whole = _scan(table, self.arguments)
        result = spark_schema(whole.schema)
        is_post = self.arguments["filter"] is not None and self.arguments["prefilter"] is False
        groups = [None] if is_post else _groups(whole, snapshot, parallelism)

        def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from self.hits(groups[number])

        def take(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from self._taken(batch)

        hits = map_batches(spark.range(0, len(groups), 1, max(1, len(groups))), find, _HITS)
        best = hits.orderBy(F.col("score").desc(), "row_id", _ELEMENT).limit(self.arguments["limit"])
        return map_batches(best, take, result)

    def hits(self, fragments: Sequence[int] | None) -> Iterator[pa.RecordBatch]:
        """Yield the best rows in some fragments, or in all fragments for None. Called in a task."""
        table = self.place.pinned(self.version)
        bare = {
            **self.arguments,
            "columns": [SCORE],
            "with_row_id": True,
            "with_row_address": True,
            "use_threads": False,
        }
        if fragments is not None:
            bare["fragments"] = list(fragments)
        for batch in _scan(table, bare).table().to_batches():
            names = [pa.array(batch.column(name).to_numpy().view(np.int64)) for name in (ROW_ID, ROW_ADDRESS)]
            places = pa.nulls(batch.num_rows, _PLACES)
            if DOC_INDEX in batch.schema.names:
                places = batch.column(DOC_INDEX).cast(_PLACES)
            yield pa.record_batch([batch.column(SCORE), *names, places], ["score", "row_id", "address", _ELEMENT])

    def layout(self, snapshot: Snapshot, *, by_element: bool) -> ScoreLayout:
        """Return the columns of the result."""
        options = {name: self.arguments[name] for name in ("with_row_id", "with_row_address")}
        scores = (DOC_INDEX, SCORE) if by_element else (SCORE,)
        return score_layout(snapshot.schema, self.arguments["columns"], scores, **options)

    def _taken(self, hits: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        table = self.place.pinned(self.version)
        by_element = hits.column(_ELEMENT).null_count < hits.num_rows
        columns = self.layout(table.handle.snapshot, by_element=by_element)
        declaration = Declaration(spark_schema(columns.schema), columns.schema)
        for start in range(0, hits.num_rows, JOINED_ROWS):
            piece = hits.slice(start, JOINED_ROWS)
            addresses = piece.column("address").to_numpy().view(np.uint64)
            scores: dict[str, Any] = {SCORE: piece.column("score").to_numpy()}
            if by_element:
                scores[DOC_INDEX] = piece.column(_ELEMENT).cast(score_field(DOC_INDEX).type)
            batch = columns.batch(table.handle.table.taker, addresses, scores)
            yield declaration.apply(batch)


def _scan(table: LanceDataset, arguments: Mapping[str, Any]) -> TextScan:
    rows = table.handle.table
    return TextScan(rows, with_text_filter(rows, ScanOptions(**arguments)))


def _groups(scan: TextScan, snapshot: Snapshot, parallelism: int | None) -> list[Sequence[int] | None]:
    """Return the fragments of each task. Fragments of one segment stay together."""
    segments, rest = scan.cover
    open_ = shares(snapshot, parallelism, rest)
    groups: list[Sequence[int] | None] = [tuple(sorted(mine)) for mine in segments if mine]
    return [*groups, *open_] or [None]
