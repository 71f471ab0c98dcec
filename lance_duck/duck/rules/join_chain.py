"""Reads the tables of a FROM clause, in order, with their joins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlglot import exp

from lance_duck.duck.statement.deterministic_sql import Node
from lance_duck.duck.statement.nearest_clause import MARK

_SIDES: Final = frozenset({"", "LEFT", "RIGHT"})
_KINDS: Final = frozenset({"", "INNER", "CROSS", "OUTER", "SEMI", "ANTI"})


@dataclass(frozen=True, eq=False)
class FromItem:
    """A table, subquery or other source of rows.

    Attributes:
        node: Its syntax.
        alias: Qualifier of its columns, in lower case.
        join: The join with the previous items, or None for the first item.
    """

    node: Node
    alias: str
    join: exp.Join | None

    @property
    def is_nearest(self) -> bool:
        """Whether the item is joined by NEAREST. Its rows must not be filtered before the search."""
        on = None if self.join is None else self.join.args.get("on")
        return isinstance(on, exp.Anonymous) and str(on.this).startswith(MARK)

    @property
    def kind(self) -> str:
        """The kind of its join: LEFT, RIGHT, SEMI, ANTI, or "" for an inner or cross join."""
        if self.join is None:
            return ""
        return self.join.side if self.join.side else self.join.kind if self.join.kind in ("SEMI", "ANTI") else ""


@dataclass(frozen=True, eq=False)
class Chain:
    """A FROM clause whose items are joined in order and have distinct aliases."""

    select: exp.Select
    sources: tuple[FromItem, ...]

    @classmethod
    def of(cls, select: exp.Select) -> Chain | None:
        """Return the chain of a SELECT. Returns None without FROM, and for unsupported joins or duplicate aliases."""
        from_ = select.args.get("from_")
        if from_ is None or select.args.get("laterals"):
            return None
        first = from_.this
        within = first.args.get("joins") or []
        joins = [*within, *(select.args.get("joins") or [])]
        sources = [FromItem(first, first.alias_or_name.lower(), None)]
        for join in joins:
            if join.method or join.side not in _SIDES or join.kind not in _KINDS or join.this.args.get("joins"):
                return None
            if isinstance(join.this, exp.Lateral):
                return None
            sources.append(FromItem(join.this, join.this.alias_or_name.lower(), join))
        names = [source.alias for source in sources]
        return cls(select, tuple(sources)) if len(set(names)) == len(names) else None

    def knows(self, name: str) -> bool:
        """Return whether one of the tables has this name or alias."""
        return any(source.alias == name.lower() for source in self.sources)

    def source_of(self, column: exp.Column, join: int | None = None) -> FromItem | None:
        """Return the table to which a column belongs, or None if it is uncertain.

        Args:
            column: A column in WHERE or in ON.
            join: Index of the item whose ON contains the column, or None for WHERE.
        """
        if not column.table:
            found = self.sources_of(column, join)
            return found[0] if len(found) == 1 else None
        for i, source in enumerate(self.sources if join is None else self.sources[: join + 1]):
            if source.alias == column.table.lower():
                return source if i == join or source.kind not in ("SEMI", "ANTI") else None
        return None

    def sources_of(self, column: Node, join: int | None = None) -> list[FromItem]:
        """Return the tables to which a column may belong. Takes the same arguments as `source_of`.

        An unqualified column may belong to any of the tables. If several tables contain it, DuckDB reports an
        ambiguity. USING columns are an exception, because their values are equal.
        """
        if column.table:
            found = self.source_of(column, join)
            return [found] if found is not None else []
        seen = self.sources if join is None else self.sources[: join + 1]
        return [source for i, source in enumerate(seen) if i == join or source.kind not in ("SEMI", "ANTI")]

    def may_narrow(self, source: FromItem, join: int) -> bool:
        """Return whether rows of a table that do not satisfy ON may be skipped.

        Args:
            source: The table.
            join: Index of the item with the ON clause.
        """
        kind = self.sources[join].kind
        if source is self.sources[join]:
            return kind != "RIGHT"
        return kind in ("", "RIGHT", "SEMI")

    def sure_of(self, source: FromItem) -> list[Node]:
        """Return the WHERE conditions that apply to a table's rows before the joins. See `is_sure`."""
        where = self.select.args.get("where")
        return list(and_operands(where.this)) if where is not None and self.is_sure(source) else []

    def is_sure(self, source: FromItem) -> bool:
        """Return whether conditions on the result of the joins apply to a table's rows before the joins.

        This is not the case if a join fills its columns with NULL or hides them, and for NEAREST joins.
        """
        return not self._is_filled(source, len(self.sources)) and not source.is_nearest

    def sure_of_joins(self, source: FromItem) -> Iterator[Node]:
        """Yield the ON conditions that apply to a table's rows before the joins."""
        place = self.sources.index(source)
        for i, other in enumerate(self.sources[place:], place):
            on = None if other.join is None or other.is_nearest else other.join.args.get("on")
            is_seen = i == place or not self._is_filled(source, i)
            if on is not None and is_seen and not source.is_nearest and self.may_narrow(source, i):
                yield from and_operands(on)

    def _is_filled(self, source: FromItem, before: int) -> bool:
        """Return whether joins before an item fill a table's columns with NULL, or hide them."""
        later = self.sources[self.sources.index(source) + 1 : before]
        return source.kind in ("LEFT", "SEMI", "ANTI") or any(each.kind == "RIGHT" for each in later)


def and_operands(condition: Node) -> Iterator[Node]:
    """Yield the operands of nested ANDs, in order."""
    pending = [condition] if condition is not None else []
    while pending:
        part = pending.pop()
        if isinstance(part, exp.And):
            pending += [part.right, part.left]
        elif isinstance(part, exp.Paren):
            pending.append(part.this)
        else:
            yield part
