"""Imports that wait until a name is used, so that a process loads no more than it uses.

    if TYPE_CHECKING:
        from lance_duck.verbs.rows import delete, update
    else:
        delete, update = lazy.modules(globals(), "lance_duck.verbs.rows", "delete", "update")

binds modules that are imported when a function first writes `delete.…`. Type checkers and editors see the imports, and
so does `tests/test_architecture.py`: they go down the list of rooms as any other do, and equal what stands below them.
`package` does the same for names of a package: its attributes are imported when they are first asked for (PEP 562).

You hold: names of modules, or of what a package exports. You get: these, once they are used; and `garbage.uncollected`,
which puts off Python's search for garbage while objects are made that stay, as modules do.
Python imports a module once, whichever threads ask for it. A fork waits for an import that is under way.
Never here: imports of this package by name; what waits is decided where it is used.
"""

from lance_duck.lazy.modules import modules
from lance_duck.lazy.package import package

__all__ = ["modules", "package"]
