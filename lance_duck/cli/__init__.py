"""The command line: inspect Lance tables, change them, and run SQL on them.

You hold: command-line arguments. You get: a table on a terminal, CSV in a pipe, JSON lines with `--json`. Errors are
written to stderr with exit code 1. Wrong usage has exit code 2. Commands call the public Python API.
Never here: features that the Python API does not have.
"""

from lance_duck.cli import bench, cache, change, diff, doctor, indexes, look, search, serve, transfer
from lance_duck.cli.show import plain, show, show_table, text

__all__ = [
    "bench",
    "cache",
    "change",
    "diff",
    "doctor",
    "indexes",
    "look",
    "plain",
    "search",
    "serve",
    "show",
    "show_table",
    "text",
    "transfer",
]
