"""Simple SQL filters as a predicate tree, without asking DuckDB.

Understood are comparisons of a column with a constant or parameter, IN, BETWEEN, IS [NOT] NULL, bare booleans, AND, OR,
NOT and parentheses. Whatever else the text holds, and every constant that does not fit its column exactly, is left to
DuckDB: the answer is then None, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from lance_duck.scan.duckdb_eval import Parameters
from lance_duck.scan.predicate import (
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
    any_of,
)
from lance_duck.scan.sql_literals import Literal, NotSimpleError, scalar_for
from lance_duck.scan.sql_names import find_name

_TOKEN: Final = re.compile(
    r"""\s*(?: (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?![\w.])) | (?P<text>'(?:[^']|'')*')
        | (?P<quoted>"(?:[^"]|"")+"|`(?:[^`]|``)+`) | (?P<word>[A-Za-z_]\w*) | (?P<param>\?|\$\w+)
        | (?P<op><>|!=|<=|>=|==|=|<|>) | (?P<mark>[(),.-]) )""",
    re.VERBOSE,
)
_OPS: Final[Mapping[str, Op]] = {**{op: op for op in OPS}, "<>": "!=", "==": "="}
_RESERVED: Final = frozenset(
    """
    and or not is null in between like ilike glob similar true false date timestamp timestamptz time interval case
    when then else end cast try_cast exists distinct from collate at escape any all some select where unknown
    isnull notnull using on as lambda array struct map row current_date current_timestamp current_time localtime
    localtimestamp default user session_user current_user
    """.split()  # noqa: SIM905
)
_MAX_DEPTH: Final = 64


def tree_from_sql(text: str, schema: pa.Schema, parameters: Parameters = None) -> Predicate | None:
    """The filter as a tree, or None when it is not simple; also when it is wrong, which DuckDB then says better."""
    try:
        return _Parser(_tokens(text), schema, parameters).whole()
    except NotSimpleError:
        return None


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at = 0
    end = len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise NotSimpleError
        word = match[match.lastgroup]
        keyword = match.lastgroup == "word" and word.lower() in _RESERVED
        tokens.append(_Token("keyword", word.lower()) if keyword else _Token(match.lastgroup, word))
        at = match.end()
        if tokens[-1].text == "-" and text[at : at + 1] == "-":
            raise NotSimpleError
    return tokens


class _Parser:
    def __init__(self, tokens: list[_Token], schema: pa.Schema, parameters: Parameters) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._schema = schema
        self._names = schema.names
        self._parameters = parameters
        self._used = 0

    def whole(self) -> Predicate:
        found = self._any()
        given = len(self._parameters or ())
        if self._at != len(self._tokens) or self._used != given:
            raise NotSimpleError
        return found

    def _any(self) -> Predicate:
        return self._chain("or", self._all, any_of)

    def _all(self) -> Predicate:
        return self._chain("and", self._not, all_of)

    def _chain(self, word: str, part: Callable[[], Predicate], join: Callable[..., Predicate]) -> Predicate:
        parts = [part()]
        while self._takes("keyword", word):
            parts.append(part())
        return join(*parts)

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
        found = part()
        self._depth -= 1
        return found

    def _leaf(self) -> Predicate:
        if not self._is_name():
            value = self._literal()
            op = MIRRORED[self._op()]
            path, type_ = self._path()
            return Compare(op, path, scalar_for(value, type_))
        path, type_ = self._path()
        if self._takes("keyword", "is"):
            return self._is_null(path)
        if self._takes("keyword", "not"):
            return Not(self._list_or_range(path, type_))
        if self._peek() in (_Token("keyword", "in"), _Token("keyword", "between")):
            return self._list_or_range(path, type_)
        if self._peek().kind == "op":
            op = self._op()
            return Compare(op, path, scalar_for(self._literal(), type_))
        if type_ == pa.bool_():
            return Compare("=", path, pa.scalar(True))
        raise NotSimpleError

    def _is_null(self, path: Path) -> Predicate:
        negative = self._takes("keyword", "not")
        self._needs("keyword", "null")
        return Not(IsNull(path)) if negative else IsNull(path)

    def _list_or_range(self, path: Path, type_: pa.DataType) -> Predicate:
        if self._takes("keyword", "between"):
            low = scalar_for(self._literal(), type_)
            self._needs("keyword", "and")
            return all_of(Compare(">=", path, low), Compare("<=", path, scalar_for(self._literal(), type_)))
        self._needs("keyword", "in")
        self._needs("mark", "(")
        values = [scalar_for(self._literal(), type_)]
        while self._takes("mark", ","):
            values.append(scalar_for(self._literal(), type_))
        self._needs("mark", ")")
        return In(path, pa.array(values, values[0].type))

    def _path(self) -> tuple[Path, pa.DataType]:
        name = find_name(self._name(), self._names)
        if name is None:
            raise NotSimpleError
        path: Path = (name,)
        type_ = self._schema.field(name).type
        while self._takes("mark", "."):
            part = self._name()
            if not pa.types.is_struct(type_):
                raise NotSimpleError
            child = find_name(part, [f.name for f in type_.fields])
            if child is None:
                raise NotSimpleError
            path, type_ = (*path, child), type_.field(child).type
        return path, type_.value_type if pa.types.is_dictionary(type_) else type_

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
        if token.kind != "op":
            raise NotSimpleError
        return _OPS[token.text]

    def _literal(self) -> Literal:
        token = self._next()
        if token.kind == "number":
            return Literal("number", token.text)
        if token == _Token("mark", "-") and self._peek().kind == "number":
            return Literal("number", "-" + self._next().text)
        if token.kind == "text":
            return Literal("text", _unquoted(token.text))
        if token.kind == "param":
            return Literal("value", self._parameter(token.text))
        if token.kind == "keyword" and token.text in ("true", "false", "null"):
            return Literal("value", {"true": True, "false": False, "null": None}[token.text])
        if token.kind == "keyword" and token.text in ("date", "timestamp") and self._peek().kind == "text":
            return Literal(token.text, _unquoted(self._next().text))
        raise NotSimpleError

    def _parameter(self, mark: str) -> Any:
        self._used += 1
        if mark == "?" and isinstance(self._parameters, Sequence) and self._used <= len(self._parameters):
            return self._parameters[self._used - 1]
        if mark != "?" and isinstance(self._parameters, Mapping) and mark[1:] in self._parameters:
            return self._parameters[mark[1:]]
        raise NotSimpleError

    def _peek(self) -> _Token:
        return self._tokens[self._at] if self._at < len(self._tokens) else _Token("end", "")

    def _next(self) -> _Token:
        token = self._peek()
        self._at += 1
        return token

    def _takes(self, kind: str, text: str) -> bool:
        if self._peek() == _Token(kind, text):
            self._at += 1
            return True
        return False

    def _needs(self, kind: str, text: str) -> None:
        if not self._takes(kind, text):
            raise NotSimpleError


def _unquoted(text: str) -> str:
    return text[1:-1].replace("''", "'")
