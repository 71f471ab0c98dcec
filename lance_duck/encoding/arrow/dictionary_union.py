"""Unions of dictionary entries, limited to as many entries as the index type can count.

Readers join the dictionaries of a data file's pages. Arrow rejects a joined dictionary if its index type cannot count
all entries, so a file must never contain more entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.types import number_dtype, storage_type
from lance_duck.encoding.arrow.dictionaries import used_entries
from lance_duck.errors import ArrayLimitError

_WIDE_BITS = 32
"""Indices of this many bits can count more entries than fit in memory."""

Path = tuple[str, ...]
_Entries = tuple[pa.DictionaryType, pa.Array]


def has_narrow_dictionary(type_: pa.DataType) -> bool:
    """Return whether a type has a dictionary of 8-bit or 16-bit indices, at any depth."""
    type_ = storage_type(type_)
    if pa.types.is_dictionary(type_):
        return bool(type_.index_type.bit_width < _WIDE_BITS)
    return pa.types.is_nested(type_) and any(
        has_narrow_dictionary(type_.field(place).type) for place in range(type_.num_fields)
    )


class DictionaryUnion:
    """Collects the distinct entries of dictionary columns with 8-bit or 16-bit indices over several batches."""

    def __init__(self) -> None:
        self._entries: dict[Path, _Entries] = {}

    def add(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Add the dictionaries of a batch. A failed call does not add anything.

        Returns:
            The batch. The batch's dictionaries are trimmed to used entries if the entries of all batches would not fit.

        Raises:
            ArrayLimitError: There are more entries than the index type can count.
        """
        try:
            self._unite(_of_batch(batch))
        except ArrayLimitError:
            batch = with_used_entries(batch)
            self._unite(_of_batch(batch))
        return batch

    def join(self, other: DictionaryUnion) -> None:
        """Add the entries of another union. A failed call does not add anything.

        Raises:
            ArrayLimitError: There are more entries than the index type can count.
        """
        self._unite(other._entries.items())

    def _unite(self, added: Iterable[tuple[Path, _Entries]]) -> None:
        united = {}
        for path, (type_, entries) in added:
            _, known = self._entries.get(path, (type_, None))
            if known is not None and not known.equals(entries):
                entries = _distinct([known, entries])
                most = int(np.iinfo(number_dtype(type_.index_type)).max)
                if len(entries) > most:
                    raise _outgrown(path, type_, most, len(entries))
            united[path] = type_, entries
        self._entries |= united


def with_used_entries(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Reduce dictionaries of 8-bit or 16-bit indices to the used entries."""
    columns = [used_entries(c) if has_narrow_dictionary(c.type) else c for c in batch.columns]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _of_batch(batch: pa.RecordBatch) -> Iterator[tuple[Path, _Entries]]:
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for path, array in _leaves(column, (name,)):
            yield path, (array.type, array.dictionary)


def _leaves(array: pa.Array, path: Path) -> Iterator[tuple[Path, pa.DictionaryArray]]:
    """Yield the dictionary arrays of 8-bit or 16-bit indices in a column, with their paths."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    type_ = array.type
    if not has_narrow_dictionary(type_):
        return
    if pa.types.is_dictionary(type_):
        yield path, array
    elif pa.types.is_struct(type_):
        for place in range(type_.num_fields):
            yield from _leaves(array.field(place), (*path, type_.field(place).name))
    elif pa.types.is_map(type_):
        yield from _leaves(array.keys, (*path, "key"))
        yield from _leaves(array.items, (*path, "value"))
    else:
        yield from _leaves(array.values, (*path, "item"))


def _distinct(dictionaries: list[pa.Array]) -> pa.Array:
    whole = pa.concat_arrays(dictionaries)
    try:
        return pc.unique(whole).drop_null()
    except pa.ArrowNotImplementedError:  # entries that cannot be compared count as distinct
        return whole


def _outgrown(path: Path, type_: pa.DictionaryType, most: int, found: int) -> ArrayLimitError:
    return ArrayLimitError(
        "a data file has more dictionary entries than the index type can address",
        where=f"column {'.'.join(path)!r}",
        expected=f"at most {most} entries of {type_}",
        found=found,
        remedy="cast the column to string, or to a dictionary with wider indices",
    )
