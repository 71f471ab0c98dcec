"""A statement that is prepared once, and run with many parameters."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from lance_duck.arguments import checked_calls
from lance_duck.duck.statement.clauses import statements_of
from lance_duck.duck.statement.masked import masked
from lance_duck.errors import InvalidInputError, WrongTypeError

_WHERE: Final = "prepare"
_C = TypeVar("_C")


@checked_calls
class PreparedStatement(Generic[_C]):
    """A prepared statement, from `Connection.prepare`. It is used in the thread of its connection.

    Each run reads the newest version of each table. As a context manager, it is closed at the end of the block.
    """

    def __init__(self, execute: Callable[[str, Any], _C], query: str) -> None:
        if not isinstance(query, str):
            raise WrongTypeError("query", where=_WHERE, expected="SQL text", found=type(query).__name__)
        count = len(statements_of(query))
        if count > 1 or not query.strip():
            found = count if query.strip() else "an empty text"
            raise InvalidInputError("number of statements", where=_WHERE, expected="one", found=found)
        self._execute: Callable[[str, Any], _C] | None = execute
        self._query = query

    def execute(self, parameters: Any = None) -> _C:
        """Run the statement, like `execute` of the connection.

        Args:
            parameters: A list with a value for each `?` or `$1`, or a dictionary with a value for each `$name`.

        Returns:
            The connection, from which the result is fetched.

        Raises:
            InvalidInputError: The prepared statement is closed.
            LanceDuckError: A table cannot be opened, read or changed.
            duckdb.Error: DuckDB rejects the statement or a parameter.
        """
        execute = self._execute
        if execute is None:
            raise InvalidInputError("the prepared statement is closed", where=_WHERE)
        return execute(self._query, parameters)

    def __call__(self, parameters: Any = None) -> _C:
        """Run the statement. See `execute`."""
        return self.execute(parameters)

    def close(self) -> None:
        """Close the prepared statement. It cannot be run any more."""
        self._execute = None

    def __enter__(self) -> Self:
        """Return the prepared statement."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the prepared statement."""
        self.close()

    def __repr__(self) -> str:
        """Return a short description."""
        state = ", closed" if self._execute is None else f" of {masked(self._query)}"
        return f"<{type(self).__name__}{state}>"
