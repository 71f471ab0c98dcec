"""Error messages on the command line."""

from __future__ import annotations

from typing import Final

from lance_duck.duck.failures import own_error
from lance_duck.errors import LanceDuckError
from lance_duck.redact import shown

# Remedies in Python, and their equivalents on the command line.
_COMMANDS: Final = (
    ('mode="append"', "--mode append"),
    ('mode="overwrite"', "--mode overwrite"),
    ("versions() lists", "lance-duck versions lists"),
    ("with lance_duck.connect", "with lance-duck sql"),
    (
        "this is a file: read it with pyarrow, pandas or DuckDB, and store its rows with lance_duck.write_dataset",
        "this is a file: lance-duck import TABLE FILE loads CSV, Parquet or JSON into a table",
    ),
    (
        'name one: search(…, column="…"), or create an index: create_scalar_index("…", "INVERTED")',
        "name one with --column, or create an index: lance-duck index TABLE COLUMN --kind INVERTED",
    ),
)


def message_of(error: BaseException) -> str:
    """Return an error's message without secrets, empty lines or tracebacks.

    DuckDB wraps the errors of rows that it reads.
    """
    error = own_error(error) or error
    text = shown(error).partition("\n\nAt:")[0].partition("\nTraceback")[0]
    if isinstance(error, LanceDuckError) and error.remedy and text.endswith(error.remedy):
        text = text.removesuffix(error.remedy) + _of_command_line(error.remedy)
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    return "\n".join(lines) or type(error).__name__


def _of_command_line(remedy: str) -> str:
    for there, here in _COMMANDS:
        remedy = remedy.replace(there, here)
    return remedy
