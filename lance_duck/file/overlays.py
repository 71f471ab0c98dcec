"""Columns with overlays: files that store newer values of some cells.

Overlays replace single leaves: a struct that is null in the fragment's own file remains null, even if its fields have
overlays. Lists are replaced as a whole. pylance reads overlays in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arrow.distinct import distinct
from lance_duck.arrow.types import is_view, storage_type, with_type
from lance_duck.encoding.arrow.dictionaries import concatenate
from lance_duck.encoding.layouts.page import Rows
from lance_duck.encoding.layouts.page_rows import check_rows
from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.file.column import open_column
from lance_duck.file.contract import ColumnReader, Locate, PlainColumn
from lance_duck.store.request import Request, gather
from lance_duck.wire.schema import Field

Offsets = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class OverlayLayer:
    """Values of one field for some rows.

    Attributes:
        locate: Returns the overlay file and physical column of a field id.
        offsets: int64, ascending: rows of the fragment that have a value.
        num_rows: Row count of the column in the file. Rows past `offsets` are unused.
    """

    locate: Locate
    offsets: Offsets
    num_rows: int


@dataclass(frozen=True)
class Unit:
    """A part of a column that an overlay replaces as a whole.

    Attributes:
        path: Child indices from the column down to the part; () for the column itself.
        field: Field of the part.
    """

    path: tuple[int, ...]
    field: Field


class OverlaidColumn(PlainColumn):
    """A reader of a column with overlays. Safe to use from several threads.

    Args:
        field: The column.
        base: Reader of the fragment's own values.
        layers: Parts of the column with overlays, and the layers of each part. Later layers take precedence.

    Raises:
        UnsupportedError: An overlay contains new blobs.
        CorruptError: A file lacks values for a part of a list.
    """

    def __init__(self, field: Field, base: ColumnReader, layers: Sequence[tuple[Unit, Sequence[OverlayLayer]]]) -> None:
        self.arrow_type = base.arrow_type
        self.num_rows = base.num_rows
        self._base = base
        self._patches = [_Patch(field, unit, own, self.arrow_type) for unit, own in layers]

    def read(self, rows: Rows) -> Request[pa.Array]:
        """Read rows: see `ColumnReader.read`."""
        check_rows(rows, self.num_rows)
        offsets = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
        hits = [patch.hits(offsets) for patch in self._patches]
        requests = [reader.read(ranks) for patch in hits for _, reader, ranks in patch]
        base, *values = yield from gather([self._base.read(rows), *requests])
        for patch, own in zip(self._patches, hits, strict=True):
            news, values = values[: len(own)], values[len(own) :]
            if own:
                base = replace_cells(base, patch.unit.path, [places for places, _, _ in own], news)
        return base


def units_of(field: Field, path: tuple[int, ...] = ()) -> Iterator[Unit]:
    """Yield the parts of a column: its fields that are not inside lists, except plain structs."""
    if field.logical_type != "struct" or field.is_packed or field.blob_version:
        yield Unit(path, field)
        return
    for place, child in enumerate(field.children):
        yield from units_of(child, (*path, place))


class _Patch:
    """New values of one part of a column (`Unit`)."""

    def __init__(self, column: Field, unit: Unit, layers: Sequence[OverlayLayer], arrow_type: pa.DataType) -> None:
        self.unit = unit
        if unit.field.blob_version:
            raise UnsupportedError("data overlays cannot store blobs", where=f"column {column.name}")
        field, type_ = _narrowed(column, arrow_type, unit.path)
        for layer in layers:
            _check_whole(unit.field, layer.locate)
        self._readers = [open_column(field, layer.locate, layer.num_rows, type_) for layer in layers]
        offsets = np.concatenate([layer.offsets for layer in reversed(layers)])
        owners = np.repeat(np.arange(len(layers))[::-1], [len(layer.offsets) for layer in reversed(layers)])
        ranks = np.concatenate([np.arange(len(layer.offsets)) for layer in reversed(layers)])
        self._offsets, first = np.unique(offsets, return_index=True)
        self._owners, self._ranks = owners[first], ranks[first]

    def hits(self, rows: Offsets) -> list[tuple[Offsets, _UnitReader, Offsets]]:
        """Return (positions in `rows`, reader, rows to read) for each reader with new values."""
        if not len(self._offsets):
            return []
        at = np.minimum(np.searchsorted(self._offsets, rows), len(self._offsets) - 1)
        places = np.flatnonzero(self._offsets[at] == rows)
        owners, ranks = self._owners[at[places]], self._ranks[at[places]]
        return [
            (places[mine], _UnitReader(self._readers[owner], len(self.unit.path)), ranks[mine])
            for owner in distinct(owners).tolist()
            for mine in [owners == owner]
        ]


@dataclass(frozen=True)
class _UnitReader:
    """A reader of a part below structs, through a column reduced to that part."""

    column: ColumnReader
    depth: int

    def read(self, rows: Offsets) -> Request[pa.Array]:
        array = yield from self.column.read(rows)
        for _ in range(self.depth):
            (array,) = _storage_of(array).flatten()
        return array


def _narrowed(field: Field, arrow_type: pa.DataType, path: Sequence[int]) -> tuple[Field, pa.DataType]:
    """Return a column with only the fields that lead to a part, and the type of this column."""
    if not path:
        return field, arrow_type
    storage = storage_type(arrow_type)
    child, child_type = _narrowed(field.children[path[0]], storage.field(path[0]).type, path[1:])
    return replace(field, children=(child,)), pa.struct([storage.field(path[0]).with_type(child_type)])


def _check_whole(field: Field, locate: Locate) -> None:
    absent = [leaf.name for leaf in field.walk() if not leaf.children and locate(leaf.id) is None]
    if absent and locate(field.id) is None:
        raise CorruptError("an overlay has only some fields of a list", where=f"column {field.name}", found=absent[0])


def replace_cells(
    array: pa.Array, path: Sequence[int], places: Sequence[Offsets], values: Sequence[pa.Array]
) -> pa.Array:
    """Return a copy of a column. At `path`, it has new values in some rows."""
    if not path:
        sources = np.arange(len(array))
        sources[np.concatenate(places)] = len(array) + np.arange(sum(map(len, values)))
        return _picked(concatenate([array, *(with_type(_storage_of(each), array.type) for each in values)]), sources)
    storage = _storage_of(array)
    children = [storage.field(place) for place in range(storage.type.num_fields)]
    children[path[0]] = replace_cells(children[path[0]], path[1:], places, values)
    mask = storage.is_null() if storage.null_count else None
    return with_type(pa.StructArray.from_arrays(children, fields=list(storage.type), mask=mask), array.type)


def _picked(array: pa.Array, places: Offsets) -> pa.Array:
    """Take values by position, each at most once. pyarrow's kernel does not support views."""
    if not is_view(array.type):
        return array.take(pa.array(places))
    flat = pa.large_string() if pa.types.is_string_view(array.type) else pa.large_binary()
    return array.cast(flat).take(pa.array(places)).cast(array.type)


def _storage_of(array: pa.Array) -> pa.Array:
    """Return the storage of an extension array. Other arrays are returned unchanged."""
    return array.storage if isinstance(array, pa.ExtensionArray) else array
