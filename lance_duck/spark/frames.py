"""Reads tables as DataFrames and writes DataFrames as tables, with settings that data source options cannot express."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the customary name
from pyspark.sql.types import ArrayType

from lance_duck.arguments import checked_call, unknown_column, unknown_value
from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.spark.io.datasource import LanceDataSource, LanceDuckDataSource
from lance_duck.spark.io.options import SAVE_MODES, columns_text, storage_text
from lance_duck.spark.jobs.failures import as_ours
from lance_duck.spark.save_modes import allow_all_modes
from lance_duck.spark.sql.udtfs import register_functions
from lance_duck.spark.sql.views import refresh_views
from lance_duck.spark.table_ref import TableRef
from lance_duck.spark.workers import use_this_python
from lance_duck.write.vectors import parse_vector_columns

_registered: set[str] = set()
"""Identities of the sessions in which the source is registered."""


@checked_call
def register(spark: SparkSession) -> None:
    """Register `format("lance")`, `format("lance_duck")` and the table functions (`spark.sql.udtfs`) with a session.

    Calling it again is harmless. If a different source is already registered as "lance", it keeps the name. From now
    on, workers on this machine use the Python of this process, unless PYSPARK_PYTHON or `spark.pyspark.python` is set.

    Raises:
        JobError: This package is not installed in the Python that workers on this machine use.
    """
    use_this_python(spark)
    identity = _identity(spark)
    if identity in _registered:
        return
    allow_all_modes(type(spark.range(0).write))  # the writer class of Connect or of classic sessions
    for source in (LanceDuckDataSource, LanceDataSource):
        if not _has_source(spark, source.name()):
            with suppress(PySparkException):
                spark.dataSource.register(source)
    register_functions(spark)
    _registered.add(identity)


def _identity(spark: Any) -> str:
    """Return a stable identity of a session. Several Python objects may represent one session."""
    java = getattr(spark, "_jsparkSession", None)
    return str(spark.session_id) if java is None else str(java.sessionUUID())


def _has_source(spark: SparkSession, name: str) -> bool:
    """Return whether a classic session has a source with this name.

    Always False for Connect, which cannot list sources.
    """
    java = getattr(spark, "_jsparkSession", None)
    return java is not None and bool(java.sessionState().dataSourceManager().dataSourceExists(name))


@checked_call
def read(
    spark: SparkSession,
    uri: str | os.PathLike[str],
    *,
    columns: Iterable[str] | Mapping[str, str] | None = None,
    filter: str | None = None,  # noqa: A002 - the name of the option
    version: int | str | None = None,
    tag: str | None = None,
    branch: str | None = None,
    timestamp: datetime | date | str | None = None,
    limit: int | None = None,
    row_id: bool = False,
    row_address: bool = False,
    batch_size: int | None = None,
    blob_handling: str | None = None,
    use_scalar_index: bool = True,
    contains_null: bool | None = None,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> DataFrame:
    """Return a DataFrame of a table.

    The DataFrame stays on the newest version at the time of the call, or on the requested version.

    Spark does not pass a query's columns and filters to Python sources. They are therefore arguments of this function.
    Indexes speed up the filter.

    Args:
        spark: Spark session, classic or Connect.
        uri: Path or URI of the table.
        columns: Column names, or a mapping from names to SQL expressions. By default, all columns are read.
        filter: SQL condition, as for `LanceDataset.scanner`. Only rows for which it is true are read.
        version: Version number or tag name.
        tag: Tag name.
        branch: Branch name.
        timestamp: Read the newest version committed before this time.
        limit: Maximum number of rows.
        row_id: Add `_rowid`.
        row_address: Add `_rowaddr`.
        batch_size: Maximum rows per batch.
        blob_handling: "all_binary" reads the bytes of blobs instead of their descriptions.
        use_scalar_index: Whether the filter may use indexes.
        contains_null: Whether vectors are declared as arrays that may contain nulls. Spark reads arrays without nulls
            faster, but a null then raises an error. By default, vectors are declared without nulls if the files do not
            contain nulls. Tables with many fragments are not checked.
        storage_options: Settings of the object store.
        options: Other options. See `ReadOptions`.

    Raises:
        NotFoundError: The table, version, tag or branch does not exist.
        InvalidInputError: A column or option is unknown, or the filter is invalid.
        UnsupportedError: A column has a type that Spark does not support.
    """
    known(spark)
    options_by_name: dict[str, Any] = {
        "columns": None if columns is None else columns_text(columns),
        "filter": filter,
        "version": version,
        "tag": tag,
        "branch": branch,
        "timestamp": timestamp.isoformat() if isinstance(timestamp, date) else timestamp,
        "limit": limit,
        "row_id": row_id or None,
        "row_address": row_address or None,
        "batch_size": batch_size,
        "blob_handling": blob_handling,
        "use_scalar_index": None if use_scalar_index else False,
        "contains_null": "auto" if contains_null is None else contains_null,
        **storage_text(storage_options),
        **options,
    }
    with as_ours():
        return (
            spark.read.format(LanceDuckDataSource.name()).options(**_texts(options_by_name)).load(TableRef.of(uri).uri)
        )


@checked_call
def write(
    df: DataFrame,
    uri: str | os.PathLike[str],
    mode: str = "error",
    *,
    vector_columns: Mapping[str, int | str] | Iterable[str] | None = None,
    blob_columns: Iterable[str] | None = None,
    max_rows_per_file: int | None = None,
    max_bytes_per_file: int | None = None,
    data_storage_version: str | None = None,
    enable_stable_row_ids: bool | None = None,
    commit_message: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    **options: Any,
) -> None:
    """Write a DataFrame as one version of a table. Each partition writes its own files.

    Columns are matched by name. Table columns that are missing from the DataFrame are filled with nulls. An array
    becomes a vector if the table's column is a vector column. For a new table, specify the vector lengths. Other
    threads and programs may write at the same time.

    Args:
        df: DataFrame of a classic session or of Connect.
        uri: Path or URI of the table.
        mode: "error" raises if the table exists, and "ignore" leaves it unchanged. "append" adds rows. "overwrite"
            replaces rows and columns in a new version. Each mode creates a missing table.
        vector_columns: For a new table: vector length by column, as in {"v": 128}, or item type and length, as in
            "float16[128]". 0 stores lists of any length. For a list of names, as in ["v"], the frame runs once more to
            find the length of a vector.
        blob_columns: For a new table: names of binary columns to store as blobs.
        max_rows_per_file: Maximum rows of a data file, and therefore of a fragment.
        max_bytes_per_file: File size after which a new file begins, in bytes.
        data_storage_version: "2.2" (the default), "2.1" or "2.0".
        enable_stable_row_ids: For a new table, whether moved rows keep their `_rowid`.
        commit_message: Message to store with the transaction.
        storage_options: Settings of the object store.
        options: Other options. See `SparkWriteOptions`.

    Raises:
        AlreadyExistsError: The table exists, and the mode is "error".
        InvalidInputError: The rows do not match the table's columns, or options are invalid.
        UnsupportedError: A column has a type that Lance does not support.
        CommitConflictError: Another writer changed the table's columns, and the rows no longer match them.
        StoreError: Files cannot be written. A failed write does not leave a version or files behind.
    """
    mode = {"errorifexists": "error", "create": "error"}.get(mode.lower(), mode.lower())
    if mode not in SAVE_MODES:
        raise unknown_value("unknown mode", mode, SAVE_MODES, "mode")
    spark = df.sparkSession
    known(spark)
    place = TableRef.of(uri, storage_options)
    options_by_name: dict[str, Any] = {
        "save_mode": mode,
        "vector_columns": None if vector_columns is None else columns_text(_vector_texts(df, vector_columns)),
        "blob_columns": None if blob_columns is None else columns_text(blob_columns),
        "max_rows_per_file": max_rows_per_file,
        "max_bytes_per_file": max_bytes_per_file,
        "data_storage_version": data_storage_version,
        "enable_stable_row_ids": enable_stable_row_ids,
        "commit_message": commit_message,
        **storage_text(storage_options),
        **options,
    }
    writer = df.write.format(LanceDuckDataSource.name()).options(**_texts(options_by_name))
    with as_ours():
        writer.mode("overwrite" if mode == "overwrite" else "append").save(place.uri)
    refresh_views(spark, place)


def _vector_texts(df: DataFrame, vector_columns: Mapping[str, int | str] | Iterable[str]) -> dict[str, str]:
    """Return the vector form of each column. An unspecified length is taken from the column's first value."""
    if isinstance(vector_columns, Mapping):
        return {name: str(form) for name, form in vector_columns.items()}
    texts = {}
    for name, form in parse_vector_columns(vector_columns).items():
        if name not in df.columns:
            raise unknown_column(name, df.columns, "frame")
        if not isinstance(df.schema[name].dataType, ArrayType):
            raise WrongTypeError("vectors must be arrays", where=f"column {name!r}", found=df.schema[name].dataType)
        column = F.col("`" + name.replace("`", "``") + "`")
        first = None if form.size is not None else df.where(column.isNotNull()).select(F.size(column)).first()
        size = form.size if first is None else first[0]
        if size is None:
            raise InvalidInputError(
                "the vector length cannot be determined",
                where=f"column {name!r}",
                found="only nulls",
                remedy=f'pass vector_columns={{"{name}": length}}',
            )
        texts[name] = str(replace(form, size=size))
    return texts


def known(spark: SparkSession) -> None:
    """Register the source with a session if necessary, and make the session active in this thread.

    Spark looks for a sink only in the active session. A new Python thread does not have an active session.
    """
    register(spark)
    java, machine = getattr(spark, "_jsparkSession", None), getattr(spark, "_jvm", None)
    if java is not None and machine is not None:
        machine.org.apache.spark.sql.classic.SparkSession.setActiveSession(java)


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in values.items() if value is not None}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
