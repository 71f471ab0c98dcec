"""A request that may run: its caller, its deadline, and access to tables and SQL."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from lance_duck.dataset import LanceDataset
from lance_duck.errors import CommitConflictError, PartlyCommittedError
from lance_duck.interrupts import Interrupt
from lance_duck.serve.gate.refusals import AbandonedError, LimitError, TimeLimitError
from lance_duck.serve.gate.served_names import ServedNamespace
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.gate.tokens import Caller
from lance_duck.snapshot import Version

if TYPE_CHECKING:
    from lance_duck.duck.connection import Connection


_AGAIN: Final = 0.1
"""Time between two interrupts of one statement, in seconds."""


class ServerCall:
    """A running request. `close` ends it; `cancel` stops it from another thread.

    Attributes:
        caller: Who sends the request.
        settings: Settings of the server.
        namespace: The names of the served tables.
        limit: Maximum duration, in seconds.
        interrupt: Surrounds the work of the call in Python, which checks it between steps.
    """

    def __init__(
        self,
        caller: Caller,
        settings: ServeSettings,
        namespace: ServedNamespace,
        connection: Connection,
        limit: float,
        began: float,
    ) -> None:
        self.caller = caller
        self.settings = settings
        self.namespace = namespace
        self.limit = limit
        self._connection = connection
        self._end = began + limit
        self._cursors: list[Connection] = []
        self._lock = threading.Lock()
        self._stopped: Exception | None = None
        self._on_stop: list[Callable[[Exception], None]] = []
        self.interrupt = Interrupt(self._reason)
        self._timer = _timer(self.seconds_left, self._expire)

    @property
    def seconds_left(self) -> float:
        """The time until the deadline, in seconds."""
        return max(0.0, self._end - time.monotonic())

    def open(self, name: Sequence[str], version: Version | None = None) -> LanceDataset:
        """Open a table at its newest version, or at the one given. Raises NotFoundError."""
        self.check()
        return self.namespace.open_table(name, version)

    def cursor(self) -> Connection:
        """Return a connection for this call only. The deadline interrupts its statements, and `close` closes it."""
        with self._lock:
            self.check()
            cursor = self._connection.cursor()
            self._cursors.append(cursor)
        return cursor

    @contextmanager
    def using(self, cursor: Connection) -> Iterator[None]:
        """Let the deadline interrupt the statements of a connection that outlives this call."""
        with self._lock:
            self.check()
            self._cursors.append(cursor)
        try:
            yield
        finally:
            with self._lock, suppress(ValueError):  # `close` has taken all cursors
                self._cursors.remove(cursor)

    def check(self) -> None:
        """Raise the error of a cancelled call, or TimeLimitError after the deadline."""
        if self._stopped is not None:
            raise self._stopped
        if time.monotonic() > self._end:
            raise self._late()

    def limited(self, batches: Iterable[pa.RecordBatch], *, max_rows: int, max_bytes: int) -> Iterator[pa.RecordBatch]:
        """Yield batches, and check the call and the limits of an answer before each one.

        Raises:
            LimitError: The rows are too many, or too large.
        """
        rows = size = 0
        for batch in batches:
            self.check()
            rows += batch.num_rows
            size += batch.get_total_buffer_size() if batch.num_columns else 0
            if rows > max_rows:
                raise LimitError("the answer has too many rows", expected=f"at most {max_rows}", remedy="add a LIMIT")
            if size > max_bytes:
                raise LimitError(
                    "the answer is too large",
                    expected=f"at most {max_bytes} bytes",
                    remedy="select fewer columns or rows",
                )
            yield batch
        self.check()

    def cancel(self, error: Exception | None = None) -> None:
        """Stop the call: interrupt its statements, and let `check` raise `error`."""
        with self._lock:
            if self._stopped is None:
                self._stopped = error or AbandonedError("the client closed the connection")
            listeners, reason = [*self._on_stop], self._stopped
        self.interrupt.request()
        self._interrupt()
        for tell in listeners:
            tell(reason)

    def when_stopped(self, tell: Callable[[Exception], None]) -> None:
        """Call a function with the reason when the call is stopped from now on. It is called in another thread."""
        with self._lock:
            self._on_stop.append(tell)

    def close(self) -> None:
        """Release the call's cursors and its timer."""
        with self._lock:
            self._timer.cancel()
            cursors, self._cursors = self._cursors, []
        for cursor in cursors:
            cursor.close()

    def stopped(self, error: BaseException) -> BaseException:
        """Return the reason of a stopped call in place of an error that the stop caused."""
        if self._stopped is None:
            return error
        for each in (error, error.__cause__):
            if isinstance(each, CommitConflictError | PartlyCommittedError):  # it tells what happened to a change
                return each
        return self._stopped

    def _interrupt(self) -> None:
        """Interrupt the statements until the call ends. DuckDB forgets an interrupt before the start of a statement."""
        with self._lock:
            cursors = [*self._cursors]
            if cursors:
                self._timer.cancel()
                self._timer = _timer(_AGAIN, self._interrupt)
        for cursor in cursors:
            cursor.interrupt()

    def _expire(self) -> None:
        self.cancel(self._late())

    def _reason(self) -> Exception:
        return self._stopped or self._late()

    def _late(self) -> TimeLimitError:
        return TimeLimitError("the request takes too long", expected=f"at most {self.limit:g} seconds")


def _timer(seconds: float, call: Callable[[], None]) -> threading.Timer:
    """Start a timer that does not keep the process alive."""
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
    return timer
