"""Writes a DataFrame to a table. Each task writes its own files, and the driver commits once. See `staged_commit`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lance_duck import lazy
from lance_duck.spark import workers
from lance_duck.spark.brief_errors import brief_errors
from lance_duck.spark.io.columns import table_schema
from lance_duck.spark.io.options import SparkWriteOptions
from lance_duck.spark.io.types import arrow_schema
from lance_duck.wire.fragment import Fragment
from lance_duck.write.vectors import check_vectors, parse_vector_columns

if TYPE_CHECKING:
    from lance_duck.spark.io import staged_commit
else:
    staged_commit = lazy.modules(globals(), "lance_duck.spark.io", "staged_commit")


@dataclass(frozen=True)
class LanceCommitMessage(WriterCommitMessage):
    """The result of one task: fragments that do not have ids yet."""

    fragments: tuple[Fragment, ...]


@brief_errors
class LanceWriter(DataSourceArrowWriter):
    """Writes a DataFrame as one version of a table.

    Args:
        options: The table, and settings of the write.
        schema: Schema of the frame.
        overwrite: Whether Spark's save mode is overwrite.

    Raises:
        AlreadyExistsError: The table exists, and the mode is "error".
        InvalidInputError: The frame does not match the table's columns, or the length of vectors is unknown.
        UnsupportedError: A type, a version or the table cannot be written.
    """

    def __init__(self, options: SparkWriteOptions, schema: StructType, overwrite: bool) -> None:
        mode = options.save_mode or "append"
        if overwrite and mode == "append":
            mode = "overwrite"
        exists = mode == "ignore" and staged_commit.newest(options.place) is not None
        self._landing = None if exists else begin(options, schema, mode)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> LanceCommitMessage:
        """Write the rows of a partition, which may be empty. Called in a task."""
        return LanceCommitMessage(() if self._landing is None else self._landing.write(iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the files as a version, even if there are no rows."""
        if self._landing is not None:
            self._landing.land(fragments_of(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Delete the files, unless they were committed."""
        if self._landing is not None:
            self._landing.abandon()


def begin(options: SparkWriteOptions, schema: StructType, mode: str) -> staged_commit.Landing:
    """Prepare the change that writes a frame.

    Args:
        options: The table, and settings of the write.
        schema: Schema of the frame.
        mode: "error", "ignore", "append" or "overwrite". "ignore" is only valid if the table does not exist.
    """
    current = staged_commit.newest(options.place)
    if current is not None and mode == "error":
        raise staged_commit.exists_already(options.place)
    vectors, blobs = options.vectors_of(schema.names), options.blobs_of(schema.names)
    if current is not None and mode == "append":
        arrow = arrow_schema(schema)
        check_vectors(parse_vector_columns(vectors), current.schema.arrow)
    else:
        arrow = table_schema(schema, vectors, blobs, None if current is None else current.schema.arrow)
    write_mode = {"error": "create", "ignore": "create"}.get(mode, mode)
    return staged_commit.Landing.begin(options.place, arrow, write_mode, settings=options.settings)


def fragments_of(messages: Sequence[WriterCommitMessage | None]) -> tuple[Fragment, ...]:
    """Return the fragments of all tasks, in the order of the partitions."""
    return tuple(
        fragment for message in messages if isinstance(message, LanceCommitMessage) for fragment in message.fragments
    )


workers.load_in_worker("lance_duck.spark.io.staged_commit")
