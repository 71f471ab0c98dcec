"""DuckDB's scan protocol: columns, filters and row counts.

DuckDB 2.0 calls the methods of `ArrowScanSource` objects directly, and passes its predicate tree. Earlier versions do
not have this class. They treat the object as a pyarrow Dataset, and call its `scanner`.

Reading a table does not import DuckDB. Therefore, `ScanSource` inherits from DuckDB's class only after DuckDB first
checks the type of an object.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from lance_duck.scan.duckdb.batches import duckdb_batches
from lance_duck.scan.duckdb.nodes import predicate_from_node, predicate_from_nodes
from lance_duck.scan.duckdb.pushed import note_fields, predicate_from_pushed
from lance_duck.scan.duckdb.types import duckdb_arrow_schema
from lance_duck.scan.predicate.tree import Predicate

_HOME: Final = "duckdb._sources.arrow"
"""The module of DuckDB 2.0 that defines `ArrowScanSource`."""


def file_of(module: str) -> str | None:
    """Return the file of a module, or None if it is not installed. The module and its packages are not imported."""
    names = module.split(".")
    places = None
    found = None
    for depth in range(len(names)):
        name = ".".join(names[: depth + 1])
        finders = (find for each in sys.meta_path if (find := getattr(each, "find_spec", None)) is not None)
        try:
            found = next((spec for find in finders if (spec := find(name, places)) is not None), None)
        except (ImportError, KeyError):  # a directory without modules, in a package that is not imported
            return None
        if found is None:
            return None
        places = found.submodule_search_locations or ()
    return None if found is None else found.origin


def _is_defined() -> bool:
    """Return whether the installed DuckDB defines `ArrowScanSource`."""
    try:
        path = file_of(_HOME)
        return path is not None and "class ArrowScanSource" in Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def _duckdbs_class() -> type | None:
    """Return `ArrowScanSource` if this process has imported it."""
    return getattr(sys.modules.get(_HOME), "ArrowScanSource", None)


class _Waiting:
    """Temporary base class of `ScanSource`. DuckDB's class replaces it.

    DuckDB calls `isinstance` on each object that it scans. If the object's type does not match, `isinstance` reads
    `__class__`. The first such read after the import of DuckDB replaces the base class.
    """

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        base = _duckdbs_class()
        if base is None:
            return type(self)
        ScanSource.__bases__ = (base,)
        # `isinstance` has already checked the base classes of the type. It checks again if `__class__` is a new class.
        try:
            return type(type(self).__name__, (type(self),), {})
        except Exception:  # raised by `__init_subclass__` of a user's class
            return base


SPEAKS_SOURCE: Final = _is_defined()
if not SPEAKS_SOURCE:
    note_fields()

if TYPE_CHECKING:
    _Base = object
elif SPEAKS_SOURCE:
    _Base = _duckdbs_class() or _Waiting
else:
    _Base = object


class ScanSource(_Base):
    """Mixin for a pyarrow Dataset, with the methods that DuckDB 2.0 calls on scanned tables.

    A subclass provides `schema`, a `count_rows()` that reads only metadata, and `duckdb_reader`. It sets `obj` to
    itself.
    """

    schema_is_stable = False

    schema: pa.Schema
    count_rows: Callable[[], int]

    @abstractmethod
    def duckdb_reader(
        self, schema: pa.Schema, predicate: Predicate | None, *, any_form: bool = False
    ) -> pa.RecordBatchReader:
        """Open a stream of the rows for which the predicate is true.

        Args:
            schema: Columns of the stream, in order and with their types. Without columns, batches only have a length.
            predicate: Condition on the table's columns, including columns outside the stream. None reads all rows.
            any_form: Whether strings may be returned in the fastest form, such as dictionaries or views.
        """

    @abstractmethod
    def indexed_columns(self) -> frozenset[str]:
        """Return the top-level columns with an equality index that covers most rows."""

    @abstractmethod
    def index_estimate(self, predicate: Predicate) -> int | None:
        """Return the maximum number of rows that a filtered scan reads, or None if no index helps."""

    def __arrow_c_schema__(self) -> object:
        """Return the columns in DuckDB's types. DuckDB calls this at each bind."""
        return duckdb_arrow_schema(self.schema).__arrow_c_schema__()

    def rows(self) -> int | None:
        """Return the table's row count, which the optimizer uses to plan joins."""
        return self.count_rows()

    def accepts(self, predicate: Any) -> bool:
        """Return whether the stream will contain exactly the rows that pass DuckDB's filter."""
        return predicate_from_node(predicate, self.schema) is not None

    def stream(self, columns: Sequence[int] | None, filters: Sequence[Any]) -> tuple[object, bool]:
        """Return an Arrow stream of columns by position (None for all), filtered by accepted predicates."""
        schema = self.schema
        stream_schema = schema if columns is None else pa.schema([schema.field(i) for i in columns])
        predicate = predicate_from_nodes(filters, schema)
        reader = self.duckdb_reader(duckdb_arrow_schema(stream_schema), predicate, any_form=True)
        return duckdb_batches(reader).__arrow_c_stream__(), columns is not None

    def pushed_scanner(self, *, columns: Sequence[str] | None = None, filter: Any = None) -> PushedScan:  # noqa: A002
        """Return the scanner for DuckDB 1.x.

        Its column types must be exactly equal to the types in `schema`, because DuckDB does not check them.
        """
        schema = self.schema
        scan_schema = schema if columns is None else pa.schema([schema.field(name) for name in columns])
        predicate = None if filter is None else predicate_from_pushed(filter, schema)
        return PushedScan(scan_schema, lambda: duckdb_batches(self.duckdb_reader(scan_schema, predicate)))


@dataclass(frozen=True)
class PushedScan:
    """The scanner interface that DuckDB 1.x uses."""

    projected_schema: pa.Schema
    to_reader: Callable[[], pa.RecordBatchReader]
