"""Statements that run one after the other, and what is said when one fails."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass

import lance_duck as ld
from lance_duck.cli.sql.error_places import placed_message
from lance_duck.cli.sql.interrupt import interruptible
from lance_duck.cli.sql.results import Results
from lance_duck.cli.sql.script import Script, ScriptStatement


@dataclass
class StatementRunner:
    """Runs statements on one connection.

    Attributes:
        connection: The connection.
        results: Where their results go.
        is_timed: Whether the time of each statement is written.
    """

    connection: ld.Connection
    results: Results
    is_timed: bool = False

    def run_script(self, script: Script, *, keep_going: bool = False) -> bool:
        """Run the statements of a text, up to the first that fails; return whether none did.

        Args:
            script: The text.
            keep_going: Run those after it, too.

        Raises:
            KeyboardInterrupt: By Ctrl-C.
        """
        is_good = True
        for statement in script.statements():
            if not self._run(statement):
                is_good = False
                if not keep_going:
                    break
        return is_good

    def _run(self, statement: ScriptStatement) -> bool:
        """Run a statement and write its result; False: it failed, and why is written to stderr."""
        begun = time.perf_counter()
        with interruptible(self.connection) as interruption:
            try:
                self.results.write(self.connection.sql(statement.text), statement.text)
            except BrokenPipeError:
                raise
            except Exception as error:
                if interruption.happened:
                    raise KeyboardInterrupt from error
                complain(placed_message(self.connection, statement, error))
                return False
        if self.is_timed:
            print(f"Run time: {time.perf_counter() - begun:.3f} s", file=sys.stderr)
        return True

    def leave(self) -> None:
        """Give up a transaction that is still open, and say so."""
        if self.connection.in_transaction:
            self.connection.rollback()
            complain("the transaction that was open is rolled back: COMMIT was never said")


def complain(message: str) -> None:
    """Write a message about what went wrong."""
    sys.stdout.flush()
    print(f"lance-duck: {message}", file=sys.stderr)
