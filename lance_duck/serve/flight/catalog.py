"""Lists of databases, schemas, tables and keys, for drivers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import duckdb
import pyarrow as pa

from lance_duck.duck.databases.database_schema import SCHEMA
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.errors import LanceDuckError
from lance_duck.serve.gate.call import ServerCall
from lance_duck.wire.pb import flight_sql_pb2 as messages
from lance_duck.wire.schema_write import primary_key

if TYPE_CHECKING:
    from lance_duck.duck.connection import Connection

_TEXT: Final = pa.string()


def _schema(*names: str, needed: tuple[str, ...], **other: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, other.get(name, _TEXT), nullable=name not in needed) for name in names])


CATALOGS: Final = _schema("catalog_name", needed=("catalog_name",))
SCHEMAS: Final = _schema("catalog_name", "db_schema_name", needed=("db_schema_name",))
TABLE_TYPES: Final = _schema("table_type", needed=("table_type",))
TABLES: Final = _schema(
    "catalog_name", "db_schema_name", "table_name", "table_type", needed=("table_name", "table_type")
)
DESCRIBED: Final = TABLES.append(pa.field("table_schema", pa.binary(), nullable=False))
PRIMARY_KEYS: Final = _schema(
    *("catalog_name", "db_schema_name", "table_name", "column_name", "key_name", "key_sequence"),
    needed=("table_name", "column_name", "key_sequence"),
    key_sequence=pa.int32(),
)
FOREIGN_KEYS: Final = _schema(
    *("pk_catalog_name", "pk_db_schema_name", "pk_table_name", "pk_column_name"),
    *("fk_catalog_name", "fk_db_schema_name", "fk_table_name", "fk_column_name"),
    *("key_sequence", "fk_key_name", "pk_key_name", "update_rule", "delete_rule"),
    needed=(
        *("pk_table_name", "pk_column_name", "fk_table_name", "fk_column_name"),
        *("key_sequence", "update_rule", "delete_rule"),
    ),
    key_sequence=pa.int32(),
    update_rule=pa.uint8(),
    delete_rule=pa.uint8(),
)

_SCHEMATA: Final = """
SELECT DISTINCT catalog_name, schema_name FROM information_schema.schemata
WHERE catalog_name NOT IN ('memory', 'temp', 'system') AND schema_name NOT IN ('information_schema', 'pg_catalog')
"""
_TABLES: Final = """
SELECT table_catalog, table_schema, table_name, if(table_type = 'VIEW', 'VIEW', 'TABLE') AS table_type
FROM information_schema.tables WHERE table_catalog NOT IN ('memory', 'temp', 'system')
"""


def catalogs(call: ServerCall) -> pa.Table:
    """Return the databases."""
    return _rows(call.cursor(), f"SELECT DISTINCT catalog_name FROM ({_SCHEMATA}) ORDER BY ALL", {}, CATALOGS)  # noqa: S608


def schemas(call: ServerCall, asked: messages.CommandGetDbSchemas) -> pa.Table:
    """Return the schemas whose names match a pattern of LIKE."""
    query = f"""
        SELECT * FROM ({_SCHEMATA})
        WHERE ($catalog IS NULL OR catalog_name = $catalog)
            AND ($pattern IS NULL OR schema_name ILIKE $pattern ESCAPE '\\')
        ORDER BY ALL
    """  # noqa: S608
    values = {"catalog": _given(asked, "catalog"), "pattern": _given(asked, "db_schema_filter_pattern")}
    return _rows(call.cursor(), query, values, SCHEMAS)


def tables(call: ServerCall, asked: messages.CommandGetTables) -> pa.Table:
    """Return the tables and views whose names match patterns of LIKE, and their schemas if asked for."""
    query = f"""
        SELECT * FROM ({_TABLES})
        WHERE ($catalog IS NULL OR table_catalog = $catalog)
            AND ($schemas IS NULL OR table_schema ILIKE $schemas ESCAPE '\\')
            AND ($tables IS NULL OR table_name ILIKE $tables ESCAPE '\\')
            AND (len($types) = 0 OR list_contains($types, table_type))
        ORDER BY table_catalog, table_schema, table_name, table_type
    """  # noqa: S608
    values = {
        "catalog": _given(asked, "catalog"),
        "schemas": _given(asked, "db_schema_filter_pattern"),
        "tables": _given(asked, "table_name_filter_pattern"),
        "types": [kind.upper().replace("BASE TABLE", "TABLE") for kind in asked.table_types],
    }
    cursor = call.cursor()
    found = _rows(cursor, query, values, TABLES)
    if not asked.include_schema:
        return found
    described = []
    for row in found.to_pylist():
        call.check()
        described.append(_serialized(cursor, row))
    return found.append_column(DESCRIBED.field("table_schema"), pa.array(described, pa.binary()))


def table_types() -> pa.Table:
    """Return the types of tables."""
    return pa.table({"table_type": ["TABLE", "VIEW"]}, schema=TABLE_TYPES)


def primary_keys(call: ServerCall, asked: messages.CommandGetPrimaryKeys) -> pa.Table:
    """Return the columns of a table's primary key."""
    like = messages.CommandGetTables(table_name_filter_pattern=re.sub(r"([\\%_])", r"\\\1", asked.table))
    rows = []
    for table in tables(call, like).to_pylist():
        place = [table[name] for name in ("catalog_name", "db_schema_name")]
        wanted = [_given(asked, "catalog") or place[0], _given(asked, "db_schema") or place[1]]
        if place != wanted or table["table_type"] == "VIEW":
            continue
        path = [name for name in (place[1], table["table_name"]) if name != SCHEMA]
        fields = primary_key(call.open(path).handle.snapshot.schema)
        rows += [
            {**table, "column_name": field.name, "key_name": None, "key_sequence": number}
            for number, field in enumerate(fields, 1)
        ]
    return pa.Table.from_pylist(rows, schema=PRIMARY_KEYS)


def _given(message: Any, field: str) -> Any:
    return getattr(message, field) if message.HasField(field) else None


def _rows(cursor: Connection, query: str, values: dict[str, Any], schema: pa.Schema) -> pa.Table:
    table = cursor.sql(query, params=values).to_arrow_table()
    return pa.Table.from_arrays(table.columns, names=schema.names).cast(schema)


def _serialized(cursor: Connection, row: dict[str, str]) -> bytes:
    """Return the schema of a table as an IPC message. A view that cannot be read has no columns."""
    name = ".".join(quoted(row[part]) for part in ("catalog_name", "db_schema_name", "table_name"))
    try:
        relation = cursor.sql(f"FROM {name}")
        fields = [
            field.with_metadata(_metadata(row, str(kind)))
            for field, kind in zip(relation.limit(0).to_arrow_table().schema, relation.types, strict=True)
        ]
    except (duckdb.Error, LanceDuckError):
        fields = []
    return pa.schema(fields).serialize().to_pybytes()  # type: ignore[no-any-return]


def _metadata(row: dict[str, str], kind: str) -> dict[str, str]:
    prefix = "ARROW:FLIGHT:SQL:"
    return {
        f"{prefix}CATALOG_NAME": row["catalog_name"],
        f"{prefix}DB_SCHEMA_NAME": row["db_schema_name"],
        f"{prefix}TABLE_NAME": row["table_name"],
        f"{prefix}TYPE_NAME": kind,
    }
