"""Answers of tools. Their fields are the output schemas that clients see. Defaults are left out of an answer."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class CutCounts(BaseModel):
    """How many values were shortened, by kind, and how many columns are left out."""

    vectors: int = 0
    binary: int = 0
    texts: int = 0
    columns: int = 0


class ToolColumn(BaseModel):
    """A column of an answer."""

    name: str
    type: str


class ShownRows(BaseModel):
    """Rows of a table or query. `truncated` means that there are more rows. `cut` counts shortened values."""

    columns: list[ToolColumn]
    rows: list[list[Any]]
    truncated: bool
    cut: CutCounts | None = None


class ToolTable(BaseModel):
    """A table of the server. `problem` says why it cannot be opened."""

    name: str
    rows: int | None = None
    columns: int | None = None
    version: int | None = None
    problem: str | None = None


class ListedTables(BaseModel):
    """The tables of the server."""

    tables: list[ToolTable]
    left_out: int = 0


class DescribedColumn(BaseModel):
    """A column of a table. `nulls` is absent if counting would be slow."""

    name: str
    type: str
    nullable: bool
    nulls: int | None = None


class DescribedIndex(BaseModel):
    """An index, and how many rows it covers."""

    name: str
    kind: str
    columns: list[str]
    indexed_rows: int
    unindexed_rows: int


class DescribedTable(BaseModel):
    """A table at one version."""

    name: str
    version: int
    latest_version: int
    rows: int
    deleted_rows: int
    fragments: int
    columns: list[DescribedColumn]
    columns_left_out: int = 0
    indexes: list[DescribedIndex]
    indexes_left_out: int = 0
    tags: dict[str, int]
    tags_left_out: int = 0


class ListedVersion(BaseModel):
    """A version of a table, and the operation that made it."""

    version: int
    timestamp: str
    operation: str | None = None
    rows: int | None = None
    fragments: int | None = None
    tags: list[str]


class ListedVersions(BaseModel):
    """Versions of a table, newest first."""

    versions: list[ListedVersion]
    left_out: int = 0


class ShownChanges(BaseModel):
    """What changed after one version, up to another one.

    Without stable row ids, an updated row counts as deleted and inserted.
    """

    from_version: int
    to_version: int
    rows_before: int
    rows_after: int
    inserted: int
    updated: int
    deleted: int
    columns_added: list[str]
    columns_removed: list[str]
    columns_changed: list[str]
    sample: ShownRows | None = None


class ShownPlan(BaseModel):
    """The plan of a statement."""

    plan: str
