"""Settings of DuckDB that change what SQL means, and under which of them a statement may be run in another way.

DuckDB plans a statement by its own settings, so what it does itself is right under all of them. A route that reads the
text of a statement (few rows first, keys first, nearest rows first, LATERAL) or evaluates a condition of it knows only
how SQL is read under the usual ones. `SETTINGS` says which settings those are, and what each of them is about; a route
asks `Dialect.is_usual` about what it relies on, and leaves the statement to DuckDB where the answer is no.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Flag, auto
from typing import Any, Final

import pyarrow as pa

from lance_duck.arrow.types import holds_texts
from lance_duck.duck.rules.table_read import Condition


class About(Flag):
    """What a setting changes the meaning of."""

    SYNTAX = auto()
    """The text of a statement: which parts it has."""
    VALUES = auto()
    """What an expression gives, and which types it takes."""
    TEXTS = auto()
    """Which texts are equal, and which is less."""
    MOMENTS = auto()
    """Which moment a text, a date or a timestamp without a zone is, and the other way round."""
    ORDER = auto()
    """What ORDER BY without more words means."""


CONDITIONS: Final = About.SYNTAX | About.VALUES
"""What every route relies on that reads a condition of a statement."""

_FALSE, _TRUE = frozenset({"false", "0"}), frozenset({"true", "1"})
_UTC: Final = frozenset(
    {"utc", "etc/utc", "gmt", "etc/gmt", "uct", "etc/uct", "zulu", "etc/zulu", "universal", "etc/universal"}
)

SETTINGS: Final[Mapping[str, tuple[About, frozenset[str]]]] = {
    "default_collation": (About.TEXTS, frozenset({""})),
    "default_order": (About.ORDER, frozenset({"asc", "ascending"})),
    "default_null_order": (About.ORDER, frozenset({"nulls_last", "last", "nullslast", "nulls last"})),
    "TimeZone": (About.MOMENTS, _UTC),
    "Calendar": (About.MOMENTS, frozenset({"gregorian"})),
    "disable_timestamptz_casts": (About.MOMENTS, _FALSE),
    "integer_division": (About.VALUES, _FALSE),
    "ieee_floating_point_ops": (About.VALUES, _TRUE),
    "error_on_division_by_zero": (About.VALUES, _TRUE),
    "old_implicit_casting": (About.VALUES, _FALSE),
    "legacy_disable_null_type": (About.VALUES, _FALSE),
    "regex_match_operator_semantics": (About.VALUES, frozenset({"partial"})),
    "scalar_subquery_error_on_multiple_rows": (About.VALUES, _TRUE),
    "order_by_non_integer_literal": (About.ORDER, _FALSE),
    "preserve_identifier_case": (About.SYNTAX, frozenset({"true", "1", "preserve_case"})),
    "current_dialect": (About.SYNTAX, frozenset({"", "none", "duckdb"})),
    "dialect_compatibility_mode": (About.SYNTAX, frozenset({"", "none", "duckdb"})),
    "active_grammar_extensions": (About.SYNTAX, frozenset({"", "[]"})),
    "allow_parser_override_extension": (About.SYNTAX, frozenset({"default", "fallback"})),
}
"""What each setting is about, and its usual values in lower case. One that a version of DuckDB lacks is usual there.

Not among them is what changes only the name of a result's column, or an error (`lambda_syntax`,
`table_function_identifier_conversion`), for the statement itself is always run by DuckDB, too.
"""


HAS_COLLATIONS: Final = (
    "SELECT EXISTS (FROM duckdb_tables() WHERE sql ILIKE '%collate%') OR "
    "EXISTS (FROM duckdb_views() WHERE NOT internal AND sql ILIKE '%collate%')"
)
"""SQL that tells whether texts of some table or view may compare by a collation of their own."""


@dataclass(frozen=True)
class Dialect:
    """How a connection reads SQL now.

    Attributes:
        unusual: What some setting changes the meaning of.
    """

    unusual: About

    @classmethod
    def of(cls, values: Iterable[tuple[str, str | None]]) -> Dialect:
        """Return the dialect of a connection with these values of settings."""
        unusual = About(0)
        for name, value in values:
            about, usual = SETTINGS[name]
            if (value or "").lower() not in usual:
                unusual |= about
        return cls(unusual)

    def is_usual(self, about: About) -> bool:
        """Return whether all that a route relies on means what it does by default."""
        return not self.unusual & about


def about_condition(condition: Condition | None, schema: pa.Schema, parameters: Iterable[Any] = ()) -> About:
    """Tell what the meaning of a condition depends on.

    Args:
        condition: The condition; None if there is none.
        schema: Schema of the table.
        parameters: Values bound to the condition.
    """
    if condition is None:
        return About.SYNTAX
    about = CONDITIONS
    names = {name.lower() for name in condition.columns}
    fields = [field for field in schema if field.name.lower() in names]
    for field in fields:
        about |= _about_type(field.type)
    if len(fields) != len(names) or "VARCHAR" in condition.where or "TEXT" in condition.where:
        about |= About.TEXTS
    if any(isinstance(value, datetime) and value.tzinfo is not None for value in _flat(parameters)):
        about |= About.MOMENTS
    return about


def _about_type(type_: pa.DataType) -> About:
    if pa.types.is_timestamp(type_):
        return About(0) if type_.tz is None else About.MOMENTS
    plain = pa.types.is_primitive(type_) or pa.types.is_binary(type_) or pa.types.is_large_binary(type_)
    if plain or pa.types.is_decimal(type_) or pa.types.is_fixed_size_binary(type_):
        return About(0)
    return About.TEXTS if holds_texts(type_) else About.TEXTS | About.MOMENTS


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value
