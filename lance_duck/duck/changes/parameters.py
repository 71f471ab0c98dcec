"""Parameters of a statement whose clauses run separately. Each clause gets only the parameters that it uses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from lance_duck.duck.statement.placeholders import placeholders_in
from lance_duck.duck.statement.tokens import tokens_of
from lance_duck.errors import InvalidInputError


class StatementParameters:
    """Values for the placeholders of a statement: `$1`, `$2`, …, or `$name`.

    Args:
        sql: The statement. Each `?` was replaced by `$1`, `$2`, ….
        values: Parameters in DuckDB's forms: by position, by name, or None.

    Raises:
        InvalidInputError: The number of parameters differs from the number of placeholders.
    """

    def __init__(self, sql: str, values: Any) -> None:
        names = placeholders_of(sql)
        if isinstance(values, Mapping):
            self._values = {str(name): value for name, value in values.items()}
        elif values is None:
            self._values = {}
        elif isinstance(values, Sequence) and not isinstance(values, str | bytes):
            self._values = {str(number): value for number, value in enumerate(values, 1)}
        else:
            raise InvalidInputError(
                "parameters have the wrong type", expected="a list or a mapping", found=type(values).__name__
            )
        if names != self._values.keys():
            raise InvalidInputError(
                "parameters do not match the statement",
                expected=", ".join(f"${name}" for name in sorted(names)) or "none",
                found=", ".join(f"${name}" for name in sorted(self._values)) or "none",
            )

    @property
    def given(self) -> Mapping[str, Any]:
        """All values, by name."""
        return self._values

    def used_by(self, sql: str) -> dict[str, Any] | None:
        """Return the values of the placeholders in a text, by name, or None without placeholders."""
        return {name: self._values[name] for name in placeholders_of(sql)} or None if self._values else None


def placeholders_of(sql: str) -> set[str]:
    """Return the names, or numbers as strings, of all `$` placeholders."""
    return {name for name, _ in places_of(sql)}


def places_of(sql: str) -> list[tuple[str, tuple[int, int]]]:
    """Return the name or number of each `$` placeholder as a string, with its start and end."""
    return list(placeholders_in(tokens_of(sql))) if "$" in sql else []


NO_PARAMETERS: Final = StatementParameters("", None)
