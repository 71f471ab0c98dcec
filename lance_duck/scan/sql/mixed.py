"""Converts SQL filters to predicate trees in which DuckDB evaluates the conditions that are not simple.

AND, OR and NOT bind more loosely than almost all other operators. Text is therefore split at these words, except inside
brackets, CASE and BETWEEN. A part is called a *piece* if it is not simple. DuckDB's syntax tree confirms the splits:
all nodes of a piece must belong to the same operand of AND, OR or NOT.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import count
from typing import Final, TypeVar

import pyarrow as pa

from lance_duck.cache import LruCache
from lance_duck.errors import InvalidInputError
from lance_duck.scan.costs import LONG_TEXT
from lance_duck.scan.evaluator.types import Parameters, parameters_key
from lance_duck.scan.predicate.tree import And, Not, Opaque, Or, Path, Predicate, all_of, any_of
from lance_duck.scan.sql.boxes import implied_by_boxes
from lance_duck.scan.sql.constants import asks_for_the_time, computed, constant_tokens, ends_constant
from lance_duck.scan.sql.json_values import implied_by_json
from lance_duck.scan.sql.literals import Literal, NotSimpleError
from lance_duck.scan.sql.parser import OPERATORS, Parser, plain_comparison
from lance_duck.scan.sql.spelling import spelled
from lance_duck.scan.sql.texts import implied_by_tokens
from lance_duck.scan.sql.tokens import SqlToken, tokens
from lance_duck.scan.sql.vet import (
    SqlExpression,
    SyntaxTree,
    all_parameters,
    bind_expression,
    can_bind,
    operand_paths,
    syntax_tree,
)

_T = TypeVar("_T")

_CONDITIONS: Final[LruCache[Predicate | SqlExpression]] = LruCache(256)
_READS: Final[LruCache[tuple[tuple[Path, ...], ...] | None]] = LruCache(256)

_AND: Final = SqlToken("keyword", "and")
_OR: Final = SqlToken("keyword", "or")
_ENDS: Final = frozenset({("keyword", "and"), ("keyword", "or"), ("mark", ")"), ("end", "")})
_OPENING: Final = ("(", "[", "{")
_CLOSING: Final = (")", "]", "}")


def read_sql(text: str, schema: pa.Schema, parameters: Parameters = None) -> Predicate | SqlExpression:
    """Read a filter.

    Args:
        text: SQL.
        schema: Columns that the text may read.
        parameters: Values bound to the text.

    Returns: A predicate tree if parts of the text are simple, or imply a predicate. Otherwise, an expression with the
        whole text for DuckDB.

    Raises:
        InvalidInputError: The syntax is wrong, a column is unknown, or the text is not a condition.
    """
    if not parameters and (comparison := plain_comparison(text, schema)) is not None:
        return comparison
    cut = _cut(text, schema, parameters)
    if cut is not None and not cut.pieces:
        return cut.tree
    key = None if asks_for_the_time(text) else parameters_key(parameters)
    if key is None:
        return _read(text, cut, schema, parameters)
    return _cached(_CONDITIONS, text, key, schema, lambda: _read(text, cut, schema, parameters))


def implied_tree(text: str, schema: pa.Schema, parameters: Parameters = None) -> Predicate | None:
    """Return a predicate that a filter implies, or None if none is known. DuckDB is not used.

    If the filter is simple, the predicate is equivalent to it. For other conditions, it contains the trigrams that they
    imply.

    Args:
        text: SQL in which AND, OR and NOT are known to join conditions.
        schema: Columns that the text may read.
        parameters: Values bound to the text.
    """
    cut = _cut(text, schema, parameters)
    return None if cut is None else _implied(cut.tree)


def _cached(cache: LruCache[_T], text: str, key: Hashable, schema: pa.Schema, make: Callable[[], _T]) -> _T:
    """Return the cached value for a text, a key and a schema. Long texts and unhashable schemas are not cached."""
    try:
        hash(schema)
    except TypeError:  # extension types of other packages may define equality without a hash
        return make()
    return cache.get((text, key, schema), make) if len(text) <= LONG_TEXT else make()


def _cut(text: str, schema: pa.Schema, parameters: Parameters) -> _MixedParser | None:
    """Parse a text without DuckDB. Returns None unless it consists of conditions joined by AND, OR and NOT."""
    parser = _MixedParser(text, schema, parameters)
    try:
        parser.tree = parser.whole()
    except NotSimpleError:
        return None
    return parser


def _read(
    written: str, cut: _MixedParser | None, schema: pa.Schema, parameters: Parameters
) -> Predicate | SqlExpression:
    """Read a filter that is not simple. Its text may first have to be converted to DuckDB's dialect."""
    text = spelled(written, schema.names)
    if cut is not None and text != written:
        cut = _cut(text, schema, parameters)
    if cut is not None and not cut.pieces:
        return cut.tree
    syntax = cache(lambda: syntax_tree(text, "filter"))
    tree = None if cut is None else _confirmed(cut, syntax, schema)
    if tree is not None:
        return tree
    whole = bind_expression(text, syntax(), schema, "filter", parameters)
    untyped_null = whole.type in ("NULL", "INTEGER") and not whole.paths and text.strip().upper() == "NULL"
    if whole.type != "BOOLEAN" and not untyped_null:
        raise InvalidInputError("bad filter", where=repr(written), expected="a condition", found=whole.type)
    return whole


def _confirmed(cut: _MixedParser, syntax: Callable[[], SyntaxTree], schema: pa.Schema) -> Predicate | None:
    """Return the tree of a text after DuckDB confirms and binds its pieces.

    All texts of the same shape share one syntax tree. Pieces with parameters are bound each time. Other pieces are
    bound once.

    Returns:
        The tree. None if DuckDB must evaluate the whole text, or if the text is invalid and DuckDB's error is more
        helpful.
    """
    if all(isinstance(leaf, Opaque) and leaf.implied is None for leaf in cut.tree.leaves()):
        return None
    sql = tuple(piece.sql for piece in cut.pieces)
    has_parameters = any(piece.parameters is not None for piece in cut.pieces)

    def confirm() -> tuple[tuple[Path, ...], ...] | None:
        reads = operand_paths(cut.text, syntax(), cut.spans, schema)
        return reads if reads is None or has_parameters or can_bind(cut.pieces, reads, schema) else None

    reads = _cached(_READS, cut.shape, sql, schema, confirm)
    if reads is None or (has_parameters and not can_bind(cut.pieces, reads, schema)):
        return None
    return _joined(cut.tree, dict(zip(sql, reads, strict=True)))


class _MixedParser(Parser):
    """Parser of SQL text with pieces that DuckDB evaluates.

    Attributes:
        text: SQL.
        tree: The filter.
        pieces: `Opaque` conditions in text order. Their columns are not yet known.
        spans: Start and end offset of each piece in the text.
    """

    tree: Predicate

    def __init__(self, text: str, schema: pa.Schema, parameters: Parameters) -> None:
        super().__init__(tokens(text), schema, parameters)
        self.text = text
        self.spans: list[tuple[int, int]] = []
        self.pieces: list[Opaque] = []

    @property
    def shape(self) -> str:
        """The text with 0 for each integer outside the pieces. DuckDB parses texts of equal shape identically."""
        shape, at = [], 0
        for token in self._tokens:
            is_number = token.kind == "number" and self.text[token.start : token.stop].isdecimal()
            if is_number and not any(start <= token.start < stop for start, stop in self.spans):
                shape += [self.text[at : token.start], "0"]
                at = token.stop
        return "".join([*shape, self.text[at:]])

    def _operand(self) -> Predicate:
        at, depth, num_parameters, pieces = self._at, self._depth, self._used, len(self.pieces)
        try:
            operand = self._not()
            token = self._peek()
            if (token.kind, token.text) in _ENDS and not (self.pieces and _negates_piece(operand)):
                return operand
        except NotSimpleError:
            pass
        self._at, self._depth, self._used = at, depth, num_parameters
        del self.pieces[pieces:], self.spans[pieces:]
        return self._piece()

    def _literal(self) -> Literal:
        """Return a constant. If it is an expression of constants, DuckDB computes its value."""
        at, num_parameters = self._at, self._used
        try:
            literal = super()._literal()
            if ends_constant(self._peek()):
                return literal
        except NotSimpleError:
            pass
        self._at, self._used = at, num_parameters
        length = constant_tokens(map(self._peek, count()))
        if not length:
            raise NotSimpleError
        expression = self._tokens[at : at + length]
        if self._tokens[at - 1].text in OPERATORS and any(token.text == "|" for token in expression):
            raise NotSimpleError  # these operators are left-associative, like ||
        self._at += length
        return computed(self.text[expression[0].start : expression[-1].stop], self._parameters_of(expression))

    def _piece(self) -> Predicate:
        """Return the piece up to the next AND or OR, or to the end of the parentheses."""
        first = self._at
        self._skip()
        if self._at == first:
            raise NotSimpleError
        part = self._tokens[first : self._at]
        text = self.text[part[0].start : part[-1].stop]
        parameters = self._parameters_of(part)
        prefix, implied = implied_by_tokens(part, self._schema, parameters)
        if implied is None and prefix is None:
            implied = implied_by_json(part, self._schema, parameters)
            implied = implied or implied_by_boxes(part, self._schema, parameters)
        piece = Opaque(f"({text}\n)", (), parameters, implied)
        self.pieces.append(piece)
        self.spans.append((part[0].start, part[-1].stop))
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

    def _parameters_of(self, part: Sequence[SqlToken]) -> Parameters:
        """Return the parameters of a part of the text, and count them as used."""
        marks = [token.text for token in part if token.kind == "param"]
        marks += ["?"] * sum(token.text.count("?") for token in part if token.kind == "params")
        if not marks:
            return None
        if isinstance(self._parameters, Mapping):
            names = {mark[1:] for mark in marks}
            self._used_names |= names
            return {name: value for name, value in self._parameters.items() if name in names}
        if self._parameters is None or set(marks) != {"?"}:
            raise NotSimpleError
        first = self._used
        self._used += len(marks)
        return list(self._parameters)[first : self._used]


def _negates_piece(operand: Predicate) -> bool:
    """Return whether an operand is NOT followed by a piece. DuckDB's parser may combine both into one node."""
    return isinstance(operand, Not) and isinstance(operand.operand, Opaque)


def _implied(predicate: Predicate) -> Predicate | None:
    """Return a predicate without `Opaque` conditions that `predicate` implies, or None if it is unknown."""
    match predicate:
        case Opaque(implied=implied):
            return implied
        case And(operands):
            parts = [part for part in map(_implied, operands) if part is not None]
            return all_of(*parts) if parts else None
        case Or(operands):
            parts = [part for part in map(_implied, operands) if part is not None]
            return any_of(*parts) if len(parts) == len(operands) else None
        case Not():
            return None if any(isinstance(leaf, Opaque) for leaf in predicate.leaves()) else predicate
    return predicate


def _joined(predicate: Predicate, reads: Mapping[str, tuple[Path, ...]]) -> Predicate:
    """Set the columns that opaque conditions read, and merge the opaque operands of each AND and OR."""
    match predicate:
        case Opaque(sql):
            return replace(predicate, inputs=reads[sql])
        case Not(operand):
            return Not(_joined(operand, reads))
        case And(operands) | Or(operands):
            parts = [_joined(operand, reads) for operand in operands]
            simple = [operand for operand in parts if not isinstance(operand, Opaque)]
            opaque = [operand for operand in parts if isinstance(operand, Opaque)]
            word, join = ("AND", all_of) if isinstance(predicate, And) else ("OR", any_of)
            return join(*simple, *([_one(opaque, word)] if opaque else ()))
    return predicate


def _one(pieces: list[Opaque], word: str) -> Opaque:
    """Join pieces into one condition, which DuckDB evaluates in one step."""
    if len(pieces) == 1:
        return pieces[0]
    inputs = tuple(sorted({path for piece in pieces for path in piece.inputs}))
    sql = "(" + f" {word} ".join(piece.sql for piece in pieces) + "\n)"
    implied = [piece.implied for piece in pieces if piece.implied is not None]
    join = all_of if word == "AND" else any_of
    is_implied = bool(implied) and (word == "AND" or len(implied) == len(pieces))
    parameters = all_parameters([piece.parameters for piece in pieces])
    return Opaque(sql, inputs, parameters, join(*implied) if is_implied else None)
