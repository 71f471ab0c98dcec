"""Names of tables, as models see them. The location of the tables stays hidden.

A name is as in SQL: `t`, or `s.t` in a namespace. Names in deeper namespaces are joined by "$": `a$b$t`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from lance_duck.arguments import did_you_mean
from lance_duck.dataset import LanceDataset
from lance_duck.errors import NotFoundError
from lance_duck.namespaces import DirectoryNamespace, Namespace
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.mcp.texts import cut_text
from lance_duck.store import local_path

TableArgument = Annotated[str, Field(description="Name of a table, as in list_tables.")]


def table_names(namespace: Namespace, inside: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the names of all tables. Tables of a namespace come before those of its child namespaces."""
    yield from ((*inside, name) for name in namespace.list_tables(inside))
    for child in namespace.list_namespaces(inside):
        yield from table_names(namespace, (*inside, child))


def shown_name(parts: tuple[str, ...]) -> str:
    """Return the name of a table: as in SQL, or joined by "$" if SQL cannot reach it."""
    return ".".join(parts) if len(parts) < 3 else "$".join(parts)


def open_named(call: ServerCall, table: str, version: int | str | None = None) -> LanceDataset:
    """Open a table by its name in `list_tables`.

    Raises:
        NotFoundError: The table or the version does not exist.
    """
    return call.open(parts_of(call, table), version)


def parts_of(call: ServerCall, table: str) -> tuple[str, ...]:
    """Return the parts of a table's name. Raises NotFoundError with the nearest name."""
    known = {shown_name(parts): parts for parts in table_names(call.namespace)}
    for name in (table, table.replace('"', ""), table.removeprefix("lance.").removeprefix("main.")):
        if name in known:
            return known[name]
    names = ", ".join(sorted(known)[:20])
    raise NotFoundError(
        "no such table",
        where=cut_text(table, 200),
        expected=f"one of {cut_text(names)}" if names else "a table, but the server has none",
        remedy=did_you_mean(table, known),
    )


def without_root(text: str, namespace: DirectoryNamespace) -> str:
    """Return a text without the location of the tables."""
    path = local_path(namespace.root)
    root = namespace.root if path is None else os.path.abspath(path)
    return text.replace(f"{root}/", "").replace(root, "the server") if len(root) > 1 else text
