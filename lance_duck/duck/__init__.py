"""DuckDB: connections on which Lance tables are tables, and `lance_scan` on any connection.

You hold: SQL text with parameters. You get: DuckDB's answer, with tables of ours in place of names, paths and calls.
A statement passes `connection` → `statement` (its text, read once) → `rules` (what it asks for that an index answers;
pure) → `run` (rows or keys read beforehand, the statement edited) → DuckDB, which scans `table` by its own protocol.
A new rewriting of SQL is one module in `rules` and one in `run`.
Never here: bytes of the format, and commits.
"""

from lance_duck.duck.connection import Connection, connect
from lance_duck.duck.register import register

__all__ = ["Connection", "connect", "register"]
