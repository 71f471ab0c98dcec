"""Predicates as an immutable tree: scan filters, independent of their source language.

The semantics are DuckDB's. Logic is three-valued: a comparison with null is null. NaN equals NaN and is greater than
every other float. -0.0 equals 0.0. A leaf names its column by path: ("st", "a") is field a of struct st.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa

from lance_duck import lazy
from lance_duck.errors import InvalidInputError
from lance_duck.scan.identifiers import literal, quoted

if TYPE_CHECKING:
    from lance_duck.scan.predicate import number_set
else:
    number_set = lazy.modules(globals(), "lance_duck.scan.predicate", "number_set")

Path = tuple[str, ...]
Op = Literal["=", "!=", "<", "<=", ">", ">="]

OPS: Final[tuple[Op, ...]] = ("=", "!=", "<", "<=", ">", ">=")
MIRRORED: Final[dict[Op, Op]] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Predicate(ABC):
    """A condition on one row: true, false or null."""

    @abstractmethod
    def leaves(self) -> Iterator[Predicate]:
        """Return the leaves of the tree in order. A leaf is a condition on a column, or a constant."""

    def paths(self) -> tuple[Path, ...]:
        """Return the paths of the columns that the predicate reads, in order, without duplicates."""
        return tuple(dict.fromkeys(path for leaf in self.leaves() if isinstance(leaf, _Leaf) for path in leaf.reads))

    def columns(self) -> tuple[str, ...]:
        """Return the names of the top-level columns that the predicate reads, in order, without duplicates."""
        return tuple(dict.fromkeys(path[0] for path in self.paths()))


class _Leaf(Predicate):
    @property
    def reads(self) -> tuple[Path, ...]:
        """Paths of the columns that the condition reads."""
        return ()

    def leaves(self) -> Iterator[Predicate]:
        yield self


class _OfColumn(_Leaf):
    path: Path

    def __post_init__(self) -> None:
        _check_path(self.path)

    @property
    def reads(self) -> tuple[Path, ...]:
        return (self.path,)


@dataclass(frozen=True)
class ConstantCondition(_Leaf):
    """A condition with the same result for every row. A value of None means null."""

    value: bool | None

    def __str__(self) -> str:
        return "NULL" if self.value is None else str(self.value).upper()


@dataclass(frozen=True)
class Compare(_OfColumn):
    """Comparison of a column with a constant. It is null if the constant is null.

    Attributes:
        value: A scalar of the column's type, or of a type that can be converted to it without loss. For a dictionary
            column, the type is the type of its values.
    """

    op: Op
    path: Path
    value: pa.Scalar

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.op not in OPS:
            raise InvalidInputError("unknown comparison", expected=" ".join(OPS), found=repr(self.op))

    def __str__(self) -> str:
        return f"{_name(self.path)} {self.op} {_literal(self.value)}"


@dataclass(frozen=True)
class In(_OfColumn):
    """Membership of a column's values in constants. A value without a match gives null if a constant is null."""

    path: Path
    values: pa.Array

    @cached_property
    def numbers(self) -> number_set.NumberSet | None:
        """The constants as a set of integers, without nulls. None for other types."""
        if not pa.types.is_integer(self.values.type):
            return None
        return number_set.NumberSet.of(self.values.drop_null().to_numpy(zero_copy_only=False))

    def __str__(self) -> str:
        return f"{_name(self.path)} IN ({_literals(self.values)})"


@dataclass(frozen=True)
class IsNull(_OfColumn):
    """IS NULL. The result is never null. `Not(IsNull(path))` is IS NOT NULL."""

    path: Path

    def __str__(self) -> str:
        return f"{_name(self.path)} IS NULL"


@dataclass(frozen=True)
class StartsWith(_OfColumn):
    """Condition that a string begins with a constant, which may be empty. It is null if the constant is null."""

    path: Path
    prefix: pa.Scalar

    def __str__(self) -> str:
        return f"starts_with({_name(self.path)}, {_literal(self.prefix)})"


@dataclass(frozen=True)
class HasTrigrams(_OfColumn):
    """Condition that a string contains every trigram of some words. Case and accents are ignored.

    It is null for a null string. LIKE, regular expressions and substring conditions imply it: see `text.trigrams`.

    Attributes:
        words: Words of letters a to z and digits, each with at least three characters.
    """

    path: Path
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{_name(self.path)} has the trigrams of {', '.join(map(repr, self.words))}"


@dataclass(frozen=True)
class HasAny(_OfColumn):
    """Condition that a list contains any of the constants.

    It is null only for a null list. Null items and null constants never match.
    """

    path: Path
    values: pa.Array

    def __str__(self) -> str:
        return f"list_has_any({_name(self.path)}, [{_literals(self.values)}])"


@dataclass(frozen=True)
class HasAll(_OfColumn):
    """Condition that a list contains all constants that are not null. It is null only for a null list."""

    path: Path
    values: pa.Array

    def __str__(self) -> str:
        return f"list_has_all({_name(self.path)}, [{_literals(self.values)}])"


@dataclass(frozen=True)
class JsonCondition(_Leaf):
    """A condition on one value of a JSON column, which only indexes answer. A scan takes it as true for every row.

    It is part of what an `Opaque` condition implies. DuckDB evaluates that condition on the rows that indexes find.

    Attributes:
        column: Path of the JSON column.
        path: Path of the value in the documents. Keys are strings, positions in arrays are integers.
        type: Type of the value.
        condition: The condition, on one column of this type.
    """

    column: Path
    path: tuple[str | int, ...]
    type: pa.DataType
    condition: Predicate

    def __str__(self) -> str:
        return str(self.condition)


@dataclass(frozen=True)
class BoxCondition(_Leaf):
    """A condition that a geometry's bounding box overlaps a box, which only indexes answer. See `JsonCondition`.

    Attributes:
        column: Path of the geometry column.
        box: xmin, ymin, xmax and ymax of the box.
    """

    column: Path
    box: tuple[float, float, float, float]

    def __str__(self) -> str:
        return f"box of {_name(self.column)} overlaps ({', '.join(f'{side:g}' for side in self.box)})"


@dataclass(frozen=True)
class Opaque(_Leaf):
    """A condition that DuckDB evaluates.

    Attributes:
        sql: The condition as SQL text that can be used as an operand.
        inputs: Columns and struct fields that the condition reads.
        parameters: Bound values, as a list or as a dict by name.
        implied: A predicate that the condition implies, for index searches. It consists of `HasTrigrams`,
            `JsonCondition`, `BoxCondition`, AND and OR. None if unknown.
    """

    sql: str
    inputs: tuple[Path, ...]
    parameters: Any = None
    implied: Predicate | None = field(default=None, compare=False)

    @property
    def reads(self) -> tuple[Path, ...]:
        """Paths of the columns that the condition reads."""
        return self.inputs

    def __str__(self) -> str:
        return self.sql.replace("\n)", ")")


@dataclass(frozen=True)
class And(Predicate):
    """Conjunction of the operands. It is true without operands."""

    operands: tuple[Predicate, ...]

    def leaves(self) -> Iterator[Predicate]:
        """Return the leaves of all operands."""
        return _leaves_of(self.operands)

    def __str__(self) -> str:
        return "(" + " AND ".join(map(str, self.operands)) + ")"


@dataclass(frozen=True)
class Or(Predicate):
    """Disjunction of the operands. False without operands."""

    operands: tuple[Predicate, ...]

    def leaves(self) -> Iterator[Predicate]:
        """Return the leaves of all operands."""
        return _leaves_of(self.operands)

    def __str__(self) -> str:
        return "(" + " OR ".join(map(str, self.operands)) + ")"


@dataclass(frozen=True)
class Not(Predicate):
    """Negation of the operand. Null stays null."""

    operand: Predicate

    def leaves(self) -> Iterator[Predicate]:
        """Return the leaves of the operand."""
        return self.operand.leaves()

    def __str__(self) -> str:
        return f"NOT ({self.operand})"


def all_of(*operands: Predicate) -> Predicate:
    """Join operands by AND. Nested ANDs are flattened."""
    flat = tuple(part for operand in operands for part in conjuncts(operand))
    return flat[0] if len(flat) == 1 else And(flat)


def any_of(*operands: Predicate) -> Predicate:
    """Join operands by OR. Nested ORs are flattened."""
    flat = tuple(part for operand in operands for part in (operand.operands if isinstance(operand, Or) else (operand,)))
    return flat[0] if len(flat) == 1 else Or(flat)


def conjuncts(predicate: Predicate) -> tuple[Predicate, ...]:
    """Return the predicates that must all hold: the operands of an AND, or the predicate alone."""
    return predicate.operands if isinstance(predicate, And) else (predicate,)


def _leaves_of(operands: tuple[Predicate, ...]) -> Iterator[Predicate]:
    for operand in operands:
        yield from operand.leaves()


def _check_path(path: Path) -> None:
    if not isinstance(path, tuple) or not path or not all(isinstance(part, str) for part in path):
        raise InvalidInputError("bad column path", expected="a tuple of names", found=repr(path))


def _name(path: Path) -> str:
    return ".".join(part if part.isidentifier() else quoted(part) for part in path)


def _literals(values: pa.Array) -> str:
    return ", ".join(_literal(v) for v in values[:20]) + (", …" if len(values) > 20 else "")


def _literal(value: pa.Scalar) -> str:
    if not value.is_valid:
        return "NULL"
    try:
        plain = value.as_py()
    except (OverflowError, ValueError):  # times outside Python's range
        plain = getattr(value, "value", value.type)
    if isinstance(plain, str):
        return literal(plain)
    return str(plain)
