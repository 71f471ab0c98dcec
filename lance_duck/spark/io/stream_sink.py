"""A table as the sink of a stream. Each batch is committed exactly once, even if Spark retries it.

The id of the query and the batch number identify a batch (see `verbs.streaming_batches`). Append mode adds rows. Update
mode also adds rows, because Spark does not distinguish the two modes. In complete mode, each batch replaces all rows,
and indexes are dropped with the rows that they cover.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage

from lance_duck.errors import IncompatibleError, InvalidInputError
from lance_duck.spark.brief_errors import brief_errors
from lance_duck.spark.io.staged_commit import Landing, newest
from lance_duck.verbs.streaming_batches import StreamBatch
from lance_duck.wire.fragment import Fragment

QUERY_ID: Final = "sql.streaming.queryId"

if TYPE_CHECKING or hasattr(datasource, "DataSourceStreamArrowWriter"):
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
else:

    class DataSourceStreamArrowWriter(DataSourceStreamWriter, DataSourceArrowWriter):
        """Base class of stream writers that receive Arrow batches, for Spark 4.0."""


@dataclass
class Delivered(WriterCommitMessage):
    """The output of one task for a batch.

    Attributes:
        landing: The change that the driver began for this batch.
        stream: Id of the query, or None if it is unknown in the task.
        fragments: Fragments to commit.
    """

    landing: Landing
    stream: str | None
    fragments: tuple[Fragment, ...]


@brief_errors
class LanceStreamWriter(DataSourceStreamArrowWriter):
    """Writer of a query's batches.

    For each batch, Spark creates a writer for the rows, and a second writer for the commit.

    Args:
        landing: The change, begun for one batch.
        name: Name of the stream, which replaces the query id. It must stay the same after a restart.
    """

    def __init__(self, landing: Landing, name: str | None = None) -> None:
        self._landing = landing
        self._name = name

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write rows of a batch. Called in a task."""
        context = TaskContext.get()
        stream = self._name or (None if context is None else context.getLocalProperty(QUERY_ID))
        return Delivered(self._landing, stream, self._landing.write(iterator))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark defines the name
        """Commit a batch.

        If the batch was already committed, its files are deleted. An empty batch does not create a version.

        Raises:
            CommitConflictError: Another writer changed the table's columns, and the rows no longer match them.
            InvalidInputError: The query does not have an id.
            StoreError: The disk or the service failed.
        """
        deliveries = [message for message in messages if isinstance(message, Delivered)]
        if not deliveries:
            return
        batch = StreamBatch(_named(deliveries[0].stream), batchId)
        landing = _saying(deliveries[0].landing, batch)
        fragments = [fragment for message in deliveries for fragment in message.fragments]
        if _has_landed(landing, batch):
            landing.abandon()
        elif fragments or landing.base == 0 or landing.mode == "overwrite":
            _land(landing, fragments, batch)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Delete the files of a batch, unless it was committed."""
        for landing in {m.landing.uuid: m.landing for m in messages if isinstance(m, Delivered)}.values():
            landing.abandon()


def _land(landing: Landing, fragments: Sequence[Fragment], batch: StreamBatch) -> None:
    try:
        landing.land(fragments, guard=batch.guard, amend=batch.amend, config=batch.config)
    except IncompatibleError:
        if not _has_landed(landing, batch):
            raise
        landing.abandon()


def _has_landed(landing: Landing, batch: StreamBatch) -> bool:
    current = newest(landing.place)
    return current is not None and batch.has_landed(current)


def _saying(landing: Landing, batch: StreamBatch) -> Landing:
    """Return the same change, with the batch recorded in its transaction."""
    settings = landing.staging.settings
    properties = {**(settings.transaction_properties or {}), **batch.properties}
    result = replace(settings, transaction_properties=properties)
    return replace(landing, staging=replace(landing.staging, settings=result))


def _named(stream: str | None) -> str:
    if stream:
        return stream
    raise InvalidInputError(
        "the streaming query does not have an id", where="stream", remedy='set .option("txnAppId", name)'
    )
