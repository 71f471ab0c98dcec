"""Replaces calls of `match`, `match_phrase`, `score`, `highlight` and `snippet` by functions of this package.

    match(body, 'duck lake', fuzziness := 1)  →  __lance_match(["t"."body"], '{"table": …}', ('duck lake'), '')
    score(t)                                  →  the sum of __lance_score(…), with the arguments of the matches of t

The score of a row adds up the matches of its table in the SELECT that reads it: those in WHERE and ON, or else all
others. Matches below NOT do not count, and repeated ones count once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final

from lance_duck.arguments import did_you_mean, known_names, unknown_column
from lance_duck.arrow.types import is_list, storage_type
from lance_duck.dataset import LanceDataset
from lance_duck.duck.catalog import TableCatalog
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
from lance_duck.duck.full_text.origins import Origins, ReadTable
from lance_duck.duck.full_text.scopes import Part, Scope, TableRead
from lance_duck.duck.names import Names
from lance_duck.duck.statement.drawing import drawn
from lance_duck.duck.statement.edits import Edit, apply
from lance_duck.duck.statement.identifiers import folded, literal, quoted
from lance_duck.duck.statement.lists import LiftedText
from lance_duck.duck.statement.text import Statement
from lance_duck.duck.tables.handle import TableHandle, VersionChoice, pinned_versions
from lance_duck.duck.tables.text_functions import HIGHLIGHTS, MATCHES, SCORES, SNIPPETS
from lance_duck.duck.tables.text_request import TextRequest, check_option, constant
from lance_duck.errors import InvalidInputError, LanceDuckError, UnknownColumnError, UnsupportedError, WrongTypeError
from lance_duck.scan.text.columns import text_column
from lance_duck.wire.column_path import join_path

_DIVIDER: Final = "chr(31)"
_MARKS: Final = {
    "highlight": (HIGHLIGHTS, {"pre": "'<b>'", "post": "'</b>'"}),
    "snippet": (SNIPPETS, {"words": "20", "pre": "'<b>'", "post": "'</b>'", "gap": "'…'"}),
}
"""The functions behind those that mark words, and their options with defaults, in the order of the caller."""
_ORDER: Final = ("pre", "post", "words", "gap")
_TYPES: Final = {"words": "BIGINT"}


class TextRewriter:
    """Rewrites the statements of one connection.

    Args:
        catalog: Its Lance tables.
        names: Meaning of names on the connection.
    """

    def __init__(self, catalog: TableCatalog, names: Names) -> None:
        self._catalog = catalog
        self._names = names

    def rewritten(self, sql: str, *, later: bool) -> str:
        """Return a statement with the calls replaced; any other statement unchanged.

        Args:
            sql: The statement, or several.
            later: An unfetched result must stay intact.

        Raises:
            InvalidInputError, WrongTypeError, UnknownColumnError: A call makes no sense; the error draws its place.
        """
        if not may_find(sql):
            return sql
        lifted = LiftedText.of(sql)
        statement = Statement.of(lifted.text)
        calls: TextCalls | None = statement.result("text calls", find_text_calls)
        if calls is None or not (self._reads_ours(calls, later) or any(c.function in MARKED for c in calls.calls)):
            return sql
        functions = self._names.own_functions(FUNCTIONS, later=later)
        rewriting = _Rewriting(self._catalog, self._names, statement, calls, functions, later)
        edits = list(rewriting.edits(has_tables=self._reads_ours(calls, later)))
        return lifted.restored(apply(statement.text, edits)) if edits else sql

    def _reads_ours(self, calls: TextCalls, later: bool) -> bool:
        """Return whether a statement reads a Lance table."""
        return any(
            table.path is not None or (table.name is not None and self._may_be_ours(table.name, later=later))
            for table in calls.scopes.tables
        )

    def _may_be_ours(self, name: tuple[str, ...], *, later: bool) -> bool:
        """Return whether a name is that of a Lance table, or of a view, which may read some."""
        return self._names.are_ours(name, later=later) or self._names.view(name, later=later) is not None


class _Rewriting:
    """The rewriting of one statement.

    Args:
        catalog: The Lance tables.
        names: Meaning of names.
        statement: The text.
        found: Its calls.
        own: Functions of the same names that the user defined.
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
        self._catalog = catalog
        self._names = names
        self._statement = statement
        self._found = calls
        self._own = functions
        self._later = later
        self._tables: dict[TableRead, ReadTable | None] = {}
        self._matches: dict[TableRead, list[tuple[TextCall, str]]] = {}
        view_of = partial(names.view, later=later)
        self._origins = Origins(calls.scopes, self._table, view_of)

    def edits(self, *, has_tables: bool) -> Iterator[Edit]:
        """Yield the edits of the text: calls, names for columns of the result, and numbers for its `?`.

        Args:
            has_tables: The statement reads tables of ours; calls that need one are left alone in others.
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

    # Calls.

    def _match(self, call: TextCall) -> Edit:
        self._check_alone(call)
        table, path, column = self._column(call)
        arguments = self._arguments(call, table, path, column)
        self._matches.setdefault(table.read, []).append((call, arguments))
        return Edit(call.start, call.end, f"{MATCHES}({arguments})")

    def _score(self, call: TextCall) -> Edit | None:
        parts = call.column
        scope: Scope | None = call.scope
        while scope is not None and len(parts) == 1:
            for table_read in scope.tables:
                is_ours = table_read in self._matches or self._table(table_read) is not None
                if folded(table_read.alias) == folded(parts[0]) and is_ours:
                    return Edit(call.start, call.end, self._sum(call, table_read, scope))
            scope = scope.outer
        return None

    def _sum(self, call: TextCall, table_read: TableRead, scope: Scope) -> str:
        """Return the sum of the scores of the matches of a table."""
        matches = [
            each for each in self._matches.get(table_read, []) if each[0].scope is scope and not each[0].is_negated
        ]
        matches = [each for each in matches if each[0].clause in ("where", "from")] or matches
        if not matches or len(call.positional) != 1 or call.named:
            raise self._placed(
                call,
                InvalidInputError(
                    f"there is no match of {table_read.alias!r} in the SELECT that reads it",
                    where=SCORE,
                    expected=f"WHERE match({table_read.alias}.column, 'words')",
                ),
            )
        terms = [f"{SCORES}({arguments})" for arguments in dict.fromkeys(arguments for _, arguments in matches)]
        return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"

    def _marked(self, call: TextCall) -> Edit:
        """Return the call of `highlight` or `snippet`, by the analyser of its column where that is one of a table."""
        self._check_alone(call)
        request, beside, texts = "", "''", f"[({self._sql(call.positional[0])})::VARCHAR]"
        value_of = call.of_column()
        try:
            table, path, column_texts = self._column(value_of or call)
            texts = column_texts if value_of is None else texts
            names = [name for name, _ in table.version]
            request = TextRequest(
                *(table.name, path, MATCH), version=names, held=table.held, is_value=value_of is not None
            ).text
            beside = self._beside([], table)
        except LanceDuckError:
            pass  # any text can be marked
        function, defaults = _MARKS[call.function]
        names = list(defaults)
        arguments = dict(zip(names, call.positional[2:], strict=False))
        if len(call.positional) > 2 + len(names):
            raise self._placed(call, InvalidInputError("too many arguments", expected=", ".join(names)))
        for name, part in call.named:
            if name not in names or name in arguments:
                error = InvalidInputError(f"unknown or repeated option {name!r}", expected=known_names(names))
                raise self._placed(call, error)
            arguments[name] = part
        values = {name: self._sql(arguments[name]) if name in arguments else defaults[name] for name in names}
        rest = ", ".join(f"({values[name]})::{_TYPES.get(name, 'VARCHAR')}" for name in _ORDER if name in values)
        words = self._sql(call.positional[1])
        marked = f"{function}({texts}, {literal(request)}, ({words})::VARCHAR, {beside}, {rest})"
        return Edit(call.start, call.end, f"list_extract({marked}, 1)" if texts.startswith("[") else marked)

    def _check_alone(self, call: TextCall) -> None:
        inside = [each for each in self._found.calls if call.start < each.start < call.end]
        if inside:
            raise self._placed(inside[0], InvalidInputError(f"{inside[0].function} inside {call.function}"))

    def _arguments(self, call: TextCall, table: ReadTable, path: str, column: str) -> str:
        words = call.positional[1]
        if words.string is None and words.tokens[0].text[:1].isdigit():
            raise self._placed(
                call, WrongTypeError("query", where=call.function, expected="a string", found=words.text.strip())
            )
        constants, beside = self._options(call)
        version = table.version
        request = TextRequest(
            table.name,
            path,
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
                raise self._placed(call, error) from error
        return f"{column}, {literal(request.text)}, ({self._sql(words)})::VARCHAR, {self._beside(beside, table)}"

    def _beside(self, options: Sequence[tuple[str, Part]], table: ReadTable) -> str:
        """Return SQL for options that are not constants, and for those that choose a table's version."""
        values = [f"coalesce(({self._sql(part)})::VARCHAR, '')" for _, part in options]
        values += [f"coalesce({_version(name, self._sql(part))}, '')" for name, part in table.version]
        return "''" if not values else values[0] if len(values) == 1 else f"concat_ws({_DIVIDER}, {', '.join(values)})"

    def _options(self, call: TextCall) -> tuple[dict[str, Any], list[tuple[str, Part]]]:
        """Return the options of a call that are constants, and the others."""
        named = list(call.named)
        rest = call.positional[2:]
        if call.function == PHRASE and len(rest) == 1:
            named.insert(0, ("slop", rest[0]))
        elif rest:
            expected = "a column, a query and named options, such as operator := 'AND'"
            raise self._placed(call, InvalidInputError("too many arguments", where=call.function, expected=expected))
        constants: dict[str, Any] = {}
        beside = []
        for name, part in named:
            try:
                check_option(call.function, name)
                constants[name] = constant(call.function, name, part.text)
            except LookupError as error:
                if isinstance(error, LanceDuckError):
                    raise self._placed(call, error) from error
                beside.append((name, part))
            except LanceDuckError as error:
                raise self._placed(call, error) from error
        return constants, beside

    # Columns and tables.

    def _column(self, call: TextCall) -> tuple[ReadTable, str, str]:
        """Return the table of the column of a call, its path, and SQL for a list of its texts."""
        parts = call.column
        if not parts:
            expected = "a column of a Lance table"
            argument = call.positional[0].text.strip()
            raise self._placed(
                call, InvalidInputError("first argument", where=call.function, expected=expected, found=argument)
            )
        scope: Scope | None = call.scope
        while scope is not None:
            found_here = self._column_in(call, scope, parts)
            if found_here is not None:
                return found_here
            scope = scope.outer
        columns = [
            name
            for table_read in call.scope.tables
            if (t := self._table(table_read))
            for name in t.dataset.schema.names
        ]
        name, expected = ".".join(parts), known_names(columns)
        what, remedy = f"no column {name!r} of a Lance table", did_you_mean(name, columns)
        error = UnknownColumnError(what, where=call.function, expected=expected, remedy=remedy)
        raise self._placed(call, error)

    def _column_in(self, call: TextCall, scope: Scope, parts: tuple[str, ...]) -> tuple[ReadTable, str, str] | None:
        """Return what `_column` does for a column of this SELECT; None where it may only be one of another around."""
        named = [
            table_read for table_read in scope.tables if len(parts) > 1 and folded(table_read.alias) == folded(parts[0])
        ]
        if named:
            table = self._table(named[0])
            column = None if table is None else table.column(parts[1:])
            if table is not None and column is not None:
                return self._text_column(call, table, column)
            if table is not None:
                names = table.dataset.schema.names
                raise self._placed(call, unknown_column(".".join(parts[1:]), names, f"table {parts[0]}"))
            origin = self._origins.of(named[0], parts[1:])
            if origin is not None:
                return self._text_column(call, *origin, parts[1:])
        seen = [table_read for table_read in scope.tables if not table_read.is_hidden or call.clause == "from"]
        tables = [table for table_read in seen if (table := self._table(table_read)) is not None]
        has_it = [(table, column) for table in tables if (column := table.column(parts)) is not None]
        if len(has_it) == 1 and not named:
            return self._text_column(call, *has_it[0])
        if not has_it and not named:
            traced = [origin for each in seen if (origin := self._origins.of(each, parts)) is not None]
            if len(traced) == 1:
                return self._text_column(call, *traced[0], parts)
            has_it = traced
        if has_it and not named:
            aliases = ", ".join(table.read.alias for table, _ in has_it)
            what, remedy = f"column {parts[0]!r} is of several tables: {aliases}", "write the table before the column"
            raise self._placed(call, InvalidInputError(what, where=call.function, remedy=remedy))
        if named or len(tables) < len(seen):
            raise self._placed(
                call,
                InvalidInputError(
                    f"{'.'.join(parts)} is not known to be a column of a Lance table",
                    where=call.function,
                    expected="a column of a Lance table that the SELECT reads by its name or path",
                    remedy="call it in the SELECT that reads the table, or write the table before the column",
                ),
            )
        return None

    def _text_column(
        self, call: TextCall, table: ReadTable, column: tuple[str, ...], spelled: tuple[str, ...] = ()
    ) -> tuple[ReadTable, str, str]:
        """Return what `_column` does for a column of a table; what is read may spell its name in another way."""
        path = join_path(column) if len(column) > 1 else column[0]
        try:
            field = text_column(table.dataset.handle.snapshot.schema, path)
        except LanceDuckError as error:
            raise self._placed(call, error) from error
        names = spelled or column
        text = ".".join(map(quoted, (table.read.alias, *names) if table.read.alias else names))
        if field.below:
            raise self._placed(
                call, UnsupportedError("texts of structs in a list", where=call.function, found=field.path)
            )
        if field.is_json:
            text = f"CAST({text} AS VARCHAR)"
        return table, field.path, text if is_list(storage_type(field.type)) else f"[{text}]"

    def _table(self, table_read: TableRead) -> ReadTable | None:
        """Return the Lance table that a SELECT reads; None where it reads another one."""
        if table_read not in self._tables:
            self._tables[table_read] = self._find(table_read)
        return self._tables[table_read]

    def _find(self, table_read: TableRead) -> ReadTable | None:
        handle: TableHandle | None
        if table_read.path is not None:
            handle, name = self._catalog.path_handle(table_read.path), table_read.path
        elif table_read.name is None:
            return None
        else:
            database = self._names.database(table_read.name, later=self._later)
            handle = None if database is None else database.find(table_read.name[-1])
            name = "" if database is None else f"{quoted(database.name)}.{quoted(table_read.name[-1])}"
        if handle is None:
            return None
        dataset = _at_version(handle, table_read.version)
        is_held = pinned_versions() is not None and not table_read.version
        held = self._catalog.binder.texts.hold(dataset) if is_held else None
        return ReadTable(table_read, name, dataset, held, table_read.version)

    # Texts.

    def _sql(self, part: Part) -> str:
        """Return an argument as it is spelled, with numbers for its `?`."""
        text, start = part.text, part.start
        marks = enumerate(self._statement.marks, 1)
        inside = [(number, mark - start) for number, mark in marks if start <= mark < start + len(text)]
        return apply(text, [Edit(place, place + 1, f"${number}") for number, place in inside])

    def _placed(self, call: TextCall, error: LanceDuckError) -> LanceDuckError:
        """Return an error that draws the place of a call."""
        place = drawn(self._statement.text, call.start, len(call.function))
        remedy = f"{error.remedy.removesuffix('?')}, here:{place}" if error.remedy else f"here:{place}"
        where = call.function if error.where is None else error.where
        return type(error)(error.what, where=where, expected=error.expected, found=error.found, remedy=remedy)


def _at_version(handle: TableHandle, version: Sequence[tuple[str, Part]]) -> LanceDataset:
    """Return the version of a table that a number or a name chooses; the newest where others do, or there is none."""
    texts = {name: part.text.strip() if part.string is None else part.string for name, part in version}
    are_constants = all(part.string is not None or texts[name].isdecimal() for name, part in version)
    if texts and are_constants and "asof" not in texts:  # DuckDB parses times
        try:
            return handle.at(VersionChoice(**texts)).current()
        except LanceDuckError:
            pass  # the scan reports the error
    return handle.current()


def _version(name: str, text: str) -> str:
    """Return SQL for an argument that chooses a version; a point in time as `lance_scan` reads it."""
    if name != "asof":
        return f"({text})::VARCHAR"
    moment = f"make_timestamp(epoch_us(TRY_CAST(({text}) AS TIMESTAMPTZ)))"
    return f"coalesce(strftime({moment}, '%Y-%m-%d %H:%M:%S.%f+00:00'), ({text})::VARCHAR)"
