"""`tables`: lists the tables of a folder and of the namespaces in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance_duck as ld
from lance_duck.cli.message import message_of
from lance_duck.cli.show import show
from lance_duck.errors import LanceDuckError, NotFoundError
from lance_duck.namespaces import Namespace
from lance_duck.store import did_you_mean_path, local_path


def tables(folder: str, as_json: bool = False) -> None:
    """List the tables of a folder and of its namespaces. A table that does not open is listed with the reason."""
    path = local_path(folder)
    if path is not None and not Path(path).is_dir():  # a namespace may be empty before its folder exists
        is_file = Path(path).exists()
        remedy = None if is_file else did_you_mean_path(folder)
        raise NotFoundError("not a folder" if is_file else "no such folder", where=folder, remedy=remedy)
    namespace = ld.connect_namespace("dir", {"root": folder})
    rows = (_facts(namespace, name) for name in _names(namespace, []))
    show(rows, ["table", "version", "rows", "columns", "problem"], as_json, max_rows=1000)


def _names(namespace: Namespace, inside: list[str]) -> Iterator[list[str]]:
    """Yield the names of all tables; tables of a namespace come before those of its child namespaces."""
    yield from ([*inside, name] for name in namespace.list_tables(inside))
    for child in namespace.list_namespaces(inside):
        yield from _names(namespace, [*inside, child])


def _facts(namespace: Namespace, name: list[str]) -> dict[str, Any]:
    facts: dict[str, Any] = {"table": "$".join(name), "version": None, "rows": None, "columns": None, "problem": None}
    try:
        dataset = namespace.open_table(name)
        counts = {"version": dataset.version, "rows": dataset.count_rows(), "columns": len(dataset.schema.names)}
    except LanceDuckError as error:
        return {**facts, "problem": message_of(error)}
    return {**facts, **counts}
