"""Options of a statement.

    [WITH] (name = value, …)

`:=` and `=>` mean the same as `=`, which can also be omitted. A value is an expression, which DuckDB evaluates, or a
name, which is read as a string. Names in parentheses are read as a list of strings. A name without a value means true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from lance_duck.arguments import refuse_unknown
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.statement.call import named_argument
from lance_duck.duck.statement.clauses import Clauses
from lance_duck.duck.statement.identifiers import folded, literal, quoted
from lance_duck.errors import InvalidInputError

_CONSTANTS: Final = frozenset({"true", "false", "null"})


@dataclass(frozen=True)
class Options:
    """Options by their case-folded names.

    Attributes:
        texts: SQL of each value.
        where: The statement, for errors.
    """

    texts: Mapping[str, str]
    where: str

    @classmethod
    def of(cls, clauses: Clauses, where: str) -> Options:
        """Read the options of a statement, which may be empty.

        Args:
            clauses: The text from WITH or the parenthesis to the end of the statement.
            where: The statement, for errors.

        Raises:
            InvalidInputError: The text is not a list of options, or repeats an option.
        """
        opener = int(clauses.word(0) == "with")
        if not clauses.tokens:
            return cls({}, where)
        if clauses.text_at(opener) != "(" or clauses.closer(opener) != len(clauses) - 1:
            raise InvalidInputError(
                "unexpected text after the statement",
                where=where,
                expected="WITH (name = value, …)",
                found=clauses.text.strip(),
            )
        texts: dict[str, str] = {}
        for option in clauses.part(opener + 1, len(clauses) - 1).split():
            name, text = _option(option, where)
            if name in texts:
                raise InvalidInputError(f"option {name!r} is given twice", where=where)
            texts[name] = text
        return cls(texts, where)

    def values(
        self, session: ChangeSession, names: Iterable[str], aliases: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Evaluate the options in DuckDB and return their values by name. Decimals are converted to floats.

        Args:
            session: Evaluates them.
            names: The supported options.
            aliases: Aliases of option names.

        Raises:
            WrongTypeError: An option does not exist. The message suggests the closest name.
            InvalidInputError: Two names refer to one option.
        """
        aliases = aliases or {}
        refuse_unknown(self.texts, [*names, *aliases], self.where, "option")
        if not self.texts:
            return {}
        option_names = [aliases.get(name, name) for name in self.texts]
        same = [name for name, meant in zip(self.texts, option_names, strict=True) if option_names.count(meant) > 1]
        if same:
            raise InvalidInputError("two options with the same meaning", where=self.where, found=", ".join(same))
        selected = ", ".join(f"({text}) AS {quoted(name)}" for name, text in self.texts.items())
        row = session.relation(f"SELECT {selected}", {}).fetchall()[0]
        return {name: _without_decimals(value) for name, value in zip(option_names, row, strict=True)}


def is_lance(options: Clauses) -> bool:
    """Return whether the options of a COPY contain FORMAT lance."""
    start = int(options.word(0) == "with") + 1
    inside = options.part(start, options.closer(start - 1)) if options.text_at(start - 1) == "(" else options.part(0, 0)
    return any(
        folded(option.tokens[0].name or "") == "format" and folded(option.part(1).text.strip("\n '\"()=")) == "lance"
        for option in inside.split()
        if option.tokens
    )


def _option(option: Clauses, where: str) -> tuple[str, str]:
    """Return an option's name and the SQL of its value."""
    if len(option) == 1 and option.tokens[0].name is not None:
        return folded(option.tokens[0].name), "true"
    name, value = named_argument(option)
    if name is None and len(option) > 1 and option.tokens[0].name is not None:  # `name value`, as in COPY and ATTACH
        name, value = folded(option.tokens[0].name), option.part(1)
    if name is None or not value.tokens:
        raise InvalidInputError("not an option", where=where, expected="name = value", found=option.text.strip())
    names = _names(value)
    if names:
        return name, f"[{', '.join(map(literal, names))}]"
    word = value.tokens[0].name if len(value) == 1 else None
    return name, value.text if word is None or value.word(0) in _CONSTANTS else literal(word)


def _names(value: Clauses) -> list[str]:
    """Return the names in a parenthesized list. Empty for other values."""
    if value.text_at(0) != "(" or value.closer(0) != len(value) - 1:
        return []
    items = value.part(1, len(value) - 1).split()
    names = [item.tokens[0].name for item in items if len(item) == 1 and item.word(0) not in _CONSTANTS]
    return [] if len(names) < len(items) or None in names else [name for name in names if name is not None]


def _without_decimals(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_without_decimals(item) for item in value]
    return float(value) if isinstance(value, Decimal) else value
