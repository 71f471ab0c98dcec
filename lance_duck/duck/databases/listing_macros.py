"""Macros that list Lance tables as tables. DuckDB has views of them.

DuckDB's SHOW TABLES, `information_schema.tables` and `pg_catalog` call `duckdb_tables()` and `duckdb_views()`, and find
macros with these names in a schema of the search path.
"""

from __future__ import annotations

from typing import Final

from lance_duck.duck.statement.identifiers import literal

_COLUMNS: Final = (
    "database_name, database_oid, schema_name, schema_oid, view_name AS table_name, view_oid AS table_oid, comment, "
    "tags, internal, temporary, false AS has_primary_key, NULL::BIGINT AS estimated_size, column_count, "
    "0::BIGINT AS index_count, 0::BIGINT AS check_constraint_count, made.sql"
)
_SHOWS_A_TABLE: Final = " OR ".join(
    f"sql LIKE {literal(pattern)}"
    for pattern in (
        "CREATE VIEW % AS SELECT * EXCLUDE (__lance_rows) FROM __duckdb_source_%;",
        "CREATE VIEW % AS SELECT * FROM query(__lance_bind(%",
    )
)
"""Whether a view shows a Lance table, for DuckDB 2.0 and DuckDB 1."""
_TABLES: Final = "system.main.duckdb_tables()"
_VIEWS: Final = "system.main.duckdb_views()"
_MADE: Final = """
    SELECT table_oid AS made_oid, database_oid AS made_in,
        'CREATE TABLE "' || system.main.replace(system.main.any_value(table_name), '"', '""') || '"('
        || system.main.string_agg(
            '"' || system.main.replace(column_name, '"', '""') || '" ' || data_type, ', ' ORDER BY column_index)
        || ');' AS sql
    FROM system.main.duckdb_columns() GROUP BY ALL"""
"""The statements that would create the tables as native ones."""


def listing_macros(schema: str) -> str:
    """Return the statements that create the macros in a schema, given by its qualified name in SQL."""
    tables = f"FROM {_VIEWS} AS v JOIN ({_MADE}) AS made ON made_oid = view_oid AND made_in = database_oid"
    return f"""
        CREATE OR REPLACE MACRO {schema}.duckdb_tables() AS TABLE
            FROM {_TABLES} UNION ALL SELECT {_COLUMNS} {tables} WHERE {_SHOWS_A_TABLE.replace("sql", "v.sql")};
        CREATE OR REPLACE MACRO {schema}.duckdb_views() AS TABLE
            FROM {_VIEWS} WHERE NOT ({_SHOWS_A_TABLE});
    """  # noqa: S608
