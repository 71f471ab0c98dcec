"""The command line: look at Lance tables, change them, and run SQL over them.

An error is one line on stderr and exit code 1; wrong usage is exit code 2.
"""

from lance_duck.cli import change, indexes, look
from lance_duck.cli.app import app
from lance_duck.cli.show import plain, show, show_table, text

__all__ = ["app", "change", "indexes", "look", "plain", "show", "show_table", "text"]
