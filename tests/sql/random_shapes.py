"""Random statements with tables in every grammatical position. They are bound, never run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import duckdb

SCHEMA: Final = """
CREATE TABLE t (a INTEGER, b INTEGER, l INTEGER[], st STRUCT(x INTEGER, y INTEGER), ts TIMESTAMP, s VARCHAR);
CREATE TABLE u (a INTEGER, d INTEGER);
CREATE TABLE "From" (a INTEGER, "select" INTEGER);
CREATE TABLE "a.b" (a INTEGER);
CREATE SCHEMA sc;
CREATE TABLE sc.v (a INTEGER);
CREATE TABLE sc.t (a INTEGER);
CREATE TABLE p (a INTEGER PRIMARY KEY, b INTEGER);
"""
_TABLES: Final = ("t", "t", "u", "T", '"From"', '"a.b"', "sc.v", "sc.t", "memory.main.u", "p", '"u"', "sc . v")
_ALIASES: Final = ("x", "y", '"Q r"', "Z", "level", '"where"', "version", "matched", "ordinal", "description")
_CALLS: Final = (
    "{a}",
    "{a} + 1",
    "-{a}",
    "({a})",
    "CASE WHEN {c} THEN {a} ELSE {b} END",
    "CASE {a} WHEN 1 THEN {b} WHEN ({b}) THEN 3 END",
    "coalesce({a}, {b})",
    "extract(year FROM TIMESTAMP '2020-01-01')::INTEGER + {a}",
    "length(substring('from t' FROM 1 FOR {a}))::INTEGER",
    "length(trim(BOTH ' ' FROM 'from u'))::INTEGER + {a}",
    "position('a' IN 'from')::INTEGER + {a}",
    "[{a}, {b}][1]",
    "[e + {a} FOR e IN [1, 2] IF e > 1][1]",
    "list_transform([1], lambda e: e + {a})[1]",
    "{{'from': {a}, 'join': {b} }}['from']",
    "CAST({a} AS INTEGER)",
    "TRY_CAST('1' AS INTEGER) + {a}",
    "({a})::INTEGER",
    "(SELECT max({alias}.a) FROM {q} AS {alias})",
    "({q1})",
    "(({q1}) LIMIT 1)",
    "((({q1})))",
    "coalesce(({q1}), {a})",
    "list_sum(ARRAY({q1}))::INTEGER",
    "length(ARRAY ({q1}))::INTEGER",
    "interval({a}) HOUR IS NULL AND {c} OR {c} IS NULL",
    "/* from t */ {a}",
    "{a} -- from u, t\n",
    "length('from t, ''u')::INTEGER",
    "length($$ from t $$)::INTEGER",
    "row({a}, {b})[1]",
    "struct_pack(u := {a}).u",
    "struct_pack(t => {a}).t",
)
_CONDITIONS: Final = (
    "{a} = {b}",
    "{a} IN ({b}, 3)",
    "{a} IN ({q1})",
    "{a} NOT IN (({q1}))",
    "EXISTS ({q1})",
    "NOT EXISTS (FROM {q} AS {alias})",
    "{a} = ANY ({q1})",
    "{a} > ALL (({q1}))",
    "{a} IS DISTINCT FROM {b}",
    "{a} IS NOT DISTINCT FROM {b}",
    "({a}, {b}) = (1, 2)",
    "{a} BETWEEN {b} AND 4",
    "{c} AND ({c} OR {c})",
    "NOT {c}",
    "{a} IS NULL",
    "'from t' LIKE '%x' ESCAPE '$'",
)


@dataclass
class Shapes:
    """Maker of statements of the tables in `SCHEMA`.

    Attributes:
        random: The source of chance.
    """

    random: Random
    _ctes: list[str] = field(default_factory=list)
    _number: int = 0
    _depth: int = 0

    def statement(self) -> str:
        """Return a statement of any kind."""
        self._ctes, self._number, self._depth = [], 0, 0
        makers = [self._select] * 8 + [self._stored, self._pivot, self._update, self._delete, self._insert, self._merge]
        makers += [self._described, self._changed_in_cte]
        return self._choice(makers)()

    def _choice(self, choices: Sequence[Any]) -> Any:
        return self.random.choice(choices)

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _alias(self) -> str:
        """Return an alias that no other table of the statement has, most of the time."""
        self._number += 1
        return self._choice(_ALIASES) if self._chance(0.1) else f"{self._choice(['r', 'R', 's'])}{self._number}"

    # Expressions.

    def _value(self, scope: Sequence[str]) -> str:
        if self._depth > 3 or self._chance(0.5):
            return self._column(scope)
        return self._filled(self._choice(_CALLS), scope)

    def _condition(self, scope: Sequence[str]) -> str:
        return self._filled("{a} = {b}" if self._depth > 3 else self._choice(_CONDITIONS), scope)

    def _column(self, scope: Sequence[str]) -> str:
        return f"{self._choice(scope)}.a" if scope and self._chance(0.85) else str(self.random.randrange(9))

    def _filled(self, pattern: str, scope: Sequence[str]) -> str:
        self._depth += 1
        makers = {
            "{a}": lambda: self._value(scope),
            "{b}": lambda: self._value(scope),
            "{c}": lambda: f"({self._condition(scope)})",
            "{q}": self._table,
            "{q1}": lambda: self._query(scope),
            "{alias}": self._alias,
        }
        alias = self._alias()
        text = pattern.replace("{{", "\0").replace("}}", "\1").replace("{alias}", alias)
        for slot, make in makers.items():
            while slot in text:
                text = text.replace(slot, make().replace("{", "\0").replace("}", "\1"), 1)
        self._depth -= 1
        return text.replace("\0", "{").replace("\1", "}")

    # Queries: each gives one column of whole numbers, `a`.

    def _table(self) -> str:
        """Return the name of a table or of a common table expression."""
        return self._choice(self._ctes) if self._ctes and self._chance(0.4) else self._choice(_TABLES)

    def _select(self) -> str:
        return self._query([], top=True)

    def _query(self, outer: Sequence[str], *, top: bool = False) -> str:
        """Return a query that may read columns of the tables around it."""
        self._depth += 1
        known = len(self._ctes)
        text = ""
        if self._depth < 4 and self._chance(0.3 if top else 0.12):
            with_ = self._with(outer)
            text = with_ + self._using(self._ctes[known:], outer)
        else:
            text = self._body(outer)
        del self._ctes[known:]
        self._depth -= 1
        return text

    def _using(self, ctes: Sequence[str], outer: Sequence[str]) -> str:
        """Return a query that reads all of some common table expressions; DuckDB binds no others."""
        body, alias = self._body(outer), self._alias()
        items = ", ".join(f"{name} AS {self._alias()}" for name in ctes)
        return self._choice(
            [
                f"SELECT {alias}.a FROM ({body}) AS {alias}, {items}",
                f"SELECT {alias}.a FROM ({body}) AS {alias} WHERE {self._exist(ctes)}",
                " UNION ALL ".join([f"({body})", *(f"(SELECT {name}.a FROM {name})" for name in ctes)]),
            ]
        )

    def _exist(self, ctes: Sequence[str]) -> str:
        return " OR ".join(f"EXISTS (FROM {name})" for name in ctes) or "true"

    def _with(self, outer: Sequence[str]) -> str:
        recursive = self._chance(0.3)
        ctes = []
        for _ in range(self.random.randrange(1, 4)):
            name = self._choice(["c1", "c2", "C3", "u", "t", '"From"', "w", "source"])
            if name in (each.split("(")[0].split()[0] for each in ctes):
                continue
            how = self._choice(["", "", "", " MATERIALIZED", " NOT MATERIALIZED"])
            if recursive and self._chance(0.5):
                table, alias = self._table(), self._alias()
                before = "SELECT * EXCLUDE (b) FROM (SELECT 1 AS b, *"
                step = f"SELECT {name}.a + 1 FROM {name}, {table} AS {alias} WHERE {name}.a < {alias}.a"
                first = self._query(outer)
                ctes.append(
                    self._choice(
                        [
                            f"{name}(a) AS (({first}) UNION ALL {step})",
                            f"{name} AS ((({first}) UNION {step}))",
                            f"{name}(a) USING KEY (a) AS (({first}) UNION {step})",
                            f"{name} AS ({before} FROM ({first}) AS f) AS g UNION {step})",
                        ]
                    )
                )
            elif self._chance(0.15):
                ctes.append(
                    f"{name}(a){' ' if self._chance(0.5) else ''}AS{how} (SELECT 1 AS b UNION ({self._query(outer)}))"
                )
            else:
                ctes.append(f"{name} AS{how} ({self._query(outer)})")
            self._ctes.append(name)
        return f"WITH {'RECURSIVE ' if recursive else ''}{', '.join(ctes)} "

    def _body(self, outer: Sequence[str]) -> str:
        chance = self.random.random()
        if self._depth > 4 or chance < 0.6:
            return self._plain(outer)
        if chance < 0.75:
            word = self._choice(["UNION", "UNION ALL", "EXCEPT", "INTERSECT", "UNION BY NAME", "EXCEPT ALL"])
            one, other = self._operand(outer), self._operand(outer)
            order = self._choice(["", "", " ORDER BY a", " ORDER BY a LIMIT 3"])
            return f"{one} {word} {other}{order}"
        if chance < 0.8:
            return f"({self._query(outer)}){self._choice(['', ' LIMIT 2', ' ORDER BY a'])}"
        if chance < 0.85:
            rows = ", ".join(f"({self._value(outer)})" for _ in range(self.random.randrange(1, 3)))
            return f"SELECT a FROM (VALUES {rows}) AS {self._alias()}(a)"
        if chance < 0.88:
            return (
                f"TABLE {self._choice(['u', 'sc.v', 'p', chr(34) + 'a.b' + chr(34)])}"
                if self._chance(0.3)
                else "SELECT 1 AS a"
            )
        return self._grouped(outer)

    def _operand(self, outer: Sequence[str]) -> str:
        return f"({self._query(outer)})" if self._chance(0.5) else self._plain(outer, ends=False)

    def _plain(self, outer: Sequence[str], *, ends: bool = True) -> str:
        text, scope = self._from(outer)
        all_ = [*scope, *outer]
        item = self._choice([f"{self._value(all_)} AS a", f"a: {self._value(all_)}", f"({self._value(all_)}) a"])
        distinct = self._choice(["", "", "", "DISTINCT ", f"DISTINCT ON ({self._choice(scope)}.a) "])
        where = f" WHERE {self._condition(all_)}" if self._chance(0.5) else ""
        order = (
            f" ORDER BY {self._choice(scope)}.a + {self._value(all_)} DESC NULLS LAST"
            if self._chance(0.15) and not distinct
            else ""
        )
        order += self._choice(["", "", " LIMIT 5", " LIMIT 5 OFFSET 1", " LIMIT 50%" if order else ""])
        if ends and not outer and self._chance(0.05):
            order = f" LIMIT (SELECT count(*) FROM {self._table()})"
        if not ends:
            order = ""
        if self._chance(0.1) and not distinct:
            order = (
                f" QUALIFY row_number() OVER (PARTITION BY {self._value(all_)} ORDER BY {self._column(scope)}) = 1"
                + order
            )
        elif self._chance(0.05) and ends and not order:
            order = " USING SAMPLE 10%"
        if self._chance(0.15):
            return f"FROM {text} SELECT {distinct}{item}{where}{order}"
        return f"SELECT {distinct}{item} FROM {text}{where}{order}"

    def _grouped(self, outer: Sequence[str]) -> str:
        text, scope = self._from(outer)
        value = self._column(scope)
        if self._chance(0.2):
            window = self._choice(["u", "c1", "o"])
            windows = f"WINDOW w AS (ORDER BY {value}), {window} AS (PARTITION BY {value})"
            return (
                f"SELECT max({value}) OVER {window} AS a FROM {text} {windows} UNION ALL SELECT a FROM {self._table()}"
            )
        having = f" HAVING count(*) FILTER (WHERE {value} > 1) > 0" if self._chance(0.4) else ""
        key = self._choice(["ALL", f"{self._choice(scope)}.a", f"({self._choice(scope)}.a, {self._choice(scope)}.a)"])
        if key == "ALL":
            having = ""
        where = f" WHERE {self._condition([*scope, *outer])}" if self._chance(0.5) else ""
        call = self._choice(
            [
                f"max({value})",
                f"sum({value} ORDER BY {self._column(scope)})::INTEGER",
                f"sum(DISTINCT {value})::INTEGER",
            ]
        )
        return f"SELECT {call} AS a FROM {text}{where} GROUP BY {key}{having}"

    # FROM.

    def _from(self, outer: Sequence[str]) -> tuple[str, list[str]]:
        """Return the text of a FROM, and the aliases that columns may be qualified by."""
        text, scope = self._joined(outer)
        while self._chance(0.2):
            if self._chance(0.3):
                alias = self._alias()
                inner = self._query([*scope, *outer])
                text, scope = f"{text}, {self._choice(['LATERAL ', ''])}({inner}) AS {alias}", [*scope, alias]
            else:
                more, seen = self._joined(outer)
                text, scope = f"{text}, {more}", [*scope, *seen]
        return text, scope

    def _joined(self, outer: Sequence[str]) -> tuple[str, list[str]]:
        text, scope = self._item(outer)
        while self._chance(0.3):
            if self._chance(0.2):
                inner, seen = self._grouped_join(outer)
            else:
                inner, seen = self._item(outer)
            both = [*scope, *seen]
            on = f"ON {self._condition([*both, *outer] if self._chance(0.3) else both)}"
            how = self._choice(
                ["JOIN", "INNER JOIN", "LEFT JOIN", "RIGHT OUTER JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN"]
            )
            if self._chance(0.3):
                how, on = self._choice(
                    [
                        ("CROSS JOIN", ""),
                        ("NATURAL JOIN", ""),
                        ("POSITIONAL JOIN", ""),
                        ("JOIN", "USING (a)"),
                        ("ASOF JOIN", f"ON {scope[-1]}.a >= {seen[0]}.a"),
                        ("LEFT JOIN", "USING (a)"),
                    ]
                )
            text = f"{text} {how} {inner} {on}"
            scope = scope if how.startswith(("SEMI", "ANTI")) else both
        return text, scope

    def _grouped_join(self, outer: Sequence[str]) -> tuple[str, list[str]]:
        """Return a join in parentheses."""
        one, seen = self._item(outer)
        other, more = self._joined(outer)
        return self._choice(["({} CROSS JOIN {})", "(({} JOIN {} ON true))"]).format(one, other), [*seen, *more]

    def _item(self, outer: Sequence[str]) -> tuple[str, list[str]]:
        """Return a table or another source of rows."""
        alias, word = self._alias(), self._choice([" AS", " AS", "", " as"])
        if alias in _ALIASES:
            word = " AS"
        chance = self.random.random()
        if chance < 0.6 or self._depth > 4:
            table = self._table()
            if self._chance(0.12):
                return table, [table.split(".")[-1] if '"' not in table else table]
            if self._chance(0.08):
                return f"{table}{word} {alias}(a)", [alias]
            if self._chance(0.08):
                return f"{alias}: {table}", [alias]
            sample = " TABLESAMPLE 10%" if self._chance(0.05) else ""
            return f"{table}{word} {alias}{sample}", [alias]
        if chance < 0.8:
            return f"({self._query(outer if self._chance(0.3) else [])}){word} {alias}", [alias]
        if chance < 0.85:
            return f"(({self._query([])})){word} {alias}", [alias]
        if chance < 0.9:
            call = self._choice([f"range({self.random.randrange(9)})", "unnest([1, 2])", "generate_series(1, 3)"])
            return f"{call}{word} {alias}(a)", [alias]
        if chance < 0.93:
            return f"(VALUES (1), (2)){word} {alias}(a)", [alias]
        if chance < 0.96:
            table = self._choice(["u", "p"])
            column = "d" if table == "u" else "b"
            return f"{table} PIVOT (max({column}) FOR a IN (1 AS a, 2)){word} {alias}", [alias]
        return self._grouped_join(outer)

    # Other statements.

    def _stored(self) -> str:
        query = self._query([], top=True)
        return self._choice(
            [
                f"CREATE TABLE made AS {query}",
                f"CREATE OR REPLACE TEMP TABLE made AS {query}",
                f"COPY ({query}) TO 'made.csv'",
                f"EXPLAIN {query}",
                f"{query};",
                f"({query})",
            ]
        )

    def _described(self) -> str:
        table = self._choice(_TABLES)
        return self._choice(
            [
                f"DESCRIBE {table}",
                f"SUMMARIZE {table}",
                f"DESCRIBE {self._query([])}",
                f"SUMMARIZE {self._query([])}",
                f"SELECT * FROM (DESCRIBE {table}) AS x, u AS y",
                f"SELECT * FROM (SUMMARIZE {self._query([])}) AS x",
                f"TABLE {table}",
                f"WITH c AS (TABLE {table}) TABLE c",
                f"CREATE TABLE made AS TABLE {table}",
            ]
        )

    def _pivot(self) -> str:
        with_ = self._choice(["", "", "WITH c1 AS (FROM u) "])
        table = "c1" if with_ else self._choice(["u", f"(SELECT a, a AS d FROM {self._table()} AS x)", "u AS x"])
        query = self._choice(
            [
                f"PIVOT {table} ON d IN (1, 2) USING sum(a)",
                f"PIVOT {table} ON d IN (1, 2) USING sum(a) GROUP BY a ORDER BY a LIMIT 3",
                f"UNPIVOT {table} ON a, d INTO NAME n VALUE m",
                f"FROM {table} UNPIVOT (v FOR k IN (a, d))",
                f"SELECT k FROM {table} UNPIVOT INCLUDE NULLS (v FOR k IN (a, d)) AS z",
            ]
        )
        return with_ + self._choice([query, f"SELECT * FROM ({query}) AS z, sc.v"]) if not with_ else with_ + query

    def _target(self) -> tuple[str, str]:
        table = self._choice(["t", "u", "p", "sc.v", '"From"', "main.u"])
        alias = self._alias()
        return self._choice([(f"{table} AS {alias}", alias), (table, table.split(".")[-1])])

    def _with_before(self) -> str:
        return self._with([]) if self._chance(0.2) else ""

    def _update(self) -> str:
        with_, (target, alias) = self._with_before(), self._target()
        text, scope = self._from([alias]) if self._chance(0.5) else ("", [])
        seen = [alias, *scope]
        where = f" WHERE {self._condition(seen)} AND ({self._exist(self._ctes)})" if with_ or self._chance(0.7) else ""
        set_ = self._choice([f"a = {self._value(seen)}", f"(a) = ({self._value(seen)})"])
        returning = self._choice(["", "", f" RETURNING {alias}.a, a + 1 AS more"])
        return f"{with_}UPDATE {target} SET {set_}{' FROM ' if text else ''}{text}{where}{returning}"

    def _delete(self) -> str:
        with_, (target, alias) = self._with_before(), self._target()
        text, scope = self._from([alias]) if self._chance(0.5) else ("", [])
        seen = [alias, *scope]
        where = f" WHERE {self._condition(seen)} AND ({self._exist(self._ctes)})" if with_ or self._chance(0.7) else ""
        return f"{with_}DELETE FROM {target}{' USING ' if text else ''}{text}{where}"

    def _insert(self) -> str:
        with_ = self._with_before()
        query = self._choice([self._query([]), f"({self._query([])})", f"VALUES ({self._value([])}), (3)"])
        if with_:
            query = self._using(self._ctes, [])
        how = self._choice(["INTO p (a)", "INTO sc.v", "INTO u (a)", "OR REPLACE INTO p (a)", "INTO u BY NAME"])
        if "BY NAME" in how and query.startswith(("VALUES", "(")):
            how = "INTO u (a)"
        conflict = ""
        if how == "INTO p (a)":
            conflict = self._choice(
                ["", " ON CONFLICT DO NOTHING", " ON CONFLICT (a) DO UPDATE SET b = excluded.a + p.b"]
            )
        return f"{with_}INSERT {how} {query}{conflict}{self._choice(['', '', ' RETURNING a'])}"

    def _merge(self) -> str:
        with_, (target, alias) = self._with_before(), self._target()
        source, scope = self._item([])
        seen = [alias, *scope]
        clauses = [
            f"WHEN MATCHED AND {self._condition(seen)} THEN UPDATE SET a = {self._value(seen)}",
            "WHEN MATCHED THEN DELETE",
            "WHEN MATCHED THEN UPDATE",
            f"WHEN NOT MATCHED THEN INSERT (a) VALUES ({self._value(scope)})",
            "WHEN NOT MATCHED BY SOURCE THEN DELETE",
            "WHEN NOT MATCHED THEN INSERT BY NAME",
            "WHEN NOT MATCHED THEN DO NOTHING",
        ]
        actions = " ".join(self.random.sample(clauses, self.random.randrange(1, 3)))
        on = self._choice([f"ON {alias}.a = {scope[0]}.a", "USING (a)", f"ON ({self._condition(seen)})"])
        on = f"ON {self._exist(self._ctes)}" if with_ else on
        return (
            f"{with_}MERGE INTO {target} USING {source} {on} {actions}{self._choice(['', ' RETURNING merge_action'])}"
        )

    def _changed_in_cte(self) -> str:
        change = self._choice([self._update, self._delete])()
        if " RETURNING " not in change:
            change += " RETURNING 1 AS a"
        self._ctes = ["changed"]
        return f"WITH changed AS ({change}) SELECT changed.a FROM changed, {self._table()} AS other"


def connection() -> duckdb.DuckDBPyConnection:
    """Return a connection with the tables of `SCHEMA` whose plans keep every scan."""
    made = duckdb.connect()
    made.execute(SCHEMA)
    made.execute("PRAGMA disable_optimizer")
    return made
