"""The arguments of a `match` call, serialized as JSON. DuckDB passes the JSON to the functions that implement `match`.

{"table": name or path, "column": path of the column, "kind": "match" or "match_phrase", "options": {…},
"named": [options whose values are passed separately, in order], "version": [names of version arguments
whose values are passed separately, in order], "held": number}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

from lance_duck.arguments import refuse_unknown
from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.scan.text.query.tree import MatchQuery, PhraseQuery

DIVIDER: Final = "\x1f"
"""Separator of the values that are passed with a request."""
_KINDS: Final[Mapping[str, type[MatchQuery] | type[PhraseQuery]]] = {"match": MatchQuery, "match_phrase": PhraseQuery}
_OPTIONS: Final = {
    "match": ("operator", "fuzziness", "prefix_length", "max_expansions", "boost"),
    "match_phrase": ("slop",),
}
_NUMBERS: Final = frozenset({"fuzziness", "prefix_length", "max_expansions", "slop"})


@dataclass(frozen=True)
class TextRequest:
    """A call of `match` or `match_phrase`, without its query.

    Attributes:
        table: Name or path, as for `lance_scan`.
        column: Path of the column.
        kind: The function.
        options: Constant options.
        named: Names of the non-constant options.
        version: Names of the `lance_scan` arguments that select the version.
        held: Number of a transaction's dataset. Defaults to the dataset that `table` refers to.
        is_value: Whether the texts are extracted from JSON in the column.
    """

    table: str
    column: str
    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)
    named: Sequence[str] = ()
    version: Sequence[str] = ()
    held: int | None = None
    is_value: bool = False

    @classmethod
    def of(cls, text: str) -> TextRequest:
        """Parse the JSON string.

        Raises:
            InvalidInputError: The string is invalid.
        """
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise InvalidInputError(
                "an internal function of lance_duck was called by a query", found=text[:40]
            ) from error

    @property
    def text(self) -> str:
        """The JSON string, without unset fields."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return json.dumps({name: value for name, value in values.items() if value}, ensure_ascii=False)

    def query(self, words: str, values: str) -> MatchQuery | PhraseQuery:
        """Return the query.

        Args:
            words: The query string.
            values: The non-constant option values and the version arguments, joined by `DIVIDER`.

        Raises:
            InvalidInputError, WrongTypeError: An option is invalid.
        """
        beside = values.split(DIVIDER) if values else []
        arguments = {name: _value(self.kind, name, value) for name, value in zip(self.named, beside, strict=False)}
        return _KINDS[self.kind](words, self.column, **{**self.options, **arguments})

    def choice(self, values: str) -> dict[str, str]:
        """Return the arguments that select the version of the table."""
        beside = values.split(DIVIDER)[len(self.named) :] if values else []
        return dict(zip(self.version, beside, strict=False))


def check_option(kind: str, name: str) -> None:
    """Reject an option that a function does not support.

    Raises:
        WrongTypeError: The option does not exist.
    """
    refuse_unknown([name], _OPTIONS[kind], kind, "option")


def _value(kind: str, name: str, text: str) -> Any:
    """Parse the value of an option from DuckDB's string form. An empty string means NULL."""
    if not text:
        return None
    if name == "operator":
        return text.upper()
    try:
        return int(text) if name in _NUMBERS else float(text)
    except ValueError as error:
        raise WrongTypeError(name, where=kind, expected="a number", found=text[:40]) from error


def constant(kind: str, name: str, text: str) -> Any:
    """Parse an option value from the text of a statement.

    Raises:
        LookupError: It is not a constant.
    """
    plain = text.strip()
    if plain.lower() == "null":
        return None
    if plain.startswith("'") and plain.endswith("'") and "'" not in plain[1:-1]:
        return plain[1:-1].upper() if name == "operator" else plain[1:-1]
    try:
        return int(plain)
    except ValueError:
        pass
    try:
        return float(plain)
    except ValueError as error:
        raise LookupError(f"{name} of {kind} is an expression") from error
