"""The predicate that a pyarrow expression implies. Indexes use it to reduce the rows that pyarrow evaluates.

In pyarrow, NaN is neither equal to nor greater than any value, and `is_in` may match nulls. The predicate is therefore
not equivalent to the expression. It is true for every row that the expression selects, and possibly for other rows.
Below a NOT, conditions on floats are treated as unknown.
"""

from __future__ import annotations

from typing import Any, Final, cast

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck.arrow.types import is_text
from lance_duck.scan.arrow.tree import ARROW_OPS, UNREADABLE, Node, expression_tree
from lance_duck.scan.predicate.leaves import implied_by_like
from lance_duck.scan.predicate.texts import CONTAINS, LIKE, REGEX, implied_by_text
from lance_duck.scan.predicate.tree import (
    MIRRORED,
    Compare,
    In,
    IsNull,
    Not,
    Op,
    Opaque,
    Path,
    Predicate,
    StartsWith,
    all_of,
    any_of,
)
from lance_duck.scan.predicate.types import exact, path_type, value_type

_UNKNOWN: Final = Opaque("a condition of pyarrow", ())
_TEXTS: Final = {
    "starts_with": CONTAINS,
    "ends_with": CONTAINS,
    "match_substring": CONTAINS,
    "match_substring_regex": REGEX,
    "match_like": LIKE,
}


def implied_predicate(expression: pc.Expression, schema: pa.Schema) -> Predicate | None:
    """Return a predicate that is true for every row that an expression selects, or None if none is known.

    `Opaque` nodes in the predicate stand for unknown conditions. They must not be evaluated.
    """
    try:
        predicate = _ImpliedReader(schema).predicate(expression_tree(expression))
    except UNREADABLE:
        return None
    return None if isinstance(predicate, Opaque) else predicate


class _ImpliedReader:
    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def predicate(self, node: Node, *, negated: bool = False) -> Predicate:
        """Return a predicate that is true if the node is true. Below a NOT, it is also false if the node is false."""
        function, arguments = node
        if function in ("and_kleene", "and"):
            return all_of(*(self.predicate(part, negated=negated) for part in arguments))
        if function in ("or_kleene", "or"):
            return any_of(*(self.predicate(part, negated=negated) for part in arguments))
        if function == "invert":
            return Not(self.predicate(arguments[0], negated=not negated))
        try:
            return self._leaf(function, arguments, negated)
        except UNREADABLE:
            return _UNKNOWN

    def _leaf(self, function: str, arguments: Any, negated: bool) -> Predicate:
        if function == "field":
            return Compare("=", arguments, pa.scalar(True)) if self._type(arguments) == pa.bool_() else _UNKNOWN
        if function in ARROW_OPS:
            return self._comparison(ARROW_OPS[function], arguments[0], arguments[1], negated)
        path = _field(arguments[0])
        type_ = self._type(path)
        options = arguments[1][1] if len(arguments) > 1 else {}
        if function == "is_valid":
            return Not(IsNull(path))
        if function == "is_null":
            counts_nan = "nan_is_null" in options and options["nan_is_null"].as_py() and pa.types.is_floating(type_)
            return _UNKNOWN if counts_nan else IsNull(path)
        if function == "is_in" and not negated:
            values = options["value_set"].values
            member = In(path, exact(values.drop_null(), type_))
            return any_of(member, IsNull(path)) if values.null_count else member
        if function == "starts_with" and not options["ignore_case"].as_py() and is_text(type_):
            return StartsWith(path, pa.scalar(options["pattern"].as_py(), type_))
        if function in _TEXTS and not negated and is_text(type_):
            return self._text(function, path, type_, options["pattern"].as_py(), options["ignore_case"].as_py())
        return _UNKNOWN

    def _text(self, function: str, path: Path, type_: pa.DataType, pattern: Any, any_case: bool) -> Predicate:
        """Return the predicate that a substring condition implies."""
        pattern = pattern.decode() if isinstance(pattern, bytes) else pattern
        trigrams = implied_by_text(path, _TEXTS[function], pattern, escape="\\", any_case=any_case)
        prefix = None
        if function == "match_like" and not any_case:
            prefix = implied_by_like(path, pattern.partition("\\")[0], type_)
        implied = [part for part in (prefix, trigrams) if part is not None]
        return all_of(*implied) if implied else _UNKNOWN

    def _comparison(self, op: Op, left: Node, right: Node, negated: bool) -> Predicate:
        if left[0] == "literal":
            op, left, right = MIRRORED[op], right, left
        if right[0] != "literal":
            return _UNKNOWN
        path = _field(left)
        type_ = self._type(path)
        if pa.types.is_floating(type_) and (negated or (op == "!=" and _is_nan(right[1]))):
            return _UNKNOWN
        return Compare(op, path, exact(right[1], type_))

    def _type(self, path: Path) -> pa.DataType:
        return value_type(path_type(self._schema, path))


def _field(node: Node) -> Path:
    if node[0] != "field":
        raise ValueError(node[0])
    return cast("Path", node[1])


def _is_nan(value: pa.Scalar) -> bool:
    plain = value.as_py()
    return isinstance(plain, float) and plain != plain  # only NaN differs from itself
