"""A source and sink with planted failures: `format("faulty")`, with the options "fault" and "marker".

It is pickled by value, because workers cannot import this folder. A fault happens until the file `marker` exists;
"always" happens every time.

    late once, always   a task fails after its file was written
    kill                the process of a task is killed while it writes
    before, after       the commit fails before, or after, it is made
    unknown             the store fails while the version is published
    lost                the same, but the version was published
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lance_duck.commit import version_files
from lance_duck.errors import StoreError
from lance_duck.spark.io.datasource import LanceDataSource
from lance_duck.spark.io.stream_sink import DataSourceStreamArrowWriter

cloudpickle.register_pickle_by_value(sys.modules[__name__])

PARTITION, PARTITIONS = 1, 3


class FaultySource(LanceDataSource):
    """Lance tables, and a fault."""

    def __init__(self, options: Any) -> None:
        self.fault = Fault(options["fault"], options["marker"])
        super().__init__({key: value for key, value in options.items() if key not in ("fault", "marker")})

    @classmethod
    def name(cls) -> str:
        return "faulty"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return FaultyWriter(super().writer(schema, overwrite), self.fault)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        return FaultyStreamWriter(super().streamWriter(schema, overwrite), self.fault)


class Fault:
    """What fails, until it has."""

    def __init__(self, kind: str, marker: str) -> None:
        self.kind = kind
        self.marker = Path(marker)

    def strikes(self, *kinds: str) -> bool:
        """Whether it is time for one of these."""
        if self.kind not in kinds:
            return False
        if self.kind == "always":
            return True
        with suppress(FileExistsError):
            self.marker.touch(exist_ok=False)
            return True
        return False

    def here(self) -> bool:
        """Whether this is the task that fails."""
        context = TaskContext.get()
        return context is not None and context.partitionId() == PARTITION

    def written(self, write: Any, iterator: Iterator[pa.RecordBatch]) -> Any:
        """Let a task write, and fail."""
        if self.here() and self.strikes("kill"):
            iterator = killed(iterator)
        message = write(iterator)
        if self.here() and self.strikes("late", "always"):
            self.wait_for_others()
            raise OSError("the disk of this task is full")
        self.done().touch()
        return message

    def done(self) -> Path:
        """Return the marker file of a task that has written its rows."""
        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        return self.marker.with_name(f"{self.marker.name}-done-{number}")

    def wait_for_others(self) -> None:
        """Wait until the other tasks have written.

        The driver cannot delete files that a task writes after the job failed.
        """
        end = time.monotonic() + 30
        while len(list(self.marker.parent.glob(f"{self.marker.name}-done-*"))) < PARTITIONS - 1:
            if time.monotonic() > end:
                return
            time.sleep(0.01)

    def committed(self, commit: Any, *arguments: Any) -> None:
        """Let the driver commit, and fail."""
        if self.strikes("before"):
            raise OSError("the driver lost its way before it committed")
        with self.publishing():
            commit(*arguments)
        if self.strikes("after"):
            raise OSError("the driver lost its way after it committed")

    @contextmanager
    def publishing(self) -> Iterator[None]:
        """Let the store fail while a version is published."""
        real = version_files.publish_manifest

        def publish(*arguments: Any, **more: Any) -> None:
            if self.strikes("unknown"):
                raise StoreError("the store does not answer")
            real(*arguments, **more)
            if self.strikes("lost"):
                raise StoreError("the answer of the store was lost")

        version_files.publish_manifest = publish
        try:
            yield
        finally:
            version_files.publish_manifest = real


class FaultyWriter(DataSourceArrowWriter):
    def __init__(self, inner: Any, fault: Fault) -> None:
        self.inner, self.fault = inner, fault

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.fault.written(self.inner.write, iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.fault.committed(self.inner.commit, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self.inner.abort(messages)


class FaultyStreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, inner: Any, fault: Fault) -> None:
        self.inner, self.fault = inner, fault

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.fault.written(self.inner.write, iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.fault.committed(self.inner.commit, messages, batchId)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.inner.abort(messages, batchId)


def killed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Hand out a batch, then end the process."""
    yield next(batches)
    os.kill(os.getpid(), signal.SIGKILL)
