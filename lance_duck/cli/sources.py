"""Row sources on the command line: SQL, and files that DuckDB reads."""

from __future__ import annotations

import os
import re
import shlex
from typing import Final

from lance_duck.duck.statement.identifiers import literal
from lance_duck.errors import InvalidInputError, NotFoundError
from lance_duck.store import did_you_mean_path

_SOURCES: Final = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".gz", ".zst", ".arrow", ".feather")

_QUERY: Final = re.compile(r"\s*(select|with|from|values)\b[\s(]", re.IGNORECASE)
_PATTERN: Final = re.compile(r"[*?\[{]|://")


def place_of_source(table: str, source: str, command: str) -> str:
    """Return the SQL after FROM that reads a source.

    Args:
        table: The table that receives the rows.
        source: A file, a glob pattern or URI of files, or SQL.
        command: The command that was called.

    Raises:
        InvalidInputError: The table and the source are swapped.
        NotFoundError: The file does not exist.
    """
    if _is_rows(table):
        raise InvalidInputError(
            "the arguments are in the wrong order",
            where=table,
            expected=f"the table first: lance-duck {command} TABLE SOURCE",
            remedy=f"lance-duck {command} {shlex.quote(source)} {shlex.quote(table)}",
        )
    if _QUERY.match(source):
        return f"({source}\n)"
    if source.lstrip().startswith("("):
        return source
    if not _PATTERN.search(source) and not os.path.exists(os.path.expanduser(source)):
        raise NotFoundError("no such file", where=source, remedy=did_you_mean_path(source))
    return literal(source)


def _is_rows(text: str) -> bool:
    """Return whether an argument is a row source: SQL, or a file of rows."""
    return text.lstrip().startswith("(") or text.lower().endswith(_SOURCES)
