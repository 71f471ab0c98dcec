"""The schemas in which DuckDB looks for names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lance_duck.duck.databases.database_schema import SCHEMA
from lance_duck.duck.statement.identifiers import folded, qualified_names

Place = tuple[str, str]
"""Database and schema, folded."""


@dataclass(frozen=True)
class SearchPath:
    """Where DuckDB looks for names, after temporary objects.

    Attributes:
        named: Entries of the `search_path` setting that consist of a database and a schema.
        order: The schemas that are searched for unqualified names. Schema `main` of the current database comes last.
    """

    named: list[Place]
    order: list[Place]

    QUERY: ClassVar[str] = (
        "system.main.current_setting('search_path'), system.main.current_database(), system.main.current_schema()"
    )
    """SQL for the arguments of `of`."""

    @classmethod
    def of(cls, setting: str, database: str, schema: str) -> SearchPath:
        """Return the path for the values of the setting, the current database and the current schema."""
        named, current = _named(setting), (folded(database), folded(schema))
        order = named or [current]
        return cls(named, [*order, (order[0][0], SCHEMA)])

    def schema_of(self, database: str) -> Place:
        """Return the schema in which names that are qualified only with a database are looked up."""
        return next((place for place in self.named if place[0] == database), (database, SCHEMA))


def _named(text: str) -> list[Place]:
    """Return the entries of the `search_path` setting that consist of a database and a schema."""
    folded_names = (tuple(map(folded, entry)) for entry in qualified_names(text))
    return [(entry[0], entry[1]) for entry in folded_names if len(entry) == 2]
