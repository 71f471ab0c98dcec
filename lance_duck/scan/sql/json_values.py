"""Conditions on a value of a JSON document that a JSON index may answer.

    document ->> 'path', document -> 'key' ->> 'path'                           string
    json_extract_string(document, 'path'), json_extract_path_text(…)            string
    json_get_string(document, 'key'), json_get_int, json_get_float, json_get_bool
    CAST(… AS BIGINT), TRY_CAST(…), (…)::DOUBLE                                 int64, double, bool

A document is a JSON column, or a part of it (`->`, json_extract, json_get). The value is replaced by a column of its
type, and the rest of the text is read like a condition on that column.

DuckDB 1.x reads `a AND j ->> 'x' = 'y'` as `(a AND j) ->> 'x' = 'y'`. An arrow must therefore be in parentheses or a
call, or begin the condition.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow as pa

from lance_duck.index.json_path import JsonPath, duckdb_path, shown_path
from lance_duck.scan.evaluator.types import Parameters
from lance_duck.scan.identifiers import quoted
from lance_duck.scan.predicate.tree import JsonCondition, Path, Predicate, all_of
from lance_duck.scan.sql.literals import NotSimpleError
from lance_duck.scan.sql.parser import Parser
from lance_duck.scan.sql.texts import implied_by_tokens
from lance_duck.scan.sql.tokens import SqlToken

_STRING, _WHOLE, _DOUBLE, _TRUTH = pa.string(), pa.int64(), pa.float64(), pa.bool_()
_CASTS: Final = {
    "integer": pa.int32(),
    "int": pa.int32(),
    "smallint": pa.int16(),
    "ubigint": pa.uint64(),
    "float": pa.float32(),
    "real": pa.float32(),
    **dict.fromkeys(("bigint", "int8", "int64", "long"), _WHOLE),
    **dict.fromkeys(("double", "float8"), _DOUBLE),
    **dict.fromkeys(("boolean", "bool"), _TRUTH),
    **dict.fromkeys(("varchar", "text", "string"), _STRING),
}
"""Types of casts. No index has values of the first six, because the cast of some of its values would fail or round."""
_SQL_TYPES: Final = {_WHOLE: "BIGINT", _DOUBLE: "DOUBLE", _TRUTH: "BOOLEAN"}
_TYPED: Final = {
    "json_get_string": _STRING,
    "json_get_int": _WHOLE,
    "json_get_float": _DOUBLE,
    "json_get_bool": _TRUTH,
}
_TEXTS: Final = ("json_extract_string", "json_extract_path_text")
_PARTS: Final = ("json_extract", "json_extract_path")
_KEY: Final = "json_get"
_EXTENSIONS: Final = ("arrow.json", "lance.json")
_OPENING: Final = SqlToken("mark", "(")
_MAX_DEPTH: Final = 64
_DIGIT: Final = frozenset("0123456789-")


class _Value(NamedTuple):
    """A value in a JSON column. The type is None for a part of a document."""

    column: Path
    path: JsonPath
    type: pa.DataType | None


def implied_by_json(tokens: list[SqlToken], schema: pa.Schema, parameters: Parameters) -> Predicate | None:
    """Return the condition on a JSON value that a condition is equal to or implies. Returns None if it is unknown.

    Args:
        tokens: The condition.
        schema: Columns that the condition may read.
        parameters: Values bound to this condition.
    """
    if not any(getattr(field.type, "extension_name", "") in _EXTENSIONS for field in _flat(schema)):
        return None
    found: set[_Value] = set()
    rest: list[SqlToken] = []
    parser = _JsonParser(tokens, schema, None)
    at = 0
    while at < len(tokens):
        value, end = parser.value(at, begins=not rest or rest[-1] == _OPENING)
        if value is None:
            rest.append(tokens[at])
        else:
            found.add(value)
            rest.append(SqlToken("quoted", quoted(_name(value)), tokens[at].start, tokens[end - 1].stop))
        at = end
    if len(found) != 1:
        return None
    (value,) = found
    condition = _condition(rest, pa.schema([(_name(value), value.type)]), parameters)
    return None if condition is None else JsonCondition(value.column, value.path, value.type, condition)


def _condition(tokens: list[SqlToken], schema: pa.Schema, parameters: Parameters) -> Predicate | None:
    try:
        return Parser(tokens, schema, parameters).whole()
    except NotSimpleError:
        parts = [part for part in implied_by_tokens(tokens, schema, parameters) if part is not None]
        return all_of(*parts) if parts else None


def _name(value: _Value) -> str:
    text = f"{'.'.join(value.column)} ->> '{shown_path(value.path)}'"
    return text if value.type == _STRING else f"({text})::{_SQL_TYPES.get(value.type, value.type)}"


def _flat(schema: pa.Schema) -> list[pa.Field]:
    fields = list(schema)
    for field in fields:
        if pa.types.is_struct(field.type):
            fields += field.type.fields
    return fields


class _JsonParser(Parser):
    """Parser of single values."""

    def value(self, at: int, *, begins: bool) -> tuple[_Value | None, int]:
        """Return the value that begins with a token, or None, and the position of the next token.

        Args:
            at: Position of the token.
            begins: Whether the token begins a condition.
        """
        self._at, self._depth = at, 0
        try:
            value = self._value(begins=begins)
        except NotSimpleError:
            return None, at + 1
        return (None, at + 1) if value.type is None else (value, self._at)

    def _value(self, *, begins: bool) -> _Value:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise NotSimpleError
        token = self._peek()
        if token.kind == "keyword" and token.text in ("cast", "try_cast"):
            self._at += 1
            self._needs(*_MARK_OPEN)
            value = self._value(begins=True)
            self._needs("keyword", "as")
            value = _as_type(value, self._type_name())
            self._needs(*_MARK_CLOSE)
        elif self._takes(*_MARK_OPEN):
            value = self._value(begins=True)
            self._needs(*_MARK_CLOSE)
        elif token.kind == "word" and self._peek(1) == _OPENING:
            value = self._called()
        else:
            value = self._arrows(_Value(self._column(), (), None))
            if not begins:
                raise NotSimpleError
            return value
        while self._takes("mark", "::"):
            value = _as_type(value, self._type_name())
        return self._arrows(value) if value.type is None and begins else value

    def _called(self) -> _Value:
        name = self._next().text.lower()
        if name not in (*_TEXTS, *_PARTS, *_TYPED, _KEY):
            raise NotSimpleError
        self._at += 1
        inner = self._document()
        self._needs("mark", ",")
        steps = self._key() if name in _TYPED or name == _KEY else self._steps()
        self._needs(*_MARK_CLOSE)
        type_ = _STRING if name in _TEXTS else _TYPED.get(name)
        return _Value(inner.column, (*inner.path, *steps), type_)

    def _document(self) -> _Value:
        value = self._value(begins=True)
        if value.type is not None:
            raise NotSimpleError
        return value

    def _column(self) -> tuple[str, ...]:
        if not self._is_name():
            raise NotSimpleError
        path, type_ = self._path()
        if getattr(type_, "extension_name", "") not in _EXTENSIONS:
            raise NotSimpleError
        return path

    def _arrows(self, value: _Value) -> _Value:
        """Return the value after the arrows that follow a document."""
        while value.type is None and self._peek() == _MINUS and self._peek(1).text == ">":
            length = 3 if self._peek(2).text == ">" else 2
            self._at += length
            value = _Value(value.column, (*value.path, *self._steps()), _STRING if length == 3 else None)
            if self._peek() == _CAST:
                raise NotSimpleError  # the cast would apply to the path
        return value

    def _steps(self) -> JsonPath:
        path = duckdb_path(self._text())
        if path is None:
            raise NotSimpleError
        return path

    def _key(self) -> JsonPath:
        """Return the key of `json_get`. A number would also be a position in an array."""
        key = self._text()
        if not key or _DIGIT.issuperset(key) or duckdb_path(key) != (key,):
            raise NotSimpleError
        return (key,)

    def _text(self) -> str:
        literal = self._plain_literal()
        if literal.kind != "text" or not isinstance(literal.value, str):
            raise NotSimpleError
        return literal.value


_MARK_OPEN: Final = ("mark", "(")
_MARK_CLOSE: Final = ("mark", ")")
_MINUS: Final = SqlToken("mark", "-")
_CAST: Final = SqlToken("mark", "::")


def _as_type(value: _Value, name: str) -> _Value:
    """Return a value after a cast. Only casts of strings and of JSON values are supported, not a cast of a cast."""
    type_ = _CASTS.get(name)
    if type_ is None or value.type not in (None, _STRING) or (value.type is None and type_ == _STRING):
        raise NotSimpleError
    return _Value(value.column, value.path, type_)
