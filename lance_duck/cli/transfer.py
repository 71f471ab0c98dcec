"""`import` and `export`: copy rows between a table and a Parquet, CSV or JSON file, with DuckDB."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

import pyarrow as pa

import lance_duck as ld
from lance_duck.cli.bar import progress_bar
from lance_duck.cli.open import listed_names, open_table
from lance_duck.cli.show import ByteCount, report
from lance_duck.cli.sources import place_of_source
from lance_duck.duck.statement.identifiers import literal, quoted
from lance_duck.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StoreError
from lance_duck.store import did_you_mean_path
from lance_duck.write.relations import relation_reader

_ROWS_AT_ONCE: Final = 1 << 16
_FORMATS: Final = {
    ".parquet": "FORMAT parquet",
    ".csv": "FORMAT csv, HEADER",
    ".tsv": "FORMAT csv, HEADER, DELIMITER '\t'",
    ".json": "FORMAT json, ARRAY",
    ".jsonl": "FORMAT json",
    ".ndjson": "FORMAT json",
}
_PACKED: Final = {".gz": "gzip", ".zst": "zstd"}


def import_(
    table: str,
    source: str,
    mode: str = "create",
    columns: str | None = None,
    where: str | None = None,
    data_storage_version: str | None = None,
    max_rows_per_file: int = 1 << 20,
    vector_columns: str | None = None,
    as_json: bool = False,
) -> None:
    """Create a table from a file, or append its rows to a table. Reads all rows and columns, or some."""
    place = _selected(place_of_source(table, source, "import"), columns, where)
    write_rows_of(table, f"({place})", mode, data_storage_version, max_rows_per_file, vector_columns, as_json)


def write_rows_of(
    table: str,
    place: str,
    mode: str,
    data_storage_version: str | None,
    max_rows_per_file: int,
    vector_columns: str | None,
    as_json: bool,
) -> None:
    """Write the rows of `FROM place` to a table and report the new version."""
    with ld.connect() as connection, ExitStack() as opened, progress_bar("writing") as progress:
        rows = relation_reader(connection.sql(f"FROM {place}"), _ROWS_AT_ONCE, opened)
        dataset = ld.write_dataset(
            _counted(rows, progress, None),
            table,
            mode=str(mode),
            data_storage_version=data_storage_version,
            max_rows_per_file=max_rows_per_file,
            vector_columns=vector_columns,
        )
    report({"version": dataset.version, "rows": dataset.count_rows()}, as_json)


def export(
    table: str,
    target: str,
    columns: str | None = None,
    where: str | None = None,
    overwrite: bool = False,
    version: int | None = None,
    tag: str | None = None,
    asof: datetime | None = None,
    as_json: bool = False,
) -> None:
    """Write rows of a table to a file. The file extension selects the format."""
    options = _options(target)
    path = Path(target)
    if os.path.exists(path) and not overwrite:
        raise AlreadyExistsError("the file exists", where=target, remedy="--overwrite replaces it")
    dataset = open_table(table, version, tag, asof)
    total = dataset.count_rows() if where is None else None
    with ld.connect({"t": dataset}) as source, ld.connect() as writer, progress_bar("exporting") as progress:
        relation = source.sql(_selected("t", columns, where))
        texts = [quoted(name) for name, type_ in zip(relation.columns, relation.types, strict=True) if type_ == "JSON"]
        again = f" REPLACE ({', '.join(f'{name}::JSON AS {name}' for name in texts)})" if texts else ""
        writer.native.register("rows", _counted(relation_reader(relation, _ROWS_AT_ONCE), progress, total))
        query = f"SELECT *{again} FROM rows"  # noqa: S608  names are quoted; JSON is text in Arrow
        with _draft_of(path) as draft:
            (count,) = writer.native.execute(f"COPY ({query}) TO {literal(str(draft))} ({options})").fetchone() or (0,)
    report({"rows": count, "bytes": ByteCount(path.stat().st_size), "version": dataset.version}, as_json)


def _selected(place: str, columns: str | None, where: str | None) -> str:
    """Return SQL that selects rows and columns from a source."""
    names = listed_names(columns)
    select_list = "*" if names is None else ", ".join(map(quoted, names))
    condition = "" if where is None else f" WHERE ({where}\n)"
    return f"SELECT {select_list} FROM {place}{condition}"  # noqa: S608  names are quoted, the rest is the user's SQL


def _counted(
    reader: pa.RecordBatchReader, progress: Callable[[int, int | None], None], total: int | None
) -> pa.RecordBatchReader:
    """Return a reader of the same batches that reports the number of rows read so far."""

    def batches() -> Iterator[pa.RecordBatch]:
        done = 0
        for batch in reader:
            yield batch
            done += batch.num_rows
            progress(done, total)

    return pa.RecordBatchReader.from_batches(reader.schema, batches())


def _options(target: str) -> str:
    """Return the COPY options for a file, based on its extensions."""
    path, packed = Path(target), ""
    ending = path.suffix.lower()
    if "://" in target or os.path.isdir(path):
        raise InvalidInputError("target", where=target, expected="a file on a local disk")
    if ending in _PACKED:
        packed = f", COMPRESSION {_PACKED[ending]}"
        ending = Path(path.stem).suffix.lower()
    if ending not in _FORMATS or (packed and ending == ".parquet"):
        raise InvalidInputError(
            "the file name does not have a known extension",
            where=target,
            expected=f"{', '.join(_FORMATS)}; text formats also with {' or '.join(_PACKED)} appended",
        )
    return _FORMATS[ending] + packed


@contextmanager
def _draft_of(path: Path) -> Iterator[Path]:
    """Yield the path of a new file that replaces `path` once it is complete."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    except FileNotFoundError as error:
        raise NotFoundError(
            "no such folder", where=str(path.parent), remedy=did_you_mean_path(str(path.parent))
        ) from error
    except OSError as error:
        raise StoreError("the file cannot be written", where=str(path), found=str(error)) from error
    os.close(handle)
    draft = Path(name)
    try:
        yield draft
        draft.chmod(0o666 & ~_umask())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
