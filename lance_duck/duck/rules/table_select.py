"""SELECTs from one table: the place of the table, and the conditions of WHERE. Pure.

Such a SELECT gives the same result if the table holds only rows that may satisfy its WHERE, also as a subquery, a
common table expression or a part of a UNION: everything else in it applies after WHERE.
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
        place: Where it reads the table.
        alias: By what it calls the table, in lower case.
        conjuncts: The conditions of WHERE.
    """

    select: exp.Select
    place: TablePlace
    alias: str
    conjuncts: tuple[Node, ...]

    @classmethod
    def of(cls, select: exp.Select, statement: Statement) -> TableSelect | None:
        """Return what a SELECT reads; None where that is not one table, by its name, with a WHERE.

        Raises:
            LookupError: The parser does not say where the name stands.
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
        """Return those conditions that say something of columns of the table alone, with bare names.

        Args:
            parts: Operands from `and_operands`.
            is_known: Tells whether a condition means the same on its own.
        """
        shown = {each.alias.lower() for each in self.select.expressions if isinstance(each, exp.Alias)}
        bare = (without_table(part, self.alias, shown) for part in parts)
        return [part for part in bare if part is not None and is_known(part)]


def table_selects(statement: Statement, *odd: type[exp.Expression]) -> Iterator[TableSelect]:
    """Yield the SELECTs of a statement that read one table each, whose name no common table expression has.

    Args:
        statement: The statement; one that stores what it selects has none.
        odd: Kinds of expressions with which the statement is left alone.

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
