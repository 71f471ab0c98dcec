"""Table functions for Spark SQL, for reads that a temporary view cannot express.

    SELECT … FROM lance_table('/t.lance', version => 3, columns => 'id,s', filter => 'id < 10')
    SELECT … FROM lance_history('/t.lance')
    SELECT … FROM lance_vector_search('/t.lance', 'v', array(0.5, 1.0), 10)
    SELECT … FROM lance_search('/t.lance', 'duck lake', column => 'body', k => 10)
    SELECT … FROM queries q, LATERAL lance_vector_search('/t.lance', 'v', q.vector, k => 5)

Rows pass through Python one by one, and a call with constant arguments runs in one task. For large data, use `read`,
`search` and `knn_join`. The version is fixed when Spark analyses a query.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.functions import udtf
from pyspark.sql.types import StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, UserDefinedTableFunction

from lance_duck.dataset import LanceDataset
from lance_duck.errors import InvalidInputError
from lance_duck.scan.nearest.options import vector_column
from lance_duck.scan.text.request import text_search_arguments
from lance_duck.spark.brief_errors import brief_errors
from lance_duck.spark.io.types import Declaration, spark_schema
from lance_duck.spark.sql import metadata_tables
from lance_duck.spark.table_ref import TableRef, pin

_TABLE: Final = ("uri", "version", "columns", "filter", "storage_options")
_HISTORY: Final = ("uri", "limit", "storage_options")
_SEARCH: Final = (
    *("uri", "column", "query", "k", "filter", "columns", "metric", "nprobes", "ef", "refine_factor", "use_index"),
    *("prefilter", "version", "storage_options", "recall"),
)
_TEXT_SEARCH: Final = (
    *("uri", "query", "k", "column", "filter", "columns", "prefilter", "version", "storage_options"),
)
_NEAREST: Final = ("column", "k", "metric", "nprobes", "ef", "refine_factor", "use_index", "recall")


@dataclass
class _Analysis(AnalyzeResult):
    """Analysis of a call, sent to the task.

    Attributes:
        place: The table.
        version: See `TableRef.pinned`.
        arguments: Constant arguments by name.
    """

    place: TableRef = field(default_factory=lambda: TableRef(""))
    version: int | tuple[str, int] = 0
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> LanceDataset:
        """The version."""
        return self.place.pinned(self.version)


@brief_errors
class _LanceTable:
    """The rows of a table version."""

    def __init__(self, analysis: _Analysis) -> None:
        self._analysis = analysis

    @staticmethod
    def analyze(*args: AnalyzeArgument, **keywords: AnalyzeArgument) -> _Analysis:
        """Return the columns of the table, or only the requested columns."""
        arguments = _constants(_TABLE, args, keywords)
        place, table = _table(arguments)
        schema = table.scan(_columns(arguments), arguments.get("filter")).projected_schema
        return _Analysis(spark_schema(schema), place=place, version=pin(table), arguments=arguments)

    def eval(self, *args: Any, **keywords: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows."""
        arguments = self._analysis.arguments
        scan = self._analysis.table.scan(_columns(arguments), arguments.get("filter"))
        yield from _rows(scan.to_batches(), scan.projected_schema, self._analysis.schema)


@brief_errors
class _LanceHistory:
    """The changes that created each version of a table."""

    def __init__(self, analysis: _Analysis) -> None:
        self._analysis = analysis

    @staticmethod
    def analyze(*args: AnalyzeArgument, **keywords: AnalyzeArgument) -> _Analysis:
        """Return the columns, which are always the same."""
        arguments = _constants(_HISTORY, args, keywords)
        place, table = _table(arguments)
        return _Analysis(spark_schema(metadata_tables.HISTORY), place=place, version=pin(table), arguments=arguments)

    def eval(self, *args: Any, **keywords: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows, newest first."""
        rows = metadata_tables.history(self._analysis.table, self._analysis.arguments.get("limit"))
        yield from _rows(iter(rows.to_batches()), metadata_tables.HISTORY, self._analysis.schema)


@brief_errors
class _LanceVectorSearch:
    """The rows nearest to a query vector. A null query does not return rows."""

    def __init__(self, analysis: _Analysis) -> None:
        self._analysis = analysis

    @staticmethod
    def analyze(*args: AnalyzeArgument, **keywords: AnalyzeArgument) -> _Analysis:
        """Return the columns of the table, or only the requested columns, and `_distance`."""
        arguments = _constants(_SEARCH, args, keywords, but="query")
        for name in ("column", "query"):
            if name not in arguments:
                raise InvalidInputError(f"argument {name!r} is missing", where="lance_vector_search")
        place, table = _table(arguments)
        dim = vector_column(table.handle.table, arguments["column"]).dim
        schema = _search(table, arguments, [0] * dim).projected_schema
        return _Analysis(spark_schema(schema), place=place, version=pin(table), arguments=arguments)

    def eval(self, *args: Any, **keywords: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows, nearest first."""
        query = keywords["query"] if "query" in keywords else args[_SEARCH.index("query")]
        if query is None:
            return
        scan = _search(self._analysis.table, self._analysis.arguments, [float(number) for number in query])
        yield from _rows(scan.to_batches(), scan.projected_schema, self._analysis.schema)


@brief_errors
class _LanceSearch:
    """The rows that match a text query. A null query does not return rows."""

    def __init__(self, analysis: _Analysis) -> None:
        self._analysis = analysis

    @staticmethod
    def analyze(*args: AnalyzeArgument, **keywords: AnalyzeArgument) -> _Analysis:
        """Return the columns of the table, or only the requested columns, and `_score`."""
        arguments = _constants(_TEXT_SEARCH, args, keywords, but="query")
        if "query" not in arguments:
            raise InvalidInputError("argument 'query' is missing", where="lance_search")
        place, table = _table(arguments)
        schema = _text_search(table, arguments, "").projected_schema
        return _Analysis(spark_schema(schema), place=place, version=pin(table), arguments=arguments)

    def eval(self, *args: Any, **keywords: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows, best first."""
        query = keywords["query"] if "query" in keywords else args[_TEXT_SEARCH.index("query")]
        if query is None:
            return
        scan = _text_search(self._analysis.table, self._analysis.arguments, str(query))
        yield from _rows(scan.to_batches(), scan.projected_schema, self._analysis.schema)


FUNCTIONS: Final[Mapping[str, type]] = {
    "lance_table": _LanceTable,
    "lance_history": _LanceHistory,
    "lance_vector_search": _LanceVectorSearch,
    "lance_search": _LanceSearch,
}


def register_functions(spark: SparkSession) -> None:
    """Register the table functions with a session."""
    for name, function in FUNCTIONS.items():
        spark.udtf.register(name, cast("UserDefinedTableFunction", udtf(function)))


def _constants(
    names: tuple[str, ...], args: tuple[AnalyzeArgument, ...], by_name: Mapping[str, AnalyzeArgument], but: str = ""
) -> dict[str, Any]:
    """Return the constant arguments by name, without nulls.

    The argument named by `but` does not have to be constant. It gets the value None.

    Raises:
        InvalidInputError: An argument is unknown, given twice, or not a constant.
    """
    if len(args) > len(names):
        raise InvalidInputError("too many arguments", expected=", ".join(names), found=len(args))
    arguments = dict(zip(names, args, strict=False))
    for name, argument in by_name.items():
        if name not in names or name in arguments:
            raise InvalidInputError(f"argument {name!r}", expected=f"each at most once: {', '.join(names)}")
        arguments[name] = argument
    constants: dict[str, Any] = {}
    for name, argument in arguments.items():
        if name == but:
            constants[name] = None
        elif not argument.isConstantExpression:
            raise InvalidInputError(f"argument {name!r}", expected="a constant", found="an expression over rows")
        elif argument.value is not None:
            constants[name] = argument.value
    return constants


def _table(arguments: Mapping[str, Any]) -> tuple[TableRef, LanceDataset]:
    if not isinstance(arguments.get("uri"), str):
        raise InvalidInputError("uri", expected="the path of a table", found=repr(arguments.get("uri")))
    options = arguments.get("storage_options")
    place = TableRef.of(arguments["uri"], None if options is None else _settings(options))
    return place, place.dataset(arguments.get("version"))


def _settings(options: Any) -> dict[str, str]:
    try:
        settings = json.loads(options)
        return {str(name): str(value) for name, value in settings.items()}
    except (TypeError, ValueError, AttributeError) as error:
        raise InvalidInputError("storage_options", expected="a JSON object with option names and values") from error


def _columns(arguments: Mapping[str, Any]) -> list[str] | None:
    """Return column names from an array or a comma-separated string."""
    names = arguments.get("columns")
    return [name.strip() for name in names.split(",")] if isinstance(names, str) else names


def _search(table: LanceDataset, arguments: Mapping[str, Any], query: list[float]) -> Any:
    nearest = {name: arguments[name] for name in _NEAREST if name in arguments}
    options = {name: arguments[name] for name in ("filter", "prefilter") if name in arguments}
    return table.scan(_columns(arguments), nearest={**nearest, "q": query}, use_threads=False, **options)


def _text_search(table: LanceDataset, arguments: Mapping[str, Any], query: str) -> Any:
    options = {name: arguments[name] for name in ("filter", "prefilter") if name in arguments}
    search = text_search_arguments(query, arguments.get("k"), arguments.get("column"), options)
    return table.scan(_columns(arguments), use_threads=False, **search)


def _rows(batches: Iterator[pa.RecordBatch], arrow: pa.Schema, schema: StructType) -> Iterator[tuple[Any, ...]]:
    declaration = Declaration(schema, arrow)
    for batch in batches:
        declared = declaration.apply(batch)
        columns = [column.to_pylist(maps_as_pydicts="strict") for column in declared.columns]
        yield from zip(*columns, strict=True)
