"""pyarrow compute expressions as filters, evaluated by pyarrow.

The columns that an expression reads are determined from its pickled form. The pickled form is an Arrow IPC file whose
schema metadata contains the tree in prefix notation, with one (kind, value) pair per node. The value of "field_ref" is
a column name. The value of "nested_field_ref" is the number of names in a path, and the names follow. If pyarrow's
pickled form is unknown, all columns are assumed to be read.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.acero as ac
import pyarrow.compute as pc

from lance_duck.arguments import unknown_column
from lance_duck.errors import InvalidInputError
from lance_duck.scan.evaluator.types import Columns
from lance_duck.scan.predicate.tree import Path
from lance_duck.wire.c_schema import metadata_pairs

_MASK: Final = "mask"


def expression_paths(expression: pc.Expression, schema: pa.Schema) -> tuple[Path, ...]:
    """Return the columns and struct fields that the expression reads, or all columns if its pickled form is unknown.

    Raises:
        InvalidInputError: The expression reads a column that does not exist in the schema.
    """
    paths = _recorded_paths(expression)
    if paths is None:
        return tuple((name,) for name in schema.names)
    for path in paths:
        if path[0] not in schema.names:
            raise unknown_column(path[0], schema.names, str(expression), "bad filter: ")
    return paths


def check_expression(expression: pc.Expression, schema: pa.Schema) -> bool:
    """Check that pyarrow can bind the expression to the columns of the schema.

    Returns:
        Whether dictionaries must be decoded before the expression is evaluated.

    Raises:
        InvalidInputError: The expression does not fit the columns, or is not a condition.
    """
    empty = {name: pa.nulls(0, schema.field(name).type) for name in schema.names}
    try:
        expression_mask(expression, empty, 0)
    except InvalidInputError:
        if not any(pa.types.is_dictionary(type_) for type_ in schema.types):
            raise
        expression_mask(expression, empty, 0, decodes=True)
        return True
    return False


def expression_mask(
    expression: pc.Expression, columns: Columns, num_rows: int, *, decodes: bool = False
) -> pa.BooleanArray:
    """Return the rows for which the expression is true.

    Args:
        expression: The condition.
        columns: Columns that the expression reads, by name. Half floats are compared as float32.
        num_rows: Number of rows in each column.
        decodes: Whether to decode dictionaries first.

    Raises:
        InvalidInputError: The expression does not fit the columns, or is not a condition.
    """
    columns = {name: _readable(array, decodes) for name, array in columns.items()}
    table = pa.table(dict(columns)) if columns else pa.table({_MASK: pa.nulls(num_rows, pa.int8())})
    plan = ac.Declaration.from_sequence(
        [
            ac.Declaration("table_source", ac.TableSourceNodeOptions(table)),
            ac.Declaration("project", ac.ProjectNodeOptions([expression], [_MASK])),
        ]
    )
    try:
        answer = plan.to_table(use_threads=False).column(_MASK)
    except (pa.ArrowException, ValueError, TypeError, KeyError) as error:
        raise InvalidInputError("bad filter", where=str(expression), found=str(error)) from error
    if answer.type != pa.bool_():
        raise InvalidInputError("bad filter", where=str(expression), expected="a condition", found=str(answer.type))
    return answer.combine_chunks().fill_null(False) if num_rows else pa.array([], pa.bool_())


def _readable(array: pa.Array, decodes: bool) -> pa.Array:
    """Return the values of a column in a type that pyarrow functions support."""
    if decodes and pa.types.is_dictionary(array.type):
        return array.dictionary_decode()
    wider = _without_halves(array.type)
    return array if wider is array.type else array.cast(wider)


def _without_halves(type_: pa.DataType) -> pa.DataType:
    """Replace half floats by float32 in a type, including struct fields. Other types are returned unchanged."""
    if pa.types.is_float16(type_):
        return pa.float32()
    if not pa.types.is_struct(type_):
        return type_
    members = [type_.field(place) for place in range(type_.num_fields)]
    wider = [_without_halves(member.type) for member in members]
    if all(new is member.type for new, member in zip(wider, members, strict=True)):
        return type_
    return pa.struct([member.with_type(new) for member, new in zip(members, wider, strict=True)])


def _recorded_paths(expression: pc.Expression) -> tuple[Path, ...] | None:
    try:
        payload = expression.__reduce__()[1][0]
        schema = pa.ipc.open_file(pa.py_buffer(payload)).schema
        return _paths(metadata_pairs(schema))
    except (pa.ArrowException, ValueError, TypeError, LookupError, AttributeError):
        return None


def _paths(pairs: list[tuple[str, str]]) -> tuple[Path, ...]:
    paths: dict[Path, None] = {}
    at = 0
    while at < len(pairs):
        kind, value = pairs[at]
        at += 1
        if kind == "field_ref":
            paths[(value,)] = None
        elif kind == "nested_field_ref":
            parts = pairs[at : at + int(value)]
            if any(kind != "field_ref" for kind, _ in parts):
                raise ValueError(kind)
            paths[tuple(name for _, name in parts)] = None
            at += int(value)
    return tuple(paths)
