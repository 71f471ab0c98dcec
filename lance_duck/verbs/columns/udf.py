"""User functions that compute columns, and the file that stores their results until they are committed.

The checkpoint is an SQLite database:

    batches    (fragment_id, batch_index, result)    an Arrow IPC stream of one batch
    fragments  (fragment_id, data)                   JSON: the data file of a whole fragment
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from lance_duck.arguments import checked_call, suggest_names
from lance_duck.errors import CorruptError, InvalidInputError, WrongTypeError
from lance_duck.write.inputs import to_reader


@suggest_names
class BatchUDF:
    """A function from table batches to batches of new columns. See `batch_udf`.

    Args:
        func: The function.
        output_schema: The new columns. None infers them by calling the function with one row.
        checkpoint_file: File that stores results until they are committed. Optional.
    """

    def __init__(
        self,
        func: Callable[[pa.RecordBatch], Any],
        output_schema: pa.Schema | None = None,
        checkpoint_file: str | os.PathLike[str] | None = None,
    ) -> None:
        self.func = func
        self.output_schema = output_schema
        self.cache = None if checkpoint_file is None else BatchUDFCheckpoint(checkpoint_file)

    def __call__(self, batch: pa.RecordBatch) -> Any:
        """Call the function."""
        return self.func(batch)


class BatchUDFCheckpoint:
    """File with uncommitted results of a function. Thread-safe.

    Args:
        path: The file. Created if it does not exist.
    """

    class BatchInfo(NamedTuple):
        """The number of a batch, and the id of its fragment."""

        fragment_id: int
        batch_index: int

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with self._connect() as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS batches (fragment_id INT, batch_index INT, result BLOB,"
                " PRIMARY KEY (fragment_id, batch_index))"
            )
            connection.execute("CREATE TABLE IF NOT EXISTS fragments (fragment_id INT PRIMARY KEY, data TEXT)")

    def cleanup(self) -> None:
        """Delete the file."""
        os.remove(self.path)

    def get_batch(self, info: BatchInfo) -> pa.RecordBatch | None:
        """Return the stored result of a batch, or None."""
        with self._connect() as connection:
            row = connection.execute(
                "SELECT result FROM batches WHERE fragment_id = ? AND batch_index = ?", info
            ).fetchone()
        return None if row is None else self._batch(row[0])

    def insert_batch(self, info: BatchInfo, batch: pa.RecordBatch) -> None:
        """Store the result for a batch."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        with self._connect() as connection:
            connection.execute("INSERT OR REPLACE INTO batches VALUES (?, ?, ?)", (*info, sink.getvalue().to_pybytes()))

    def get_fragment(self, fragment_id: int) -> str | None:
        """Return the stored data file of a fragment as JSON, or None."""
        with self._connect() as connection:
            row = connection.execute("SELECT data FROM fragments WHERE fragment_id = ?", (fragment_id,)).fetchone()
        return None if row is None else str(row[0])

    def insert_fragment(self, fragment_id: int, fragment: str) -> None:
        """Store the data file of a whole fragment as JSON, replacing its batches."""
        with self._connect() as connection:
            connection.execute("INSERT OR REPLACE INTO fragments VALUES (?, ?)", (fragment_id, fragment))
            connection.execute("DELETE FROM batches WHERE fragment_id = ?", (fragment_id,))

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path)) as connection, connection:
                yield connection
        except sqlite3.DatabaseError as error:
            raise CorruptError(
                "not a checkpoint",
                where=self.path,
                found=str(error),
                remedy="delete the file, or choose another checkpoint file",
            ) from error

    def _batch(self, data: bytes) -> pa.RecordBatch:
        try:
            return pa.ipc.open_stream(data).read_next_batch()
        except (pa.ArrowException, StopIteration, OSError) as error:
            raise CorruptError(
                "a batch in the checkpoint is corrupt", where=self.path, remedy="delete the file"
            ) from error


@checked_call
def batch_udf(
    output_schema: pa.Schema | None = None, checkpoint_file: str | os.PathLike[str] | None = None
) -> Callable[[Callable[[pa.RecordBatch], Any]], BatchUDF]:
    """Decorate a function for `add_columns` that maps a batch to new columns with the same row count.

    Args:
        output_schema: The new columns. None infers them by calling the function with one row.
        checkpoint_file: File that stores results until they are committed, so that a failed call can be resumed.
            Optional.
    """

    def wrap(func: Callable[[pa.RecordBatch], Any]) -> BatchUDF:
        return BatchUDF(func, output_schema, checkpoint_file)

    return wrap


def as_batch(result: Any, rows: int | None, expected: pa.Schema | None) -> pa.RecordBatch:
    """Convert a function's result to a batch without schema metadata. Accepts pandas and polars DataFrames.

    Args:
        result: The result.
        rows: Expected row count. None accepts any.
        expected: Expected columns. None accepts any.

    Raises:
        InvalidInputError: The result is neither a batch nor a DataFrame, or has an unexpected row count or schema.
    """
    batch = _convert(result)
    batch = batch.replace_schema_metadata(None)
    if rows is not None and batch.num_rows != rows:
        raise InvalidInputError("function returned a different number of rows", expected=rows, found=batch.num_rows)
    if expected is not None and not batch.schema.equals(expected.remove_metadata()):
        raise InvalidInputError(
            "Output schema of function does not match the expected schema",
            expected=_brief(expected),
            found=_brief(batch.schema),
        )
    return batch


def _convert(result: Any) -> pa.RecordBatch:
    if isinstance(result, pa.RecordBatch):
        return result
    if hasattr(result, "iloc") and hasattr(result, "columns"):
        result = result.reset_index(drop=True)
    try:
        table = to_reader(result).read_all()
    except WrongTypeError as error:
        raise InvalidInputError(
            "function returned no batch", expected="a RecordBatch or a DataFrame", found=type(result).__name__
        ) from error
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def _brief(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)
