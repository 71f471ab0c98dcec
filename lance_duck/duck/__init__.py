"""DuckDB: connections on which Lance tables are tables, and `lance_scan` on any connection.

You hold: SQL text with parameters. You get: DuckDB's answer, with tables of ours in place of names, paths and calls.
A statement passes `connection` → `execute` → `statement` (its text, read once) → `planner` → `rules` (proposals: what
an index may answer; pure) → `run` (rows or keys read beforehand; edits of the text) → DuckDB, which scans `tables` by
its own protocol. Proposals compose: all that do not overlap are carried out. A text that names nothing of ours goes to
DuckDB as it is, and is neither cut into tokens nor parsed.
A new reading of SELECT is one module in `rules` and one in `run`, and a line in `planner`.
A statement that changes a table goes to `changes` instead, which has the verbs commit what DuckDB evaluates.
Never here: bytes of the format, and how a version is made.
"""

from lance_duck.duck.connection import Connection, connect
from lance_duck.duck.dataset_sql import run_query
from lance_duck.duck.register import register

__all__ = ["Connection", "connect", "register", "run_query"]
