"""Open transactions of Flight clients, each with a connection of its own."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lance_duck.serve.gate.refusals import BusyError, RequestError
from lance_duck.serve.gate.tokens import Caller

if TYPE_CHECKING:
    from lance_duck.duck.connection import Connection

IDLE: Final = 60.0
"""Time after which an unused transaction is rolled back, in seconds."""
_MOST: Final = 64
"""Maximum number of transactions that have begun in DuckDB. Each has a connection."""
_REMEMBERED: Final = 10_000
"""Maximum number of ended transactions whose clients are remembered, and of transactions without a statement."""


@dataclass(eq=False)
class FlightTransaction:
    """An open transaction.

    Attributes:
        caller: Who opened it.
        peer: Address of the client.
        cursor: Its connection. None before the first statement.
        lock: Held by the statement that runs in it.
        used: When the last statement ended. A monotonic time, in seconds.
    """

    caller: Caller
    peer: str
    cursor: Connection | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    used: float = field(default_factory=time.monotonic)


class FlightTransactions:
    """Open transactions by their ids.

    Drivers prepare a statement in one transaction and run it in the next one of their connection. The id of a
    transaction that its client ended therefore also finds the open transaction of this client. They also begin a
    transaction long before its first statement. It begins in DuckDB at the first statement, and cannot expire earlier.

    Args:
        connect: Returns a new connection.
    """

    def __init__(self, connect: Callable[[], Connection]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._open: dict[bytes, FlightTransaction] = {}
        self._ended: OrderedDict[bytes, str] = OrderedDict()  # addresses of clients

    def begin(self, caller: Caller, peer: str) -> bytes:
        """Open a transaction, and return its id."""
        key = secrets.token_bytes(16)
        with self._lock:
            self._open[key] = FlightTransaction(caller, peer)
            unused = [each for each, found in self._open.items() if found.cursor is None]
            for each in unused[:-_REMEMBERED]:
                del self._open[each]
        return key

    @contextmanager
    def using(self, key: bytes, caller: Caller, patience: float) -> Iterator[Connection]:
        """Wait until no other statement runs in a transaction, and yield its connection.

        Raises:
            BusyError: Too many transactions are open.
            RequestError: The transaction is not open, or its statement runs longer than `patience` seconds.
        """
        with self._lock:
            peer = self._ended.get(key)
            found = self._open.get(key) or next((each for each in self._open.values() if each.peer == peer), None)
        with self._holding(found, caller, patience) as transaction:
            yield transaction.cursor or self._begun(transaction)

    def _begun(self, transaction: FlightTransaction) -> Connection:
        cursor = self._connect()
        try:
            cursor.begin()
            with self._lock:
                if sum(each.cursor is not None for each in self._open.values()) >= _MOST:
                    raise BusyError("too many transactions are open", expected=f"at most {_MOST}")
                transaction.cursor = cursor
        except BaseException:
            cursor.close()
            raise
        return cursor

    def end(self, key: bytes, caller: Caller, patience: float, *, is_commit: bool) -> None:
        """Commit a transaction, or roll it back. It ends even if this fails. Nothing remains of one that has expired.

        Raises:
            RequestError: The transaction is not open.
            CommitConflictError: Another writer changed the same rows.
        """
        opened = self._open.get(key)
        if opened is None and not is_commit:
            return
        with self._holding(opened, caller, patience) as found:
            with self._lock:
                del self._open[key]
                self._ended[key] = found.peer
                while len(self._ended) > _REMEMBERED:
                    self._ended.popitem(last=False)
            if found.cursor is not None:
                with closing(found.cursor) as cursor:
                    cursor.commit() if is_commit else cursor.rollback()

    @contextmanager
    def _holding(self, found: FlightTransaction | None, caller: Caller, patience: float) -> Iterator[FlightTransaction]:
        if found is None or found.caller != caller:
            raise _not_open()
        if not found.lock.acquire(timeout=patience):
            raise RequestError("another statement of the transaction runs")
        try:
            if found not in self._open.values():
                raise _not_open()
            yield found
        finally:
            found.used = time.monotonic()
            found.lock.release()

    def expire(self, idle: float = IDLE) -> None:
        """Roll back transactions that nobody has used for `idle` seconds."""
        limit = time.monotonic() - idle
        with self._lock:
            for key, each in [*self._open.items()]:
                if each.cursor is not None and each.used <= limit and each.lock.acquire(blocking=False):
                    del self._open[key]
                    each.cursor.close()
                    each.lock.release()


def _not_open() -> RequestError:
    return RequestError(
        "the transaction is not open",
        expected=f"one that was used in the last {IDLE:g} seconds",
        remedy="call rollback of the connection, and repeat the statements",
    )
