"""DuckDB: connections on which Lance tables are tables, and `lance_scan` on any connection."""

from lance_duck.duck.connection import Connection, connect
from lance_duck.duck.register import register

__all__ = ["Connection", "connect", "register"]
