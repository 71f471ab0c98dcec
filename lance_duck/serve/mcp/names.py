"""Names of tables, as models see them. The location of the tables stays hidden.

A name is as in SQL: `t`, or `s.t` in a namespace. Names in deeper namespaces are joined by "$": `a$b$t`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from lance_duck.arguments import did_you_mean
from lance_duck.dataset import LanceDataset
from lance_duck.errors import NotFoundError
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.mcp.texts import cut_text

TableArgument = Annotated[str, Field(description="Name of a table, as in list_tables.")]


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
    known = {shown_name(parts): parts for parts in call.namespace.tables()}
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
