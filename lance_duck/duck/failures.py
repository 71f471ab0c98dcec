"""Recovers `LanceDuckError`s from the DuckDB exceptions that wrap them.

An error raised in a callback arrives as a DuckDB exception whose text contains "CorruptError: message" and a traceback.
"""

from __future__ import annotations

import re
from types import TracebackType

import duckdb

from lance_duck import errors
from lance_duck.duck.statement.identifiers import folded, parts_of_name
from lance_duck.errors import LanceDuckError, UnsupportedError
from lance_duck.redact import take_secrets_out
from lance_duck.write.relations import is_stopped

_OURS = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, LanceDuckError)
}
_FOUND = re.compile(
    rf"\b({'|'.join(_OURS)}): (.*?)"
    r"(?:\n\nAt:|\n\nLINE |\n\nTraceback|\n\nThe above exception|\. Detail: |\Z)",
    re.DOTALL,
)
_PART = r'(?:"(?:[^"]|"")+"|[^\s".,();]+)'
_MISSING = re.compile(r"Table with name ((?:(?!Table with name ).)+?) does not exist!")
"""The text before a match contains no second begin, so that the time is linear. Other patterns do the same."""
_PLACE = re.compile(r"^(?P<line>LINE \d+: .*)\n(?P<blanks> *)\^", re.MULTILINE)
_NAME = re.compile(r'(?:"(?:[^"]|"")+"|[\w$]+)(?:\s*\.\s*(?:"(?:[^"]|"")+"|[\w$]+))*')
_DOT = re.compile(r"\s*\.\s*")
_CHANGE = re.compile(
    r"\s*(?:INSERT\s+(?:OR\s+\w+\s+)?INTO|UPDATE|DELETE\s+FROM|MERGE\s+INTO|TRUNCATE(?:\s+TABLE)?"
    r"|(?:DROP|ALTER)\s+TABLE(?:\s+IF\s+EXISTS)?|ANALYZE|COPY|CREATE\s+(?:UNIQUE\s+)?INDEX\b.*?\bON)"
    rf"(?:\s+ONLY\b)?[\s(]+({_PART}(?:\.{_PART})*)",
    re.IGNORECASE,
)
_STOPPED_FUNCTION = re.compile(r"executing the UDF: KeyboardInterrupt\b")
_UNSEEN = re.compile(r"Table with name __lance_table_\d+ does not exist")
_REFUSED = re.compile(
    r'Permission Error: Cannot access file "(?:(?!Permission Error: ).)*" - '
    r"file system operations are disabled by configuration"
)
_WRAPPED = re.compile(r"([A-Za-z]+(?: [A-Za-z]+)*) Error: ")
_KINDS = {
    "binder": duckdb.BinderException,
    "catalog": duckdb.CatalogException,
    "constraint": duckdb.ConstraintException,
    "conversion": duckdb.ConversionException,
    "internal": duckdb.InternalException,
    "interrupt": duckdb.InterruptException,
    "invalid input": duckdb.InvalidInputException,
    "io": duckdb.IOException,
    "not implemented": duckdb.NotImplementedException,
    "out of memory": duckdb.OutOfMemoryException,
    "out of range": duckdb.OutOfRangeException,
    "permission": duckdb.PermissionException,
    "transactioncontext": duckdb.TransactionException,
}
"""DuckDB exceptions by the start of their messages, in lower case."""
_LISTS_TO_ARRAYS = re.compile(
    r"No function matches (?:(?!No function matches |'array_).)*+'array_\w+\("
    r"(?P<types>(?:(?!\)'|No function matches ).)*+)\)'"
)
_LISTS = "Types such as FLOAT[] are lists."
_ARRAY_LENGTH = re.compile(r"\[(\d+)\]")
_IS_A_VIEW = re.compile(r"is not an? table|base table|is of type View|ALTER VIEW|modify view", re.IGNORECASE)
_NO_IDENTIFIER = re.compile(
    r"(?:Referenced column|does not have a column named) \"(rowid|_rowid|_rowaddr)\"", re.IGNORECASE
)
_SHOWN = 80
"""Maximum number of characters of a statement in an error."""


class _OwnErrors:
    """Unwraps lance_duck errors from DuckDB errors. Stateless, so one instance is enough."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, duckdb.Error):
            raise_own(error)


_OWN_ERRORS = _OwnErrors()


def own_errors() -> _OwnErrors:
    """Return a context that re-raises lance_duck errors from the DuckDB exceptions that wrap them."""
    return _OWN_ERRORS


def raise_own(error: duckdb.Error) -> None:
    """Raise the `LanceDuckError` or KeyboardInterrupt that a DuckDB exception wraps.

    Removes secrets from other messages.
    """
    take_secrets_out(error)
    refused = None if isinstance(error, duckdb.PermissionException) else _REFUSED.search(str(error))
    if refused is not None:
        raise duckdb.PermissionException(refused[0]) from error
    if _STOPPED_FUNCTION.search(str(error)):
        raise KeyboardInterrupt from error
    ours = own_error(error)
    if ours is not None:
        raise ours from error
    hint = None if _LISTS in str(error) else _hint_about_lists(str(error))
    if hint is not None:
        raise type(error)(f"{str(error).rstrip()}\n\n{hint}") from error


def _hint_about_lists(message: str) -> str | None:
    """Return a hint about casts of lists to arrays, if an array function was called with lists."""
    call = _LISTS_TO_ARRAYS.search(message)
    if call is None or "[]" not in call["types"]:
        return None
    length = _ARRAY_LENGTH.search(call["types"])
    array = f"FLOAT[{length[1] if length else 'n'}]"
    return (
        f"{_LISTS} Cast a query to an array as long as the vectors, as in ?::{array}. "
        f"A column of lists becomes one of vectors by ALTER TABLE … ALTER COLUMN … TYPE {array}"
    )


def own_error(error: BaseException) -> LanceDuckError | None:
    """Return the `LanceDuckError` that a DuckDB exception wraps. Returns None for all other errors."""
    if not isinstance(error, duckdb.Error):
        return None
    if isinstance(error, duckdb.CatalogException) and _UNSEEN.search(str(error)):
        return UnsupportedError(
            "DuckDB 1 cannot read Lance tables with enable_external_access = false",
            remedy="upgrade to DuckDB 2",
        )
    found = _FOUND.search(str(error))
    return _OURS[found[1]](found[2].strip()) if found else None


def unwrapped(error: Exception) -> BaseException:
    """Return the original error of a failed Arrow stream.

    Ctrl-C arrives as `RuntimeError("Query interrupted")`, or at the end of the traceback in an error about a Python
    object. DuckDB errors arrive as pyarrow errors, usually an `OSError`. Other errors are returned unchanged.
    """
    text = str(error)
    if isinstance(error, duckdb.Error | OSError | RuntimeError) and is_stopped(error):
        return KeyboardInterrupt()
    wrapped = None if isinstance(error, duckdb.Error | LanceDuckError) else _WRAPPED.match(text)
    return error if wrapped is None else _KINDS.get(wrapped[1].lower(), duckdb.Error)(text)


def meaning_of(error: Exception) -> BaseException:
    """Return the `LanceDuckError` or DuckDB error that an error wraps, or the error itself. Also unwraps Ctrl-C."""
    original = unwrapped(error)
    return own_error(original) or original


def view_not_changed(statement: str, error: duckdb.Error) -> str | None:
    """Return the name of the view that a statement tried to change, as written in the statement.

    Returns None if the statement is not a change, or failed for a different reason.
    """
    change = _CHANGE.match(statement)
    return change[1] if change and _IS_A_VIEW.search(str(error)) else None


def missing_table(message: str) -> tuple[str, tuple[str, ...] | None] | None:
    """Return the name of a missing table and its qualifiers. Returns None for other messages.

    The qualifiers are read from the statement, at the position that the message marks. If the name is not at that
    position, the qualifiers are None.
    """
    missing = _MISSING.search(message)
    if missing is None:
        return None
    place = _PLACE.search(message)
    name = None if place is None else _NAME.match(place["line"], len(place["blanks"]))
    parts = () if name is None else parts_of_name(_DOT.sub(".", name[0]))
    is_there = bool(parts) and folded(parts[-1]) == folded(missing[1])
    return missing[1], parts[:-1] if is_there else None


def is_about_released(error: duckdb.Error) -> bool:
    """Return whether a view reads a source that no longer exists, because its table was dropped. DuckDB 2.0 only."""
    return "reads an Arrow object that was released" in str(error)


def is_about_versions(error: duckdb.Error) -> bool:
    """Return whether DuckDB refuses `AT (…)`. It also does so for tables that do not exist."""
    return "does not support time travel" in str(error) or "AT clause cannot contain" in str(error)


def unsupported_change(name: str, statement: str) -> UnsupportedError:
    """Return the error for a change in a form that is not supported.

    Args:
        name: The name of the Lance table, as written in the statement.
        statement: The statement.
    """
    text = " ".join(statement.split())
    return UnsupportedError(
        "this form of the statement is not supported on Lance tables",
        where=f"table {name}",
        found=text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…",
    )


def identifier_not_read(error: duckdb.Error) -> UnsupportedError | None:
    """Return the error for an unresolved `rowid`, `_rowid` or `_rowaddr`. Returns None for other errors."""
    missing = _NO_IDENTIFIER.search(str(error)) if isinstance(error, duckdb.BinderException) else None
    if missing is None:
        return None
    return UnsupportedError(
        f"{missing[1]} of a Lance table is not available here",
        expected="a SELECT directly from the table, without COLUMNS, PIVOT, NATURAL, NEAREST or rows as values",
        found=str(error).partition("\n")[0],
        remedy=f"select it in a subquery: FROM (SELECT {missing[1]} AS r, * FROM t)",  # noqa: S608
    )
