"""DuckDB: tables, table functions, the connection."""
