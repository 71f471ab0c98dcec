"""DuckDB connections with Lance tables that SQL can use by name, and `lance_scan` for any other connection.

You hold: SQL text with parameters. You get: DuckDB's result, with Lance tables in place of names, paths and calls.
A statement passes `connection` → `execute` → `statement` (its text, read once) → `planner` → `rules` (pure functions
that propose uses of an index) → `run` (reads rows or keys in advance, and edits the text) → DuckDB, which scans
`tables` through its scan protocol. All proposals that do not overlap are executed. A statement without Lance tables or
functions goes to DuckDB unchanged, and is neither tokenized nor parsed.
A new optimization of SELECT needs a module in `rules`, a module in `run`, and an entry in `planner`.
A statement that changes a table goes to `changes` instead. DuckDB evaluates the new values, and the verbs commit them.
Never here: reading and writing the file format, and the creation of versions.
"""

from lance_duck.duck.connection import Connection, connect
from lance_duck.duck.dataset_sql import run_query
from lance_duck.duck.register import register

__all__ = ["Connection", "connect", "register", "run_query"]
