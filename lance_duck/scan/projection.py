"""The columns of a scan: columns of the table, struct fields, hidden columns and SQL expressions, resolved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

from lance_duck import lazy
from lance_duck.arguments import unknown_column
from lance_duck.arrow.pandas_metadata import PANDAS, LabelledColumn, fitted
from lance_duck.arrow.types import storage_type
from lance_duck.cache import LruCache
from lance_duck.encoding.arrow.dictionaries import holds_dictionaries
from lance_duck.errors import InvalidInputError
from lance_duck.scan.predicate.arrays import row_width
from lance_duck.scan.predicate.tree import Path
from lance_duck.wire.column_path import quoted_name, split_path
from lance_duck.wire.schema import Field, Schema

if TYPE_CHECKING:
    from lance_duck.scan.evaluator import expressions
    from lance_duck.scan.sql import vet
else:
    expressions = lazy.modules(globals(), "lance_duck.scan.evaluator", "expressions")
    vet = lazy.modules(globals(), "lance_duck.scan.sql", "vet")

ColumnsLike: TypeAlias = Iterable[str] | Mapping[str, str]

_DERIVED: Final = 64
"""Maximum number of derived values cached per projection."""

ROW_ID: Final = "_rowid"
ROW_ADDRESS: Final = "_rowaddr"
ROW_OFFSET: Final = "_rowoffset"
CREATED_AT: Final = "_row_created_at_version"
LAST_UPDATED_AT: Final = "_row_last_updated_at_version"
BLOB_WIDTH: Final = 256 * 1024
"""Assumed blob size, in bytes, when morsels are sized. This limits memory."""
HIDDEN: Final = (ROW_ID, ROW_ADDRESS, LAST_UPDATED_AT, CREATED_AT, ROW_OFFSET)


@dataclass(frozen=True)
class Output:
    """A column of the result.

    Attributes:
        field: Name and type of the column.
        path: Path of the table's column or struct field, or None for an expression.
        expression: The SQL expression to compute, or None for a column.
        within: Paths of the fields to read from the struct at `path`. If empty, all fields are read.
    """

    field: pa.Field
    path: Path | None = None
    expression: vet.SqlExpression | None = None
    within: tuple[Path, ...] = ()

    @property
    def paths(self) -> tuple[Path, ...]:
        """Paths of the columns and struct fields that the output reads."""
        if self.expression is not None:
            return self.expression.paths
        return self.within or ((self.path,) if self.path else ())


@dataclass(frozen=True)
class Projection:
    """The columns of a result, in order."""

    outputs: tuple[Output, ...]
    metadata: Mapping[bytes, bytes] | None = None

    @cached_property
    def schema(self) -> pa.Schema:
        """Arrow schema of the result."""
        return pa.schema([output.field for output in self.outputs], self.metadata)

    @cached_property
    def paths(self) -> tuple[Path, ...]:
        """Paths of the columns to read, including hidden ones, without duplicates."""
        return tuple(dict.fromkeys(path for output in self.outputs for path in output.paths))

    @cached_property
    def roots(self) -> frozenset[str]:
        """Top-level columns that the projection reads."""
        return frozenset(path[0] for path in self.paths)

    @cached_property
    def dictionaries(self) -> tuple[int, ...]:
        """Positions of result columns whose type is or contains a dictionary."""
        return tuple(i for i, each in enumerate(self.outputs) if each.path and holds_dictionaries(each.field.type))

    @cached_property
    def derived(self) -> LruCache[Any]:
        """Cache, by key, of values derived from this projection."""
        return LruCache(_DERIVED)


@dataclass(frozen=True)
class Read:
    """A top-level column to read from the files of a fragment.

    Attributes:
        field: The column, with only those struct fields that are read.
        arrow_type: Arrow type in which its values are read.
    """

    field: Field
    arrow_type: pa.DataType

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.field.name

    @cached_property
    def width(self) -> int:
        """Estimated size of a value, in bytes."""
        has_blobs = any(field.blob_bytes for field in self.field.walk())
        return BLOB_WIDTH if has_blobs else row_width(self.arrow_type)

    @cached_property
    def is_fixed(self) -> bool:
        """Whether all values have the same size. This includes blobs, because scans read their descriptions."""
        return any(field.blob_bytes for field in self.field.walk()) or _is_fixed(self.arrow_type)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """A key that is equal for two reads of the same fields in the same Arrow type."""
        return tuple(field.id for field in self.field.walk()), str(self.arrow_type)


def _is_fixed(type_: pa.DataType) -> bool:
    try:
        return bool(storage_type(type_).bit_width)
    except ValueError:  # Arrow raises it for types whose values differ in size
        return False


def readable_schema(schema: Schema) -> pa.Schema:
    """Return the columns that filters and expressions may name, including hidden columns."""
    hidden = [pa.field(name, pa.uint64()) for name in HIDDEN if name not in schema.names]
    return pa.schema([*schema.scan_arrow, *hidden])


def project(
    schema: Schema,
    columns: ColumnsLike | None = None,
    *,
    with_row_id: bool = False,
    with_row_address: bool = False,
    arrow_types: Mapping[str, pa.DataType] | None = None,
    in_order: bool = True,
) -> Projection:
    """Resolve the requested columns.

    Args:
        schema: Columns of the table.
        columns: Names in result order ("a.b" for field b of struct a, or hidden columns), or SQL expressions by result
            name. None selects all columns.
        with_row_id: Add `_rowid` at the end, unless it is named.
        with_row_address: Add `_rowaddr` at the end, unless it is named.
        arrow_types: Arrow types for top-level columns, by name. They override the table's types.
        in_order: Whether rows are in table order, each once.

    Raises:
        InvalidInputError: A name is unknown or repeated, or an expression is invalid.
    """
    types = arrow_types or {}
    if columns is None:
        outputs = [_column(schema, f.name, (f.name,), types) for f in schema.fields]
    elif isinstance(columns, Mapping):
        outputs = [_expression(schema, name, text, types) for name, text in columns.items()]
    else:
        outputs = [_named(schema, name, types) for name in _names(columns)]
    present = {output.field.name for output in outputs}
    for name, is_wanted in ((ROW_ID, with_row_id), (ROW_ADDRESS, with_row_address)):
        if is_wanted and name not in present:
            outputs.append(_column(schema, name, (name,), types))
    return Projection(tuple(outputs), _metadata(schema, outputs, whole=columns is None, in_order=in_order))


def _metadata(
    schema: Schema, outputs: Sequence[Output], *, whole: bool, in_order: bool
) -> Mapping[bytes, bytes] | None:
    """Return the schema metadata of a result: the table's if `whole`, otherwise only the pandas metadata."""
    text = schema.metadata.get(PANDAS)
    if text is None:
        own: Mapping[bytes, bytes] | None = schema.scan_arrow.metadata if whole else None
        return own
    columns = [
        LabelledColumn(each.path[0] if each.path and len(each.path) == 1 else None, each.field.name, each.field.type)
        for each in outputs
    ]
    metadata = {key: value for key, value in schema.metadata.items() if whole and key != PANDAS}
    labelled = fitted(text, columns, labels=in_order)
    metadata |= {} if labelled is None else {PANDAS: labelled}
    return {key.encode(): value.encode() for key, value in metadata.items()} or None


def reads(
    schema: Schema, paths: Iterable[Path], arrow_types: Mapping[str, pa.DataType] | None = None
) -> tuple[Read, ...]:
    """Return the top-level columns that contain the given paths, without hidden columns."""
    paths_by_column: dict[str, list[Path]] = {}
    for path in paths:
        paths_by_column.setdefault(path[0], []).append(path[1:])
    result = []
    for name, below in paths_by_column.items():
        if name in schema.names:
            field = schema.by_path(quoted_name(name)).pruned(below)
            whole = arrow_types.get(name) if arrow_types else None
            result.append(Read(field, field.to_arrow(scan=True).type if whole is None else _pruned_type(whole, field)))
    return tuple(result)


def _pruned_type(whole: pa.DataType, field: Field) -> pa.DataType:
    """Return a column's Arrow type with only the struct members that a pruned field contains."""
    if not pa.types.is_struct(whole) or not field.children or field.blob_version:
        return whole
    parts = [(whole.field(child.name), child) for child in field.children]
    return pa.struct([part.with_type(_pruned_type(part.type, child)) for part, child in parts])


def _names(columns: Iterable[str]) -> list[str]:
    if isinstance(columns, str | bytes) or not isinstance(columns, Iterable):
        raise InvalidInputError("bad columns", expected="a list of names, or a dict", found=type(columns).__name__)
    names = list(columns)
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise InvalidInputError("bad columns", expected="names", found=type(name).__name__)
        if name in names[:i]:
            raise InvalidInputError("a column is named twice", found=name)
    return names


def _named(schema: Schema, name: str, types: Mapping[str, pa.DataType]) -> Output:
    path = (name,) if name in schema.names or name in HIDDEN else tuple(split_path(name))
    return _column(schema, name, path, types)


def _column(schema: Schema, name: str, path: Path, types: Mapping[str, pa.DataType]) -> Output:
    if len(path) == 1 and path[0] in HIDDEN and path[0] not in schema.names:
        return Output(pa.field(name, pa.uint64()), path)
    if path[0] not in schema.names:
        raise unknown_column(name, (*schema.names, *HIDDEN), "columns")
    field, nullable = schema.by_path(quoted_name(path[0])), False
    for part in path[1:]:
        nullable = nullable or field.nullable
        child = next((c for c in field.children if c.name == part), None) if field.logical_type == "struct" else None
        if child is None:
            raise unknown_column(name, schema.names, "columns")
        field = child
    arrow = field.to_arrow(scan=True).with_name(name)
    arrow = arrow.with_nullable(arrow.nullable or nullable)
    if len(path) == 1 and path[0] in types:
        arrow = arrow.with_type(types[path[0]])
    return Output(arrow, path)


def _expression(schema: Schema, name: str, text: str, types: Mapping[str, pa.DataType]) -> Output:
    if not isinstance(name, str) or not isinstance(text, str):
        raise InvalidInputError("bad columns", expected="SQL strings by name", found=f"{name!r}: {text!r}")
    if text in schema.names or text in HIDDEN:
        plain = _column(schema, text, (text,), types)
        return replace(plain, field=plain.field.with_name(name))
    available = readable_schema(schema)
    parsed = vet.parse_sql(text, available, f"expression of column {name!r}")
    roots = dict.fromkeys(path[0] for path in parsed.paths)
    empty = {root: pa.nulls(0, available.field(root).type) for root in roots}
    result = expressions.evaluate_sql(f"{parsed.sql} AS value", empty, 0, text=text)
    return Output(pa.field(name, result.schema.field(0).type), None, parsed)


def nested_projection(schema: Schema, columns: ColumnsLike | None) -> Projection:
    """Project like `project`, but return "a.b" as struct a with only field b."""
    if columns is None or isinstance(columns, Mapping):
        return project(schema, columns, in_order=False)
    flat = project(schema, columns)
    by_name: dict[str, Output] = {}
    below: dict[str, list[Path]] = {}
    for output in flat.outputs:
        path = output.paths[0]
        below.setdefault(path[0], []).append(path[1:])
        by_name.setdefault(path[0], output)
    outputs = []
    for name, output in by_name.items():
        if name in schema.names:
            field = schema.by_path(quoted_name(name)).pruned(below[name])
            output = Output(field.to_arrow(scan=True), (name,), None, tuple((name, *rest) for rest in below[name]))
        outputs.append(output)
    return Projection(tuple(outputs), _metadata(schema, outputs, whole=False, in_order=False))
