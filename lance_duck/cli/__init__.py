"""The command line: looks at Lance tables, changes them, and runs SQL over them.

You hold: words of a shell. You get: a table on a terminal, CSV in a pipe, JSON lines with `--json`. An error goes to
stderr with exit code 1; wrong usage is exit code 2. A command calls what a Python user would call.
Never here: anything that Python users cannot do.
"""

from lance_duck.cli import bench, change, diff, doctor, indexes, look, search, transfer
from lance_duck.cli.show import plain, show, show_table, text

__all__ = [
    "bench",
    "change",
    "diff",
    "doctor",
    "indexes",
    "look",
    "plain",
    "search",
    "show",
    "show_table",
    "text",
    "transfer",
]
