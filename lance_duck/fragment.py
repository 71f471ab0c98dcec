"""LanceFragment, a handle to one fragment of a table, and functions that write fragments."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import Any, Final, Unpack

import pyarrow as pa
import pyarrow.dataset as pads

from lance_duck.arguments import checked_call, checked_calls, declared_arguments
from lance_duck.errors import DataMismatchError, InvalidInputError, UnsupportedError
from lance_duck.maintenance.validation.validate import validate
from lance_duck.progress import FragmentWriteProgress
from lance_duck.scan.arguments import CountArguments, HeadArguments, TakeArguments
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.options import ScanOptions
from lance_duck.scan.projection import ROW_ADDRESS, ColumnsLike, Projection
from lance_duck.scan.read.take import Taker
from lance_duck.scan.scanner import LanceScanner
from lance_duck.scan.table_scan import TableScan
from lance_duck.verbs.columns.new_columns import NewColumns, joined_columns, new_columns
from lance_duck.verbs.columns.udf import BatchUDF
from lance_duck.verbs.fragment_changes import (
    add_to_fragment,
    delete_fragment_offsets,
    delete_in_fragment,
    stage_fragments,
    update_in_fragment,
)
from lance_duck.verbs.handle import TableMethods
from lance_duck.verbs.public.bases import known_bases, new_bases
from lance_duck.verbs.public.files_in_place import fragment_at
from lance_duck.verbs.public.fragment_metadata import DataFile, DeletionFile, FragmentMetadata, metadata_of
from lance_duck.verbs.public.lance_operation import LanceOperation, Transaction
from lance_duck.verbs.public.lance_schema import LanceSchema
from lance_duck.verbs.public.named_tables import lent_options
from lance_duck.verbs.writing.settings import FragmentArguments, WriteSettings
from lance_duck.wire.fragment import Fragment
from lance_duck.write.inputs import reading
from lance_duck.write.options import WriteProgress

MOST_ROWS: Final = (1 << 32) - 1


@checked_calls
class LanceFragment(pads.Fragment):  # type: ignore[misc]
    """One fragment of a table version.

    Args:
        dataset: The table.
        fragment_id: Id of the fragment.

    Raises:
        InvalidInputError: The fragment does not exist.
    """

    def __init__(self, dataset: TableMethods, fragment_id: int) -> None:
        self._dataset = dataset
        self._fragment = dataset.handle.snapshot.fragment(fragment_id)

    def __reduce__(self) -> tuple[Any, ...]:
        return LanceFragment, (self._dataset, self.fragment_id)

    def __repr__(self) -> str:
        files = [file.path for file in self._fragment.files]
        deletion = "" if self._fragment.deletion_file is None else f", deletion_file={self.deletion_file()!r}"
        return f"LanceFragment(id={self.fragment_id}, data_files={files}{deletion})"

    @property
    def fragment_id(self) -> int:
        """Id of the fragment."""
        return self._fragment.id

    @property
    def schema(self) -> pa.Schema:
        """Schema of the table."""
        return self._scan.snapshot.schema.arrow

    @property
    def physical_schema(self) -> pa.Schema:
        """Columns stored in this fragment's data files. All other columns read as nulls."""
        present = {i for file in self._fragment.files for i in file.fields}
        schema = self._scan.snapshot.schema
        fields = [f.to_arrow(scan=True) for f in schema.fields if any(below.id in present for below in f.walk())]
        return pa.schema(fields, schema.arrow.metadata)

    @property
    def partition_expression(self) -> Any:
        """Always true, because Lance tables do not have partition columns."""
        return pa.compute.scalar(True)

    @property
    def num_deletions(self) -> int:
        """Number of deleted rows."""
        return self.physical_rows - self._scan.snapshot.num_rows(self._fragment)

    @property
    def physical_rows(self) -> int:
        """Number of rows, including deleted rows."""
        return self._scan.snapshot.physical_rows(self._fragment)

    @property
    def metadata(self) -> FragmentMetadata:
        """Metadata of the fragment."""
        return metadata_of(self._fragment, self.physical_rows, self.num_deletions)

    def data_files(self) -> list[DataFile]:
        """Return the data files."""
        return self.metadata.files

    def deletion_file(self) -> str | None:
        """Return the deletion file's path relative to the table root, or None if no row is deleted."""
        deletion = self._fragment.deletion_file
        return None if deletion is None else deletion.path(self.fragment_id)

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
        **options: Unpack[CountArguments],
    ) -> LanceScanner:
        """Plan a scan of this fragment.

        Args:
            schema: Schema of the table. pyarrow passes this argument. The metadata may differ.
            columns: See `LanceDataset.scan`.
            filter: See `LanceDataset.scan`.
            options: Other arguments. See `lance_duck.scan.options.ScanOptions`.

        Raises:
            UnsupportedError: `schema` differs from the table schema.
        """
        if schema is not None:
            _check_schema(schema, self.schema)
        scan = ScanOptions.of({**options, "columns": columns, "filter": filter})
        if scan.fragments is not None:
            raise InvalidInputError("a fragment's scanner takes no other fragments", where="fragments")
        return LanceScanner(self._scan, scan, self._fragment, lambda _: self)

    def to_table(
        self,
        schema: pa.Schema | None = None,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
        **options: Unpack[CountArguments],
    ) -> pa.Table:
        """Read rows into memory. Takes the same arguments as `scanner`."""
        return self.scanner(schema, columns, filter, **options).to_table()

    def to_batches(
        self,
        schema: pa.Schema | None = None,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
        **options: Unpack[CountArguments],
    ) -> Iterator[pa.RecordBatch]:
        """Read rows batch by batch. Takes the same arguments as `scanner`."""
        return self.scanner(schema, columns, filter, **options).to_batches()

    def to_pandas(
        self,
        schema: pa.Schema | None = None,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
        **options: Unpack[CountArguments],
    ) -> Any:
        """Read rows into a pandas DataFrame. Takes the same arguments as `scanner`."""
        return self.to_table(schema, columns, filter, **options).to_pandas()

    def head(self, num_rows: int, **options: Unpack[HeadArguments]) -> pa.Table:
        """Return the first rows. Takes the same options as `scanner`."""
        return self.to_table(limit=num_rows, **options)

    def take(self, indices: Any, columns: ColumnsLike | None = None, **options: Unpack[TakeArguments]) -> pa.Table:
        """Return the rows at these positions, in the order of `indices`. Repeated positions repeat their row.

        Args:
            indices: Positions in the fragment. Deleted rows do not count.
            columns: See `LanceDataset.scan`.
            options: See `scanner`.

        Raises:
            InvalidInputError: A position is negative or past the last row.
        """
        if any(value is not None for value in options.values()):
            return self.scanner(columns=columns, **options).take(indices)
        projection = self._scan.projection(columns)
        taker = self._scan.taker
        return taker.table(partial(taker.in_fragment, self._fragment), indices, projection)

    def open_session(
        self, columns: Sequence[str] | None = None, with_row_address: bool | None = None
    ) -> FragmentSession:
        """Return a session that resolves the columns once for many `take` calls."""
        names = self.schema.names if columns is None else list(columns)
        projection = self._scan.projection([*names, ROW_ADDRESS] if with_row_address else names)
        return FragmentSession(self._scan.taker, self._fragment, projection)

    def validate(self) -> None:
        """Read the whole fragment, including deleted rows.

        Raises:
            CorruptError: The fragment is damaged. The message lists the problems.
        """
        validate(self._scan.snapshot, self._fragment)

    def count_rows(
        self,
        filter: FilterLike | None = None,  # noqa: A002
        **options: Unpack[CountArguments],
    ) -> int:
        """Return the number of rows. Without a filter, only metadata is read. Takes the same options as `scanner`."""
        return self.scanner(columns=[], filter=filter, **options).count_rows()

    # Changes that the caller commits: see `LanceOperation`.

    @staticmethod
    def create(
        dataset_uri: str | os.PathLike[str],
        data: Any,
        fragment_id: int | None = None,
        schema: pa.Schema | None = None,
        max_rows_per_group: int | None = 1024,
        progress: Callable[[WriteProgress], None] | FragmentWriteProgress | bool | None = None,
        mode: str = "append",
        *,
        data_storage_version: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        namespace_client: Any = None,
        table_id: Sequence[str] | None = None,
    ) -> FragmentMetadata:
        """Write data as one fragment of a table. The table may not exist yet.

        See `write_fragments` for the arguments.

        Raises:
            InvalidInputError: The data does not match the table, or does not contain rows.
        """
        settings = WriteSettings(
            max_rows_per_file=MOST_ROWS,
            max_rows_per_group=max_rows_per_group,
            progress=progress,
            fragment_id=fragment_id or 0,
            data_storage_version=data_storage_version,
            storage_options=lent_options(namespace_client, table_id, storage_options),
        )
        staged, _ = stage_fragments(data, dataset_uri, schema, mode, settings)
        if len(staged.fragments) != 1:
            staged.discard()
            raise DataMismatchError(
                "the data does not fill exactly one fragment",
                where="data",
                expected="at least one row, and fewer than 2^32",
            )
        return replace(metadata_of(staged.fragments[0]), id=fragment_id or 0)

    @staticmethod
    def create_from_file(filename: str, dataset: TableMethods, fragment_id: int) -> FragmentMetadata:
        """Describe a data file in the table's data directory as a fragment. Columns are matched by name.

        Args:
            filename: Name of the file, relative to the data directory.
            dataset: The table.
            fragment_id: Id of the fragment.

        Raises:
            NotFoundError: The file does not exist.
            InvalidInputError: The file does not match the table.
        """
        return metadata_of(fragment_at(dataset.handle.snapshot, filename, fragment_id))

    def merge_columns(
        self,
        value_func: Any,
        columns: list[str] | None = None,
        batch_size: int | None = None,
        reader_schema: pa.Schema | None = None,
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Write new columns of this fragment. The arguments are the same as for `LanceDataset.add_columns`.

        Returns:
            The fragment and the table schema, both with the new columns, for `LanceOperation.Merge`.

        Raises:
            InvalidInputError: See `LanceDataset.add_columns`. Also raised if the function uses a checkpoint file.
        """
        if isinstance(value_func, BatchUDF) and value_func.cache is not None:
            raise InvalidInputError(
                "a checkpoint file cannot be used for a single fragment",
                where="merge_columns",
                remedy="use add_columns on the dataset",
            )
        with ExitStack() as opened:
            return self._extended(new_columns(value_func, columns, reader_schema, batch_size, opened=opened))

    add_columns = merge_columns

    def merge(
        self, data_obj: Any, left_on: str, right_on: str | None = None, schema: pa.Schema | None = None
    ) -> tuple[FragmentMetadata, LanceSchema]:
        """Join columns from other data to this fragment, by key. See `LanceDataset.merge` and `merge_columns`."""
        return self._extended(joined_columns(data_obj, left_on, right_on, schema))

    def update_columns(
        self,
        data_obj: Any,
        left_on: str = "_rowid",
        right_on: str | None = None,
        schema: pa.Schema | None = None,
        *,
        with_offsets: bool = False,
    ) -> tuple[FragmentMetadata, list[int]] | tuple[FragmentMetadata, list[int], bytes]:
        """Update columns of this fragment with values from other data, in rows with matching keys.

        Args:
            data_obj: The key and the new column values, in any form that `write_dataset` accepts.
            left_on: Key of the table: a column, `_rowid` or `_rowaddr`.
            right_on: Key of the data. Defaults to `left_on`.
            schema: Schema for data that does not include one.
            with_offsets: Whether to also return the offsets of the changed rows.

        Returns:
            The fragment and the ids of the changed fields. With `with_offsets`, also the offsets of the changed rows as
            a serialized roaring bitmap, for `LanceOperation.Update`.

        Raises:
            InvalidInputError: A column does not exist in the table, has a different type, or is hidden.
        """
        with reading(data_obj, schema) as reader:
            data = reader.read_all()
        key = left_on if right_on is None else right_on
        changed, fields, offsets = update_in_fragment(self._scan.snapshot, self._fragment, data, left_on, key)
        metadata = metadata_of(changed)
        return (metadata, fields, offsets) if with_offsets else (metadata, fields)

    def delete(self, predicate: FilterLike) -> FragmentMetadata | None:
        """Delete rows of this fragment.

        Returns:
            The fragment with its new deletion file, or None if all rows are deleted.
        """
        changed = delete_in_fragment(self._scan.snapshot, self._fragment, predicate)
        return None if changed is None else metadata_of(changed)

    def delete_rows(self, offsets: Iterable[int]) -> FragmentMetadata | None:
        """Delete rows by physical offset, which counts deleted rows. See `delete`.

        Raises:
            InvalidInputError: An offset is out of range.
        """
        changed = delete_fragment_offsets(self._scan.snapshot, self._fragment, list(offsets))
        return None if changed is None else metadata_of(changed)

    def _extended(self, source: NewColumns) -> tuple[FragmentMetadata, LanceSchema]:
        changed, schema = add_to_fragment(self._scan.snapshot, self._fragment, source)
        return metadata_of(changed), LanceSchema(schema)

    def __len__(self) -> int:
        return self.count_rows()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.scanner().to_reader().__arrow_c_stream__(requested_schema)

    @property
    def _scan(self) -> TableScan:
        return self._dataset.handle.table


@checked_calls
class FragmentSession:
    """Repeated reads of the same columns of a fragment, by position. See `LanceFragment.open_session`."""

    def __init__(self, taker: Taker, fragment: Fragment, projection: Projection) -> None:
        self._taker = taker
        self._fragment = fragment
        self._projection = projection

    def take(self, indices: Any) -> pa.Table:
        """Return the rows at these positions, in the order of `indices`. Repeated positions repeat their row.

        Raises:
            InvalidInputError: A position is negative or past the last row.
        """
        return self._taker.table(partial(self._taker.in_fragment, self._fragment), indices, self._projection)


@checked_call
def write_fragments(
    data: Any,
    dataset_uri: str | os.PathLike[str] | TableMethods,
    schema: pa.Schema | None = None,
    *,
    return_transaction: bool = False,
    mode: str = "append",
    namespace_client: Any = None,
    table_id: Sequence[str] | None = None,
    **settings: Unpack[FragmentArguments],
) -> list[FragmentMetadata] | Transaction:
    """Write data as fragments without a commit. See `LanceOperation.Append` and `LanceOperation.Overwrite`.

    Args:
        data: Data in any form that `write_dataset` accepts.
        dataset_uri: Path or URI of the table, or a handle to it. The table may not exist yet.
        schema: Schema for data that does not include one.
        return_transaction: Return an Append or Overwrite transaction that commits the fragments.
        mode: "append" writes the table's columns if the table exists. "create" and "overwrite" write the data's
            columns.
        namespace_client: Catalog that supplies the table's store settings: see `lance_duck.dataset`.
        table_id: Name of the table in that catalog, as a list of its parts.
        settings: Other arguments of `write_dataset`. `enable_stable_row_ids` does not have an effect here, because the
            commit assigns row ids.

    Returns:
        The fragments, all with id 0, or a transaction for `LanceDataset.commit`.

    Raises:
        InvalidInputError: The data does not match the table, or the arguments contradict each other.
    """
    write = WriteSettings.of(declared_arguments(write_fragments, settings, FragmentArguments))
    write = replace(write, storage_options=lent_options(namespace_client, table_id, write.storage_options))
    target = dataset_uri.handle.snapshot if isinstance(dataset_uri, TableMethods) else dataset_uri
    staged, current = stage_fragments(data, target, schema, mode, write)
    fragments = [metadata_of(fragment) for fragment in staged.fragments]
    if not return_transaction:
        return fragments
    if current is not None and mode == "append":
        return Transaction(current.version, LanceOperation.Append(fragments))
    bases = known_bases({base.id: base for base in new_bases(write.initial_bases or (), {}, "initial_bases")})
    operation = LanceOperation.Overwrite(LanceSchema(staged.schema), fragments, list(bases.values()) or None)
    return Transaction(0 if current is None else current.version, operation)


def _check_schema(schema: object, own: pa.Schema) -> None:
    """Raise UnsupportedError if a schema differs from the table schema. Metadata may differ."""
    if not isinstance(schema, pa.Schema):
        raise InvalidInputError("schema", expected="a pyarrow.Schema", found=type(schema).__name__)
    if schema.equals(own, check_metadata=False):
        return
    pairs = zip_longest(schema, own)
    actual, expected = next(pair for pair in pairs if not _is_same(*pair))
    raise UnsupportedError(
        "a fragment cannot be scanned with another schema",
        where="schema",
        expected="no further columns" if expected is None else expected,
        found="no further columns" if actual is None else actual,
        remedy="leave out schema, select columns, and cast the result",
    )


def _is_same(one: pa.Field | None, other: pa.Field | None) -> bool:
    return one is not None and other is not None and one.equals(other, check_metadata=False)


__all__ = ["DataFile", "DeletionFile", "FragmentMetadata", "FragmentSession", "LanceFragment", "write_fragments"]
