"""The planner: rewrites a statement before DuckDB runs it.

    texts without Lance tables or functions go to DuckDB unchanged
    → numbers in a plain WHERE become parameters, which makes more texts equal and cacheable
    → `FROM 'x.lance'` and `AT (…)` become calls (`rules.spelling`)
    → `rules` and `full_text` find proposals from the text alone, once per text
    → `run`, `restrictions` and `full_text` execute them in the order of `RULES`, unless an earlier rule has edited the
      same range
    → attempts: the edited text with its tables and parameters, then the original text

A new optimization of SELECT needs a module in `rules`, one in `run`, and an entry in `RULES`. `changes` handles
statements that change tables.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from lance_duck.cache import LruCache
from lance_duck.duck.explain import explained, rows_as_statement
from lance_duck.duck.full_text import asked_tables, match_columns, matched_rows, unanswered_calls
from lance_duck.duck.history.names import may_be_called
from lance_duck.duck.restrictions import tables as restricted_tables
from lance_duck.duck.restrictions import views as restricted_views
from lance_duck.duck.rules import (
    aggregates,
    group_keys,
    indexed_condition,
    join_keys,
    lateral,
    nearest_by,
    order_by_distance,
    point_lookup,
    repeated_tables,
    spelling,
    text_match,
    vector_call,
)
from lance_duck.duck.run import group_keys as grouped_rows
from lance_duck.duck.run import nearest_by as nearest_by_search
from lance_duck.duck.run import (
    nearest_join,
    order_by_search,
    prefetch_rows,
    prefetch_search,
    semi_join_pushdown,
)
from lance_duck.duck.run import repeated_tables as shared_tables
from lance_duck.duck.run.named_tables import NamedTable, keep_for, variables
from lance_duck.duck.run.parameters import ParameterValues
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.run.search_settings import is_setting
from lance_duck.duck.statement.edits import Edit, apply
from lance_duck.duck.statement.head import FirstWords
from lance_duck.duck.statement.identifiers import folded
from lance_duck.duck.statement.lifted import LiftedText, lifted_numbers
from lance_duck.duck.statement.masked import masked
from lance_duck.duck.statement.nearest_clause import KNOWS_NEAREST
from lance_duck.duck.statement.text import LONGEST_TREE, Statement
from lance_duck.duck.statement.tokens import LONGEST
from lance_duck.duck.tables.table import DuckTable
from lance_duck.duck.tables.text_functions import MATCHES
from lance_duck.duck.user_scope import call_as_user

_LOG: Final = logging.getLogger(__name__)
_CACHED: Final = 256

_WITHOUT_ROWS: Final = "RESET VARIABLE __lance_setting"
"""A no-op statement with the same result as SET."""

Method = Callable[..., Any]
"""A method of DuckDB's connection whose first argument is a statement."""


@dataclass(frozen=True)
class Rule:
    """A pattern of statements, and the function that executes it.

    Attributes:
        find: Function that returns proposals, from the text alone.
        run: Function that executes a proposal. Returns None to leave the statement unchanged.
        later: Whether the rule also applies to relations, which are read later.
        example: A statement to which the rule applies.
        becomes: The rewritten example, with `<rows>` for each generated table.
    """

    find: Callable[[Statement], tuple[Any, ...]]
    run: Callable[[Any, Request, Database], Rewriting | None]
    later: bool
    example: str
    becomes: str


RULES: Final = (
    # First, because a search reads the fewest rows, and returns them in order.
    Rule(
        order_by_distance.find,
        order_by_search.run,
        later=True,
        example="SELECT id FROM t ORDER BY array_distance(v, [1, 2]::FLOAT[2]) LIMIT 3",
        becomes='SELECT id FROM <rows> AS "t" ORDER BY array_distance(v, [1, 2]::FLOAT[2]) LIMIT 3',
    ),
    Rule(
        vector_call.find,
        prefetch_search.run,
        later=False,
        example="SELECT id FROM lance_vector_search('t', 'v', ?, k := 3)",
        becomes='SELECT id FROM (SELECT unnest(?::BIGINT[]) AS "id")',
    ),
    # Before `point_lookup`, because it may replace the whole statement.
    Rule(
        aggregates.find,
        prefetch_rows.run_aggregates,
        later=False,
        example="SELECT count(*), max(id) FROM t",
        becomes='SELECT ?::BIGINT AS "count_star()", ?::BIGINT AS "max(id)"',
    ),
    Rule(
        point_lookup.find,
        prefetch_rows.run,
        later=False,
        example="SELECT g FROM t WHERE id = 7",
        becomes='SELECT g FROM (SELECT ?::BIGINT AS "id", ?::BIGINT AS "g") AS "t" WHERE id = ?',
    ),
    # Joins with nearest rows, which the rules for one table ignore.
    Rule(
        lateral.find,
        nearest_join.run,
        later=False,
        example="SELECT n.id FROM u, LATERAL (SELECT id FROM t ORDER BY array_distance(t.v, u.w) LIMIT 2) AS n",
        becomes='SELECT n.id FROM <rows> AS "u", LATERAL (SELECT id FROM (SELECT "id", "v" FROM <rows> AS found '
        'WHERE found.__lance_query = "u"."w") AS "t" ORDER BY array_distance(t.v, u.w) LIMIT 2) AS n',
    ),
    Rule(
        nearest_by.find,
        nearest_by_search.run,
        later=False,
        example="SELECT t.id FROM u JOIN t NEAREST 2 BY DISTANCE array_distance(u.w, t.v)",
        becomes='SELECT t.id FROM <rows> AS "u" JOIN LATERAL (SELECT * FROM (SELECT "id", "v" FROM <rows> AS '
        'found WHERE found.__lance_query = "u"."w") AS "t" ORDER BY (array_distance(u.w, t.v)) ASC NULLS '
        'LAST LIMIT 2) AS "t" ON true',
    ),
    # After the rules that replace a table with few rows, because it restricts the remaining tables and reads keys.
    Rule(
        join_keys.find,
        semi_join_pushdown.run,
        later=True,
        example="SELECT t.g FROM t JOIN u ON t.id = u.id WHERE u.x = 1",
        becomes='SELECT t.g FROM <rows> AS "t" JOIN u ON t.id = u.id WHERE u.x = 1',
    ),
    # Only for results that are ordered by score. `asked_tables` handles all other calls.
    Rule(
        text_match.find,
        matched_rows.run,
        later=True,
        example="SELECT id FROM t WHERE match(body, 'part') ORDER BY score(t) DESC LIMIT 3",
        becomes='SELECT id FROM <rows> AS "t" WHERE true ORDER BY (CASE WHEN true THEN '
        'coalesce("t"."__lance_match_…", 0::FLOAT) END) DESC LIMIT 3',
    ),
    Rule(
        asked_tables.find_asked_tables,
        match_columns.run,
        later=True,
        example="SELECT id, match(body, 'part') AS m FROM t",
        becomes='SELECT id, (CASE WHEN "t"."__lance_match_…" THEN true WHEN "t"."body" IS NOT NULL THEN false '
        'END) AS m FROM <rows> AS "t"',
    ),
    Rule(
        indexed_condition.find,
        restricted_views.run,
        later=True,
        example="SELECT id FROM t WHERE note LIKE '%part%'",
        becomes="SELECT id FROM <rows> AS \"t\" WHERE note LIKE '%part%'",
    ),
    # After the rules that restrict a table, because fewer rows gain more than faster groups.
    Rule(
        group_keys.find,
        grouped_rows.run,
        later=False,
        example="SELECT a FROM few GROUP BY a, b",
        becomes='SELECT any_value(a) AS "a" FROM <rows> AS "few" GROUP BY "few"."__lance_group_…"',
    ),
    # After the rules that replace tables, because it only decides where conditions are evaluated. For DuckDB 1.x.
    Rule(
        indexed_condition.find_passed,
        restricted_tables.run_whole,
        later=False,
        example="SELECT id FROM t WHERE g >= 0",
        becomes='SELECT id FROM <rows> AS "t" WHERE g >= 0',
    ),
    # Opens each repeated table only once, unless an earlier rule has replaced it.
    Rule(
        repeated_tables.find,
        shared_tables.run,
        later=False,
        example="SELECT a.id FROM t AS a JOIN t AS b ON a.id = b.g",
        becomes="SELECT a.id FROM <rows> AS a JOIN <rows> AS b ON a.id = b.g",
    ),
    # Last, because it reports the calls that the other rules have not replaced.
    Rule(
        unanswered_calls.find_standing_calls,
        unanswered_calls.run,
        later=True,
        example="EXPLAIN SELECT match(note, 'part') AS m FROM t",
        becomes='EXPLAIN SELECT __lance_match(["t"."note"], \'{"table": "\\"lance\\".\\"t\\"", "column": "note", '
        "\"kind\": \"match\"}', ('part')::VARCHAR, '') AS m FROM t",
    ),
)
"""Rules in execution order."""


@dataclass(frozen=True)
class Plan:
    """A rewritten statement that reads less than the original.

    Attributes:
        sql: The statement.
        is_parsed: Whether DuckDB receives a parsed statement. Recent parsed statements are cached.
        tables: Generated tables that it reads.
        options: Further arguments of DuckDB's method.
        plan: Description of how the tables were created, for EXPLAIN. None if the scans add their own descriptions.
    """

    sql: str
    is_parsed: bool
    tables: tuple[NamedTable, ...]
    options: Mapping[str, Any]
    plan: str | None


class _Kind(Enum):
    """The planner's classification of a statement."""

    OURS = auto()
    """Mentions a Lance table, a path, or a function of lance_duck."""
    VIEWS = auto()
    """Like FOREIGN or EXPLAIN, with conditions that indexes may answer if a name refers to a view."""
    EXPLAIN = auto()
    """An EXPLAIN that does not mention any of these. Its views may still read Lance tables."""
    SETTING = auto()
    """Changes a search setting, or installs or loads DuckDB's `lance` extension, which is not needed."""
    FOREIGN = auto()
    """Passed to DuckDB unchanged."""


class Planner:
    """Plans and runs the statements of one connection.

    Texts without Lance tables are cached until tables are added or removed.

    Args:
        database: The connection.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._parsed: LruCache[Any] = LruCache(_CACHED)
        self._vocabulary: object = None
        self._kinds: dict[str, _Kind] = {}
        self._scanned: dict[str, int] = {}
        """Table version at which an index could not answer a lookup, by the text of the lookup."""

    def attempts(
        self, method: Method, lifted: LiftedText, options: Mapping[str, Any], *, later: bool | None
    ) -> Iterator[Callable[[], Any]]:
        """Yield functions that run a statement. The cheapest comes first, and the original text last.

        Args:
            method: Method of DuckDB's connection.
            lifted: One or more statements.
            options: Further arguments.
            later: Whether rows are read after the call returns. None if the statement runs once for each list of
                parameters.
        """
        sql = lifted.sql
        if later is False and not options and (lookup := self._lookup(method, sql)) is not None:
            yield lookup
        kind = self._kind(lifted)
        if kind is _Kind.VIEWS:
            reads_view = later is not None and self._reads_view(lifted.statement, later=later)
            kind = _Kind.OURS if reads_view else _kind_of_foreign(sql)
        match kind:
            case _Kind.SETTING:
                yield partial(self._set, self._database.native.execute if later is None else method, sql)
                return
            case _Kind.EXPLAIN if later is not None and MATCHES in sql:
                pass  # planned like other statements, because EXPLAIN reports calls without an index
            case _Kind.EXPLAIN if later is not None:
                yield partial(self._run, method, sql, options)
                return
            case _Kind.FOREIGN | _Kind.EXPLAIN:
                yield partial(call_as_user, partial(method, sql, **options))
                return
        lifted = self._spelled(lifted, later=bool(later))
        statement = lifted.statement
        text = _text(lifted)
        paths = {path: self._path(path) for path in statement.paths}
        if later is None:
            yield partial(call_as_user, partial(method, text, **options), paths)
            return
        plan = self._plan(lifted, options, later=later)
        if plan is not None:
            yield partial(self._run_plan, method, plan, paths)
        yield partial(self._run, method, text, options, paths)

    def _set(self, method: Method, sql: str) -> Any:
        """Change a search setting."""
        self._database.session.take(sql)
        return method(_WITHOUT_ROWS)

    def _run_plan(self, method: Method, plan: Plan, paths: Mapping[str, Any]) -> Any:
        """Run a rewritten statement."""
        sql = self._parse(plan.sql) if plan.is_parsed else plan.sql
        result = self._run(method, sql, plan.options, {**paths, **variables(plan.tables)}, plan.plan)
        keep_for(result, plan.tables)
        return result

    def _lookup(self, method: Method, sql: str) -> Callable[[], Any] | None:
        """Return a function that runs an integer lookup with parameters instead of numbers, to make the text cacheable.

        Returns None for other statements, or if an index does not cover the column.
        """
        found = lifted_numbers(sql)
        if found is None or self._kind(found[0]) is not _Kind.OURS:
            return None
        lifted, numbers = found
        lookup = _only_lookup(lifted.statement)
        handle = None if lookup is None else self._database.names.table(lookup.table.name, later=False)
        if lookup is None or handle is None:
            return None
        dataset = handle.current()
        if self._scanned.get(lifted.text) == dataset.version or not _compares_integers(lookup, dataset.schema):
            return None
        plan = self._plan(lifted, {"parameters": list(numbers)}, later=False)
        if plan is None:
            if len(self._scanned) >= _CACHED:
                self._scanned.clear()
            self._scanned[lifted.text] = dataset.version
            return None
        return partial(self._run_plan, method, plan, {})

    def _kind(self, lifted: LiftedText) -> _Kind:
        """Classify the text of a statement."""
        text = lifted.text
        vocabulary = self._database.catalog.vocabulary
        if vocabulary is not self._vocabulary or len(self._kinds) > _CACHED:
            self._kinds.clear()
            self._vocabulary = vocabulary
        kind = self._kinds.get(text)
        if kind is not None:
            return kind
        if is_setting(text):
            return _Kind.SETTING
        if vocabulary.may_be_in(text) or may_be_called(text):
            if len(text) > LONGEST_TREE and not spelling.may_find(text):
                return _Kind.FOREIGN  # the rules do not parse long texts
            statement = lifted.statement
            if statement.paths or not vocabulary.names.isdisjoint(statement.names) or may_be_called(text):
                return _Kind.OURS
        kind = _Kind.VIEWS if indexed_condition.may_find(text) else _kind_of_foreign(text)
        if len(text) <= LONGEST:
            self._kinds[text] = kind
        return kind

    def _reads_view(self, statement: Statement, *, later: bool) -> bool:
        """Return whether a statement reads a view, which may read Lance tables."""
        names = {read.name for read in statement.scopes.tables if read.name is not None}
        return any(self._database.names.view(name, later=later) is not None for name in names)

    def _spelled(self, lifted: LiftedText, *, later: bool) -> LiftedText:
        """Return a statement with function calls instead of syntax that only a DuckDB catalog could resolve."""
        spellings: tuple[spelling.Spelling, ...] = lifted.statement.result("spelling", spelling.find)
        return lifted.edited(self._database.names.spelled(spellings, later=later))

    def _path(self, path: str) -> DuckTable:
        """Return the table at a path, for clauses that do not accept a call."""
        return DuckTable(self._database.catalog.path_handle(path).reader(), hidden=False)

    def _plan(self, lifted: LiftedText, options: Mapping[str, Any], *, later: bool) -> Plan | None:
        statement = lifted.statement
        key = next((name for name in ("parameters", "params") if name in options), None)
        parameters = None if key is None else options[key]
        request = Request(statement, ParameterValues(lifted.lists, parameters), later)
        for rule, proposals in zip(RULES, statement.result("proposals", _proposals), strict=True):
            for proposal in proposals if rule.later or not later else ():
                rewriting = rule.run(proposal, request, self._database)
                if rewriting is not None:
                    request.rewritings.append(rewriting)
        if not request.rewritings:
            return None
        edits = request.edits
        sql = _text(lifted, edits)
        tables = tuple(table for rewriting in request.rewritings for table in rewriting.tables)
        dropped = frozenset(name for rewriting in request.rewritings for name in rewriting.dropped)
        values = _parameters(statement, edits, parameters, dropped)
        plans = [rewriting.plan for rewriting in request.rewritings if rewriting.plan is not None]
        changed = options if values is parameters else {**options, key or "parameters": values}
        return Plan(sql, bool(edits) and not tables and not later, tables, changed, "\n".join(plans) or None)

    def _parse(self, text: str) -> Any:
        """Parse a statement. Recent parsed statements are cached."""

        def parse() -> Any:
            (statement,) = self._database.native.extract_statements(text)
            return statement

        return self._parsed.get(text, parse)

    def _run(
        self,
        method: Method,
        sql: Any,
        options: Mapping[str, Any],
        tables: Mapping[str, Any] | None = None,
        plan: str | None = None,
    ) -> Any:
        """Run a statement. The result of an EXPLAIN also shows how Lance tables are read."""
        if _LOG.isEnabledFor(logging.DEBUG) and isinstance(sql, str):
            _LOG.debug("DuckDB runs: %s", masked(sql))

        def run(text: Any) -> Any:
            return call_as_user(partial(method, text, **options), tables)

        rows = explained(sql, lambda text: run(text).fetchall(), plan) if isinstance(sql, str) else None
        return run(sql) if rows is None else method(rows_as_statement(rows))


def _kind_of_foreign(text: str) -> _Kind:
    """Return the kind of a statement that does not mention Lance tables."""
    return _Kind.EXPLAIN if FirstWords.of(text).explain else _Kind.FOREIGN


def _only_lookup(statement: Statement) -> point_lookup.PlainWhere | None:
    """Return the point lookup of a statement, or None if a second rule also applies."""
    if statement.nearest or statement.result("spelling", spelling.find):
        return None
    found = statement.result("proposals", _proposals)
    # Conditions that DuckDB passes to a scan one by one are optional: another rule may only leave them to DuckDB.
    passed = indexed_condition.IndexedCondition
    proposals = [each for each in chain.from_iterable(found) if not (isinstance(each, passed) and each.is_passed)]
    return proposals[0] if len(proposals) == 1 and isinstance(proposals[0], point_lookup.PlainWhere) else None


def _compares_integers(lookup: point_lookup.PlainWhere, schema: pa.Schema) -> bool:
    """Return whether all columns of the condition are integers.

    Parameters are then compared like numbers in the text.
    """
    types: dict[str, list[pa.DataType]] = {}
    for field in schema:
        types.setdefault(folded(field.name), []).append(field.type)
    found = [types.get(folded(name), []) for name in lookup.condition.columns]
    return all(len(each) == 1 and pa.types.is_integer(each[0]) for each in found)


def _proposals(statement: Statement) -> tuple[tuple[Any, ...], ...]:
    """Return the proposals of each rule for a statement."""
    return tuple(rule.find(statement) for rule in RULES)


def _text(lifted: LiftedText, edits: Sequence[Edit] = ()) -> str:
    """Return the edited text of a statement in the syntax of this DuckDB version."""
    nearest = lifted.statement.nearest
    left = (clause for clause in nearest if not any(e.overlaps(clause.start, clause.end) for e in edits))
    translated = () if KNOWS_NEAREST else (edit for clause in left for edit in clause.as_lateral())
    return lifted.restored(apply(lifted.text, (*translated, *edits)))


def _parameters(statement: Statement, edits: Sequence[Edit], parameters: Any, dropped: frozenset[str]) -> Any:
    """Return the parameters of an edited statement.

    Args:
        statement: The original statement.
        edits: Edits of its text.
        parameters: The original parameters, by position or by name, or None.
        dropped: Names of parameters that are no longer used.
    """
    own = [edit for edit in sorted(edits, key=lambda edit: edit.start) if edit.values is not None]
    if isinstance(parameters, Mapping):
        more = {name: value for edit in own if isinstance(edit.values, Mapping) for name, value in edit.values.items()}
        return {**{name: value for name, value in parameters.items() if name not in dropped}, **more}
    if not own or not (parameters is None or isinstance(parameters, list | tuple)):
        return parameters
    values: list[Any] = []
    positional, at = list(parameters or ()), 0
    for edit in own:
        before = sum(mark < edit.start for mark in statement.marks)
        within = sum(edit.start <= mark < edit.end for mark in statement.marks)
        values += [*positional[at:before], *(edit.values or ())]
        at = before + within
    values += positional[at:]
    return values if values or parameters is not None else None
