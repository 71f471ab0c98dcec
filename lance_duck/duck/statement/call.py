"""Parser for the arguments of a CALL, based on DuckDB's tokens.

    CALL [database.][schema.]name([argument, …] [parameter => argument, …])

`:=` and `=` are also accepted after a parameter. Arguments are returned as text. DuckDB evaluates them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lance_duck.duck.statement.clauses import Clauses, TableName
from lance_duck.duck.statement.identifiers import folded
from lance_duck.errors import InvalidInputError


@dataclass(frozen=True)
class Call:
    """A CALL of a procedure.

    Attributes:
        name: Parts of the procedure's qualified name, folded.
        positional: Positional arguments, in order.
        named: Named arguments, by folded name.
    """

    name: tuple[str, ...]
    positional: tuple[Clauses, ...]
    named: Mapping[str, Clauses]

    @classmethod
    def of(cls, body: Clauses) -> Call | None:
        """Parse a CALL. Returns None if the statement is not a single, complete CALL.

        Raises:
            InvalidInputError: An argument does not have a value, a positional argument follows a named one, or a name
                is repeated.
        """
        name = TableName.at(body, 1) if body.word(0) == "call" else None
        if name is None or name.path is not None or body.text_at(name.after) != "(":
            return None
        close = body.closer(name.after)
        if close != len(body) - 1 or body.text_at(close) != ")":
            return None
        where = f"CALL {'.'.join(name.parts)}"
        positional: list[Clauses] = []
        named: dict[str, Clauses] = {}
        for argument in body.part(name.after + 1, close).split():
            key, value = named_argument(argument)
            if not value.tokens:
                raise InvalidInputError("an argument does not have a value", where=where)
            if key is None and named:
                raise InvalidInputError("positional arguments must come before named arguments", where=where)
            if key is not None and key in named:
                raise InvalidInputError(f"argument {key!r} is given twice", where=where)
            if key is None:
                positional.append(value)
            else:
                named[key] = value
        return cls(tuple(map(folded, name.parts)), tuple(positional), named)

    def bound(self, parameters: Sequence[str], required: int = 0) -> dict[str, Clauses]:
        """Return the arguments by parameter name. The result does not contain omitted parameters.

        Args:
            parameters: Names of all parameters, in positional order.
            required: Number of leading parameters that are required.

        Raises:
            InvalidInputError: An argument is missing, unknown, or given twice.
        """
        where = f"CALL {'.'.join(self.name)}"
        expected = ", ".join(parameters) or "no argument"
        if len(self.positional) > len(parameters):
            raise InvalidInputError(
                "too many arguments", where=where, expected=expected, found=f"{len(self.positional)} of them"
            )
        arguments = dict(zip(parameters, self.positional, strict=False))
        for name, argument in self.named.items():
            if name not in parameters:
                raise InvalidInputError(f"unknown argument {name!r}", where=where, expected=expected)
            if name in arguments:
                raise InvalidInputError(f"argument {name!r} is given twice", where=where)
            arguments[name] = argument
        missing = [name for name in parameters[:required] if name not in arguments]
        if missing:
            raise InvalidInputError(f"argument {missing[0]!r} is missing", where=where, expected=expected)
        return {name: arguments[name] for name in parameters if name in arguments}


def named_argument(argument: Clauses) -> tuple[str | None, Clauses]:
    """Return the folded name of an argument, or None, and its value. Accepts `=>`, `:=` and `=`."""
    name = argument.tokens[0].name if len(argument) > 2 else None
    if name is None:
        return None, argument
    place = argument.tokens[1].start
    spelled = argument.sql[place : place + 2]
    is_named = spelled in ("=>", ":=") or (spelled[:1] == "=" and spelled != "==")
    return (folded(name), argument.part(2)) if is_named else (None, argument)
