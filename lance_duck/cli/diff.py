"""`diff`: show what changed between two versions of a table.

Tables with stable row ids are compared by row id. A row that was inserted and deleted in between does not appear, and a
new column counts as an update of all rows. Without stable row ids, the changes of all versions are added up, and an
updated row counts as a delete and an insert.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import lance_duck as ld
from lance_duck.arguments import did_you_mean
from lance_duck.cli.open import listed_names, open_table
from lance_duck.cli.show import report, show
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.errors import InvalidInputError, UnknownColumnError

_CHANGE: Final = "change_type"
_ROW_ID: Final = "_rowid"
_UPDATED_AT: Final = "_row_last_updated_at_version"


class VersionComparison(Protocol):
    """The rows that differ between two versions, by kind of change: `insert`, `update` or `delete`."""

    way: str
    """How the versions were compared."""

    def counts(self) -> Mapping[str, int]:
        """Return the number of rows for each kind of change."""

    def rows(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """Yield the rows with their change and id. Updated rows have their new values."""


def diff(
    table: str,
    older: str | None = None,
    newer: str | None = None,
    with_rows: bool = False,
    columns: str | None = None,
    as_json: bool = False,
    max_rows: int = 100,
) -> None:
    """Show what changed between two versions. Prints counts and columns, or the rows."""
    dataset = open_table(table)
    after = dataset if newer is None else dataset.checkout_version(_version(newer))
    before = dataset.checkout_version(_before(dataset, after.version) if older is None else _version(older))
    if before.version > after.version:
        raise InvalidInputError(
            "the versions are in the wrong order",
            where="diff",
            expected="a version for --from that is not newer than that for --to",
            found=f"{before.version} and {after.version}",
        )
    has_ids = all(each.handle.snapshot.has_stable_row_ids for each in (before, after))
    changes: VersionComparison = ChangesById(before, after) if has_ids else ChangesByVersion(before, after)
    if with_rows:
        names = _names(columns, before, after)
        show(changes.rows(names), [_CHANGE, _ROW_ID, *names], as_json, max_rows)
        return
    counts = {"rows_before": before.count_rows(), "rows_after": after.count_rows()}
    changes_by_version = changes.counts()
    counts |= {
        f"{change.removesuffix('e')}ed": changes_by_version.get(change, 0) for change in ("insert", "update", "delete")
    }
    versions = {"from": before.version, "to": after.version, "compared": changes.way}
    report({**versions, **counts, **_schema_changes(before.schema, after.schema)}, as_json)


@dataclass
class ChangesById:
    """The difference between two versions, from stable row ids and the version that last updated each row."""

    before: ld.LanceDataset
    after: ld.LanceDataset
    way: str = "by row ids"

    def counts(self) -> Mapping[str, int]:
        """See `VersionComparison`."""
        return {change: len(ids) for change, ids in self._ids.items()}

    def rows(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """See `VersionComparison`."""
        for change, dataset in (("insert", self.after), ("update", self.after), ("delete", self.before)):
            yield from _chosen(dataset, change, self._ids[change], columns)

    @cached_property
    def _ids(self) -> Mapping[str, NDArray[np.uint64]]:
        old_ids, old_versions = _ids_and_versions(self.before)
        new_ids, new_versions = _ids_and_versions(self.after)
        common, old, new = np.intersect1d(old_ids, new_ids, assume_unique=True, return_indices=True)
        return {
            "insert": np.setdiff1d(new_ids, common, assume_unique=True),
            "update": common[old_versions[old] != new_versions[new]],
            "delete": np.setdiff1d(old_ids, common, assume_unique=True),
        }


@dataclass
class ChangesByVersion:
    """All changes after an older version, up to and including a newer one. See `lance_table_changes`."""

    before: ld.LanceDataset
    after: ld.LanceDataset
    way: str = "version by version"

    def counts(self) -> Mapping[str, int]:
        """See `VersionComparison`."""
        batches = self._batches("change_type, count(*) AS n", "GROUP BY ALL")
        return {row["change_type"]: row["n"] for batch in batches for row in batch.to_pylist()}

    def rows(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """See `VersionComparison`."""
        existing = [quoted(name) for name in columns if name in self.after.schema.names]
        selected = ", ".join([_CHANGE, f"rowid AS {_ROW_ID}", *existing])
        nothing = dict.fromkeys(columns)
        return ({**nothing, **row} for batch in self._batches(selected) for row in batch.to_pylist())

    def _batches(self, selected: str, rest: str = "") -> Iterable[pa.RecordBatch]:
        """Yield selected columns of the changes. A version compared with itself has no changes."""
        if self.before.version == self.after.version:
            return
        with ld.connect({"t": self.after}) as connection:
            bounds = f"{self.before.version + 1}, {self.after.version}"
            yield from connection.sql(
                f"SELECT {selected} FROM lance_table_changes('t', {bounds}) {rest}"  # noqa: S608  names are quoted
            ).to_arrow_reader(1 << 16)


def _chosen(
    dataset: ld.LanceDataset, change: str, ids: NDArray[np.uint64], columns: Sequence[str]
) -> Iterator[Mapping[str, Any]]:
    """Yield the rows with the given ids. Columns that the version lacks are null."""
    if not len(ids):
        return
    existing = [name for name in columns if name in dataset.schema.names]
    nothing: dict[str, Any] = {_CHANGE: change, **dict.fromkeys(columns)}
    for batch in dataset.to_batches(columns=[*existing, _ROW_ID]):
        is_changed = np.isin(batch.column(_ROW_ID).to_numpy(zero_copy_only=False), ids)
        yield from ({**nothing, **row} for row in batch.filter(pa.array(is_changed)).to_pylist())


def _ids_and_versions(dataset: ld.LanceDataset) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    rows = dataset.to_table(columns=[_ROW_ID, _UPDATED_AT])
    ids, versions = (column.to_numpy().astype(np.uint64) for column in rows.columns)
    return ids, versions


def _schema_changes(before: pa.Schema, after: pa.Schema) -> dict[str, list[str]]:
    """Return the columns that were added, dropped or changed in type. A renamed column counts as dropped and added."""
    old, new = ({field.name: str(field.type) for field in schema} for schema in (before, after))
    return {
        "columns_added": [f"{name}: {type_}" for name, type_ in new.items() if name not in old],
        "columns_removed": [f"{name}: {type_}" for name, type_ in old.items() if name not in new],
        "columns_changed": [
            f"{name}: {old[name]} to {type_}" for name, type_ in new.items() if old.get(name, type_) != type_
        ],
    }


def _names(columns: str | None, before: ld.LanceDataset, after: ld.LanceDataset) -> list[str]:
    """Return the selected columns, by default all columns of both versions."""
    there = list(dict.fromkeys(chain(after.schema.names, before.schema.names)))
    names = listed_names(columns)
    for name in names or ():
        if name not in there:
            raise UnknownColumnError(f"no column {name!r}", where="--columns", remedy=did_you_mean(name, there))
    return there if names is None else names


def _version(text: str) -> int | str:
    """Return a version number or a tag name."""
    return int(text) if text.isdecimal() else text


def _before(dataset: ld.LanceDataset, version: int) -> int:
    older = [entry["version"] for entry in dataset.versions() if entry["version"] < version]
    if not older:
        raise InvalidInputError("no older version to compare with", where="diff", found=f"version {version}")
    return int(max(older))
