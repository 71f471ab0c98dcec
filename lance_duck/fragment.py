"""LanceFragment, the handle on one fragment of a table, and the metadata that says what it consists of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset as pads

from lance_duck.errors import InvalidInputError, UnsupportedError
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ColumnsLike
from lance_duck.scan.scanner import LanceScanner
from lance_duck.scan.table_scan import TableScan
from lance_duck.wire import fragment as wire

_SUFFIX_TYPES = {"arrow": "array", "bin": "bitmap"}


@dataclass(frozen=True)
class DataFile:
    """A file with some columns of all rows of a fragment, as pylance shows it."""

    path: str
    fields: list[int]
    column_indices: list[int] = field(default_factory=list)
    file_major_version: int = 0
    file_minor_version: int = 0
    file_size_bytes: int | None = None
    base_id: int | None = None


@dataclass(frozen=True)
class DeletionFile:
    """Where the deleted rows of a fragment are listed; `file_type` is "array" or "bitmap"."""

    read_version: int
    id: int
    file_type: str
    num_deleted_rows: int
    base_id: int | None = None


@dataclass(frozen=True)
class FragmentMetadata:
    """What a fragment consists of. It compares, pickles, and goes to JSON and back.

    Attributes:
        id: Number of the fragment.
        files: Its data files.
        physical_rows: Rows before deletion.
        deletion_file: Its deleted rows.
        row_id_meta: Stable row ids: {"Inline": bytes as numbers} or {"External": where they lie}.
        created_at_version_meta: Versions of the rows' creation, likewise with small letters.
        last_updated_at_version_meta: Versions of the rows' last update, likewise.
    """

    id: int
    files: list[DataFile]
    physical_rows: int
    deletion_file: DeletionFile | None = None
    row_id_meta: Mapping[str, Any] | None = None
    created_at_version_meta: Mapping[str, Any] | None = None
    last_updated_at_version_meta: Mapping[str, Any] | None = None
    overlays: list[Any] = field(default_factory=list)

    @property
    def num_deletions(self) -> int:
        """Deleted rows."""
        return self.deletion_file.num_deleted_rows if self.deletion_file else 0

    @property
    def num_rows(self) -> int:
        """Rows that are not deleted."""
        return self.physical_rows - self.num_deletions

    def to_json(self) -> dict[str, Any]:
        """The metadata in types that JSON has."""
        return asdict(self)

    @staticmethod
    def from_json(data: str | Mapping[str, Any]) -> FragmentMetadata:
        """Build the metadata from what `to_json` gave, or from its JSON text.

        Raises:
            InvalidInputError: It is no such thing.
        """
        try:
            raw = dict(json.loads(data) if isinstance(data, str) else data)
            deletion = raw.pop("deletion_file", None)
            files = [DataFile(**file) for file in raw.pop("files")]
            return FragmentMetadata(files=files, deletion_file=DeletionFile(**deletion) if deletion else None, **raw)
        except (TypeError, KeyError, ValueError) as error:
            raise InvalidInputError("not the metadata of a fragment", found=str(error)) from error


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
        deletion = self._fragment.deletion_file
        return FragmentMetadata(
            self.fragment_id,
            self.data_files(),
            self.physical_rows,
            None if deletion is None else _deletion_file(deletion, self.num_deletions),
            _sequence(self._fragment.row_ids, str.capitalize),
            _sequence(self._fragment.created_at),
            _sequence(self._fragment.last_updated_at),
        )

    def data_files(self) -> list[DataFile]:
        """The data files."""
        return [_data_file(file) for file in self._fragment.files]

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


def _data_file(file: wire.DataFile) -> DataFile:
    major, minor = file.file_version
    return DataFile(file.path, list(file.fields), list(file.column_indices), major, minor, file.file_size, file.base_id)


def _deletion_file(file: wire.DeletionFile, count: int) -> DeletionFile:
    return DeletionFile(file.read_version, file.id, _SUFFIX_TYPES[file.suffix], count, file.base_id)


def _sequence(kept: bytes | wire.ExternalFile | None, spell: Any = str) -> dict[str, Any] | None:
    if kept is None:
        return None
    if isinstance(kept, bytes):
        return {spell("inline"): list(kept)}
    return {spell("external"): asdict(kept)}
