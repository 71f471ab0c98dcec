"""Parses simple SQL filters to predicate trees, without DuckDB.

Simple conditions compare a column with a constant or parameter, or consist of a boolean column. They also include IN,
BETWEEN, starts_with, LIKE with a prefix, tests of list items, and IS with [NOT] NULL, TRUE, FALSE or DISTINCT FROM.
Tests of list items are calls such as list_contains, the operators @>, <@ and &&, and IN with a list column. Conditions
are joined by AND, OR, NOT and parentheses. For other text, and for constants that cannot be compared exactly, the
result is None, and DuckDB must evaluate the filter.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from lance_duck.scan.evaluator.expressions import plain_value
from lance_duck.scan.evaluator.types import Parameters
from lance_duck.scan.predicate import leaves
from lance_duck.scan.predicate.tree import (
    MIRRORED,
    OPS,
    Compare,
    In,
    IsNull,
    Not,
    Op,
    Path,
    Predicate,
    all_of,
)
from lance_duck.scan.sql.compare import (
    Argument,
    contains_item,
    either,
    has_item,
    like,
    list_has_all,
    list_has_any,
    literal_comparison,
    membership,
    starts_with,
)
from lance_duck.scan.sql.lists import bound_values, listed_values, written_values
from lance_duck.scan.sql.literals import Literal, NotSimpleError, cast_literal, numeric
from lance_duck.scan.sql.spelling import find_name
from lance_duck.scan.sql.tokens import END, SqlToken, is_reserved, tokens

_OPS: Final[Mapping[str, Op]] = {**{op: op for op in OPS}, "<>": "!=", "==": "="}
_TYPED: Final = ("date", "timestamp", "timestamptz", "time")
_MAX_DEPTH: Final = 64
_COMPARISON: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*(=|<>|!=|<=|>=|<|>)\s*(?:(-?[0-9]+)|'([^']*)')\s*")


def tree_from_sql(text: str, schema: pa.Schema, parameters: Parameters = None) -> Predicate | None:
    """Parse a filter to a tree. Returns None if it is not simple or is invalid. DuckDB then evaluates or rejects it."""
    try:
        return Parser(tokens(text), schema, parameters).whole()
    except NotSimpleError:
        return None


def plain_comparison(text: str, schema: pa.Schema) -> Compare | None:
    """Parse a comparison of a column with an integer or string. Returns None for all other texts.

    The result is the same as from `Parser`, which is too slow for key lookups (`benchmarks/indexes.py`).
    """
    match = _COMPARISON.fullmatch(text)
    if match is None or is_reserved(match[1]):
        return None
    word, op, digits, characters = match.groups()
    name = find_name(word, schema.names)
    if name is None:
        return None
    type_ = schema.field(name).type
    literal = Literal("number", digits) if characters is None else Literal("text", characters)
    try:
        tree = literal_comparison(_OPS[op], (name,), literal, _values_of(type_))
    except NotSimpleError:
        return None
    return tree if isinstance(tree, Compare) else None


class Parser:
    """Parser of tokens into a predicate tree.

    Args:
        tokens_: Tokens of a text.
        schema: Columns that the text may read.
        parameters: Values bound to the text.
    """

    def __init__(self, tokens_: list[SqlToken], schema: pa.Schema, parameters: Parameters) -> None:
        self._tokens = tokens_
        self._at = 0
        self._depth = 0
        self._schema = schema
        self._names = schema.names
        self._parameters = parameters
        self._used = 0
        self._used_names: set[str] = set()

    def whole(self) -> Predicate:
        """Return the tree of all tokens.

        Raises:
            NotSimpleError: The tokens are not a simple filter, or their parameters differ from the bound parameters.
        """
        tree = self._any()
        num_parameters = len(self._used_names) if isinstance(self._parameters, Mapping) else self._used
        if self._at != len(self._tokens) or num_parameters != len(self._parameters or ()):
            raise NotSimpleError
        return tree

    def _any(self) -> Predicate:
        return self._chain("or", self._all, either)

    def _all(self) -> Predicate:
        return self._chain("and", self._operand, all_of)

    def _chain(self, word: str, operand: Callable[[], Predicate], join: Callable[..., Predicate]) -> Predicate:
        operands = [operand()]
        while self._takes("keyword", word):
            operands.append(operand())
        return join(*operands)

    def _operand(self) -> Predicate:
        """Return an operand of AND."""
        return self._not()

    def _not(self) -> Predicate:
        if self._takes("keyword", "not"):
            return Not(self._nested(self._not))
        if self._takes("mark", "("):
            inside = self._nested(self._any)
            self._needs("mark", ")")
            return inside
        return self._leaf()

    def _nested(self, part: Callable[[], Predicate]) -> Predicate:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise NotSimpleError
        inside = part()
        self._depth -= 1
        return inside

    def _leaf(self) -> Predicate:
        if self._peek() == _LIST:
            return self._list_first()
        if not self._is_name():
            value = self._literal()
            negative = self._takes("keyword", "not")
            if negative or self._peek() == _IN:
                self._needs("keyword", "in")
                test = contains_item(*self._path(), value)
                return Not(test) if negative else test
            op = MIRRORED[self._op()]
            path, type_ = self._path()
            return literal_comparison(op, path, value, type_)
        if self._peek().text.lower() in _FUNCTIONS and self._peek(1) == SqlToken("mark", "("):
            return self._function()
        path, type_ = self._path()
        if self._takes("keyword", "is"):
            return self._is(path, type_)
        if self._takes("keyword", "not"):
            return Not(self._test(path, type_))
        if self._peek().kind == "keyword" and self._peek().text in ("in", "between", "like"):
            return self._test(path, type_)
        if self._peek().text in OPERATORS:
            return _FUNCTIONS[OPERATORS[self._next().text]](path, type_, self._argument())
        if self._peek().kind == "op":
            return literal_comparison(self._op(), path, self._literal(), type_)
        if type_ == pa.bool_():
            return Compare("=", path, pa.scalar(True))
        raise NotSimpleError

    def _function(self) -> Predicate:
        ask = _FUNCTIONS[self._next().text.lower()]
        self._needs("mark", "(")
        path, type_ = self._path()
        self._needs("mark", ",")
        argument = self._argument()
        self._needs("mark", ")")
        return ask(path, type_, argument)

    def _list_first(self) -> Predicate:
        """Return the condition that a list of constants overlaps with a list column, or is contained in it."""
        items = self._argument()
        ask = _LIST_FIRST.get(self._next().text)
        if ask is None:
            raise NotSimpleError
        return ask(*self._path(), items)

    def _argument(self) -> Argument:
        """Return a constant, or a list of constants."""
        if not self._takes("mark", "["):
            literal = self._literal()
            is_list = literal.kind == "value" and isinstance(literal.value, list | tuple)
            return [Literal("value", value) for value in literal.value] if is_list else literal
        values: list[Literal] = []
        while not self._takes("mark", "]"):
            if values:
                self._needs("mark", ",")
            values.append(self._literal())
        return values

    def _is(self, path: Path, type_: pa.DataType) -> Predicate:
        """Return the test after IS: null, true, false, or distinct from a constant. Its result is never null."""
        negative = self._takes("keyword", "not")
        if self._takes("keyword", "null"):
            test: Predicate = IsNull(path)
        elif self._takes("keyword", "distinct"):
            self._needs("keyword", "from")
            same = leaves.not_distinct(path, literal_comparison("=", path, self._literal(), type_))
            return same if negative else Not(same)
        elif type_ == pa.bool_() and self._peek().text in ("true", "false"):
            test = leaves.truth(path, self._next() == SqlToken("keyword", "true"))
        else:
            raise NotSimpleError
        return Not(test) if negative else test

    def _test(self, path: Path, type_: pa.DataType) -> Predicate:
        if self._takes("keyword", "between"):
            low = literal_comparison(">=", path, self._literal(), type_)
            self._needs("keyword", "and")
            return all_of(low, literal_comparison("<=", path, self._literal(), type_))
        if self._takes("keyword", "like"):
            return like(path, type_, self._literal())
        self._needs("keyword", "in")
        if self._peek().kind == "param":
            return In(path, listed_values(self._parameter(self._next().text), type_))
        is_in_list = self._takes("mark", "[")
        if not is_in_list:
            self._needs("mark", "(")
        if self._peek().kind in ("constants", "params"):
            array = self._long_list(type_)
            self._needs("mark", "]" if is_in_list else ")")
            return In(path, array.drop_null() if is_in_list else array)
        values = [self._literal()]
        while self._takes("mark", ","):
            values.append(self._literal())
        self._needs("mark", "]" if is_in_list else ")")
        if is_in_list:  # a null in a list never matches
            values = [value for value in values if value != Literal("value", None)]
            if len({(value.kind, type(value.value)) for value in values}) > 1:
                raise NotSimpleError  # DuckDB casts the values to one type before it compares them with the column
        return membership(path, values, type_)

    def _long_list(self, type_: pa.DataType) -> pa.Array:
        token = self._next()
        if token.kind == "constants":
            return written_values(token.text, type_)
        first = self._used
        self._used += token.text.count("?")
        if not isinstance(self._parameters, Sequence) or self._used > len(self._parameters):
            raise NotSimpleError
        return bound_values([_own(value) for value in self._parameters[first : self._used]], type_)

    def _path(self) -> tuple[Path, pa.DataType]:
        name = find_name(self._name(), self._names)
        if name is None:
            raise NotSimpleError
        path: Path = (name,)
        type_ = self._schema.field(name).type
        while (subscript := self._takes("mark", "[")) or self._takes("mark", "."):
            part = self._subscript() if subscript else self._name()
            if not pa.types.is_struct(type_):
                raise NotSimpleError
            child = find_name(part, [f.name for f in type_.fields])
            if child is None:
                raise NotSimpleError
            path, type_ = (*path, child), type_.field(child).type
        return path, _values_of(type_)

    def _subscript(self) -> str:
        token = self._next()
        self._needs("mark", "]")
        if token.kind != "text":
            raise NotSimpleError
        return _unquoted(token.text)

    def _is_name(self) -> bool:
        return self._peek().kind in ("word", "quoted")

    def _name(self) -> str:
        token = self._next()
        if token.kind == "word":
            return token.text
        if token.kind != "quoted":
            raise NotSimpleError
        mark = token.text[0]
        return token.text[1:-1].replace(mark * 2, mark)

    def _op(self) -> Op:
        token = self._next()
        if token.text not in _OPS or token.kind != "op":
            raise NotSimpleError
        return _OPS[token.text]

    def _literal(self) -> Literal:
        literal = self._plain_literal()
        while self._takes("mark", "::"):
            literal = cast_literal(literal, self._type_name())
        return literal

    def _type_name(self) -> str:
        name = self._next().text.lower()
        if not self._takes("mark", "("):
            return name
        inside = [self._next().text, self._next().text, self._next().text]
        self._needs("mark", ")")
        return f"{name}({''.join(inside)})"

    def _plain_literal(self) -> Literal:
        token = self._next()
        if token.kind == "number":
            return numeric(token.text)
        if token == SqlToken("mark", "-") and self._peek().kind == "number" and self._peek(1) != SqlToken("mark", "::"):
            return numeric("-" + self._next().text)
        if token.kind == "text":
            return Literal("text", _unquoted(token.text))
        if token.kind == "param":
            return Literal("value", _own(self._parameter(token.text)))
        if token.kind == "keyword" and token.text in ("true", "false", "null"):
            return Literal("value", {"true": True, "false": False, "null": None}[token.text])
        if token.kind == "keyword" and token.text in _TYPED and self._peek().kind == "text":
            return Literal(token.text, _unquoted(self._next().text))
        raise NotSimpleError

    def _parameter(self, mark: str) -> Any:
        self._used += 1
        if mark == "?" and isinstance(self._parameters, Sequence) and self._used <= len(self._parameters):
            return self._parameters[self._used - 1]
        if mark != "?" and isinstance(self._parameters, Mapping) and mark[1:] in self._parameters:
            self._used_names.add(mark[1:])
            return self._parameters[mark[1:]]
        raise NotSimpleError

    def _peek(self, ahead: int = 0) -> SqlToken:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else END

    def _next(self) -> SqlToken:
        token = self._peek()
        self._at += 1
        return token

    def _takes(self, kind: str, text: str) -> bool:
        token = self._peek()
        if token.text == text and token.kind == kind:
            self._at += 1
            return True
        return False

    def _needs(self, kind: str, text: str) -> None:
        if not self._takes(kind, text):
            raise NotSimpleError


def _values_of(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _own(value: Any) -> Any:
    """Convert a bound value to a built-in Python type."""
    if isinstance(value, dt.datetime) and type(value) is not dt.datetime and not getattr(value, "nanosecond", 1):
        return value.to_pydatetime()  # type: ignore[attr-defined]
    return plain_value(value)


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")


_FUNCTIONS: Final[Mapping[str, Callable[[Path, pa.DataType, Argument], Predicate]]] = {
    **dict.fromkeys(("starts_with", "prefix"), starts_with),
    **dict.fromkeys(("list_contains", "array_contains", "list_has", "array_has"), has_item),
    "contains": contains_item,
    **dict.fromkeys(("list_has_any", "array_has_any"), list_has_any),
    **dict.fromkeys(("list_has_all", "array_has_all"), list_has_all),
}
OPERATORS: Final = {"^@": "starts_with", "&&": "list_has_any", "@>": "list_has_all"}
_LIST_FIRST: Final = {"&&": list_has_any, "<@": list_has_all}
_LIST: Final = SqlToken("mark", "[")
_IN: Final = SqlToken("keyword", "in")
