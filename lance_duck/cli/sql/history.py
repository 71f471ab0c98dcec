"""History of statements, in a file in the user's own folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import platformdirs
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

_SECRET: Final = re.compile(r"secret|password|token", re.IGNORECASE)


class StatementHistory(FileHistory):
    """History in a file that only its user can read; statements that mention secrets are left out."""

    def store_string(self, string: str) -> None:
        """Append a statement to the file."""
        if not _SECRET.search(string):
            super().store_string(string)


def user_history() -> tuple[History, str | None]:
    """Return the history of the user, and the reason if it cannot be kept on disk, else None."""
    path = platformdirs.user_state_path("lance-duck", appauthor=False) / "history.sql"
    try:
        return file_history(path), None
    except OSError as error:
        return InMemoryHistory(), f"no history is kept: {error}"


def file_history(path: Path) -> StatementHistory:
    """Return the history in a file, which is created if it does not exist.

    Raises:
        OSError: The file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    with path.open("ab"):
        return StatementHistory(str(path))
