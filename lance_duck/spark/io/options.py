"""Parses and validates the options of the source and the sink, from `.option(name, value)` or SQL.

Spark passes options as strings, with lower-case names. Underscores, hyphens and capitals in a name are ignored:
`max_rows_per_file` and `maxRowsPerFile` are the same option. Unknown options are rejected. Otherwise, a misspelled
option could silently select the wrong version. Options that only tune the speed of other readers are accepted and
ignored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

from lance_duck.arguments import nearest_name
from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.redact import shown_option
from lance_duck.snapshot.versions import to_moment
from lance_duck.snapshot.with_log import checked_mode
from lance_duck.spark.table_ref import TableRef
from lance_duck.store import CACHE_OPTION, CACHE_SIZE_OPTION, with_cache
from lance_duck.verbs.writing.settings import WriteSettings

_T = TypeVar("_T")

STORAGE: Final = "storage."
SAVE_MODES: Final = ("error", "ignore", "append", "overwrite")
SPARKS_OWN: Final = frozenset(
    {"path", "paths", "provider", "location", "owner", "serializationformat", "checkpointlocation", "queryname"}
)
"""Options that Spark itself may add."""
WITHOUT_EFFECT: Final = frozenset(
    {
        *("blocksize", "indexcachesize", "metadatacachesize", "pushdownfilters", "topnpushdown"),
        *("maxrowspergroup", "usequeuedwritebuffer", "queuedepth"),
    }
)
_CACHE: Final = {"cache": CACHE_OPTION, "cachesize": CACHE_SIZE_OPTION}
_READ: Final = {
    **dict.fromkeys(("version", "versionasof"), "version"),
    "tag": "tag",
    "branch": "branch",
    **dict.fromkeys(("timestamp", "timestampasof", "asof"), "timestamp"),
    "log": "log",
    "columns": "columns",
    "filter": "filter",
    "limit": "limit",
    **dict.fromkeys(("rowid", "withrowid"), "row_id"),
    **dict.fromkeys(("rowaddress", "withrowaddress"), "row_address"),
    "batchsize": "batch_size",
    "blobhandling": "blob_handling",
    "usescalarindex": "use_scalar_index",
    "maxpartitionbytes": "max_partition_bytes",
    "minpartitions": "min_partitions",
    "containsnull": "contains_null",
    **_CACHE,
    "storageoptions": "storage_options",
}
_WRITE: Final = {
    "savemode": "save_mode",
    **dict.fromkeys(("maxrowsperfile", "maxrowperfile"), "max_rows_per_file"),
    "maxbytesperfile": "max_bytes_per_file",
    **dict.fromkeys(("datastorageversion", "fileformatversion"), "data_storage_version"),
    "enablestablerowids": "enable_stable_row_ids",
    "vectorcolumns": "vector_columns",
    "blobcolumns": "blob_columns",
    **dict.fromkeys(("commitmessage", "usermetadata"), "commit_message"),
    "overwriteschema": "overwrite_schema",
    "containsnull": "contains_null",  # INSERT INTO a view passes the options of the view
    **_CACHE,
    "storageoptions": "storage_options",
}
_REFUSED: Final = {
    "mergeschema": "add the columns first: LanceDataset.add_columns",
    "replacewhere": "delete the rows first: lance_duck.spark.delete",
    "partitionoverwritemode": "Lance tables do not have partitions",
    "writemode": 'say .mode("append" or "overwrite")',
    "readchangefeed": "see LanceDataset.delta",
    "startingversion": "for streams only: readStream",
}


@dataclass(frozen=True)
class ReadOptions:
    """Options for reading a table.

    Attributes:
        place: Reference to the table.
        version: Version number or tag name. None reads the newest version.
        branch: Branch of the table. None reads the main branch.
        timestamp: Read the newest version committed before this time.
        columns: Column names, or a mapping from names to SQL expressions. None reads all columns.
        filter: SQL condition. Only rows for which it is true are read.
        limit: Maximum number of rows.
        row_id: Add `_rowid`.
        row_address: Add `_rowaddr`.
        batch_size: Maximum rows per batch.
        blob_handling: See `LanceDataset.scanner`.
        use_scalar_index: Whether the filter may use indexes.
        max_partition_bytes: Approximate bytes of files that one task reads. By default, it depends on the table.
        min_partitions: Minimum number of tasks, if there are enough rows.
        contains_null: Whether vectors are declared as arrays that may contain nulls. Spark reads arrays without nulls
            faster, but a null then raises an error. With None ("auto" in an option), the files are checked.
        log: Also read rows that are only in the write-ahead log: see `lance_duck.dataset`.
    """

    place: TableRef
    version: int | str | None = None
    branch: str | None = None
    timestamp: datetime | None = None
    columns: tuple[str, ...] | dict[str, str] | None = None
    filter: str | None = None
    limit: int | None = None
    row_id: bool = False
    row_address: bool = False
    batch_size: int | None = None
    blob_handling: str | None = None
    use_scalar_index: bool = True
    max_partition_bytes: int | None = None
    min_partitions: int = 1
    contains_null: bool | None = True
    log: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, str], also: Iterable[str] = ()) -> ReadOptions:
        """Parse the options of a source.

        Args:
            options: Options as Spark passes them.
            also: Names of additional valid options, in lower case, without underscores.

        Raises:
            InvalidInputError: An option is unknown, or a value is invalid.
            UnsupportedError: The option belongs to other formats and is not supported.
        """
        values = _OptionValues(options, _READ, also)
        version, tag = values.get("version", _version), values.get("tag", str)
        timestamp = values.get("timestamp", to_moment)
        if sum(value is not None for value in (version, tag, timestamp)) > 1:
            raise InvalidInputError("version, tag and timestamp", expected="one of them", found="several")
        branch = values.get("branch", str)
        if branch is not None and timestamp is not None:
            raise UnsupportedError("timestamp cannot be combined with branch", remedy="choose a version number")
        return cls(
            values.place(),
            tag if version is None else version,
            branch,
            timestamp,
            values.get("columns", _columns),
            values.get("filter", str),
            values.get("limit", _count),
            values.get("row_id", _flag, default=False),
            values.get("row_address", _flag, default=False),
            values.get("batch_size", _positive),
            values.get("blob_handling", str),
            values.get("use_scalar_index", _flag, default=True),
            values.get("max_partition_bytes", _positive),
            values.get("min_partitions", _positive, default=1),
            values.get("contains_null", _flag_or_auto, default=True),
            values.get("log", checked_mode),
        )


@dataclass(frozen=True)
class SparkWriteOptions:
    """Options for writing a table.

    Attributes:
        place: Reference to the table.
        save_mode: One of `SAVE_MODES`. With None, Spark's own mode applies: append or overwrite.
        vectors: Vector types by column (see `columns.table_schema`). Names may be in lower case.
        blobs: Names of binary columns to store as blobs. Names may be in lower case.
        settings: Write settings, as for `write_dataset`.
    """

    place: TableRef
    save_mode: str | None = None
    vectors: Mapping[str, str] = field(default_factory=dict)
    blobs: frozenset[str] = frozenset()
    settings: WriteSettings = field(default_factory=WriteSettings)

    @classmethod
    def of(cls, options: Mapping[str, str], also: Iterable[str] = ()) -> SparkWriteOptions:
        """Parse the options of a sink. See `ReadOptions.of`."""
        vectors = dict(_vector_options(options))
        plain = {key: value for key, value in options.items() if _vector_column(key) is None}
        values = _OptionValues(plain, _WRITE, also)
        vectors |= values.get("vector_columns", _vectors, default={})
        values.get("overwrite_schema", _flag)
        values.get("contains_null", _flag_or_auto)
        settings = WriteSettings(
            max_rows_per_file=values.get("max_rows_per_file", _positive, default=WriteSettings.max_rows_per_file),
            max_bytes_per_file=values.get("max_bytes_per_file", _positive, default=WriteSettings.max_bytes_per_file),
            data_storage_version=values.get("data_storage_version", str),
            enable_stable_row_ids=values.get("enable_stable_row_ids", _flag, default=False),
            commit_message=values.get("commit_message", str),
        )
        blobs = frozenset(values.get("blob_columns", _names, default=()))
        return cls(values.place(), values.get("save_mode", _save_mode), vectors, blobs, settings)

    def vectors_of(self, names: Iterable[str]) -> dict[str, str]:
        """Return the vector types by column. Names have the same case as in the DataFrame."""
        spellings = {name.lower(): name for name in names}
        return {_spelled(name, spellings): vector for name, vector in self.vectors.items()}

    def blobs_of(self, names: Iterable[str]) -> frozenset[str]:
        """Return the blob columns. Names have the same case as in the DataFrame."""
        spellings = {name.lower(): name for name in names}
        return frozenset(_spelled(name, spellings) for name in self.blobs)


def storage_text(storage_options: Mapping[str, str] | None) -> dict[str, str]:
    """Return the option with the object store settings."""
    return {"storage_options": json.dumps(dict(storage_options))} if storage_options else {}


def columns_text(columns: Iterable[str] | Mapping[str, str]) -> str:
    """Return columns in the form of the `columns` option.

    Raises:
        WrongTypeError: The columns are a single string.
    """
    if isinstance(columns, str):
        raise WrongTypeError("columns", expected="a list of names", found=repr(columns))
    return json.dumps(dict(columns) if isinstance(columns, Mapping) else list(columns))


class _OptionValues:
    """Parses option values. Options are accessed by their names in this package."""

    def __init__(self, options: Mapping[str, str], names: Mapping[str, str], also: Iterable[str]) -> None:
        self._options = options
        self._found: dict[str, tuple[str, str]] = {}
        ignorable = SPARKS_OWN | WITHOUT_EFFECT | set(also)
        for key, value in options.items():
            plain = key.lower().replace("_", "").replace("-", "")
            if plain in names:
                self._found[names[plain]] = key, value
            elif plain not in ignorable and not key.lower().startswith(STORAGE):
                raise _unknown(key, plain, names)

    def get(self, name: str, parse: Callable[[str], _T], default: Any = None) -> Any:
        """Return the value of an option, or the default if it is not set."""
        if name not in self._found:
            return default
        key, value = self._found[name]
        try:
            return parse(value)
        except InvalidInputError as error:
            raise InvalidInputError(
                f"option {key!r}", expected=error.expected, found=shown_option(key, value), remedy=error.remedy
            ) from None

    def place(self) -> TableRef:
        """Return the reference to the table."""
        options = {key.lower(): value for key, value in self._options.items()}
        path = options.get("path")
        if path is None and "paths" in options:
            paths = json.loads(options["paths"])
            if len(paths) != 1:
                raise UnsupportedError(
                    "load takes one table",
                    where="load",
                    found=len(paths),
                    remedy="load each table, and combine the frames with union",
                )
            path = paths[0]
        if not path:
            raise InvalidInputError(
                "the path of the table is missing", remedy='use .load(path), .save(path) or .option("path", path)'
            )
        storage = self.get("storage_options", _storage, default={})
        storage |= {key[len(STORAGE) :]: value for key, value in options.items() if key.startswith(STORAGE)}
        size = self.get(CACHE_SIZE_OPTION, str)
        storage |= {} if size is None else {CACHE_SIZE_OPTION: size}
        return TableRef.of(path, with_cache(storage, self.get(CACHE_OPTION, str)))


def _unknown(key: str, plain: str, names: Mapping[str, str]) -> InvalidInputError | UnsupportedError:
    if plain in _REFUSED:
        return UnsupportedError(f"option {key!r} is not supported", remedy=_REFUSED[plain])
    near = nearest_name(plain, names)
    return InvalidInputError(
        f"unknown option {key!r}",
        expected=f"one of {', '.join(dict.fromkeys(names.values()))}",
        remedy=None if near is None else f"did you mean {names[near]!r}?",
    )


def _version(text: str) -> int | str:
    return int(text) if text.strip().isdecimal() else text


def _count(text: str, least: int = 0) -> int:
    if not text.strip().isdecimal() or int(text) < least:
        raise InvalidInputError("number", expected=f"a number of at least {least}")
    return int(text)


def _positive(text: str) -> int:
    return _count(text, 1)


def _flag(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise InvalidInputError("flag", expected="true or false")
    return text.strip().lower() == "true"


def _flag_or_auto(text: str) -> bool | None:
    return None if text.strip().lower() == "auto" else _flag(text)


def _save_mode(text: str) -> str:
    mode = {"errorifexists": "error", "default": "error", "create": "error"}.get(text.lower(), text.lower())
    if mode not in SAVE_MODES:
        raise InvalidInputError("mode", expected=", ".join(SAVE_MODES))
    return mode


def _json(text: str, kind: type[_T]) -> _T:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, kind):
        raise InvalidInputError("JSON", expected="names, or JSON")
    return value


def _columns(text: str) -> tuple[str, ...] | dict[str, str]:
    if text.strip().startswith("{"):
        return {name: str(sql) for name, sql in _json(text, dict).items()}
    return _names(text)


def _names(text: str) -> tuple[str, ...]:
    if text.strip().startswith("["):
        return tuple(map(str, _json(text, list)))
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _vectors(text: str) -> dict[str, str]:
    if text.strip().startswith("{"):
        return {name: str(vector) for name, vector in _json(text, dict).items()}
    pairs = [pair.rpartition(":") for pair in text.split(",") if pair.strip()]
    if any(not name.strip() for name, _, _ in pairs):
        remedy = 'ls.write(frame, path, vector_columns=["name"]) finds the length'
        raise InvalidInputError("vectors", expected="name:length, …", remedy=remedy)
    return {name.strip(): vector.strip() for name, _, vector in pairs}


def _storage(text: str) -> dict[str, str]:
    return {name: str(value) for name, value in _json(text, dict).items()}


def _vector_options(options: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    return ((name, value) for key, value in options.items() if (name := _vector_column(key)) is not None)


def _vector_column(key: str) -> str | None:
    """Return the column name in an option "vector.{column}.dim" or "{column}.arrow.fixed-size-list.size"."""
    lower = key.lower()
    if lower.startswith("vector.") and lower.endswith(".dim"):
        return key[len("vector.") : -len(".dim")]
    return key.removesuffix(".arrow.fixed-size-list.size") if lower.endswith(".arrow.fixed-size-list.size") else None


def _spelled(name: str, spellings: Mapping[str, str]) -> str:
    if name in spellings.values():
        return name
    return spellings.get(name.lower(), name)
