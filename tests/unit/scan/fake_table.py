"""An in-memory snapshot over plain Arrow columns, with the methods that a scan uses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from lance_duck.errors import InvalidInputError
from lance_duck.rows import DeletionVector
from lance_duck.wire.fragment import DataFile, Fragment
from lance_duck.wire.fragment import DeletionFile as WireDeletionFile
from lance_duck.wire.schema import Field, Schema

LOGICAL = {
    pa.int64(): "int64",
    pa.int32(): "int32",
    pa.string(): "string",
    pa.float64(): "double",
    pa.bool_(): "bool",
}


class FakeFragments(Sequence[Fragment]):
    def __init__(self, fragments: Sequence[Fragment]) -> None:
        self._fragments = tuple(fragments)

    def __len__(self) -> int:
        return len(self._fragments)

    def __getitem__(self, index: Any) -> Any:
        return self._fragments[index]

    def ids(self) -> list[int]:
        return [f.id for f in self._fragments]

    @property
    def id_set(self) -> frozenset[int]:
        return frozenset(self.ids())

    def row_counts(self) -> list[int]:
        return [f.num_rows for f in self._fragments]


class FakeFile(int):
    """The fragment id of a file whose columns are without pages."""

    def column(self, _: int) -> Any:
        return SimpleNamespace(pages=())


@dataclass
class FakeSnapshot:
    """A table of some fragments; `reads` lists (fragment, column, rows) of every read."""

    tables: Mapping[int, pa.Table]
    deleted: Mapping[int, Sequence[int]] = field(default_factory=dict)
    versions: Mapping[int, Any] = field(default_factory=dict)
    reads: list[tuple[int, str, Any]] = field(default_factory=list)
    deletions_read: int = 0
    version: int = 1
    uri: str = "/fake"
    row_id_index: None = None
    base: None = None
    has_stable_row_ids: bool = False
    catalog: Any = None
    log: None = None
    kept: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def schema(self) -> Schema:
        ids = iter(range(1000))
        first = next(iter(self.tables.values()))
        return Schema(tuple(_field(f, ids, -1) for f in first.schema))

    @cached_property
    def fragments(self) -> FakeFragments:
        return FakeFragments([self._fragment(i, table.num_rows) for i, table in self.tables.items()])

    def _fragment(self, fragment_id: int, rows: int) -> Fragment:
        gone = self.deleted.get(fragment_id)
        deletion = WireDeletionFile("arrow", 1, 1, len(gone), None) if gone else None
        data_file = DataFile(f"{fragment_id}.lance", (0,), (0,), (2, 2), None, None)
        return Fragment(fragment_id, (data_file,), deletion, rows, None, None, None)

    def derived(self, key: Any, make: Any) -> Any:
        return self.catalog if key == "index catalog" and self.catalog is not None else make()

    def shared(self, key: Any, make: Any) -> Any:
        if key not in self.kept:
            self.kept[key] = make()
        return self.kept[key]

    @property
    def indices(self) -> tuple[()]:
        return ()

    def place(self, base_id: int | None) -> tuple[None, None]:
        return None, None

    def fragment(self, fragment_id: int) -> Fragment:
        for found in self.fragments:
            if found.id == fragment_id:
                return found
        raise InvalidInputError(f"no fragment {fragment_id}")

    def physical_rows(self, fragment: Fragment) -> int:
        return fragment.physical_rows

    def num_rows(self, fragment: Fragment) -> int:
        return fragment.num_rows

    def count_rows(self) -> int:
        return sum(self.row_counts())

    def row_counts(self) -> list[int]:
        return self.fragments.row_counts()

    def deletion_vector(self, fragment: Fragment) -> DeletionVector | None:
        if fragment.deletion_file is None:
            return None
        self.deletions_read += 1
        return DeletionVector(np.array(sorted(self.deleted[fragment.id]), np.uint32))

    def row_ids(self, fragment: Fragment) -> None:
        return None

    def created_at(self, fragment: Fragment) -> Any:
        return self.versions.get(fragment.id)

    def last_updated_at(self, fragment: Fragment) -> Any:
        return self.versions.get(fragment.id)

    def data_file(self, data_file: DataFile) -> Any:
        return FakeFile(data_file.path.removesuffix(".lance"))

    def open_column(self, field_: Field, locate: Any, num_rows: int, arrow_type: pa.DataType) -> FakeColumn:
        fragment_id = locate(0)[0]
        column = self.tables[fragment_id][field_.name].combine_chunks()
        assert len(column) == num_rows
        return FakeColumn(self, fragment_id, field_.name, _pruned(column, field_), arrow_type)

    def live(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows that are not deleted, with their address as `_rowaddr`."""
        parts = []
        for fragment_id, table in self.tables.items():
            addresses = np.arange(table.num_rows, dtype=np.uint64) | np.uint64(fragment_id << 32)
            gone = set(self.deleted.get(fragment_id, ()))
            kept = [i for i in range(table.num_rows) if i not in gone]
            parts.append(table.append_column("_rowaddr", pa.array(addresses)).take(pa.array(kept, pa.int64())))
        return pa.concat_tables(parts)


@dataclass
class FakeColumn:
    snapshot: FakeSnapshot
    fragment_id: int
    name: str
    values: pa.Array
    arrow_type: pa.DataType

    @property
    def num_rows(self) -> int:
        return len(self.values)

    def is_dictionary(self) -> bool:
        return False

    def read_points(self, rows: Any) -> None:
        return None

    def read(self, rows: Any) -> Any:
        self.snapshot.reads.append((self.fragment_id, self.name, rows))
        yield []
        if isinstance(rows, slice):
            assert 0 <= rows.start <= rows.stop <= self.num_rows
            chosen = self.values.slice(rows.start, rows.stop - rows.start)
        else:
            assert np.all(np.diff(rows) > 0)
            chosen = self.values.take(pa.array(rows))
        return chosen if chosen.type == self.arrow_type else chosen.cast(self.arrow_type)


def _field(found: pa.Field, ids: Iterator[int], parent: int) -> Field:
    number = next(ids)
    if pa.types.is_struct(found.type):
        children = tuple(_field(child, ids, number) for child in found.type.fields)
        return Field(number, found.name, parent, "struct", found.nullable, MappingProxyType({}), children)
    return Field(number, found.name, parent, LOGICAL[found.type], found.nullable)


def _pruned(column: pa.Array, field_: Field) -> pa.Array:
    if not pa.types.is_struct(column.type):
        return column
    children = [_pruned(column.field(child.name), child) for child in field_.children]
    fields = [pa.field(child.name, array.type) for child, array in zip(field_.children, children, strict=True)]
    return pa.StructArray.from_arrays(children, fields=fields, mask=column.is_null())
