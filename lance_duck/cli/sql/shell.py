"""An interactive SQL shell."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import platformdirs
from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import SqlLexer

import lance_duck as ld
from lance_duck.cli.sql.completion import CompletionWords, SqlCompleter
from lance_duck.cli.sql.dot_commands import DOT_COMMANDS, run_script
from lance_duck.cli.sql.runner import StatementRunner
from lance_duck.cli.sql.script import Script, command_of, is_complete
from lance_duck.cli.terminal import complain, write_line

_GREETING: Final = "SQL on Lance tables. A statement ends with a semicolon; .help lists commands, .quit leaves."
_PROMPT: Final = "lance> "
_PROMPT_IN_TRANSACTION: Final = "lance*> "
_SECRET: Final = re.compile(r"secret|password|token", re.IGNORECASE)


class Shell:
    """Reads statements from a terminal and runs them until the user leaves.

    Args:
        runner: Runs the statements.
        options: `prompt_toolkit.PromptSession` arguments that override the defaults.
    """

    def __init__(self, runner: StatementRunner, **options: Any) -> None:
        self._runner = runner
        runner.is_interactive = True
        self._cursor: ld.Connection | None = None
        self._vocabulary: CompletionWords | None = None
        self._trouble: str | None = None
        if "history" not in options:
            options["history"], self._trouble = _user_history()
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            key_bindings=_key_bindings(),
            lexer=PygmentsLexer(SqlLexer),
            completer=SqlCompleter(self._words, list(DOT_COMMANDS)),
            complete_while_typing=False,
            auto_suggest=AutoSuggestFromHistory(),
            prompt_continuation=lambda width, line, wrapped: "...> ".rjust(width),
            **options,
        )

    def run(self) -> None:
        """Run statements until .quit or Ctrl-D. Ctrl-C discards the input or stops the running statement."""
        write_line(_GREETING)
        if self._trouble is not None:
            complain(self._trouble)
        while True:
            try:
                text = self._session.prompt(self._prompt())
                self._run(text.strip())
                if self._runner.has_left:
                    return
            except KeyboardInterrupt:
                complain("interrupted")
            except EOFError:
                return

    def _run(self, text: str) -> None:
        """Run the input."""
        self._vocabulary = None
        run_script(self._runner, Script(command_of(text) or text))

    def _prompt(self) -> str:
        return _PROMPT_IN_TRANSACTION if self._runner.connection.in_transaction else _PROMPT

    def _words(self) -> CompletionWords:
        """Return the completion vocabulary. Uses a new cursor, because the connection's transaction may have failed."""
        if self._vocabulary is None:
            if self._cursor is None:
                self._cursor = self._runner.connection.cursor()
            self._vocabulary = CompletionWords.of(self._cursor)
        return self._vocabulary


def _key_bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        """Accept the selected completion, run a complete statement, or start a new line."""
        buffer = event.current_buffer
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:
            buffer.apply_completion(state.current_completion)
        elif command_of(buffer.text) is not None or is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.newline()

    @bindings.add("c-d", filter=Condition(lambda: not get_app().current_buffer.document.current_line))
    def _(event: KeyPressEvent) -> None:
        """Leave the shell if the line is empty."""
        event.app.exit(exception=EOFError)

    return bindings


class StatementHistory(FileHistory):
    """History in a file that only the user can read. Statements that mention secrets are not stored."""

    def store_string(self, string: str) -> None:
        """Append a statement to the file."""
        if not _SECRET.search(string):
            super().store_string(string)


def _user_history() -> tuple[History, str | None]:
    """Return the user's history, and None or the reason why it cannot be kept on disk."""
    path = platformdirs.user_state_path("lance-duck", appauthor=False) / "history.sql"
    try:
        return file_history(path), None
    except OSError as error:
        return InMemoryHistory(), f"the history cannot be saved: {error}"


def file_history(path: Path) -> StatementHistory:
    """Return the history in a file, creating the file if necessary.

    Raises:
        OSError: The file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    with path.open("ab"):
        return StatementHistory(str(path))
