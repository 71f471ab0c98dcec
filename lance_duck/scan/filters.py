"""The filters of a scan. Predicate trees, SQL text and pyarrow expressions become `Filter` objects."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from lance_duck import lazy
from lance_duck.errors import InvalidInputError
from lance_duck.scan.evaluator.types import Columns, Parameters
from lance_duck.scan.predicate.tree import Path, Predicate

if TYPE_CHECKING:
    from lance_duck.scan.arrow import filter as arrow_filter
    from lance_duck.scan.arrow import implied as implied_tree
    from lance_duck.scan.arrow import literals
    from lance_duck.scan.evaluator import expressions
    from lance_duck.scan.predicate import evaluate
    from lance_duck.scan.sql import mixed, vet
else:
    arrow_filter, implied_tree, literals = lazy.modules(
        globals(), "lance_duck.scan.arrow", "filter", "implied", "literals"
    )
    expressions = lazy.modules(globals(), "lance_duck.scan.evaluator", "expressions")
    evaluate = lazy.modules(globals(), "lance_duck.scan.predicate", "evaluate")
    mixed, vet = lazy.modules(globals(), "lance_duck.scan.sql", "mixed", "vet")

_LITERAL: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(?:(-?[0-9]{1,18})|'([^'\\\0]{0,200})')\s*", re.ASCII)


@runtime_checkable
class Filter(Protocol):
    """A row condition. Immutable, and safe to use from several threads.

    A filter may have three attributes. `implied` is a predicate for index searches that is true if the filter is true,
    or None. `implied_exactly` is true if both are equivalent. `evaluator` is the name of the filter's evaluator.
    """

    def paths(self) -> tuple[Path, ...]:
        """Return the columns and struct fields that the filter reads."""

    def mask(self, columns: Columns, num_rows: int) -> pa.BooleanArray:
        """Return a mask of the rows for which the filter is true, without nulls.

        Args:
            columns: At least the top-level columns of `paths()`. Structs need at least the fields of the paths.
            num_rows: Number of rows in the batch.
        """


FilterLike: TypeAlias = str | pc.Expression | Predicate | tuple[str, Parameters] | Filter


@dataclass(frozen=True)
class TreeFilter:
    """A predicate tree as a filter."""

    predicate: Predicate

    def paths(self) -> tuple[Path, ...]:
        """Return the columns and struct fields that the filter reads."""
        return self.predicate.paths()

    def mask(self, columns: Columns, num_rows: int) -> pa.BooleanArray:
        """Return the rows for which the filter is true."""
        return evaluate.mask(self.predicate, columns, num_rows)

    def __str__(self) -> str:
        return str(self.predicate)


@dataclass(frozen=True)
class SqlFilter:
    """SQL text as a filter, evaluated by DuckDB."""

    expression: vet.SqlExpression
    parameters: Parameters = None

    def paths(self) -> tuple[Path, ...]:
        """Return the columns and struct fields that the filter reads."""
        return self.expression.paths

    def mask(self, columns: Columns, num_rows: int) -> pa.BooleanArray:
        """Return the rows for which the filter is true."""
        inputs = {name: columns[name] for name in dict.fromkeys(path[0] for path in self.paths())}
        answer = expressions.evaluate_sql(
            f"{self.expression.sql} AS answer", inputs, num_rows, self.parameters, text=str(self)
        )
        answers = answer.column(0).cast(pa.bool_()).combine_chunks()
        return answers.fill_null(False)

    def __str__(self) -> str:
        return self.expression.text


@dataclass(frozen=True)
class ExpressionFilter:
    """A pyarrow expression as a filter, evaluated by pyarrow.

    Attributes:
        expression: The expression.
        reads: Columns and struct fields that the expression reads.
        implied: A predicate that the expression implies, used to search indexes.
        decodes: Whether to decode dictionaries first, for functions that do not support them.
    """

    expression: pc.Expression
    reads: tuple[Path, ...]
    implied: Predicate | None = field(default=None, compare=False)
    decodes: bool = False

    def paths(self) -> tuple[Path, ...]:
        """Return the columns and struct fields that the filter reads."""
        return self.reads

    def mask(self, columns: Columns, num_rows: int) -> pa.BooleanArray:
        """Return the rows for which the filter is true."""
        inputs = {name: columns[name] for name in dict.fromkeys(path[0] for path in self.reads)}
        return arrow_filter.expression_mask(self.expression, inputs, num_rows, decodes=self.decodes)

    def __str__(self) -> str:
        return str(self.expression)


@dataclass(frozen=True)
class AllFilters:
    """Several filters, all of which must hold."""

    parts: tuple[Filter, ...]

    def paths(self) -> tuple[Path, ...]:
        """Return the columns and struct fields that the filters read."""
        return tuple(dict.fromkeys(path for part in self.parts for path in part.paths()))

    def mask(self, columns: Columns, num_rows: int) -> pa.BooleanArray:
        """Return the rows for which all filters are true."""
        answer = self.parts[0].mask(columns, num_rows)
        for part in self.parts[1:]:
            answer = pc.and_(answer, part.mask(columns, num_rows))
        return answer

    def __str__(self) -> str:
        return " AND ".join(f"({part})" for part in self.parts)


def make_filter(condition: FilterLike | None, schema: pa.Schema, parameters: Parameters = None) -> Filter | None:
    """Build a filter from any form that callers may pass.

    Args:
        condition: SQL text, (SQL text, parameters), a pyarrow expression, a predicate tree, a filter, or None.
        schema: Columns that the filter may read, including hidden columns.
        parameters: Values bound to the SQL text.

    Raises:
        InvalidInputError: The syntax is wrong, a column is unknown, or the value is not a condition or not a filter.
    """
    if isinstance(condition, tuple) and len(condition) == 2 and isinstance(condition[0], str) and parameters is None:
        condition, parameters = condition
    if parameters is not None and not isinstance(condition, str):
        raise InvalidInputError("parameters need an SQL string", found=type(condition).__name__)
    if condition is None:
        return None
    if isinstance(condition, str):
        return _sql_filter(condition, schema, parameters)
    if isinstance(condition, pc.Expression):
        paths = arrow_filter.expression_paths(condition, schema)
        fitting = literals.with_fitting_literals(condition, schema)
        decodes = arrow_filter.check_expression(fitting, schema)
        return ExpressionFilter(fitting, paths, implied_tree.implied_predicate(fitting, schema), decodes)
    if isinstance(condition, Predicate):
        return TreeFilter(condition)
    if isinstance(condition, Filter):
        return condition
    raise InvalidInputError(
        "bad filter", expected="an SQL string or a pyarrow.compute.Expression", found=type(condition).__name__
    )


def all_filters(*filters: Filter | None) -> Filter | None:
    """Return the conjunction of filters, or None without filters."""
    parts = tuple(part for part in filters if part is not None)
    return parts[0] if len(parts) == 1 else AllFilters(parts) if parts else None


def _sql_filter(text: str, schema: pa.Schema, parameters: Parameters) -> Filter:
    if parameters is not None and (
        isinstance(parameters, str | bytes) or not isinstance(parameters, Mapping | Sequence)
    ):
        raise InvalidInputError("bad parameters", expected="a list, tuple or dict", found=type(parameters).__name__)
    if parameters is not None:  # copied, so that later changes by the caller do not affect cached filters
        parameters = dict(parameters) if isinstance(parameters, Mapping) else list(parameters)
    condition = mixed.read_sql(text, schema, parameters)
    return TreeFilter(condition) if isinstance(condition, Predicate) else SqlFilter(condition, parameters)


def compared(text: object) -> tuple[str, int | str] | None:
    """Return the column and the value of a filter of the form `column = 7` or `column = 'a'`. None for others."""
    match = _LITERAL.fullmatch(text) if type(text) is str else None
    if match is None:
        return None
    return match[1], match[3] if match[2] is None else int(match[2])
