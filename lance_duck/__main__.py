"""Entry point of `lance-duck` and `python -m lance_duck`."""

from __future__ import annotations

import os
import sys

try:
    from lance_duck.cli import app
except ModuleNotFoundError as missing:
    if missing.name not in ("typer", "rich"):
        raise
    app = None  # type: ignore[assignment]


def main() -> None:
    """Run the command line: exit code 0, 1 for an error (one line on stderr), 2 for wrong usage."""
    if app is None:
        _fail("the command line needs typer and rich; pip install 'lance-duck[cli]'")
    try:
        app()
    except BrokenPipeError:
        # The reader of the pipe has left; without this the interpreter complains when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:  # DuckDB's errors too: whatever went wrong is one line
        lines = str(error).strip().splitlines()
        _fail(lines[0] if lines else type(error).__name__)


def _fail(message: str) -> None:
    print(f"lance-duck: {message}", file=sys.stderr)
    sys.exit(1)


if __name__ == "__main__":
    main()
