"""Passes WHERE to searches with `prefilter := true`. See the room's docstring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final

import duckdb

from lance_duck.dataset import LanceDataset
from lance_duck.duck.prefilter.expression import SUBQUERY, Expression, may_read_clock
from lance_duck.duck.rules import prefilter_condition
from lance_duck.duck.rules.prefilter_condition import PrefilterCondition
from lance_duck.duck.rules.table_read import Condition, as_key
from lance_duck.duck.run.candidates import NotFoundHere
from lance_duck.duck.run.named_tables import named, variables
from lance_duck.duck.run.parameters import ParameterValues
from lance_duck.duck.run.rewriting import Database
from lance_duck.duck.search_filters import ChosenRows
from lance_duck.duck.settings import About, about_condition
from lance_duck.duck.statement.edits import Edit, apply
from lance_duck.duck.statement.identifiers import folded, literal, quoted, shown_names
from lance_duck.duck.statement.lifted import LiftedText
from lance_duck.duck.statement.placeholders import LISTED, placeholders_in
from lance_duck.duck.statement.scope import Part
from lance_duck.duck.statement.tokens import tokens_of
from lance_duck.duck.tables.computed_columns import TableWithColumns
from lance_duck.duck.tables.handle import VersionChoice
from lance_duck.duck.tables.row_identifier_columns import row_identifiers
from lance_duck.duck.tables.table import select_all
from lance_duck.duck.user_scope import call_as_user
from lance_duck.errors import InvalidInputError, LanceDuckError
from lance_duck.scan.filters import make_filter
from lance_duck.scan.projection import ROW_ADDRESS

_MADE: Final = frozenset({"_distance", "_score", "_hybrid_score", "query_index", "_doc_index"})
"""Columns that only search results have."""
_WORDS: Final = {"true": True, "false": False}
_DEPTH: Final = 8
_VERSIONS: Final = ("version", "tag", "asof", "branch")
_MOMENT: Final = (
    "coalesce(strftime(make_timestamp(epoch_us(TRY_CAST({0} AS TIMESTAMPTZ))), '%Y-%m-%d %H:%M:%S.%f+00:00'), "
    "({0})::VARCHAR)"
)
_BLANK: Final = r"'^\((\s*)\n\) AND .*'"
"""Matches a given filter without text, with the condition. The search rejects such a filter if it is alone."""
_REMEDY: Final = (
    "pass a condition of columns and constants as filter := '…', or leave out prefilter := true to filter the rows "
    "found"
)


class PrefilterPushdown:
    """Passes WHERE to the searches of statements on one connection.

    Args:
        database: The connection.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @staticmethod
    def may_apply(lifted: LiftedText) -> bool:
        """Return whether a statement has WHERE in a SELECT that calls a search with `prefilter`."""
        return bool(lifted.statement.result("prefilter", prefilter_condition.find))

    def edits(self, lifted: LiftedText, parameters: Any, *, later: bool) -> list[Edit]:
        """Return the edits that pass WHERE to the searches as `filter`.

        Args:
            lifted: One statement. PREPARE is not edited, because EXECUTE runs the text with its values.
            parameters: Its parameters in DuckDB's forms.
            later: Whether its rows are read later.

        Raises:
            InvalidInputError: A condition cannot choose rows before the search.
            duckdb.Error: DuckDB rejects a condition.
        """
        proposals: tuple[PrefilterCondition, ...] = lifted.statement.result("prefilter", prefilter_condition.find)
        if not proposals or lifted.statement.tokens[0].word == "prepare":
            return []
        values = ParameterValues(lifted.lists, parameters)
        calls = (_Search(proposal, lifted, values, self._database, later) for proposal in proposals)
        return [edit for call in calls if (edit := call.edit()) is not None]


@dataclass
class _Search:
    """One call of a search.

    Attributes:
        proposal: The call and its conditions.
        lifted: The statement.
        values: Values of its parameters.
        database: The connection.
        later: Whether its rows are read later.
    """

    proposal: PrefilterCondition
    lifted: LiftedText
    values: ParameterValues
    database: Database
    later: bool

    def edit(self) -> Edit | None:
        """Return the edit of the call's `filter`. None if the search has no condition.

        Raises:
            LanceDuckError: The table cannot be read, or a condition cannot choose rows before the search.
            duckdb.Error: DuckDB rejects an argument or a condition.
        """
        try:
            if "table_name" not in self.proposal.arguments or not self._is_asked():
                return None
            _ = self.dataset
        except duckdb.InterruptException:
            raise
        except (duckdb.Error, LanceDuckError, NotFoundHere) as error:
            if self.proposal.stores != "macro":
                if isinstance(error, NotFoundHere):
                    return None  # DuckDB rejects the missing parameter
                raise  # the search must not run without the condition
            found = "a table or prefilter that only calls of the macro know"
            raise self._refused(self.proposal.conditions[0].text, found) from None
        conditions = [text for part in self.proposal.conditions if (text := self._pushed(self._numbered(part)))]
        if not conditions:
            return None
        condition = " AND ".join(f"({text})" for text in conditions)
        filters = self.database.catalog.binder.filters
        try:
            plain = self._plain(condition)
            text = filters.with_rows(self._rows(condition)) if plain is None else filters.with_values(*plain)
        except NotFoundHere:
            return None  # DuckDB rejects the missing parameter
        return self._with_filter(literal(text))

    def _with_filter(self, text: str) -> Edit:
        given = self.proposal.arguments.get("filter")
        if given is None:
            return Edit(self.proposal.end, self.proposal.end, f'\n, "filter" := {text}')
        both = f"concat_ws(' AND ', '(' || ({given.text})::VARCHAR || chr(10) || ')', {text})"
        both = f"regexp_replace({both}, {_BLANK}, '\\1', 's')"
        return Edit(given.start, given.start + len(given.text.rstrip("\n")), both)

    def _is_asked(self) -> bool:
        """Return whether `prefilter` is true."""
        text = self.proposal.arguments["prefilter"].text.strip().lower()
        if text in _WORDS:
            return _WORDS[text]
        (asked,) = self._evaluated(f"({self._numbered(self.proposal.arguments['prefilter'])})::BOOLEAN")
        return asked is True

    @cached_property
    def dataset(self) -> LanceDataset:
        """The version that is searched."""
        arguments, names = self.proposal.arguments, self.database.names
        table = arguments["table_name"].string
        choice = VersionChoice()
        if table is None or not arguments.keys().isdisjoint(_VERSIONS):
            given = {name: self._numbered(arguments[name]) if name in arguments else "NULL" for name in _VERSIONS}
            items = [self._numbered(arguments["table_name"]), given["version"], given["tag"], given["branch"]]
            table, version, tag, branch, asof = self._evaluated(
                ", ".join(f"({item})::VARCHAR" for item in items) + ", " + _MOMENT.format(given["asof"])
            )
            choice = VersionChoice(version, tag, asof, branch)
        path = names.qualified(str(table), later=self.later)
        return self.database.catalog.binder.handle(path, choice).current()

    def _evaluated(self, items: str) -> tuple[Any, ...]:
        """Return the values of constant expressions."""
        row: tuple[Any, ...] = self._query(f"SELECT {items}").fetchall()[0]
        return row

    def _query(self, text: str, tables: Any = None) -> Any:
        """Run a query with the parameters that it uses."""
        keys = [key for key, _ in placeholders_in(tokens_of(text)) if not key.startswith(LISTED)]
        values = {key: self.values.value(as_key(key)) for key in keys}
        query = partial(self.database.native.sql, self.lifted.restored(text), params=values or None)
        return call_as_user(query, tables)

    def _numbered(self, part: Part) -> str:
        """Return the text of a part of the statement, with `$1`, `$2`, … instead of `?`."""
        start, end = part.start, part.start + len(part.text.rstrip("\n"))
        marks = ((number, at) for number, at in enumerate(self.lifted.statement.marks, 1) if start <= at < end)
        return apply(part.text, [Edit(at - start, at - start + 1, f"${number}") for number, at in marks])

    # Conditions.

    @cached_property
    def _columns(self) -> frozenset[str]:
        """DuckDB's names of the table's columns, folded."""
        return frozenset(self.proposal.renamed) | frozenset(map(folded, shown_names(self.dataset.schema.names)))

    def _pushed(self, text: str) -> str:
        """Return the text of a condition for the search. Empty if it applies to the found rows only.

        Raises:
            InvalidInputError: It concerns the table, but is not an expression of its columns and constants.
        """
        text, expression = self._expanded(text)
        if expression is None:
            return ""  # DuckDB rejects the text
        proposal = self.proposal
        names = {self._name(parts) for parts in expression.columns} - (expression.parameters - self._columns)
        others, made = names - self._columns - _MADE, names & (_MADE - self._columns)
        wrong = expression.refused or (f"{expression.volatile}()" if expression.volatile else "")
        if names.isdisjoint(self._columns) and "" not in names:
            if wrong and not names and expression.refused != SUBQUERY:
                raise self._refused(text, wrong)
            return ""
        if not wrong and others - {""}:
            is_unknown = proposal.is_alone and not proposal.is_inner and proposal.stores != "macro"
            if is_unknown or proposal.is_change:
                return ""  # DuckDB rejects an unknown column; WHERE of a change also contains conditions of joins
            wrong = f"a column of another table: {min(others - {''})}"
        wrong = wrong or ("the whole row" if "" in names else "")
        wrong = wrong or (f"a column of the result: {min(made)}" if made else "")
        wrong = wrong or ("a search that an outer join may leave without a row" if proposal.is_nullable else "")
        if wrong:
            raise self._refused(text, wrong)
        return text

    def _expanded(self, text: str) -> tuple[str, Expression | None]:
        """Replace aliases of the SELECT list with their expressions."""
        for _ in range(_DEPTH):
            expression = Expression.of(text)
            names = set() if expression is None else {folded(parts[0]) for parts in expression.columns}
            known = names - self._columns - _MADE - (frozenset() if expression is None else expression.parameters)
            found = {name: self.proposal.aliases[name] for name in known & self.proposal.aliases.keys()}
            if not found:
                return text, expression
            tokens = tokens_of(text)
            text = apply(
                text,
                [
                    Edit(token.start, token.end, f"({self._numbered(found[folded(token.name)])})")
                    for at, token in enumerate(tokens)
                    if token.name is not None
                    and folded(token.name) in found
                    and tokens[at - 1].text != "."
                    and (at + 1 == len(tokens) or tokens[at + 1].text != "(")
                ],
            )
        return text, expression

    def _name(self, parts: Sequence[str]) -> str:
        """Return the folded name of a column, without the alias of the search. Empty for a whole row."""
        first, *rest = map(folded, parts)
        if first != self.proposal.alias:
            return first
        return rest[0] if rest and rest[0] in self._columns | _MADE else "" if first not in self._columns else first

    def _refused(self, text: str, found: str) -> InvalidInputError:
        return InvalidInputError(
            "WHERE cannot choose rows before the search",
            where=f"{self.proposal.function}, prefilter := true",
            expected="a condition of columns of the table, constants and deterministic functions",
            found=f"{found}, in {self.lifted.restored(text).strip()}",
            remedy=_REMEDY,
        )

    # Filters.

    def _plain(self, condition: str) -> tuple[str, list[Any]] | None:
        """Return a condition as the text of a filter, with its values. None if it may have a different meaning."""
        expression = Expression.of(condition)
        if expression is None or self.proposal.renamed or not expression.is_independent:
            return None
        marks = [mark for mark in placeholders_in(tokens_of(condition)) if not mark[0].startswith(LISTED)]
        edits = [*self._qualifiers(condition), *(Edit(*span, "?") for _, span in marks)]
        text = self.lifted.restored(apply(condition, edits))
        values = self.values.values([as_key(key) for key, _ in marks])
        if not self._is_usual(text, expression, values):
            return None
        try:
            make_filter((text, values) if values else text, self.dataset.schema)
        except LanceDuckError:
            return None
        return text, values

    def _qualifiers(self, condition: str) -> Iterator[Edit]:
        """Yield edits that remove the alias of the search before its columns."""
        tokens = tokens_of(condition)
        for at, token in enumerate(tokens[:-2]):
            is_alias = token.name is not None and folded(token.name) == self.proposal.alias
            follows = tokens[at + 2]
            is_qualifier = is_alias and tokens[at - 1].text != "." and tokens[at + 1].text == "."
            if is_qualifier and folded(follows.name or "") in self._columns:
                yield Edit(token.start, follows.start, "")

    def _is_usual(self, text: str, expression: Expression, values: Sequence[Any]) -> bool:
        """Return whether a condition has the same meaning on this connection as in a filter."""
        names, columns = self.database.names, frozenset(map(self._name, expression.columns))
        about = about_condition(Condition(text, (), columns), self.dataset.schema, values)
        about |= About.MOMENTS if may_read_clock(text) else About(0)
        about |= About.TEXTS if "'" in text else About(0)
        if not names.dialect((self.proposal.function,), later=self.later).is_usual(about):
            return False
        return not names.own_functions(tuple(sorted(expression.functions)), later=self.later)

    def _rows(self, condition: str) -> ChosenRows:
        """Let DuckDB find the rows that satisfy a condition.

        Raises:
            InvalidInputError: The statement stores the condition.
            duckdb.Error: DuckDB rejects the condition.
        """
        if self.proposal.stores:
            found = f"an expression whose value depends on the connection, in a {self.proposal.stores}"
            raise self._refused(condition, found)
        dataset = self.dataset
        table = named(
            self.database.native,
            TableWithColumns(lambda: dataset, row_identifiers([ROW_ADDRESS], dataset), pinned=True),
        )
        renamed = self.proposal.renamed[: len(dataset.schema)]
        alias = quoted(self.proposal.alias) + (f"({', '.join(map(quoted, renamed))})" if renamed else "")
        source = f"({select_all(quoted(table.name))}) AS {alias}"
        rows = self._query(f"SELECT {ROW_ADDRESS} FROM {source} WHERE {condition}", variables((table,)))  # noqa: S608
        return ChosenRows(dataset.handle.snapshot.state, rows.to_arrow_table().column(0).combine_chunks())
