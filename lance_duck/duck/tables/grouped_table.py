"""A table with a column that numbers the combinations of values in a few string columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.dataset import LanceDataset
from lance_duck.duck.tables.computed_columns import TOKEN
from lance_duck.duck.tables.table import DuckTable
from lance_duck.errors import InternalError
from lance_duck.forks import Lock
from lance_duck.scan.predicate.tree import Predicate

GROUP: Final = f"__lance_group_{TOKEN}"
"""Name of the column."""
MOST_GROUPS: Final = 255
"""Maximum number of combinations. DuckDB groups numbers of one byte by an array, without a hash table."""
_FORM: Final = pa.dictionary(pa.int32(), pa.string())


class GroupedTable(DuckTable):
    """A version of a table, with a uint8 column that is equal in two rows if the key columns are.

    A scan numbers the combinations as they occur. It raises InternalError if there are more than `MOST_GROUPS`.

    Args:
        dataset: The version.
        keys: Names of the string columns.
        overflow: Called before the error is raised.
    """

    def __init__(self, dataset: LanceDataset, keys: Sequence[str], overflow: Callable[[], None]) -> None:
        self._keys = tuple(keys)
        self._overflow = overflow
        self._numbered: dict[tuple[Any, ...], int] = {}
        self._numbering = Lock()
        super().__init__(lambda: dataset, pinned=True, hidden=False)

    def _schema(self, dataset: LanceDataset) -> pa.Schema:
        fields = [each.with_type(_FORM) if each.name in self._keys else each for each in super()._schema(dataset)]
        return pa.schema([*fields, pa.field(GROUP, pa.uint8())])

    def _reader(
        self, dataset: LanceDataset, output: pa.Schema, predicate: Predicate | None, *, any_form: bool
    ) -> pa.RecordBatchReader:
        if GROUP not in output.names:
            return super()._reader(dataset, output, predicate, any_form=any_form)
        stored = [field for field in output if field.name != GROUP]
        stored += [pa.field(name, _FORM) for name in self._keys if name not in output.names]
        inner = super()._reader(dataset, pa.schema(stored), predicate, any_form=any_form)
        schema = pa.schema([field if field.name == GROUP else inner.schema.field(field.name) for field in output])
        return pa.RecordBatchReader.from_batches(schema, self._grouped(inner, schema))

    def _grouped(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            numbers = pa.array(self._numbers([batch.column(name) for name in self._keys]))
            arrays = [numbers if name == GROUP else batch.column(name) for name in schema.names]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _numbers(self, keys: Sequence[pa.DictionaryArray]) -> NDArray[np.uint8]:
        """Return the number of each row's combination. All scans of the table use the same numbers."""
        sizes = [len(key.dictionary) + (key.null_count > 0) for key in keys]
        if prod(sizes) <= MOST_GROUPS:
            groups = list(product(*(_values(key) for key in keys)))
            with self._numbering:
                numbers = [self._numbered.setdefault(group, len(self._numbered)) for group in groups]
            if not numbers or max(numbers) < MOST_GROUPS:
                places: NDArray[Any] = np.zeros(len(keys[0]), np.int32)
                for key, size in zip(keys, sizes, strict=True):
                    indices = key.indices.fill_null(size - 1) if key.null_count else key.indices
                    places = places * np.int32(size) + indices.to_numpy()
                found: NDArray[np.uint8] = np.array(numbers, np.uint8)[places]
                return found
        self._overflow()
        raise InternalError("too many groups for a column of one byte", expected=f"at most {MOST_GROUPS}")


def _values(key: pa.DictionaryArray) -> list[str | None]:
    """Return the values of an array's dictionary, followed by None if there are nulls."""
    return [*key.dictionary.to_pylist(), *([None] if key.null_count else [])]
