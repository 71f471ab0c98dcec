"""Runs statements in order, reports failures, and lets Ctrl-C stop them."""

from __future__ import annotations

import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import lance_duck as ld
from lance_duck.cli.message import message_of
from lance_duck.cli.sql.results import Results
from lance_duck.cli.sql.script import ScriptStatement, first_word
from lance_duck.cli.terminal import complain, note
from lance_duck.write.relations import is_stopped

_EXPLAIN: Final = "EXPLAIN\n"
_EXPLAINED: Final = frozenset({"select", "from", "with", "values", "insert", "update", "delete", "merge"})
_FAILS_TO_BIND: Final = "SELECT nothing"
_UNPLACED: Final = ("Binder Error", "Catalog Error")


@dataclass
class StatementRunner:
    """Runs statements on one connection.

    Attributes:
        connection: The connection.
        results: Writer of the results.
        is_timed: Whether to write the run time of each statement.
        is_interactive: Whether a user types the statements.
        has_left: Whether a command asked to end the shell or the scripts.
    """

    connection: ld.Connection
    results: Results
    is_timed: bool = False
    is_interactive: bool = False
    has_left: bool = False

    def run(self, statement: ScriptStatement) -> bool:
        """Run a statement and write its result. If it fails, writes the reason to stderr and returns False."""
        begun = time.perf_counter()
        with interruptible(self.connection) as interruption:
            try:
                self.results.write(self.connection.sql(statement.text), statement.text)
            except BrokenPipeError:
                raise
            except Exception as error:
                if interruption.happened or is_stopped(error):
                    raise KeyboardInterrupt from error
                complain(_placed_message(self.connection, statement, error))
                self._fail_transaction()
                return False
        if self.is_timed:
            note(f"Run time: {time.perf_counter() - begun:.3f} s")
        return True

    def _fail_transaction(self) -> None:
        """Abort an open transaction after an error, in the DuckDB versions that do.

        `DuckDBPyConnection.sql` only binds a query. Unlike `execute`, it does not abort the transaction if that fails.
        """
        if self.connection.in_transaction:
            with suppress(Exception):
                self.connection.native.execute(_FAILS_TO_BIND)

    def leave(self) -> None:
        """Roll back an open transaction, and report it."""
        if self.connection.in_transaction:
            self.connection.rollback()
            complain("the open transaction was rolled back, because it ended without COMMIT")


def _placed_message(connection: ld.Connection, statement: ScriptStatement, error: Exception) -> str:
    """Return the message of a failed statement, with the line number of the error if it is known.

    `DuckDBPyConnection.sql` binds a statement without its text. The error then lacks the position of an unknown name.
    EXPLAIN reports the location without running the statement.
    """
    message = message_of(error)
    if not message.startswith(_UNPLACED) or "\nLINE " in message or first_word(statement.text) not in _EXPLAINED:
        return statement.located(message)
    # An error may abort the transaction, after which further queries fail.
    cursor = connection.cursor() if connection.in_transaction else connection
    try:
        cursor.execute(_EXPLAIN + statement.text)
    except Exception as again:
        told = message_of(again)
        if told.startswith(message.partition("\n")[0]):
            return ScriptStatement(statement.text, statement.line - 1, statement.script).located(told)
    finally:
        if cursor is not connection:
            cursor.close()
    return statement.located(message)


@dataclass
class Interruption:
    """A flag that is set if Ctrl-C was pressed."""

    happened: bool = False


@contextmanager
def interruptible(connection: ld.Connection) -> Iterator[Interruption]:
    """Let Ctrl-C stop the running statement. Raises KeyboardInterrupt, unless DuckDB raises an error first.

    Python runs signal handlers between bytecode instructions, which may be minutes apart while DuckDB runs a query.
    However, Python writes the signal number to a socket immediately. A thread that waits on the socket interrupts
    DuckDB. The function does nothing outside the main thread, because other threads do not receive signals.
    """
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return
    receiver, sender = socket.socketpair()
    sender.setblocking(False)
    watcher = threading.Thread(target=_watch, args=(receiver, connection.native, interruption), daemon=True)
    before = signal.set_wakeup_fd(sender.fileno(), warn_on_full_buffer=False)
    watcher.start()
    try:
        yield interruption
    finally:
        signal.set_wakeup_fd(before)
        sender.close()
        watcher.join()
        receiver.close()


def _watch(receiver: socket.socket, native: Any, interruption: Interruption) -> None:
    while number := receiver.recv(1):
        if number[0] == signal.SIGINT:
            interruption.happened = True
            native.interrupt()
