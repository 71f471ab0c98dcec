"""DuckDB settings that change the meaning of SQL, and a check whether a statement may be rewritten.

DuckDB plans statements according to its settings, so its own results are always correct. Some rules read the text of a
statement or evaluate its conditions, and assume the default meaning of SQL. `SETTINGS` lists the settings that change
this meaning, with the features that each setting affects. A rule passes the features that it relies on to
`Dialect.is_usual`. If the result is False, DuckDB runs the statement unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Flag, auto
from functools import reduce
from operator import or_
from typing import Any, Final

import pyarrow as pa

from lance_duck.arrow.types import holds_texts
from lance_duck.duck.rules.table_read import Condition
from lance_duck.duck.statement.identifiers import are_distinct


class About(Flag):
    """The features of SQL that a setting affects."""

    SYNTAX = auto()
    """How the text of a statement is parsed."""
    VALUES = auto()
    """The values of expressions, and the types that they accept."""
    TEXTS = auto()
    """Equality and order of strings."""
    MOMENTS = auto()
    """Conversion between timestamps with a time zone and strings, dates or timestamps without a time zone."""
    ORDER = auto()
    """The direction and null order of a plain ORDER BY."""
    RUNS = auto()
    """Whether DuckDB logs, profiles or stops statements."""
    NAMES = auto()
    """Columns or fields that differ only by case. DuckDB and filters always resolve their names differently."""


CONDITIONS: Final = About.SYNTAX | About.VALUES
"""The features that all rules with conditions rely on."""

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
    "enable_profiling": (About.RUNS, frozenset({""})),
    "enable_logging": (About.RUNS, _FALSE),
    "log_query_path": (About.RUNS, frozenset({""})),
    "max_execution_time": (About.RUNS, frozenset({"0"})),
    "allow_parser_override_extension": (About.SYNTAX, frozenset({"default", "fallback"})),
}
"""The features that each setting affects, and its usual values in lower case. A setting that does not exist in a DuckDB
version counts as usual. Settings that only change a result column's name or an error (`lambda_syntax`,
`table_function_identifier_conversion`) are omitted, because DuckDB always runs the statement itself.
"""


HAS_COLLATIONS: Final = (
    "SELECT EXISTS (FROM system.main.duckdb_tables() WHERE sql ILIKE '%collate%') OR "
    "EXISTS (FROM system.main.duckdb_views() WHERE NOT internal AND sql ILIKE '%collate%')"
)
"""SQL that returns whether a table or view may define a collation for a column."""


@dataclass(frozen=True)
class Dialect:
    """The current SQL dialect of a connection.

    Attributes:
        unusual: The features affected by settings that do not have their usual value.
    """

    unusual: About

    @classmethod
    def of(cls, values: Iterable[tuple[str, str | None]]) -> Dialect:
        """Return the dialect for these setting values."""
        unusual = About(0)
        for name, value in values:
            about, usual = SETTINGS[name]
            if (value or "").lower() not in usual:
                unusual |= about
        return cls(unusual)

    def is_usual(self, about: About) -> bool:
        """Return whether these features have their default meaning."""
        return not (self.unusual | About.NAMES) & about


def about_condition(condition: Condition | None, schema: pa.Schema, parameters: Iterable[Any] = ()) -> About:
    """Return the features that a condition depends on.

    Args:
        condition: The condition, if any.
        schema: Schema of the table.
        parameters: Values bound to the condition.
    """
    if condition is None:
        return About.SYNTAX
    about = CONDITIONS if are_distinct(schema.names) else CONDITIONS | About.NAMES
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
    if type_.num_fields:
        fields = [type_.field(i) for i in range(type_.num_fields)]
        inner = reduce(or_, (_about_type(field.type) for field in fields))
        return inner if are_distinct([field.name for field in fields]) else inner | About.NAMES
    return About.TEXTS if holds_texts(type_) else About.TEXTS | About.MOMENTS


def _flat(values: Iterable[Any]) -> Iterable[Any]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flat(value)
        else:
            yield value
