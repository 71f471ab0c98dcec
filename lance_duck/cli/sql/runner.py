"""Runs statements one after the other, and reports the ones that fail."""

from __future__ import annotations

import time
from dataclasses import dataclass

import lance_duck as ld
from lance_duck.cli.sql.error_places import placed_message
from lance_duck.cli.sql.interrupt import interruptible
from lance_duck.cli.sql.results import Results
from lance_duck.cli.sql.script import Script, ScriptStatement
from lance_duck.cli.terminal import complain, note
from lance_duck.write.relations import is_stopped


@dataclass
class StatementRunner:
    """Runner of statements on one connection.

    Attributes:
        connection: The connection.
        results: Where results go.
        is_timed: Whether the run time of each statement is written.
    """

    connection: ld.Connection
    results: Results
    is_timed: bool = False

    def run_script(self, script: Script, *, keep_going: bool = False) -> bool:
        """Run the statements of a script until one fails; return whether all succeeded.

        Args:
            script: The statements.
            keep_going: Continue after a failed statement.

        Raises:
            KeyboardInterrupt: Ctrl-C was pressed.
        """
        is_good = True
        for statement in script.statements():
            if not self._run(statement):
                is_good = False
                if not keep_going:
                    break
        return is_good

    def _run(self, statement: ScriptStatement) -> bool:
        """Run a statement and write its result; return False if it failed, with the reason on stderr."""
        begun = time.perf_counter()
        with interruptible(self.connection) as interruption:
            try:
                self.results.write(self.connection.sql(statement.text), statement.text)
            except BrokenPipeError:
                raise
            except Exception as error:
                if interruption.happened or is_stopped(error):
                    raise KeyboardInterrupt from error
                complain(placed_message(self.connection, statement, error))
                return False
        if self.is_timed:
            note(f"Run time: {time.perf_counter() - begun:.3f} s")
        return True

    def leave(self) -> None:
        """Roll back a transaction that is still open, and report that."""
        if self.connection.in_transaction:
            self.connection.rollback()
            complain("the transaction that was open is rolled back: COMMIT was never said")
