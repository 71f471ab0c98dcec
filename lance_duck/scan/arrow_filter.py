"""pyarrow compute expressions as filters, evaluated by pyarrow itself.

The columns that an expression reads are found in its pickled form: an Arrow IPC file whose schema metadata is the tree
in prefix notation, one (kind, value) pair a node; "field_ref" names a column, "nested_field_ref" a path of so many
parts that follow. Where that form is another one, every column is taken to be read.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any, Final

import pyarrow as pa
import pyarrow.acero as ac
import pyarrow.compute as pc

from lance_duck.errors import InvalidInputError
from lance_duck.scan.duckdb_eval import Columns
from lance_duck.scan.predicate import Path

_MASK: Final = "mask"


def expression_paths(expression: pc.Expression, schema: pa.Schema) -> tuple[Path, ...]:
    """Columns and struct fields that the expression reads; all columns when it does not say.

    Raises:
        InvalidInputError: It reads a column that the schema does not have.
    """
    found = _recorded_paths(expression)
    if found is None:
        return tuple((name,) for name in schema.names)
    for path in found:
        if path[0] not in schema.names:
            raise InvalidInputError(
                f"bad filter: no column {path[0]!r}",
                where=str(expression),
                remedy=f"columns are {', '.join(schema.names)}",
            )
    return found


def check_expression(expression: pc.Expression, schema: pa.Schema) -> None:
    """Bind the expression to columns of these types.

    Raises:
        InvalidInputError: It does not fit them, or is no condition.
    """
    empty = {name: pa.nulls(0, schema.field(name).type) for name in schema.names}
    expression_mask(expression, empty, 0)


def expression_mask(expression: pc.Expression, columns: Columns, num_rows: int) -> pa.BooleanArray:
    """Rows for which the expression is true.

    Raises:
        InvalidInputError: It does not fit the columns, or is no condition.
    """
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


def _recorded_paths(expression: pc.Expression) -> tuple[Path, ...] | None:
    try:
        payload = expression.__reduce__()[1][0]
        schema = pa.ipc.open_file(pa.py_buffer(payload)).schema
        return _paths(metadata_pairs(schema))
    except (pa.ArrowException, ValueError, TypeError, LookupError, AttributeError, struct.error):
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


class _CSchema(ctypes.Structure):
    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
        ("flags", ctypes.c_int64),
        ("n_children", ctypes.c_int64),
        ("children", ctypes.c_void_p),
        ("dictionary", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


def metadata_pairs(schema: pa.Schema) -> list[tuple[str, str]]:
    """Metadata in order and with repeated keys, which pyarrow's own view of it drops."""
    exported = _CSchema()
    schema._export_to_c(ctypes.addressof(exported))
    try:
        return _read_pairs(exported.metadata) if exported.metadata else []
    finally:
        _release(exported)


def _read_pairs(address: int) -> list[tuple[str, str]]:
    def number() -> int:
        nonlocal address
        (value,) = struct.unpack("=i", ctypes.string_at(address, 4))
        address += 4
        return int(value)

    def text() -> str:
        nonlocal address
        size = number()
        value = ctypes.string_at(address, size)
        address += size
        return value.decode()

    return [(text(), text()) for _ in range(number())]


def _release(exported: Any) -> None:
    if exported.release:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(exported.release)(ctypes.addressof(exported))
