"""stream_writer: many producers add rows to a table, with one commit per interval.

    write      in the producer's thread: checks the rows, and waits while too many bytes are held
    _work      in a thread of the writer: joins the waiting batches, and commits them as one version

A batch that the table refuses is found by halving: the others are committed without it. No other error is answered by a
second attempt, because the first one may have committed the rows.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import pyarrow as pa

from lance_duck import forks
from lance_duck.arguments import byte_count, checked_call, checked_calls
from lance_duck.dataset import LanceDataset
from lance_duck.errors import IncompatibleError, InvalidInputError, LanceDuckError, RetryableError, UnsupportedError
from lance_duck.redact import shown
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.merge.primary_key import checked_key
from lance_duck.verbs.rows.keys import comparable_keys
from lance_duck.verbs.writing.schema_compat import fitting
from lance_duck.write.coerce import coerce
from lance_duck.write.inputs import reading

_T = TypeVar("_T")

_ATTEMPTS: Final = 5
"""Number of attempts after commits of other writers. Each attempt repeats lost races itself."""
_ERRORS_KEPT: Final = 64
"""Of each thread."""
_LOG: Final = logging.getLogger(__name__)
_REFUSED: Final = (InvalidInputError, UnsupportedError, IncompatibleError, pa.ArrowException)
"""Errors that one batch may cause, and after which no version was created."""


class Confirmation(Future[int]):
    """The outcome of one batch: the version that contains its rows, or an error.

    Attributes:
        is_seen: Whether the caller has asked for the outcome after it was known.
    """

    is_seen = False

    def result(self, timeout: float | None = None) -> int:
        """Wait for the outcome. Return the version, or raise the error."""
        error = self.exception(timeout)
        if error is not None:
            raise error
        return super().result()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the outcome. Return the error, or None."""
        error = super().exception(timeout)
        self.is_seen = True
        return error


@dataclass(frozen=True)
class _Batch:
    """Rows of one call of `write`.

    Attributes:
        rows: The rows, in memory of their own.
        thread: The thread that wrote them.
        confirmation: Their outcome.
    """

    rows: pa.RecordBatch
    thread: int
    confirmation: Confirmation

    @property
    def size(self) -> int:
        """Size of the rows in bytes."""
        return int(self.rows.nbytes)


@checked_calls
class StreamWriter:
    """Collects rows of many producers, and commits them together. Opened by `stream_writer`.

    All methods may be called by any number of threads. Each process opens a writer of its own.

    Args:
        table: The table.
        key: Key columns, or an empty list.
        interval: Maximum time that rows wait for a commit, in seconds.
        max_rows: Number of waiting rows that starts a commit.
        max_bytes: Size of the waiting rows that starts a commit.
    """

    def __init__(self, table: LanceDataset, key: Sequence[str], interval: float, max_rows: int, max_bytes: int) -> None:
        self._table = table
        self._key = tuple(key)
        self._interval, self._max_rows, self._max_bytes = interval, max_rows, max_bytes
        self._changed = threading.Condition()
        self._waiting: list[_Batch] = []
        self._rows = self._bytes = 0  # of the waiting batches
        self._began = 0.0
        self._held = 0
        self._written = self._decided = 0
        self._is_asked = self._is_closed = False
        self._failed: dict[int, deque[Confirmation]] = {}  # of each thread
        self._forks = forks.count()
        self._thread = threading.Thread(target=self._work, name="lance_duck-stream", daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<StreamWriter of {shown(self._table.uri)}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit the rows that are waiting, also after an error in the block."""
        self.close()

    def write(self, data_obj: Any, *, schema: pa.Schema | None = None) -> Confirmation:
        """Add rows to the next commit. Waits while the writer holds more than twice `max_bytes`.

        Args:
            data_obj: The rows, in any form that `write_dataset` accepts. They are copied.
            schema: Schema for data that does not include one.

        Returns:
            A `concurrent.futures.Future`. Its result is the version that contains the rows. Until it has a result,
            the rows may be lost if the process ends.

        Raises:
            InvalidInputError: The rows do not fit the table, or the writer is closed.
            ForkedError: The writer belongs to the parent process.
        """
        is_callback = self._check_caller()
        batch = _Batch(self._checked(data_obj, schema), threading.get_ident(), Confirmation())
        batch.confirmation.set_running_or_notify_cancel()
        with self._changed:
            self._changed.wait_for(lambda: is_callback or self._is_closed or self._has_room(batch.size))
            if self._is_closed:
                raise InvalidInputError("the stream writer is closed", where=shown(self._table.uri))
            if not self._waiting:
                self._began = time.monotonic()
            self._waiting.append(batch)
            self._rows += batch.rows.num_rows
            self._bytes += batch.size
            self._held += batch.size
            self._written += 1
            if len(self._waiting) == 1 or self._is_due():
                self._changed.notify_all()
        return batch.confirmation

    def flush(self) -> int:
        """Commit the rows written so far, and wait for it.

        Returns:
            The version of the table, which contains them.

        Raises:
            LanceDuckError: Rows that this thread wrote were not stored. An error that a Future has already raised is
                not raised again.
        """
        self._check_caller(waits=True)
        with self._changed:
            self._is_asked = bool(self._waiting)
            self._changed.notify_all()
            written = self._written
            self._changed.wait_for(lambda: self._decided >= written)
        self._raise_unseen(threading.get_ident())
        return self._table.version

    def close(self) -> None:
        """Commit the waiting rows, and end the writer. Closing it again has no effect.

        Raises:
            LanceDuckError: Rows of any thread were not stored, and no Future or `flush` has raised the error.
        """
        self._check_caller(waits=True)
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()
        self._raise_unseen(None)

    def _check_caller(self, *, waits: bool = False) -> bool:
        """Return whether a callback of a Future calls. It runs in the thread that commits, and must not wait for it."""
        remedy = "open a stream writer in each process"
        forks.check_not_forked(self._forks, "a stream writer of the parent", self._table.uri, remedy=remedy)
        is_callback = threading.current_thread() is self._thread
        if is_callback and waits:
            raise InvalidInputError("a callback of a Future cannot flush or close the writer", where=repr(self))
        return is_callback

    def _raise_unseen(self, thread: int | None) -> None:
        """Raise the first error that its producer has not seen, of one thread or of all."""
        with self._changed:
            failed = [
                each
                for writer, confirmations in self._failed.items()
                for each in confirmations
                if not each.is_seen and thread in (None, writer)
            ]
        errors = [each.exception() for each in failed]
        if errors and errors[0] is not None:
            raise errors[0]

    # Rows of a producer.

    def _checked(self, data: Any, schema: pa.Schema | None) -> pa.RecordBatch:
        """Return a copy of rows that fit the table, as it is known or as it is now."""
        with reading(data, schema) as reader:
            batches = list(_guarded(reader))
        # The rows may share memory with arrays that the caller changes later. Joined batches are a copy.
        rows = pa.concat_batches([pa.RecordBatch.from_pylist([], reader.schema), *batches])
        known = self._table.handle.snapshot
        try:
            self._check_fits(rows, known)
        except InvalidInputError:
            newest = known.checkout()
            if newest is known:
                raise
            self._check_fits(rows, newest)
        return rows

    def _check_fits(self, rows: pa.RecordBatch, snapshot: Snapshot) -> None:
        for _ in coerce([rows], fitting(snapshot.schema, rows.schema)):
            pass
        for name in self._key:
            if name not in rows.schema.names or rows.column(name).null_count:
                raise InvalidInputError(
                    f"key column {name!r} is missing or null", where="data", expected="a value in each row"
                )

    def _has_room(self, size: int) -> bool:
        return not self._held or self._held + size <= 2 * self._max_bytes

    # Commits.

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._is_due():
                    self._changed.wait(self._time_left())
                batches, self._waiting = self._waiting, []
                self._rows = self._bytes = 0
                self._is_asked = False
            if not batches:
                return
            self._commit(batches)
            with self._changed:
                self._held -= sum(batch.size for batch in batches)
                self._decided += len(batches)
                self._changed.notify_all()

    def _is_due(self) -> bool:
        """Return whether the waiting rows must be committed now, or the writer has ended."""
        if not self._waiting:
            return self._is_closed
        is_full = self._rows >= self._max_rows or self._bytes >= self._max_bytes
        return self._is_closed or self._is_asked or is_full or self._time_left() == 0

    def _time_left(self) -> float | None:
        """Return the time until the next commit in seconds. Returns None if no rows are waiting."""
        if not self._waiting:
            return None
        return min(max(0.0, self._began + self._interval - time.monotonic()), threading.TIMEOUT_MAX)

    def _commit(self, batches: Sequence[_Batch]) -> None:
        """Commit batches, and confirm each of them."""
        try:
            version = self._stored(batches)
        except BaseException as error:
            if isinstance(error, _REFUSED) and len(batches) > 1:
                half = len(batches) // 2
                self._commit(batches[:half])
                self._commit(batches[half:])
                return
            with self._changed:
                for batch in batches:
                    of_thread = self._failed.setdefault(batch.thread, deque(maxlen=_ERRORS_KEPT))
                    of_thread.append(batch.confirmation)
            for batch in batches:
                _settled(batch.confirmation.set_exception, error.with_traceback(None))
        else:
            for batch in batches:
                _settled(batch.confirmation.set_result, version)

    def _stored(self, batches: Sequence[_Batch]) -> int:
        """Commit batches as one version, and return its number."""
        tables = [pa.Table.from_batches([batch.rows]) for batch in batches]
        rows = pa.concat_tables(tables, promote_options="permissive")
        for attempt in range(_ATTEMPTS):
            try:
                self._store(rows)
                return self._table.version
            except (RetryableError, IncompatibleError):
                if attempt + 1 == _ATTEMPTS:
                    raise
                self._table = _opened(self._table)
        raise AssertionError("the last attempt returns or raises")

    def _store(self, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        if not self._key:
            self._table.insert(rows)
            return
        self._table.checkout_latest()
        merge = self._table.merge_insert(self._key).when_not_matched_insert_all()
        merge.source_dedupe_behavior("first_seen").execute(rows)


def _settled(settle: Callable[[_T], None], outcome: _T) -> None:
    """Give a Future its outcome. A callback may raise SystemExit, which must not end the thread that commits."""
    try:
        settle(outcome)
    except BaseException:  # a Future catches all others
        _LOG.exception("a callback of a stream writer failed")


def _guarded(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a reader, with errors of this package."""
    try:
        yield from reader
    except pa.ArrowException as error:
        if isinstance(error, LanceDuckError):
            raise
        raise InvalidInputError("the data cannot be read", where="data", found=error) from error


def _opened(table: LanceDataset) -> LanceDataset:
    """Return the newest version of a table, also if another table has replaced it."""
    location = table.handle.snapshot.location
    return LanceDataset(table.uri, None, None, location.storage_options, commit_lock=location.commit_lock)


@checked_call
def stream_writer(
    table: str | os.PathLike[str] | LanceDataset,
    *,
    interval: float | timedelta = 1.0,
    key: str | Iterable[str] | None = None,
    max_rows: int = 1_000_000,
    max_bytes: int | str = "64MB",
    storage_options: dict[str, str] | None = None,
) -> StreamWriter:
    """Open a writer for many producers that each add a few rows at a time. It makes one commit per interval.

    With a key, each key is stored once: a row whose key the table contains is ignored. A producer that does not know
    whether a batch was stored can write it again. This also holds for producers of other processes.

    Args:
        table: Path or URI of an existing table, or a dataset, whose handle does not move.
        interval: Maximum time that rows wait for a commit, in seconds. With 0, a commit begins as soon as the previous
            one has ended.
        key: Key columns. Defaults to the primary key of the table. If it has none, or for an empty list, rows are added
            without a comparison.
        max_rows: Number of waiting rows that starts a commit before the interval is over.
        max_bytes: Size of the waiting rows that starts a commit. The writer holds at most twice this size, or one
            larger batch, and producers wait.
        storage_options: Object store settings.

    Returns:
        The writer. As a context manager, it commits the waiting rows at the end.

    Raises:
        NotFoundError: The table does not exist.
        InvalidInputError: A key column does not exist or cannot be compared, or an argument is invalid.
    """
    if isinstance(table, LanceDataset):
        dataset = LanceDataset(table.uri, table=TableScan(table.handle.base))
    else:
        dataset = LanceDataset(table, storage_options=storage_options)
    schema = dataset.handle.snapshot.schema
    names = list(checked_key(schema)) if key is None else [key] if isinstance(key, str) else list(key)
    for name in names:
        if name not in schema.names:
            raise InvalidInputError(
                f"key column {name!r} does not exist", where="key", expected=", ".join(schema.names)
            )
        comparable_keys(pa.array([], schema.by_path(name).storage_type), name)
    if len(set(names)) < len(names):
        raise InvalidInputError("a key column is repeated", where="key", found=", ".join(names))
    seconds = interval.total_seconds() if isinstance(interval, timedelta) else interval
    if not isinstance(seconds, int | float) or not seconds >= 0:
        raise InvalidInputError("interval", expected="seconds, at least 0", found=interval)
    if not isinstance(max_rows, int) or max_rows < 1:
        raise InvalidInputError("max_rows", expected="a whole number, at least 1", found=max_rows)
    return StreamWriter(dataset, names, seconds, max_rows, byte_count(max_bytes, "max_bytes"))


__all__ = ["Confirmation", "StreamWriter", "stream_writer"]
