"""Random SQL expressions of a kind over the columns that a query sees, and random values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

KINDS: Final = {
    "INTEGER": "int",
    "BIGINT": "int",
    "SMALLINT": "int",
    "UTINYINT": "int",
    "VARCHAR": "text",
    "DOUBLE": "double",
    "FLOAT": "double",
    "DECIMAL(10,2)": "decimal",
    "DECIMAL(18,3)": "decimal",
    "TIMESTAMP": "ts",
    "TIMESTAMP WITH TIME ZONE": "tz",
    "DATE": "date",
    "TIME": "time",
    "BOOLEAN": "bool",
    "BLOB": "blob",
    "UUID": "uuid",
    "INTEGER[]": "list",
    "STRUCT(x INTEGER, y VARCHAR)": "struct",
    "STRUCT(p INTEGER, q VARCHAR[])[]": "structs",
    "MAP(VARCHAR, INTEGER)": "map",
    "FLOAT[2]": "array",
}
"""The kind of each type of DuckDB's."""
TYPES: Final = {kind: type_ for type_, kind in reversed(KINDS.items())}
"""A type of each kind."""

_LITERALS: Final = {
    "int": ["0", "1", "7", "-3", "NULL", "'12'", "1.6", "40"],
    "text": ["'b'", "'x, (y)'", "''", "NULL", "$$dollar$$", "'it''s -- FROM'", "'é\u4e2d'", "'Bb'", "E'a\\nb'"],
    "double": ["0.5", "'NaN'::DOUBLE", "1e3", "NULL", "-2.25", "'inf'::DOUBLE", "3"],
    "decimal": ["1.25", "NULL", "-7.5", "3", "'2.25'", "0.005", "99.99::DECIMAL(4,2)"],
    "ts": ["TIMESTAMP '2020-01-01 10:00:00.123456'", "NULL", "'2021-06-01'", "DATE '2022-02-02'", "make_timestamp(7)"],
    "tz": ["TIMESTAMPTZ '2020-01-01 00:00:00+02'", "NULL", "'2021-06-01 00:00:00+00'", "make_timestamptz(86400000000)"],
    "date": ["DATE '2020-02-29'", "NULL", "'2021-06-01'", "make_date(1999, 12, 31)"],
    "time": ["TIME '10:00:00.5'", "NULL", "'23:59:59'"],
    "bool": ["true", "false", "NULL", "1 = 1"],
    "blob": ["'a'::BLOB", "NULL", "'\\x00\\xFFb'::BLOB", "encode('é')"],
    "uuid": ["'11111111-1111-1111-1111-111111111111'::UUID", "NULL", "'22222222-2222-2222-2222-222222222222'"],
    "list": ["[1, 2]", "[]", "NULL", "[NULL]", "[3, NULL, 4]", "range(3)::INTEGER[]"],
    "struct": ["{'x': 1, 'y': 'p'}", "NULL", "{'x': NULL, 'y': NULL}", "row(2, 'q')", "struct_pack(x := 5, y := 'z')"],
    "structs": ["[{'p': 1, 'q': ['a', NULL]}]", "[]", "NULL", "[NULL, {'p': NULL, 'q': []}]"],
    "map": ["MAP {'a': 1, 'b': NULL}", "NULL", "MAP {}"],
    "array": ["[1, 2]::FLOAT[2]", "NULL", "array_value(0.5::FLOAT, -1::FLOAT)", "[3, 4]"],
}

# `int:text` in braces is a placeholder for an expression of that type.
_CALLS: Final = {
    "int": [
        "{int} + {int}",
        "{int} % 5",
        "abs({int})",
        "coalesce({int}, 0)",
        "length({text})",
        "CASE WHEN {bool} THEN {int} ELSE {int} END",
        "len({list})",
        "{struct}.x",
        "TRY_CAST({text} AS INTEGER)",
        "year({ts})",
        "{int}::BIGINT",
        "greatest({int}, {int})",
        "({list})[1]",
        "nullif({int}, 3)",
        "list_sum([x + 1 FOR x IN {list}])",
        "list_position({list}, {int})",
    ],
    "text": [
        "{text} || '!'",
        "upper({text})",
        "{int}::VARCHAR",
        "coalesce({text}, '?')",
        "({struct}).y",
        "left({text}, 2)",
        "{decimal}::VARCHAR",
        "concat({text}, {int}, {date})",
        "CASE {int} WHEN 1 THEN 'one' WHEN 2 THEN {text} END",
        "strftime({ts}, '%Y')",
        "{list}::VARCHAR",
        "{uuid}::VARCHAR",
        "format('{{}}-{{}}', {int}, {text})",
    ],
    "double": ["{double} / 2", "{int} / 4", "sqrt(abs({double}))", "coalesce({double}, 1)", "{decimal}::DOUBLE"],
    "decimal": ["{decimal} + 1", "coalesce({decimal}, 0)", "-{decimal}", "CASE WHEN {bool} THEN {decimal} END"],
    "ts": ["{ts} + INTERVAL 3 DAY", "date_trunc('month', {ts})", "coalesce({ts}, TIMESTAMP '2000-01-01')"],
    "tz": ["{tz} - INTERVAL '1 hour'", "coalesce({tz}, make_timestamptz(0))"],
    "date": ["{date} + 1", "CAST({ts} AS TIMESTAMP)::DATE", "last_day({date})"],
    "time": ["CAST({ts} AS TIMESTAMP)::TIME", "{time} + INTERVAL 5 MINUTE"],
    "bool": [
        "{int} < {int}",
        "{int} IS NULL",
        "{text} = {text}",
        "{text} LIKE 'b%'",
        "NOT {bool}",
        "{bool} AND {bool}",
        "{bool} OR {bool}",
        "{int} IN (1, 2, {int})",
        "{int} NOT IN (3, NULL)",
        "{double} > {double}",
        "{double} = 'NaN'::DOUBLE",
        "{int} BETWEEN 2 AND {int}",
        "{ts} < {ts}",
        "{tz} >= {tz}",
        "{date} IS NOT DISTINCT FROM {date}",
        "{decimal} <> {decimal}",
        "{text} ILIKE '%B%'",
        "list_contains({list}, {int})",
        "{uuid} = {uuid}",
        "{blob} = {blob}",
        "{struct} IS NULL",
        "{text} IN ('b', 'x', {text})",
        "starts_with({text}, 'a')",
        "{list} = {list}",
        "{int} = ANY({list})",
        "({int}, {text}) = ({int}, {text})",
        "{struct}.x = {int}",
        "len(list_filter({list}, lambda v: v > 1)) > 0",
    ],
    "blob": ["{blob}", "encode({text})"],
    "uuid": ["{uuid}", "coalesce({uuid}, '33333333-3333-3333-3333-333333333333'::UUID)"],
    "list": ["list_append({list}, {int})", "[{int}, {int}]", "list_transform({list}, lambda v: v + 1)", "{list}[2:]"],
    "struct": [
        "{{'x': {int}, 'y': {text}}}",
        "struct_pack(x := {int}, y := {text})",
        "coalesce({struct}, row(0, 'c'))",
    ],
    "structs": ["[{{'p': {int}, 'q': [{text}]}}]", "{structs}"],
    "map": ["MAP {{'k': {int}}}", "{map}"],
    "array": ["{array}", "[coalesce({int}, 0) % 9, 0.5]::FLOAT[2]"],
}


@dataclass(frozen=True)
class Column:
    """A column that an expression may name.

    Attributes:
        sql: How it is spelled.
        kind: Of its values.
    """

    sql: str
    kind: str


@dataclass
class Expressions:
    """Makes expressions.

    Attributes:
        random: Random generator.
        parameters: Values of the placeholders so far; None disables placeholders.
        subquery: The name of a table for subqueries, with columns `id`, `a` and `s`; empty disables subqueries.
    """

    random: Random
    parameters: list[Any] | None = None
    subquery: str = ""
    depth: int = field(default=0, init=False)

    def literal(self, kind: str) -> str:
        if self.parameters is not None and self.random.random() < 0.4 and kind in ("int", "text", "double"):
            values: dict[str, list[Any]] = {"int": [0, 5, None, 12], "text": ["b", None, "q'"], "double": [0.5, None]}
            self.parameters.append(self.random.choice(values[kind]))
            return f"${len(self.parameters)}" + ("" if self.random.random() < 0.3 else f"::{TYPES[kind]}")
        if kind == "int" and self.random.random() < 0.5:
            return str(self.random.randrange(45))
        return self.random.choice(_LITERALS.get(kind, ["NULL"]))

    def of(self, kind: str, scope: Sequence[Column]) -> str:
        """Return an expression of a kind."""
        columns = [column.sql for column in scope if column.kind == kind]
        chance = self.random.random()
        if self.depth > 2 or chance < 0.45 or kind not in _CALLS:
            return self.random.choice(columns) if columns and self.random.random() < 0.75 else self.literal(kind)
        if chance < 0.5 and self.subquery:
            return self._subquery(kind, scope)
        self.depth += 1
        try:
            parts = self.random.choice(_CALLS[kind])
            names = [part for part in _CALLS if "{" + part + "}" in parts]
            text = parts.replace("{{", "\0").replace("}}}", "}\1").replace("}}", "\1")
            for name in names:
                while "{" + name + "}" in text:
                    text = text.replace("{" + name + "}", self._within(name, scope), 1)
            return "(" + text.replace("\0", "{").replace("\1", "}") + ")"
        finally:
            self.depth -= 1

    def _within(self, kind: str, scope: Sequence[Column]) -> str:
        text = self.of(kind, scope).replace("{", "\0").replace("}", "\1")
        return text if text.startswith("(") or text.isalnum() else f"({text})"

    def condition(self, scope: Sequence[Column]) -> str:
        """Return a condition, often one that an index or a scan filter can evaluate."""
        ints = [column.sql for column in scope if column.kind == "int"]
        if ints and self.random.random() < 0.35:
            column, number = self.random.choice(ints), self.random.randrange(45)
            return self.random.choice(
                [
                    f"{column} = {number}",
                    f"{column} IN ({number}, 3, 8)",
                    f"{column} < {number}",
                    f"{column} BETWEEN {number} AND {number + 6}",
                    f"{column} % 3 = 0",
                    f"{column} IS NULL OR {column} > {number}",
                ]
            )
        return self.of("bool", scope)

    def _subquery(self, kind: str, scope: Sequence[Column]) -> str:
        table, outer = self.subquery, [column.sql for column in scope if column.kind == "int"]
        correlated = f" WHERE i.id = {self.random.choice(outer)}" if outer and self.random.random() < 0.5 else ""
        options = {
            "int": [
                f"(SELECT max(i.a) FROM {table} AS i{correlated})",
                f"(SELECT count(*) FROM {table} AS i{correlated})",
            ],
            "text": [f"(SELECT min(i.s) FROM {table} AS i{correlated})"],
            "bool": [
                f"EXISTS (SELECT 1 FROM {table} AS i{correlated})",
                f"({self.of('int', scope)}) IN (SELECT i.id FROM {table} AS i WHERE i.id % 2 = 0)",
                f"({self.of('int', scope)}) NOT IN (SELECT i.id FROM {table} AS i WHERE i.a > 3 AND i.id IS NOT NULL)",
                f"({self.of('int', scope)}) > ALL (SELECT i.a FROM {table} AS i WHERE i.id < 5 AND i.a IS NOT NULL)",
            ],
        }
        return self.random.choice(options[kind]) if kind in options else self.literal(kind)


def scope_of(columns: Sequence[tuple[str, str]], alias: str = "") -> list[Column]:
    """Return the columns of a table for expressions, with DuckDB names and types."""
    before = f"{alias}." if alias else ""
    return [
        Column(
            f'{before}"{name}"' if name[:1].isdigit() or " " in name else f"{before}{name}", KINDS.get(type_, "other")
        )
        for name, type_ in columns
    ]
