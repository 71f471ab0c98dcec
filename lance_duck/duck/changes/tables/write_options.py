"""Options and rows of the statements that write a table: CREATE TABLE … WITH (…), and COPY … TO."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, Final

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.session import ChangeSession
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.tables.statement_versions import with_one_version
from lance_duck.write.inputs import ROWS_AT_ONCE
from lance_duck.write.relations import relation_reader
from lance_duck.write_dataset import write_dataset

WRITE_OPTIONS: Final = (
    "data_storage_version",
    "enable_stable_row_ids",
    "enable_v2_manifest_paths",
    "max_rows_per_file",
    "max_rows_per_group",
    "max_bytes_per_file",
)
"""Arguments of `write_dataset` that are options by the same names."""


def write_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `write_dataset` that options ask for; others among them are left out."""
    arguments = {name: values[name] for name in WRITE_OPTIONS if values.get(name) is not None}
    if "data_storage_version" in arguments:  # a number, too: 2.1
        arguments["data_storage_version"] = str(arguments["data_storage_version"])
    return arguments


def write_query(session: ChangeSession, query: str, uri: str, **arguments: Any) -> LanceDataset:
    """Write the rows of a query by `write_dataset`, and number repeated column names as DuckDB does for its own tables.

    DuckDB numbers the columns of a subquery: a second `id` is `id_1`.
    """
    rows = session.relation(query, {})
    if len(set(map(folded, rows.columns))) < len(rows.columns):
        rows = session.relation(f"SELECT * FROM (\n{query}\n)", {})  # noqa: S608
    with ExitStack() as opened:
        return with_one_version(lambda: write_dataset(relation_reader(rows, ROWS_AT_ONCE, opened), uri, **arguments))
