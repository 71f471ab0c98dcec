"""Converts literals of a pyarrow expression to types that pyarrow compares exactly with the other operand.

pyarrow casts a literal to the type of the other operand, or both operands to a common type. It considers only their
types, not their values. Therefore it rejects a comparison of decimal128(9, 2) with 99, because int64 has 19 digits. It
also rejects a comparison of a time in Tokyo with a time in UTC. Literals are therefore converted first. This does not
change the meaning of the expression:

operand                       | literal                    | becomes
a decimal column or cast      | integer, decimal           | the operand's type; one more digit if between its values
other decimals (d + 1)        | integer                    | a decimal with the same number of digits
a timestamp with a time zone  | timestamp in another zone  | the same instant in the operand's zone
any type                      | string_view, binary_view   | string, binary
any type                      | halffloat                  | float32, like half float columns (`scan.arrow.filter`)

The values of is_in are converted in the same way. Values that a decimal column cannot store are dropped, and
dictionaries are decoded. The pickled form of an expression stores literals as columns. These columns are replaced: see
`scan.arrow.tree`.
"""

from __future__ import annotations

from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.types import decoded_dictionary, is_instant
from lance_duck.scan.arrow.tree import ARROW_OPS, UNREADABLE, Node, numbered_tree
from lance_duck.scan.predicate.types import path_type, value_type

_DIGITS: Final = Context(prec=400)
"""Decimal context with enough digits to compute exactly with decimal256 values of any scale."""

_ARITHMETIC: Final = frozenset(
    name + checked for name in ("add", "subtract", "multiply", "divide") for checked in ("", "_checked")
)
_GROWTH: Final = 6
"""Maximum number of digits that a quotient has in addition to the digits of both operands. Sums and products need
fewer."""

_SAME_TYPE: Final = frozenset({"abs", "abs_checked", "negate", "negate_checked", "coalesce", "if_else"})
_ANY_DECIMAL: Final = pa.decimal128(1, 0)
"""Placeholder for an unknown decimal type."""


def with_fitting_literals(expression: pc.Expression, schema: pa.Schema) -> pc.Expression:
    """Return an equivalent expression whose literals have types that fit the other operands.

    Args:
        expression: Any expression. It is returned unchanged if its pickled form is unknown.
        schema: Columns that the expression may read.
    """
    try:
        unpickle = expression.__reduce__()[0]
        root, constants = numbered_tree(expression)
        fitting = _Fitting(schema, constants)
        fitting.look_at(root)
        return unpickle(_with_columns(constants, fitting.replaced)) if fitting.replaced else expression
    except UNREADABLE:
        return expression


class _Fitting:
    """Finds literals whose types do not fit the other operands.

    Attributes:
        replaced: Converted literals as one-row columns, by their column index in `constants`.
    """

    def __init__(self, schema: pa.Schema, constants: pa.RecordBatch) -> None:
        self._schema = schema
        self._constants = constants
        self.replaced: dict[int, pa.Array] = {}

    def look_at(self, node: Node) -> None:
        """Collect the literals to replace in a node and its descendants."""
        function, arguments = node
        if function == "literal":
            self._plain(arguments)
        if function in ("literal", "field", "options"):
            return
        for argument in arguments:
            self.look_at(argument)
        if function in ("is_in", "index_in"):
            self._values(arguments[0], arguments[1][1])
        elif function in ARROW_OPS or function in _ARITHMETIC:
            for literal, beside in (arguments, arguments[::-1]):
                if literal[0] == "literal":
                    self._literal(literal[1], beside, is_compared=function in ARROW_OPS)

    def _plain(self, place: int) -> None:
        column = self._constants.column(place)
        plain = _plain_type(column.type)
        if plain != column.type:
            self.replaced[place] = column.cast(plain)

    def _literal(self, place: int, beside: Node, *, is_compared: bool) -> None:
        value = self._constants.column(place)[0]
        type_ = self._type(beside)
        if type_ is None:
            return
        if pa.types.is_decimal(type_) and _is_whole_or_decimal(value.type):
            if is_compared and type_ is not _ANY_DECIMAL:
                self._replace(place, _between(value.as_py(), type_))
            elif pa.types.is_integer(value.type):
                self._replace(place, _short(value.as_py(), type_))
        elif _is_other_zone(value.type, type_):
            self._replace(place, value.cast(pa.timestamp(value.type.unit, type_.tz)))

    def _values(self, beside: Node, place: int) -> None:
        """Convert the values of `is_in` or `index_in`, which are stored in its options."""
        options = self._constants.column(place)
        at = options.type.get_field_index("value_set")
        values = options.field(at)[0].values
        plain = decoded_dictionary(values) if pa.types.is_dictionary(values.type) else values
        plain = plain.cast(_plain_type(plain.type))
        type_ = self._type(beside)
        if type_ is not None and type_ is not _ANY_DECIMAL:
            if pa.types.is_decimal(type_) and _is_whole_or_decimal(plain.type):
                plain = pa.array([v for v in plain.to_pylist() if v is None or _is_value_of(v, type_)], type_)
            elif pa.types.is_integer(type_) and pa.types.is_decimal(plain.type):
                plain = pa.array(
                    [v if v is None else int(v) for v in plain.to_pylist() if _is_integer_of(v, type_)], type_
                )
            elif _is_other_zone(plain.type, type_):
                plain = plain.cast(pa.timestamp(plain.type.unit, type_.tz))
        if plain is values:
            return
        fields = [options.field(i) for i in range(options.type.num_fields)]
        fields[at] = pa.ListArray.from_arrays(pa.array([0, len(plain)], pa.int32()), plain)
        names = [options.type.field(i).name for i in range(options.type.num_fields)]
        self.replaced[place] = pa.StructArray.from_arrays(fields, names)

    def _replace(self, place: int, value: pa.Scalar | None) -> None:
        if value is not None and value.type != self._constants.column(place).type:
            self.replaced[place] = pa.array([value.as_py()], value.type)

    def _type(self, node: Node) -> pa.DataType | None:
        """Return the type of a node, `_ANY_DECIMAL` for a decimal of unknown precision, or None if unknown."""
        function, arguments = node
        if function == "field":
            return value_type(path_type(self._schema, arguments))
        if function == "literal":
            return self._constants.column(arguments).type
        if function == "options":
            return None
        if function == "cast":
            options = self._constants.column(arguments[1][1])
            return options.type.field("to_type").type
        if function in _ARITHMETIC or function in _SAME_TYPE or function.startswith("round"):
            types = [type_ for type_ in map(self._type, arguments) if type_ is not None]
            decimals = any(pa.types.is_decimal(type_) for type_ in types)
            return _ANY_DECIMAL if decimals and not any(pa.types.is_floating(type_) for type_ in types) else None
        return None


def _with_columns(constants: pa.RecordBatch, replaced: dict[int, pa.Array]) -> pa.Buffer:
    """Return the pickled form with replaced constants. The tree in the schema metadata is not changed."""
    schema, columns = constants.schema, constants.columns
    for place, column in replaced.items():
        columns[place] = column
        schema = schema.set(place, schema.field(place).with_type(column.type))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return sink.getvalue()


def _between(value: Decimal | int | None, type_: pa.DataType) -> pa.Scalar | None:
    """Return a decimal that compares like `value` with all values of a type, or None if this is not possible.

    The result is the value itself, or is halfway between two values of the type, or is beyond all of them.
    """
    if value is None:
        return pa.scalar(None, type_)
    precision, scale = type_.precision, type_.scale
    scaled = _DIGITS.scaleb(Decimal(value), scale)
    below = int(scaled.to_integral_value(ROUND_FLOOR, _DIGITS))
    most = 10**precision
    if _DIGITS.abs(scaled) >= most:
        return _decimal(most if scaled > 0 else -most, precision + 1, scale, type_)
    if scaled == below:
        return _decimal(below, precision, scale, type_)
    return _decimal(10 * below + 5, precision + 1, scale + 1, type_)


def _short(value: int | None, beside: pa.DataType) -> pa.Scalar:
    """Return an integer as a decimal with the same digits: a decimal256 if a calculation may exceed 38 digits."""
    digits = len(str(abs(value or 0)))
    is_wide = beside.precision + digits + _GROWTH > 38
    return pa.scalar(value, pa.decimal256(digits, 0) if is_wide else pa.decimal128(digits, 0))


def _decimal(unscaled: int, precision: int, scale: int, like: pa.DataType) -> pa.Scalar | None:
    if precision > 76:
        return None
    wide = precision > 38 or pa.types.is_decimal256(like)
    type_ = pa.decimal256(precision, scale) if wide else pa.decimal128(precision, scale)
    return pa.scalar(_DIGITS.scaleb(Decimal(unscaled), -scale), type_)


def _is_value_of(value: Decimal | int, type_: pa.DataType) -> bool:
    scaled = _DIGITS.scaleb(Decimal(value), type_.scale)
    return _DIGITS.abs(scaled) < 10**type_.precision and scaled == scaled.to_integral_value(ROUND_FLOOR, _DIGITS)


def _is_integer_of(value: Decimal | None, type_: pa.DataType) -> bool:
    """Return whether an integer type can represent a decimal. Always true for None, which stands for null."""
    if value is None:
        return True
    bits = type_.bit_width - pa.types.is_signed_integer(type_)
    least = -(2**bits) if pa.types.is_signed_integer(type_) else 0
    return value == value.to_integral_value(ROUND_FLOOR) and least <= value < 2**bits


def _is_whole_or_decimal(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_decimal(type_))


def _is_other_zone(one: pa.DataType, other: pa.DataType) -> bool:
    return is_instant(one) and is_instant(other) and one.tz != other.tz


def _plain_type(type_: pa.DataType) -> pa.DataType:
    return _PLAIN.get(type_, type_)


_PLAIN: Final[dict[Any, Any]] = {
    pa.string_view(): pa.string(),
    pa.binary_view(): pa.binary(),
    pa.float16(): pa.float32(),
}
