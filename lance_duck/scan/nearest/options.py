"""The arguments of a nearest-neighbour search, validated against the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from lance_duck import lazy
from lance_duck.arguments import did_you_mean, known_names, refuse_unknown
from lance_duck.arrow.types import storage_type
from lance_duck.errors import InvalidInputError, LanceDuckError, UnknownColumnError, UnsupportedError, WrongTypeError
from lance_duck.index.catalog import field_path
from lance_duck.index.vector.metric import METRICS
from lance_duck.scan.nearest.queries import Queries, query_vectors
from lance_duck.scan.table_scan import TableScan
from lance_duck.wire.column_path import quoted_name
from lance_duck.wire.schema import Field, Schema

if TYPE_CHECKING:
    from lance_duck.scan import vector_lists
else:
    vector_lists = lazy.modules(globals(), "lance_duck.scan", "vector_lists")

DEFAULT_K: Final = 10

ARGUMENTS: Final = frozenset(
    {
        *("column", "q", "k", "metric", "distance_type", "nprobes", "minimum_nprobes", "maximum_nprobes"),
        *("refine_factor", "use_index", "ef", "query_parallelism", "approx_mode", "distance_range", "search_effort"),
        *("exact_distance", "recall"),
    }
)
DEFAULT_RECALL: Final = 0.95
_FLOATS: Final = ("halffloat", "float", "double")
_BFLOAT16: Final = "lance.bfloat16"


@dataclass(frozen=True)
class VectorColumn:
    """A column of vectors.

    Attributes:
        path: Dotted path of the column. Names are quoted with backticks if necessary.
        names: The names in the path.
        dim: Number of dimensions of a vector.
        dtype: Dtype in which distances are computed: float32, float64, or uint8 for bits.
        form: Arrow type in which the column is read.
        is_many: Whether each row contains a list of vectors.
    """

    path: str
    names: tuple[str, ...]
    dim: int
    dtype: np.dtype[Any]
    form: pa.DataType
    is_many: bool = False

    @property
    def query_dtype(self) -> np.dtype[Any]:
        """Dtype of queries: the dtype of distances, or float32 for multivector rows."""
        return np.dtype(np.float32) if self.is_many and self.dtype == np.float64 else self.dtype


@dataclass(frozen=True, eq=False)
class Nearest:
    """The arguments of a search, without its queries.

    Attributes:
        column: Column to search.
        k: Number of neighbours per query.
        metric: One of `index.vector.search.contract.METRICS`. None uses the metric of the index, or the column's
            default.
        nprobes: Number of partitions to search first. None derives it from the recall.
        max_nprobes: Maximum number of partitions to search. None means all.
        ef: Number of candidates in a graph walk.
        refine_factor: Number of candidates to rerank with their original vectors, as a multiple of k.
        use_index: Whether an index may be used. Otherwise, all vectors are compared.
        exact_distance: Whether distances are computed from the table's vectors even if an index stores codes.
        lower: Minimum distance of a neighbour (inclusive), or None.
        upper: Maximum distance of a neighbour (exclusive), or None.
        recall: Minimum share of the true neighbours that an index must find, 0 (exclusive) to 1. Explicit settings
            override it.
    """

    column: VectorColumn
    k: int = DEFAULT_K
    metric: str | None = None
    nprobes: int | None = None
    max_nprobes: int | None = None
    ef: int | None = None
    refine_factor: int | None = None
    use_index: bool = True
    exact_distance: bool = False
    lower: float | None = None
    upper: float | None = None
    recall: float = DEFAULT_RECALL

    @classmethod
    def of(cls, arguments: Mapping[str, Any], table: TableScan, k: int = DEFAULT_K) -> Nearest:
        """Validate the arguments of a search, which have the same names as in pylance. The queries, "q", are ignored.

        Args:
            arguments: The arguments.
            table: The table.
            k: Number of neighbours per query, unless the arguments contain `k`.

        Raises:
            WrongTypeError: The column does not contain vectors, or an argument has the wrong type.
            InvalidInputError: An argument is unknown, out of range, or does not fit this table.
        """
        if not isinstance(arguments, Mapping):
            raise WrongTypeError("nearest", expected="a dict", found=type(arguments).__name__)
        refuse_unknown(arguments, sorted(ARGUMENTS), "nearest")
        column = vector_column(table, _needed(arguments, "column"), many=True)
        low, most = _probes(arguments)
        lower, upper = _range(arguments.get("distance_range"))
        return cls(
            column,
            _whole(arguments, "k", 1, "Nearest-K must be > 0") or k,
            _metric(arguments, column),
            low,
            most,
            _whole(arguments, "ef", 1, "ef must be > 0"),
            _whole(arguments, "refine_factor", 1, "Refine factor must be 1 or more"),
            arguments.get("use_index") is not False,
            arguments.get("exact_distance") is True,
            lower,
            upper,
            _recall(arguments.get("recall")),
        )

    @property
    def promise(self) -> float | None:
        """The recall from which settings are derived, or None if they are not derived from a recall.

        They are not derived if settings are explicit, if rows contain several vectors, or if a recall below 1 is
        combined with a minimum distance. Measured recalls do not apply in these cases.
        """
        if self.column.is_many or (self.lower is not None and self.recall < 1):
            return None
        settings = (self.nprobes, self.max_nprobes, self.ef, self.refine_factor)
        return self.recall if all(each is None for each in settings) else None

    def queries(self, arguments: Mapping[str, Any]) -> Queries:
        """Return the queries in the arguments of a search: see `query_vectors`."""
        queries = query_vectors(_needed(arguments, "q"), self.column.dim, self.column.query_dtype)
        return Queries(queries.vectors, is_batch=False, is_one=True) if self.column.is_many else queries

    @property
    def default_metric(self) -> str:
        """The metric that is used if neither the caller nor an index determines one."""
        return self.metric or ("hamming" if self.column.dtype == np.uint8 else "l2")


def vector_column(table: TableScan, name: Any, *, many: bool = False) -> VectorColumn:
    """Resolve a column of vectors.

    Args:
        table: The table.
        name: Name of the column.
        many: Whether a row may contain several vectors.

    Raises:
        UnknownColumnError: The column does not exist.
        WrongTypeError: The column does not contain vectors.
        UnsupportedError: Rows of the column contain several vectors, and `many` is false.
    """
    if not isinstance(name, str):
        raise WrongTypeError("column", where="nearest", expected="a name", found=type(name).__name__)
    schema = table.snapshot.schema
    try:
        field = schema.by_path(name if name not in schema.names else quoted_name(name))
        path = field_path(schema, field.id)
    except LanceDuckError as error:
        raise UnknownColumnError(
            f"Embedding column {name} is not in the dataset",
            expected=known_names(schema.names),
            remedy=did_you_mean(name, schema.names),
        ) from error
    is_many = _is_many(field)
    vectors = _vectors(field.arrow_type.value_type if is_many else field.arrow_type)
    if vectors is None or path is None:
        raise WrongTypeError(
            f"Query column {name} must be a vector. Got {field.arrow_type}",
            remedy=None if path is None else vector_lists.cast_to_vectors(table, path),
        )
    if is_many and not many:
        raise UnsupportedError("columns with several vectors per row are not supported here", where=f"column {name}")
    return VectorColumn(path, _names_to(schema, field), *vectors, is_many)


def only_vector_column(table: TableScan) -> str:
    """Return the path of the only top-level vector column of a table.

    Raises:
        InvalidInputError: The table does not have exactly one vector column.
    """
    schema = table.snapshot.schema
    columns = ((field, field.arrow_type.value_type if _is_many(field) else field.arrow_type) for field in schema.fields)
    candidates = [quoted_name(field.name) for field, type_ in columns if _vectors(type_) is not None]
    if len(candidates) != 1:
        remedy = "name it: column=" if candidates else None
        if not candidates:
            remedy = vector_lists.casts_to_vectors(table, vector_lists.list_columns(schema))
        names = ", ".join(candidates) or "none"
        raise InvalidInputError("column", where="search", expected="one vector column", found=names, remedy=remedy)
    return candidates[0]


def _vectors(type_: pa.DataType) -> tuple[int, np.dtype[Any], pa.DataType] | None:
    """Return a vector type's dimension, dtype and read type, or None if the type is not a vector type."""
    type_ = storage_type(type_)
    if not pa.types.is_fixed_size_list(type_) or not type_.list_size:
        return None
    dim, values = type_.list_size, type_.value_type
    form = pa.list_(type_.value_field.with_type(pa.float32()), dim)
    if isinstance(values, pa.BaseExtensionType):
        return (dim, np.dtype(np.float32), type_) if values.extension_name == _BFLOAT16 else None
    if values == pa.uint8():
        return dim, np.dtype(np.uint8), type_
    if values == pa.float64():
        return dim, np.dtype(np.float64), type_
    return (dim, np.dtype(np.float32), form) if str(values) in _FLOATS else None


def _is_many(field: Field) -> bool:
    type_ = field.arrow_type
    is_list = pa.types.is_list(type_) or pa.types.is_large_list(type_)
    return bool(is_list and pa.types.is_fixed_size_list(storage_type(type_.value_type)))


def _names_to(schema: Schema, field: Field) -> tuple[str, ...]:
    names = [field.name]
    while field.parent_id >= 0:
        field = schema.by_id(field.parent_id)
        names.append(field.name)
    return tuple(reversed(names))


def _needed(arguments: Mapping[str, Any], name: str) -> Any:
    if name not in arguments:
        raise WrongTypeError(f"{name!r} is missing", where="nearest", remedy=f"name it: {{{name!r}: …}}")
    return arguments[name]


def _metric(arguments: Mapping[str, Any], column: VectorColumn) -> str | None:
    name = arguments.get("metric") if arguments.get("metric") is not None else arguments.get("distance_type")
    if name is None:
        return None
    metric = METRICS.get(name.lower()) if isinstance(name, str) else None
    if metric is None:
        text = f"Metric type {name!r} is not supported"
        raise InvalidInputError(text, where="nearest", expected=", ".join(METRICS), remedy=did_you_mean(name, METRICS))
    if (metric == "hamming") != (column.dtype == np.uint8):
        raise InvalidInputError(
            f"Distance type {metric} does not support {column.form.value_type} vectors", where=f"column {column.path}"
        )
    return metric


def _probes(arguments: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the initial and maximum number of partitions to search."""
    exact = _whole(arguments, "nprobes", 1, "Nprobes must be > 0")
    least = _whole(arguments, "minimum_nprobes", 1, "minimum_nprobes must be >= 1")
    most = _whole(arguments, "maximum_nprobes", 1, "maximum_nprobes must be >= 1")
    first = least or exact
    if first is not None and most is not None and first > most:
        raise InvalidInputError("minimum_nprobes must be <= maximum_nprobes", where="nearest")
    return first, most


def _range(value: Any) -> tuple[float | None, float | None]:
    if value is None:
        return None, None
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise WrongTypeError("distance_range must be a tuple of (lower_bound, upper_bound)", where="nearest")
    for bound in value:
        if bound is None:
            continue
        if isinstance(bound, bool | str) or not hasattr(bound, "__float__"):
            raise WrongTypeError("distance_range", where="nearest", expected="numbers", found=repr(bound))
        if float(bound) != float(bound):
            raise InvalidInputError("distance_range", where="nearest", expected="numbers", found="NaN")
    low, high = value
    return None if low is None else float(low), None if high is None else float(high)


def _recall(value: Any) -> float:
    if value is None:
        return DEFAULT_RECALL
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise WrongTypeError("recall", where="nearest", expected="a number", found=repr(value))
    if not 0 < float(value) <= 1:
        raise InvalidInputError("recall", where="nearest", expected="above 0, up to 1", found=repr(value))
    return float(value)


def _whole(arguments: Mapping[str, Any], name: str, least: int, message: str) -> int | None:
    value = arguments.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise WrongTypeError(name, where="nearest", expected="a whole number", found=repr(value))
    if value.__index__() < least:
        raise InvalidInputError(f"{message} but got {value}", where="nearest")
    return int(value.__index__())
