"""Random queries of columns of kinds: joins, set operations, windows, laterals, common table expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sql.random_expressions import TYPES, Column, Expressions, scope_of

Tables = Mapping[str, Sequence[tuple[str, str]]]


@dataclass
class Queries:
    """Makes queries with the placeholder `{t}` for the table.

    Attributes:
        make: Makes their expressions.
        tables: Columns of each table by its name in the text, `{t}` among them.
        number: Number of the last alias.
    """

    make: Expressions
    tables: Tables
    number: int = field(default=0, init=False)

    def alias(self) -> str:
        self.number += 1
        return f"r{self.number}"

    def items(self, kinds: Sequence[str], scope: Sequence[Column], names: Sequence[str]) -> str:
        """Return the list of a SELECT."""
        values = [self.make.of(kind, scope) for kind in kinds]
        return ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))

    def query(self, kinds: Sequence[str], names: Sequence[str] | None = None) -> str:
        """Return a query of columns of these kinds, whose rows are a set that is the same each time."""
        names = names or [f"c{i}" for i in range(len(kinds))]
        makers = [self._plain] * 5 + [self._joined, self._union, self._window, self._lateral, self._grouped]
        makers += [self._distinct, self._values, self._unnested, self._recursive, self._limited, self._limited]
        return self.make.random.choice(makers)(kinds, names)

    def statement(self, kinds: Sequence[str]) -> tuple[str, str]:
        """Return a SELECT with clauses that no source of a change has, and the kind that it is counted as."""
        names = [f"c{i}" for i in range(len(kinds))]
        makers = [self._subqueries, self._pivot, self._semi, self._version, self._nearest, self._nearest_by, None]
        makers += [self._correlated, self._framed, self._combined, self._lateral_join]
        maker = self.make.random.choice(makers)
        if maker is None or self.make.parameters is not None:
            return "select", self.query(kinds, names)
        return f"select{maker.__name__.replace('_', ' ')}", maker(kinds, names)

    def _subqueries(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        one, other = self.query(kinds, names), self.query(["int", "text"], ["k", "v"])
        both = [*(Column(f"q.{name}", kind) for name, kind in zip(names, kinds, strict=True)), Column("w.k", "int")]
        how = self.make.random.choice(["", "MATERIALIZED ", "NOT MATERIALIZED "])
        items = self.items(kinds, both, names)
        return f"WITH w AS {how}({other}) SELECT {items} FROM ({one}) AS q CROSS JOIN w{self.where(both, 0.5)}"

    def _pivot(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        inner = self.query(["int", "int"], ["k", "v"])
        return self.make.random.choice(
            [
                f"PIVOT (SELECT k % 3 AS k, v FROM ({inner}) AS q) ON k IN (0, 1, 2) USING count(v), max(v)",
                f"SELECT * FROM (SELECT k % 3 AS k, v FROM ({inner}) AS q) PIVOT (count(v) FOR k IN (0, 1))",
                f"UNPIVOT ({inner}) ON k, v INTO NAME n VALUE m",
                "FROM (SELECT id, a FROM {t} AS p0) UNPIVOT (v FOR k IN (id, a))",
            ]
        )

    def _semi(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        (one, left), (other, right) = self.source(), self.source()
        mine, theirs = one.split()[-1], other.split()[-1]
        word = self.make.random.choice(["SEMI", "ANTI"])
        condition = self.make.random.choice(
            [
                f"{one} {word} JOIN {other} ON {mine}.id = {theirs}.a",
                f"{one} WHERE {mine}.id IN (SELECT {theirs}.id FROM {other}{self.where(right)})",
                f"{one} WHERE {mine}.a NOT IN (SELECT {theirs}.a FROM {other}{self.where(right)})",
                f"{one} WHERE EXISTS (FROM {other} WHERE {theirs}.id = {mine}.a AND {self.make.condition(right)})",
                f"{one} WHERE ({mine}.id, {mine}.s) IN (SELECT ({theirs}.id, {theirs}.s) FROM {other})",
                f"{one} ASOF JOIN {other} ON {mine}.id >= {theirs}.a AND {mine}.s = {theirs}.s",
                f"{one} JOIN {other} USING (id, s)",
                f"{one} NATURAL JOIN (SELECT id, a FROM {other}) AS nj",
            ]
        )
        return f"SELECT {self.items(kinds, left, names)} FROM {condition}".replace("{mine}", mine)

    def _version(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        scope = scope_of(self.tables["{t}"], "z")
        return f"FROM {{t}} AS z SELECT {self.items(kinds, scope, names)}{self.where(scope)} ORDER BY z.id, z"

    def _nearest(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        scope = scope_of(self.tables["{t}"], "z")
        vector = self.make.random.choice(["[3, 1]::FLOAT[2]", "(SELECT [2.5, 7]::FLOAT[2])", "[1e3, -1]::FLOAT[2]"])
        measure = f"array_distance(z.arr, {vector})"
        number = self.make.random.choice(["3", "5 OFFSET 1", "40"])
        inner = f"SELECT z.* FROM {{t}} AS z{self.where(scope, 0.6)} ORDER BY {measure}, z LIMIT {number}"
        items = self.items(kinds, scope_of(self.tables["{t}"], "q"), names)
        return self.make.random.choice(
            [
                f"SELECT {items} FROM ({inner}) AS q",
                f"WITH q AS ({inner}) SELECT {items} FROM q",
                f"SELECT {items} FROM ({inner}) AS q JOIN u ON u.id = q.id",
                f"SELECT {items} FROM n, LATERAL (SELECT z.* FROM {{t}} AS z ORDER BY array_distance(z.arr, "
                f"[n.id, 2]::FLOAT[2]), z LIMIT 2) AS q",
                f"SELECT count(*), min(q.id) FROM ({inner}) AS q UNION ALL SELECT 1, max(id) FROM u",
            ]
        )

    def _nearest_by(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        """Return the distances of the nearest rows, which are the same whichever of equally near rows are found."""
        k, way = self.make.random.randrange(1, 6), self.make.random.choice(["", "EXACT "])
        left = self.make.random.choice(
            ["u AS r0", "n AS r0", "(SELECT * FROM u WHERE id < 4) AS r0", "w AS r0", "(FROM n LIMIT 0) AS r0"]
        )
        ctes = "WITH w AS (SELECT id + 1 AS id FROM n) " if left.startswith("w ") else ""
        tables = [name for name, columns in self.tables.items() if "arr" in dict(columns)]
        right = f"{self.make.random.choice(tables)} AS x"
        if self.make.random.random() < 0.4:
            right = f"(SELECT * FROM {right}{self.where(scope_of(self.tables['{t}'], 'x'))}) AS x"
        vector = "[r0.id, 2]::FLOAT[2]"
        measure, function = self.make.random.choice(
            [("DISTANCE", "array_distance")] * 3 + [("SIMILARITY", "array_inner_product")]
        )
        how = self.make.random.choice(["JOIN", "INNER JOIN", "LEFT JOIN"])
        join = f"{left} {how} {right} {way}NEAREST {k} BY {measure} {function}(x.arr, {vector})"
        after = self.make.random.choice(["", "", " WHERE r0.id > 3", " JOIN n AS r1 ON r1.id = r0.id"])
        return f"{ctes}SELECT r0.id AS a, {function}(x.arr, {vector}) AS b FROM {join}{after}"

    def _correlated(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        """Return a query with subqueries that read its rows."""
        (one, outer), (other, inner) = self.source(), self.source()
        mine, theirs = one.split()[-1], other.split()[-1]
        link = self.make.random.choice(
            [f"{theirs}.id = {mine}.a", f"{theirs}.id < {mine}.id AND {theirs}.id > 3", f"{theirs}.s = {mine}.s"]
        )
        more = f" AND {self.make.condition([*inner, *outer])}" if self.make.random.random() < 0.4 else ""
        within = f"FROM {other} WHERE {link}{more}"
        value = self.make.random.choice(
            [f"(SELECT count(*) {within})", f"(SELECT max({theirs}.id) {within})", f"(SELECT sum({mine}.id) {within})"]
        )
        condition = self.make.random.choice(
            [
                f"EXISTS (SELECT 1 {within})",
                f"NOT EXISTS ({within})",
                f"{mine}.id > (SELECT avg({theirs}.id) {within})",
                f"{mine}.id IN (SELECT {theirs}.id {within})",
                f"{mine}.a <> ALL (SELECT {theirs}.a {within})",
                f"{mine}.id = ANY (SELECT {theirs}.a {within})",
            ]
        )
        return f"SELECT {self.items(kinds, outer, names)}, {value} AS v FROM {one} WHERE {condition}"

    def _framed(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        """Return windows with frames, by name."""
        table, scope = self.source()
        alias = table.split()[-1]
        frame = self.make.random.choice(
            [
                "ROWS BETWEEN 2 PRECEDING AND CURRENT ROW",
                "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING",
                "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
                "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
                "ROWS BETWEEN 1 PRECEDING AND 3 FOLLOWING EXCLUDE CURRENT ROW",
            ]
        )
        part = self.make.random.choice(["", f"PARTITION BY {alias}.id % 3 ", f"PARTITION BY {alias}.s "])
        call = self.make.random.choice(
            ["sum({0}.id)", "first_value({0}.id)", "nth_value({0}.id, 2)", "count({0}.a)", "max({0}.id)"]
        ).format(alias)
        ranked = self.make.random.choice(["ntile(3)", "dense_rank()", "percent_rank()", f"lead({alias}.id, 2, -1)"])
        windows = f"WINDOW w AS ({part}ORDER BY {alias}.id, {alias} {frame}), o AS ({part}ORDER BY {alias}.id, {alias})"
        items = f"{self.items(kinds, scope, names)}, {call} OVER w AS v, {ranked} OVER o AS r"
        return f"SELECT {items} FROM {table}{self.where(scope, 0.5)} {windows}"

    def _combined(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        """Return set operations of set operations."""
        words = ["UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL", "INTERSECT ALL"]
        parts = [f"({self._typed(kinds, names)})" for _ in range(3)]
        one, other = self.make.random.choices(words, k=2)
        if self.make.random.random() < 0.2:
            return f"{parts[0]} UNION ALL BY NAME {parts[1]} UNION BY NAME {parts[2]}"
        if self.make.random.random() < 0.5:
            return f"({parts[0]} {one} {parts[1]}) {other} {parts[2]}"
        return f"SELECT * FROM ({parts[0]} {one} ({parts[1]} {other} {parts[2]})) AS q ORDER BY ALL"

    def _lateral_join(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        """Return subqueries in FROM that read the rows before them."""
        (one, outer), (other, inner) = self.source(), self.source()
        mine, theirs = one.split()[-1], other.split()[-1]
        link = self.make.random.choice([f"{theirs}.id = {mine}.a", f"{theirs}.id <= {mine}.id"])
        within = self.make.random.choice(
            [
                f"SELECT {theirs}.id AS v FROM {other} WHERE {link} ORDER BY {theirs}.id, {theirs} LIMIT 2",
                f"SELECT count(*)::INTEGER AS v FROM {other} WHERE {link}{self._and(inner)}",
                f"SELECT DISTINCT {theirs}.a AS v FROM {other} WHERE {link}{self._and(inner)}",
                f"SELECT {theirs}.id + {mine}.id AS v FROM {other} WHERE {link} AND {theirs}.id < 9",
            ]
        )
        how = self.make.random.choice(
            ["CROSS JOIN LATERAL ({}) AS j", "LEFT JOIN LATERAL ({}) AS j ON true", ", ({}) AS j"]
        )
        both = [*outer, Column("j.v", "int")]
        return f"SELECT {self.items(kinds, both, names)} FROM {one} {how.format(within)}{self.where(both, 0.4)}"

    def _and(self, scope: Sequence[Column]) -> str:
        return f" AND {self.make.condition(scope)}" if self.make.random.random() < 0.5 else ""

    def source(self) -> tuple[str, list[Column]]:
        """Return a table with a unique alias, and its columns."""
        name = self.make.random.choice(list(self.tables))
        alias = self.alias()
        return f"{name} AS {alias}", scope_of(self.tables[name], alias)

    def where(self, scope: Sequence[Column], likely: float = 0.7) -> str:
        return f" WHERE {self.make.condition(scope)}" if self.make.random.random() < likely else ""

    def _plain(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        table, scope = self.source()
        return f"SELECT {self.items(kinds, scope, names)} FROM {table}{self.where(scope)}"

    def _joined(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        (one, left), (other, right) = self.source(), self.source()
        how = self.make.random.choice(["JOIN", "LEFT JOIN", "JOIN", "FULL JOIN"])
        on = f"{one.split()[-1]}.id = {other.split()[-1]}.id"
        if self.make.random.random() < 0.3 and how != "FULL JOIN":
            on += f" AND {self.make.condition([*left, *right])}"
        both = [*left, *right]
        return f"SELECT {self.items(kinds, both, names)} FROM {one} {how} {other} ON {on}{self.where(both, 0.4)}"

    def _union(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        how = self.make.random.choice(["UNION ALL", "UNION", "EXCEPT", "INTERSECT", "EXCEPT ALL"])
        return f"({self._typed(kinds, names)}) {how} ({self._typed(kinds, names)})"

    def _typed(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        """Return a query whose columns have types that both sides of a set operation agree on."""
        table, scope = self.source()
        values = [f"CAST({self.make.of(kind, scope)} AS {TYPES[kind]})" for kind in kinds]
        items = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
        return f"SELECT {items} FROM {table}{self.where(scope)}"

    def _window(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        table, scope = self.source()
        alias = table.split()[-1]
        window = self.make.random.choice(
            [
                f"row_number() OVER (ORDER BY {alias})",
                f"sum({alias}.id) OVER (PARTITION BY {alias}.id % 3)",
                f"lag({alias}.id) OVER (ORDER BY {alias})",
                "count(*) OVER ()",
                f"rank() OVER (PARTITION BY {alias}.id % 4 ORDER BY {alias}.s)",
            ]
        )
        values = [self.make.of(kind, scope) for kind in kinds]
        if "int" in kinds:
            values[list(kinds).index("int")] = f"({window})::INTEGER"
        items = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
        qualify = f" QUALIFY {window} < 6" if self.make.random.random() < 0.3 else ""
        return f"SELECT {items} FROM {table}{self.where(scope)}{qualify}"

    def _lateral(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        table, scope = self.source()
        alias, inner, j = table.split()[-1], self.alias(), self.alias()
        kind = self.make.random.choice(
            [
                f"LATERAL (SELECT {alias}.id + 1 AS v) AS {j}",
                f"LATERAL (SELECT max({inner}.id) AS v FROM {{t}} AS {inner} WHERE {inner}.id < {alias}.id) AS {j}",
                f"LATERAL (SELECT {inner}.id AS v FROM {{t}} AS {inner} WHERE {inner}.id = {alias}.id + 1) AS {j}",
            ]
        )
        both = [*scope, Column(f"{j}.v", "int")]
        return f"SELECT {self.items(kinds, both, names)} FROM {table}, {kind}{self.where(both, 0.4)}"

    def _grouped(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        table, scope = self.source()
        keys = {kind: self.make.of(kind, scope) for kind in kinds}
        values = []
        for kind in kinds:
            options = [f"min({keys[kind]})", f"max({keys[kind]})"]
            if kind == "int":
                options += [
                    f"count({keys[kind]})::INTEGER",
                    f"(sum({keys[kind]}) % 1000)::INTEGER",
                    "count(*)::INTEGER",
                ]
            if kind == "text":
                options += [f"string_agg({keys[kind]}, ',' ORDER BY {keys[kind]})"]
            values.append(self.make.random.choice(options))
        items = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
        group = self.make.of("int", scope)
        having = " HAVING count(*) > 1" if self.make.random.random() < 0.3 else ""
        return f"SELECT {items} FROM {table}{self.where(scope)} GROUP BY ({group})::BIGINT + 0{having}"

    def _distinct(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        table, scope = self.source()
        on = ""
        if self.make.random.random() < 0.5:
            alias = table.split()[-1]
            return (
                f"SELECT DISTINCT ON ({alias}.id % 7) {self.items(kinds, scope, names)} FROM {table}"
                f"{self.where(scope)} ORDER BY {alias}.id % 7, {alias}"
            )
        return f"SELECT DISTINCT {on}{self.items(kinds, scope, names)} FROM {table}{self.where(scope)}"

    def _values(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        rows = [
            f"({', '.join(f'CAST({self.make.literal(kind)} AS {TYPES[kind]})' for kind in kinds)})"
            for _ in range(self.make.random.randrange(1, 4))
        ]
        return f"SELECT * FROM (VALUES {', '.join(rows)}) AS {self.alias()}({', '.join(names)})"

    def _unnested(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        table, scope = self.source()
        lists = [column.sql for column in scope if column.kind == "list"] or ["[1, 2]"]
        u = self.alias()
        both = [*scope, Column(f"{u}.e", "int")]
        return (
            f"SELECT {self.items(kinds, both, names)} FROM {table}, unnest({lists[0]}) AS {u}(e){self.where(both, 0.4)}"
        )

    def _recursive(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        table, scope = self.source()
        w = self.alias()
        both = [*scope, Column(f"{w}.n", "int")]
        steps = f"SELECT 1 AS n UNION ALL SELECT n + 1 FROM {w} WHERE n < 3"
        return (
            f"WITH RECURSIVE {w} AS ({steps}) SELECT {self.items(kinds, both, names)} FROM {table} "
            f"JOIN {w} ON {w}.n = {table.split()[-1]}.id % 5{self.where(both, 0.4)}"
        )

    def _limited(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        table, scope = self.source()
        ends = self.make.random.choice(["LIMIT 5", "LIMIT 4 OFFSET 2", "LIMIT 0", "OFFSET 3", "LIMIT 30 PERCENT"])
        order = self.make.random.choice(["ALL", "ALL DESC", "ALL NULLS LAST"])
        return f"SELECT {self.items(kinds, scope, names)} FROM {table}{self.where(scope)} ORDER BY {order} {ends}"
