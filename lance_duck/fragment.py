"""LanceFragment, the handle on one fragment of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset as pads

from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ColumnsLike
from lance_duck.scan.scanner import LanceScanner
from lance_duck.scan.table_scan import TableScan
from lance_duck.verbs.fragment_metadata import DataFile, DeletionFile, FragmentMetadata, metadata_of


class HasTable(Protocol):
    """What a fragment is part of."""

    @property
    def _table(self) -> TableScan: ...


class LanceFragment(pads.Fragment):  # type: ignore[misc]
    """One fragment of a version of a table.

    Args:
        dataset: The table.
        fragment_id: Number of the fragment.

    Raises:
        InvalidInputError: The table has no such fragment.
    """

    def __init__(self, dataset: HasTable, fragment_id: int) -> None:
        self._dataset = dataset
        self._fragment = dataset._table.snapshot.fragment(fragment_id)

    def __reduce__(self) -> tuple[Any, ...]:
        return LanceFragment, (self._dataset, self.fragment_id)

    def __repr__(self) -> str:
        files = [file.path for file in self._fragment.files]
        deletion = "" if self._fragment.deletion_file is None else f", deletion_file={self.deletion_file()!r}"
        return f"LanceFragment(id={self.fragment_id}, data_files={files}{deletion})"

    @property
    def fragment_id(self) -> int:
        """Number of the fragment."""
        return self._fragment.id

    @property
    def schema(self) -> pa.Schema:
        """Schema of the table."""
        return self._scan.snapshot.schema.arrow

    @property
    def physical_schema(self) -> pa.Schema:
        """Columns that the data files of this fragment hold; those that they lack are read as nulls."""
        present = {i for file in self._fragment.files for i in file.fields}
        schema = self._scan.snapshot.schema
        kept = [f.to_arrow(scan=True) for f in schema.fields if any(below.id in present for below in f.walk())]
        return pa.schema(kept, schema.arrow.metadata)

    @property
    def partition_expression(self) -> Any:
        """Always true: Lance tables are not partitioned by the values of columns."""
        return pa.compute.scalar(True)

    @property
    def num_deletions(self) -> int:
        """Deleted rows."""
        return self.physical_rows - self._scan.snapshot.num_rows(self._fragment)

    @property
    def physical_rows(self) -> int:
        """Rows before deletion."""
        return self._scan.snapshot.physical_rows(self._fragment)

    @property
    def metadata(self) -> FragmentMetadata:
        """What the fragment consists of."""
        return metadata_of(self._fragment, self.physical_rows, self.num_deletions)

    def data_files(self) -> list[DataFile]:
        """The data files."""
        return self.metadata.files

    def deletion_file(self) -> str | None:
        """Path of the deletion file below the root of the table; None when no row is deleted."""
        deletion = self._fragment.deletion_file
        return None if deletion is None else deletion.path(self.fragment_id)

    def scanner(
        self,
        schema: None = None,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
        **options: Any,
    ) -> LanceScanner:
        """Decide a scan of this fragment; the options are those of `ScanOptions`."""
        if schema is not None:
            raise UnsupportedError("a scan in another schema", where="schema", remedy="name the columns")
        chosen = ScanOptions(columns=columns, filter=filter, **options)
        if chosen.fragments is not None:
            raise InvalidInputError("fragments of a fragment", where="fragments")
        return LanceScanner(self._scan, chosen, self._fragment, lambda _: self)

    def to_table(
        self,
        schema: None = None,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
        **options: Any,
    ) -> pa.Table:
        """Read into memory; the options are those of `ScanOptions`."""
        return self.scanner(schema, columns, filter, **options).to_table()

    def to_batches(
        self,
        schema: None = None,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
        **options: Any,
    ) -> Iterator[pa.RecordBatch]:
        """Read batch by batch; the options are those of `ScanOptions`."""
        return self.scanner(schema, columns, filter, **options).to_batches()

    def to_pandas(self, **options: Any) -> Any:
        """Read into a pandas DataFrame; the options are those of `ScanOptions`."""
        return self.to_table(**options).to_pandas()

    def head(self, num_rows: int, **options: Any) -> pa.Table:
        """The first rows; the options are those of `ScanOptions`."""
        return self.to_table(limit=num_rows, **options)

    def take(self, indices: Any, columns: ColumnsLike | None = None, **options: Any) -> pa.Table:
        """Rows by position among those that are not deleted, in any order, also repeatedly."""
        _refuse_options(options)
        projection = self._scan.projection(columns)
        return pa.Table.from_batches([self._scan.taker.in_fragment(self._fragment, indices, projection)])

    def count_rows(self, filter: FilterLike | None = None, **options: Any) -> int:  # noqa: A002
        """Number of rows; without a filter from metadata alone."""
        return self.scanner(columns=[], filter=filter, **options).count_rows()

    def __len__(self) -> int:
        return self.count_rows()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scanner().to_reader().__arrow_c_stream__(requested_schema)

    @property
    def _scan(self) -> TableScan:
        return self._dataset._table


def _refuse_options(options: Mapping[str, Any]) -> None:
    """Refuse what take of pyarrow knows and a table does not; defaults pass."""
    ScanOptions(**options)


__all__ = ["DataFile", "DeletionFile", "FragmentMetadata", "LanceFragment"]
