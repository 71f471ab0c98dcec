"""Replace calls of `match`, `match_phrase`, `score`, `highlight` and `snippet` with functions of this package.

    match(body, 'duck lake', fuzziness := 1)  →  __lance_match(["t"."body"], '{"table": …}', ('duck lake'), '')
    score(t)                                  →  the sum of __lance_score(…) over the matches of t

The score of a row is the sum over the table's matches in the SELECT that reads it. If WHERE and ON contain matches,
only these count. Negated matches do not count, and repeated matches count once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from lance_duck.arguments import known_names
from lance_duck.duck.catalog import TableCatalog
from lance_duck.duck.full_text.call_places import is_grouped, is_kept, null_is_false
from lance_duck.duck.full_text.called_columns import CalledColumn, CalledColumns
from lance_duck.duck.full_text.calls import (
    FUNCTIONS,
    MARKED,
    MATCH,
    PHRASE,
    SCORE,
    TextCall,
    TextCalls,
    find_text_calls,
    may_find,
)
from lance_duck.duck.full_text.carried_calls import CallCarrier
from lance_duck.duck.full_text.inlined_views import ViewInliner
from lance_duck.duck.full_text.origins import ReadTable
from lance_duck.duck.names import Names
from lance_duck.duck.statement.edits import Edit, apply
from lance_duck.duck.statement.identifiers import folded, literal, quoted
from lance_duck.duck.statement.lifted import LiftedText
from lance_duck.duck.statement.scope import Part, Scope, TableRead
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.tables.text_functions import HIGHLIGHTS, MATCHES, SCORES, SNIPPETS
from lance_duck.duck.tables.text_request import TextRequest, check_option, constant
from lance_duck.errors import InvalidInputError, LanceDuckError, WrongTypeError
from lance_duck.scan.duckdb.source import SPEAKS_SOURCE
from lance_duck.scan.text.route import text_route

_DIVIDER: Final = "chr(31)"
_MARK: Final = re.compile(r"\$\w+")
_MARKS: Final = {
    "highlight": (HIGHLIGHTS, {"pre": "'<b>'", "post": "'</b>'"}),
    "snippet": (SNIPPETS, {"words": "20", "pre": "'<b>'", "post": "'</b>'", "gap": "'…'"}),
}
"""Internal functions for `highlight` and `snippet`, and their options with defaults, in positional order."""
_ORDER: Final = ("pre", "post", "words", "gap")
_TYPES: Final = {"words": "BIGINT"}


@dataclass(frozen=True)
class RewrittenText:
    """A statement with replaced calls.

    Attributes:
        text: The statement with each call replaced in its original position.
        carried: The statement with calls on columns of queries and views pushed down to the tables. It returns the same
            result as `text`. If DuckDB rejects it, `text` runs.
    """

    text: LiftedText
    carried: LiftedText


class TextRewriter:
    """Rewrites the statements of one connection.

    Args:
        catalog: Its Lance tables.
        names: Name resolver of the connection.
    """

    def __init__(self, catalog: TableCatalog, names: Names) -> None:
        self._catalog = catalog
        self._names = names

    def rewritten(self, lifted: LiftedText, *, later: bool) -> RewrittenText:
        """Replace the calls of a statement. Statements without calls are returned unchanged.

        Args:
            lifted: One or more statements.
            later: Whether an unfetched result is kept while names are looked up.

        Raises:
            InvalidInputError, WrongTypeError, UnknownColumnError: A call is invalid. The message shows the call.
        """
        unchanged = RewrittenText(lifted, lifted)
        if not may_find(lifted.text):
            return unchanged
        statement = lifted.statement
        calls: TextCalls | None = statement.result("text calls", find_text_calls)
        if calls is None or not (self._reads_ours(calls, later) or any(c.function in MARKED for c in calls.calls)):
            return unchanged
        functions = self._names.own_functions(FUNCTIONS, later=later)
        rewriting = _Rewriting(self._catalog, self._names, statement, calls, functions, later)
        edits = list(rewriting.edits(has_tables=self._reads_ours(calls, later)))
        return RewrittenText(lifted.edited(edits), lifted.edited(rewriting.carried(edits))) if edits else unchanged

    def _reads_ours(self, calls: TextCalls, later: bool) -> bool:
        """Return whether a statement reads a Lance table."""
        return any(
            table.path is not None or (table.name is not None and self._may_be_ours(table.name, later=later))
            for table in calls.scopes.tables
        )

    def _may_be_ours(self, name: tuple[str, ...], *, later: bool) -> bool:
        """Return whether a name refers to a Lance table, or to a view that may read one."""
        return self._names.are_ours(name, later=later) or self._names.view(name, later=later) is not None


@dataclass(frozen=True, eq=False)
class _Match:
    """A replaced `match` call.

    Attributes:
        call: The call.
        arguments: SQL arguments of the internal function.
        column: Its column.
        arguments_below: The arguments in the SELECT that reads the table, or None if the call cannot be pushed down.
    """

    call: TextCall
    arguments: str
    column: CalledColumn
    arguments_below: str | None


class _Rewriting:
    """The rewriting of one statement.

    Args:
        catalog: The Lance tables.
        names: Name resolver of the connection.
        statement: The statement.
        calls: Its calls.
        functions: User-defined functions with the same names.
        later: See `TextRewriter.rewritten`.
    """

    def __init__(
        self,
        catalog: TableCatalog,
        names: Names,
        statement: Statement,
        calls: TextCalls,
        functions: frozenset[str],
        later: bool,
    ) -> None:
        self._statement = statement
        self._found = calls
        self._own = functions
        self._matches: dict[TableRead, list[_Match]] = {}
        self._columns = CalledColumns(catalog, names, statement, calls, later=later)
        self._carried: dict[Edit, str] = {}
        views = ViewInliner(names, later=later)
        kept = any(is_kept(calls.scopes, call.at) for call in calls.calls)
        # DuckDB 1 rejects some correlated queries over an inlined view. Relations raise the error only on fetch.
        refuses = kept or (later and not SPEAKS_SOURCE)
        self._carrier = CallCarrier(
            self._columns.text, _replaced(calls), lambda view: None if refuses else views.edits(view)
        )

    def edits(self, *, has_tables: bool) -> Iterator[Edit]:
        """Yield the edits that replace calls, add aliases to result columns, and number each `?`.

        Args:
            has_tables: Whether the statement reads Lance tables. If not, calls that need a Lance table stay unchanged.
        """
        calls = [call for call in self._found.calls if call.function not in self._own]
        if not has_tables:
            calls = [call for call in calls if call.function in MARKED]
        edits = [self._match(call) for call in calls if call.function in (MATCH, PHRASE)]
        edits += [edit for call in calls if call.function == SCORE and (edit := self._score(call)) is not None]
        edits += [self._marked(call) for call in calls if call.function in MARKED]
        if not edits:
            return
        headings = dict.fromkeys(heading for call in calls for heading in call.headings)
        yield from edits
        yield from (Edit(place, place, f"\nAS {quoted(name)} ") for place, name in headings)
        for number, mark in enumerate(self._statement.marks, 1):
            if not any(edit.overlaps(mark, mark + 1) for edit in edits):
                yield Edit(mark, mark + 1, f"${number}")

    def carried(self, edits: Sequence[Edit]) -> Sequence[Edit]:
        """Return the edits with calls pushed down to the SELECTs that read their tables, if possible."""
        if not self._carried:
            return edits
        replaced = [replace(edit, text=self._carried[edit]) if edit in self._carried else edit for edit in edits]
        return [*replaced, *self._carrier.edits()]

    # Calls.

    def _match(self, call: TextCall) -> Edit:
        self._check_alone(call)
        column = self._columns.column(call)
        match = self._arguments(call, column)
        self._matches.setdefault(column.table.read, []).append(match)
        edit = Edit(call.start, call.end, f"{MATCHES}({match.arguments})")
        is_condition = null_is_false(self._found.scopes, call.at, self._found.scopes.closer(call.at + 1))
        name = self._below(match, MATCHES, call, is_condition=is_condition)
        if name is not None:
            self._carried[edit] = name
        return edit

    def _below(self, match: _Match, function: str, call: TextCall, *, is_condition: bool) -> str | None:
        """Push a call down to its table. Returns SQL of the column, or None if that is not possible."""
        column, arguments, scopes = match.column, match.arguments_below, self._found.scopes
        if arguments is None or column.origin is None or column.scope is None:
            return None
        clauses = dict(column.scope.clauses)
        is_distinct = "select" in clauses and scopes.word(clauses["select"] + 1) == "distinct"
        if is_grouped(scopes, call.at, column.scope) or (is_distinct and call.clause == "order"):
            return None
        sql = f"{function}({arguments})"
        return self._carrier.carried(column.origin, column.scope, sql, is_condition=is_condition)

    def _score(self, call: TextCall) -> Edit | None:
        parts = call.column
        scope: Scope | None = call.scope
        while scope is not None and len(parts) == 1:
            for table_read in scope.tables:
                is_ours = table_read in self._matches or self._columns.table(table_read) is not None
                if folded(table_read.alias) == folded(parts[0]) and is_ours:
                    return self._sum(call, table_read, scope)
            scope = scope.outer
        return None

    def _sum(self, call: TextCall, table_read: TableRead, scope: Scope) -> Edit:
        """Return the edit of a `score` call: the sum of the scores of a table's matches."""
        matches = [
            each for each in self._matches.get(table_read, []) if each.call.scope is scope and not each.call.is_negated
        ]
        matches = [each for each in matches if each.call.clause in ("where", "from")] or matches
        if not matches or len(call.positional) != 1 or call.named:
            raise self._columns.placed(
                call,
                InvalidInputError(
                    f"the SELECT that reads {table_read.alias!r} needs a match of one of its columns",
                    where=SCORE,
                    expected=f"WHERE match({table_read.alias}.column, 'words')",
                ),
            )
        each_once = list({match.arguments: match for match in matches}.values())
        edit = Edit(call.start, call.end, _added([f"{SCORES}({match.arguments})" for match in each_once]))
        below = [self._below(match, SCORES, call, is_condition=False) for match in each_once]
        if None not in below:
            self._carried[edit] = _added([f"coalesce({name}, 0::FLOAT)" for name in below])
        return edit

    def _marked(self, call: TextCall) -> Edit:
        """Return the edit of `highlight` or `snippet`. For a table column, the column's analyzer is used."""
        self._check_alone(call)
        request, beside, texts = "", "''", f"[({self._sql(call.positional[0])})::VARCHAR]"
        value_of = call.of_column()
        try:
            column = self._columns.column(value_of or call)
            table = column.table
            texts = column.texts if value_of is None else texts
            names = [name for name, _ in table.version]
            request = TextRequest(
                *(table.name, column.path, MATCH), version=names, held=table.held, is_value=value_of is not None
            ).text
            beside = self._beside([], table)
        except LanceDuckError:
            pass  # without a table column, the default analyzer marks the string
        function, defaults = _MARKS[call.function]
        names = list(defaults)
        arguments = dict(zip(names, call.positional[2:], strict=False))
        if len(call.positional) > 2 + len(names):
            raise self._columns.placed(call, InvalidInputError("too many arguments", expected=", ".join(names)))
        for name, part in call.named:
            if name not in names or name in arguments:
                error = InvalidInputError(f"unknown or repeated option {name!r}", expected=known_names(names))
                raise self._columns.placed(call, error)
            arguments[name] = part
        values = {name: self._sql(arguments[name]) if name in arguments else defaults[name] for name in names}
        rest = ", ".join(f"({values[name]})::{_TYPES.get(name, 'VARCHAR')}" for name in _ORDER if name in values)
        words = self._sql(call.positional[1])
        marked = f"{function}({texts}, {literal(request)}, ({words})::VARCHAR, {beside}, {rest})"
        return Edit(call.start, call.end, f"list_extract({marked}, 1)" if texts.startswith("[") else marked)

    def _check_alone(self, call: TextCall) -> None:
        inside = [each for each in self._found.calls if call.start < each.start < call.end]
        if inside:
            raise self._columns.placed(
                inside[0], InvalidInputError(f"{inside[0].function} cannot be an argument of {call.function}")
            )

    def _arguments(self, call: TextCall, column: CalledColumn) -> _Match:
        table, words = column.table, call.positional[1]
        if words.string is None and words.tokens[0].text[:1].isdigit():
            raise self._columns.placed(
                call, WrongTypeError("query", where=call.function, expected="a string", found=words.text.strip())
            )
        constants, beside = self._options(call)
        version = table.version
        request = TextRequest(
            table.name,
            column.path,
            call.function,
            constants,
            [name for name, _ in beside],
            [name for name, _ in version],
            table.held,
        )
        if words.string is not None or not beside:
            try:
                request.query(words.string or "", "")
            except LanceDuckError as error:
                raise self._columns.placed(call, error) from error
        rest = f"{literal(request.text)}, ({self._sql(words)})::VARCHAR, {self._beside(beside, table)}"
        is_known = words.string is not None or _MARK.fullmatch(self._sql(words).strip()) is not None
        is_below = is_known and not beside and self._is_indexed(column)
        return _Match(call, f"{column.texts}, {rest}", column, f"{column.texts_below}, {rest}" if is_below else None)

    def _is_indexed(self, column: CalledColumn) -> bool:
        """Return whether an index covers a column that is read through a subquery or view."""
        snapshot = column.table.dataset.handle.snapshot
        return column.origin is not None and text_route(snapshot, column.path, None).name is not None

    def _beside(self, options: Sequence[tuple[str, Part]], table: ReadTable) -> str:
        """Return SQL for non-constant options and for the table version."""
        values = [f"coalesce(({self._sql(part)})::VARCHAR, '')" for _, part in options]
        values += [f"coalesce({_version(name, self._sql(part))}, '')" for name, part in table.version]
        return "''" if not values else values[0] if len(values) == 1 else f"concat_ws({_DIVIDER}, {', '.join(values)})"

    def _options(self, call: TextCall) -> tuple[dict[str, Any], list[tuple[str, Part]]]:
        """Return the constant options of a call, and the non-constant ones."""
        named = list(call.named)
        rest = call.positional[2:]
        if call.function == PHRASE and len(rest) == 1:
            named.insert(0, ("slop", rest[0]))
        elif rest:
            expected = "a column, a query and named options, such as operator := 'AND'"
            raise self._columns.placed(
                call, InvalidInputError("too many arguments", where=call.function, expected=expected)
            )
        constants: dict[str, Any] = {}
        beside = []
        for name, part in named:
            try:
                check_option(call.function, name)
                constants[name] = constant(call.function, name, part.text)
            except LookupError as error:
                if isinstance(error, LanceDuckError):
                    raise self._columns.placed(call, error) from error
                beside.append((name, part))
            except LanceDuckError as error:
                raise self._columns.placed(call, error) from error
        return constants, beside

    # Texts.

    def _sql(self, part: Part) -> str:
        """Return the source text of an argument, with `$1`, `$2`, … instead of `?`."""
        text, start = part.text, part.start
        marks = enumerate(self._statement.marks, 1)
        inside = [(number, mark - start) for number, mark in marks if start <= mark < start + len(text)]
        return apply(text, [Edit(place, place + 1, f"${number}") for number, place in inside])


def _replaced(calls: TextCalls) -> frozenset[int]:
    """Return the token indices of each call, from the name to the end of the first argument (a column or table)."""
    mine = (call for call in calls.calls if call.function not in MARKED)
    return frozenset(at for call in mine for at in range(call.at, call.at + 2 + len(call.positional[0].tokens)))


def _added(terms: Sequence[str]) -> str:
    """Return SQL for a sum."""
    return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"


def _version(name: str, text: str) -> str:
    """Return SQL for a version argument. Timestamps are formatted for `lance_scan`."""
    if name != "asof":
        return f"({text})::VARCHAR"
    moment = f"make_timestamp(epoch_us(TRY_CAST(({text}) AS TIMESTAMPTZ)))"
    return f"coalesce(strftime({moment}, '%Y-%m-%d %H:%M:%S.%f+00:00'), ({text})::VARCHAR)"
