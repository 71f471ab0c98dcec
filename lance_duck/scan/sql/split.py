"""SQL filters of which DuckDB evaluates parts, as a predicate tree: what is simple is a condition of its own.

AND, OR and NOT bind looser than everything else, so text is cut where they stand outside of brackets, CASE and BETWEEN.
DuckDB's own parser confirms each cut: with parentheses around the pieces the text has the same syntax tree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final

import pyarrow as pa

from lance_duck.scan.evaluator.expressions import Parameters, query
from lance_duck.scan.predicate.tree import And, Opaque, Path, Predicate, StartsWith
from lance_duck.scan.sql.compare import fixed_prefix
from lance_duck.scan.sql.constants import computed, constant_tokens
from lance_duck.scan.sql.literals import Literal, NotSimpleError, is_text
from lance_duck.scan.sql.parser import Parser
from lance_duck.scan.sql.tokens import SqlToken, tokens
from lance_duck.scan.sql.vet import SqlExpression

_AND: Final = SqlToken("keyword", "and")
_OR: Final = SqlToken("keyword", "or")
_ENDS: Final = (_AND, _OR, SqlToken("mark", ")"), SqlToken("end", ""))
_OPENING: Final = ("(", "[", "{")
_CLOSING: Final = (")", "]", "}")


def split_sql(expression: SqlExpression, schema: pa.Schema, parameters: Parameters = None) -> Predicate | None:
    """Return a filter that DuckDB takes as a tree with parts for DuckDB; None where all of it is one.

    Args:
        expression: The filter.
        schema: Columns that it may read.
        parameters: Values bound to it.
    """
    try:
        parser = _Splitter(expression, schema, parameters)
        tree = parser.whole()
    except NotSimpleError:
        return None
    if isinstance(tree, Opaque) or not _same_syntax(expression.text, parser.parenthesized()):
        return None
    return tree


class _Splitter(Parser):
    def __init__(self, expression: SqlExpression, schema: pa.Schema, parameters: Parameters) -> None:
        super().__init__(tokens(expression.text, simple=False), schema, parameters)
        self._text = expression.text
        self._paths = expression.paths
        self._spans: list[tuple[int, int]] = []

    def whole(self) -> Predicate:
        found = self._any()
        if self._at != len(self._tokens):
            raise NotSimpleError
        return found

    def parenthesized(self) -> str:
        """Return the text with parentheses around each operand."""
        marks = sorted([(start, 1, "(") for start, _ in self._spans] + [(stop, 0, ")") for _, stop in self._spans])
        pieces, at = [], 0
        for place, _, mark in marks:
            pieces += [self._text[at:place], mark]
            at = place
        return "".join(pieces) + self._text[at:]

    def _chain(self, word: str, part: Callable[[], Predicate], join: Callable[..., Predicate]) -> Predicate:
        parts = [self._operand(part)]
        while self._takes("keyword", word):
            parts.append(self._operand(part))
        simple = [each for each in parts if not isinstance(each, Opaque)]
        pieces = [each for each in parts if isinstance(each, Opaque)]
        return join(*simple, *([_one_piece(pieces, word)] if pieces else ()))

    def _literal(self) -> Literal:
        """Return a constant, or an expression of such, which DuckDB computes."""
        at, used = self._at, self._used
        length = constant_tokens(map(self._peek, count()))
        try:
            found = super()._literal()
            if self._at == at + length:
                return found
        except NotSimpleError:
            pass
        self._at, self._used = at, used
        mine = self._tokens[at : at + length]
        if not mine:
            raise NotSimpleError
        self._at += length
        return computed(self._text[mine[0].start : mine[-1].stop], self._share(mine))

    def _operand(self, part: Callable[[], Predicate]) -> Predicate:
        at, depth, used, spans = self._at, self._depth, self._used, len(self._spans)
        try:
            found = part()
            if self._peek() not in _ENDS:
                raise NotSimpleError
        except NotSimpleError:
            self._at, self._depth, self._used = at, depth, used
            del self._spans[spans:]
            if part != self._not:
                raise
            found = self._piece()
        self._spans.append((self._tokens[at].start, self._tokens[self._at - 1].stop))
        return found

    def _piece(self) -> Predicate:
        """Return all up to the next AND or OR, or to the end of the parentheses, for DuckDB."""
        first = self._at
        self._skip()
        if self._at == first:
            raise NotSimpleError
        mine = self._tokens[first : self._at]
        text = self._text[mine[0].start : mine[-1].stop]
        piece = Opaque(f"({text}\n)", self._read_by(mine), self._share(mine))
        prefix = self._like(mine)
        return piece if prefix is None else And((prefix, piece))

    def _skip(self) -> None:
        depth = cases = ranges = 0
        while True:
            token = self._peek()
            outside = depth == 0 and cases == 0
            if token.kind == "end" or (depth == 0 and token.text in _CLOSING and token.kind in ("mark", "other")):
                return
            if outside and (token == _OR or (token == _AND and not ranges)):
                return
            if token.kind == "keyword":
                cases += (token.text == "case") - (token.text == "end")
                if outside:
                    ranges += (token.text == "between") - (token.text == "and")
            elif token.kind in ("mark", "other"):
                depth += (token.text in _OPENING) - (token.text in _CLOSING)
            self._at += 1

    def _read_by(self, mine: list[SqlToken]) -> tuple[Path, ...]:
        """Return the columns that a piece may read: those of the whole whose names are in it."""
        if any(token.kind == "other" and re.search(r"\w", token.text) for token in mine):
            return self._paths
        names = {token.text.strip('"`').replace('""', '"').lower() for token in mine}
        return tuple(path for path in self._paths if path[0].lower() in names)

    def _share(self, mine: list[SqlToken]) -> Parameters:
        """Return the parameters of a piece."""
        marks = [token.text for token in mine if token.kind == "param"]
        if not marks:
            return None
        if isinstance(self._parameters, Mapping):
            names = {mark[1:] for mark in marks}
            return {name: value for name, value in self._parameters.items() if name in names}
        if self._parameters is None or set(marks) != {"?"}:
            raise NotSimpleError
        first = self._used
        self._used += len(marks)
        return list(self._parameters)[first : self._used]

    def _like(self, mine: list[SqlToken]) -> Predicate | None:
        """Return what begins every text that is LIKE the pattern of a piece; None where it is no LIKE, or nothing."""
        if len(mine) < 3 or mine[-1].kind != "text" or mine[-2] != SqlToken("keyword", "like"):
            return None
        parser = Parser(mine[:-2], self._schema, None)
        try:
            path, type_ = parser.column()
        except NotSimpleError:
            return None
        prefix = fixed_prefix(mine[-1].text[1:-1].replace("''", "'"))
        return StartsWith(path, pa.scalar(prefix, type_)) if prefix and is_text(type_) else None


def _one_piece(pieces: list[Opaque], word: str) -> Opaque:
    """Join pieces into one condition, which DuckDB evaluates at once."""
    if len(pieces) == 1:
        return pieces[0]
    given = [piece.parameters for piece in pieces if piece.parameters]
    together: Any = None
    if given:
        is_named = isinstance(given[0], Mapping)
        together = {k: v for each in given for k, v in each.items()} if is_named else [v for g in given for v in g]
    inputs = tuple(sorted({path for piece in pieces for path in piece.inputs}))
    return Opaque("(" + f" {word.upper()} ".join(piece.sql for piece in pieces) + "\n)", inputs, together)


def _same_syntax(text: str, other: str) -> bool:
    return bool(_syntax(text) == _syntax(other))


def _syntax(text: str) -> Any:
    return _placeless(json.loads(query("SELECT json_serialize_sql(?)", [f"SELECT ({text}\n)"])[0][0]))


def _placeless(node: Any) -> Any:
    """Return a syntax tree without the places of its parts in the text."""
    if isinstance(node, dict):
        return {key: _placeless(value) for key, value in node.items() if not key.startswith("query_location")}
    return [_placeless(each) for each in node] if isinstance(node, list) else node
