"""Finds SELECTs from one table, and their WHERE conditions. Pure.

The SELECT returns the same result if the table contains only rows that may satisfy WHERE, because all other clauses
apply after WHERE. This also holds in a subquery, a common table expression or a UNION.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lance_duck.duck.rules.join_chain import and_operands
from lance_duck.duck.rules.table_read import TablePlace, without_table
from lance_duck.duck.statement.deterministic_sql import Node, is_plain_table, names_a_column
from lance_duck.duck.statement.text import Statement

_BESIDE: Final = ("joins", "laterals", "sample")


@dataclass(frozen=True, eq=False)
class TableSelect:
    """A SELECT from one table, with a WHERE.

    Attributes:
        select: Tree of the SELECT.
        place: The table in the text.
        alias: Alias or name of the table, in lower case.
        conjuncts: The AND operands of WHERE.
    """

    select: exp.Select
    place: TablePlace
    alias: str
    conjuncts: tuple[Node, ...]

    @classmethod
    def of(cls, select: exp.Select, statement: Statement) -> TableSelect | None:
        """Read a SELECT. Returns None if it does not have a WHERE, or does not read exactly one named table.

        Raises:
            LookupError: Sqlglot does not report the position of the name.
        """
        from_, where = select.args.get("from_"), select.args.get("where")
        if from_ is None or where is None or any(select.args.get(name) for name in _BESIDE):
            return None
        table = from_.this
        if not is_plain_table(table) or table.args.get("joins"):
            return None
        return cls(
            select, TablePlace.of(table, statement), table.alias_or_name.lower(), tuple(and_operands(where.this))
        )

    def conditions(self, parts: Iterable[Node], is_known: Callable[[Node], bool]) -> list[Node]:
        """Return the conditions that only read columns of the table, with unqualified column names.

        Args:
            parts: Operands from `and_operands`.
            is_known: Returns whether a condition keeps its meaning outside the statement.
        """
        shown = {each.alias.lower() for each in self.select.expressions if isinstance(each, exp.Alias)}
        bare = (without_table(part, self.alias, shown) for part in parts)
        return [part for part in bare if part is not None and is_known(part)]


def table_selects(statement: Statement, *odd: type[exp.Expression]) -> Iterator[TableSelect]:
    """Yield the SELECTs of a statement that each read a single table, other than a common table expression.

    Args:
        statement: The statement. Statements that store their rows are skipped.
        odd: Expression types whose statements are skipped.

    Raises:
        LookupError, RecursionError, ValueError: The tree cannot be read.
    """
    tree = None if statement.opening is None or statement.opening.stores else statement.tree
    if tree is None or tree.find(*odd):
        return
    named = {cte.alias.lower() for with_ in tree.find_all(exp.With) for cte in with_.expressions}
    for select in tree.find_all(exp.Select):
        table = None if names_a_column(select) else TableSelect.of(select, statement)
        if table is not None and table.place.name[-1].lower() not in named:
            yield table
