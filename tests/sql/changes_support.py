"""Random statements that change a Lance table and a native table."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import duckdb

COLUMNS = ("id", "a", "s", "d", "l")
TYPES = "id INTEGER NOT NULL, a INTEGER, s VARCHAR, d DOUBLE, l INTEGER[]"
_EXPRESSIONS = {
    "id": ["id", "id + 1", "abs(id) % 50", "length(s)", "coalesce(a, 0)", "NULL", "'7'", "'x'", "2147483647 + id"],
    "a": [
        "a",
        "a + id",
        "NULL",
        "DEFAULT",
        "(SELECT max(id) FROM t)",
        "len(l)",
        "d::INT",
        "CASE WHEN a > 3 THEN 1 END",
    ],
    "s": ["s", "s || '!'", "upper(s)", "a", "NULL", "'it''s, (FROM) -- '", "DEFAULT", "l::VARCHAR"],
    "d": ["d", "d / 2", "a", "sqrt(abs(d))", "NULL", "1e3", "'1.5'"],
    "l": ["l", "[a, id]", "[]", "NULL", "[1, NULL]", "list_append(l, id)", "DEFAULT"],
}
_CONDITIONS = [
    "id < {n}",
    "a IS NULL",
    "a = {n} OR s LIKE 'b%'",
    "id IN (SELECT id FROM t WHERE id % 3 = 0)",
    "d > (SELECT avg(d) FROM t)",
    "len(l) > 1",
    "CASE WHEN a > {n} THEN true ELSE s = 'x' END",
    "id BETWEEN {n} AND {n} + 5 AND (SELECT count(*) FROM t) > 2",
    "true",
    "false",
    "nope = 1",
]
_RETURNING = ["*", "id", "id, s AS text, a + 1", "count_star() OVER ()", "t.id", "id::VARCHAR || coalesce(s, '')", "zz"]


@dataclass
class StatementMaker:
    """Makes statements with the placeholder `{t}` for the table name."""

    random: random.Random
    spellings: list[str] = field(default_factory=lambda: ["t"])
    in_transactions: bool = False

    def statement(self) -> str:
        make = self.random.choices(
            [
                self._values,
                self._selected,
                self._by_name,
                self._delete,
                self._using,
                self._update,
                self._from,
                self._merge,
            ],
            [3, 3, 1, 2, 2, 4, 2, 4],
        )[0]
        return make().replace("{t}", self.random.choice(self.spellings))

    def keyed_statement(self) -> str:
        """Return a statement for tables whose ids are unique."""
        make = self.random.choice([self._upsert, self._upsert, self._upsert, self._delete, self._from])
        return make().replace("{t}", self.random.choice(self.spellings))

    def _pick(self, options: list[str]) -> str:
        return self.random.choice(options).replace("{n}", str(self.random.randrange(30)))

    def _number(self) -> str:
        return str(self.random.randrange(60))

    def _constant(self, column: str) -> str:
        options = {
            "id": [self._number()] * 9 + ["NULL", "'4'"],
            "a": [self._number(), "NULL", "DEFAULT", "1.6", "'12'", "$1"],
            "s": ["'b'", "'x, (y)'", "NULL", "3", "$$dollar$$", "DATE '2020-01-01'", "$2"],
            "d": ["1.5", "NULL", "'2.25'", "1e2", self._number()],
            "l": ["[1, 2]", "[]", "NULL", "[NULL]", "DEFAULT"],
        }
        return self.random.choice([option for option in options[column] if "$" not in option or option == "$$dollar$$"])

    def _list(self, *, whole: bool = False) -> list[str]:
        names = list(COLUMNS)
        if whole:
            return names
        self.random.shuffle(names)
        return ["id", *[name for name in names if name != "id"][: self.random.randrange(4)]]

    def _returning(self) -> str:
        return f" RETURNING {self._pick(_RETURNING)}" if self.random.random() < 0.3 else ""

    def _returning_deleted(self) -> str:
        returning = self._returning()
        # DuckDB 1 leaves out rows that the same transaction has written.
        return "" if self.in_transactions and duckdb.__version__ < "2" else returning

    def _with(self) -> str:
        return "WITH q AS (SELECT 3 AS k UNION ALL SELECT 5) " if self.random.random() < 0.2 else ""

    def _where(self) -> str:
        return f" WHERE {self._pick(_CONDITIONS)}" if self.random.random() < 0.85 else ""

    def _values(self) -> str:
        whole = self.random.random() < 0.5
        names = self._list(whole=whole)
        rows = [f"({', '.join(map(self._constant, names))})" for _ in range(self.random.randrange(1, 4))]
        if self.random.random() < 0.05:
            rows[0] = "(1, 2, 3, 4, 5, 6, 7)"
        head = "" if whole else f" ({', '.join(names)})"
        return f"{self._with()}INSERT INTO {{t}}{head} VALUES {', '.join(rows)}{self._returning()}"

    def _selected(self) -> str:
        names = self._list()
        values = ", ".join(self._pick([e for e in _EXPRESSIONS[name] if e != "DEFAULT"]) for name in names)
        source = f"SELECT {values} FROM t{self._where()} ORDER BY ALL LIMIT 5"
        if self.random.random() < 0.3:
            source = f"({source})"
        return f"{self._with()}INSERT INTO {{t}} ({', '.join(names)}) {source}{self._returning()}"

    def _by_name(self) -> str:
        extra = ", 1 AS zz" if self.random.random() < 0.1 else ""
        return f"INSERT INTO {{t}} BY NAME SELECT 's' AS s, {self._number()} AS ID{extra}{self._returning()}"

    def _delete(self) -> str:
        return f"{self._with()}DELETE FROM {{t}}{self._where()}{self._returning_deleted()}"

    def _using(self) -> str:
        where = " WHERE z.id = k AND " + self._pick(_CONDITIONS)
        return f"DELETE FROM {{t}} AS z USING (VALUES (3), (3), ({self._number()})) q(k){where}"

    def _assignments(self) -> str:
        names = self.random.sample(COLUMNS, self.random.randrange(1, 4))
        values = [self._pick(_EXPRESSIONS[name]) for name in names]
        if len(names) > 1 and self.random.random() < 0.3:
            return f"({', '.join(names)}) = ({', '.join(values)})"
        return ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))

    def _update(self) -> str:
        return f"{self._with()}UPDATE {{t}} SET {self._assignments()}{self._where()}{self._returning()}"

    def _from(self) -> str:
        values = f"(SELECT DISTINCT id AS k, id * 2 AS x FROM t WHERE id % {self.random.randrange(2, 5)} = 0)"
        return f"UPDATE {{t}} AS z SET a = x, s = z.s || 'u' FROM {values} q WHERE z.id = q.k"

    def _merge(self) -> str:
        number = self.random.randrange(2, 6)
        source = self._pick(
            [
                f"(SELECT DISTINCT id % {number} + {{n}} AS id, 'm' AS s, 1 AS a, 0.5 AS d, [7] AS l FROM t)",
                "(VALUES ({n}, 'v', 2, 1.5, [1]), (3, NULL, 2, 1.5, NULL))",
                "(SELECT id, max(s), max(a), max(d), max(l) FROM t WHERE id > {n} GROUP BY id)",
            ]
        )
        on = self.random.choice(
            ["ON {t}.id = q.id", "USING (id)", "ON q.id = {t}.id AND {t}.a IS NOT NULL", "ON {t}.id = q.id + 1"]
        )
        whens = self.random.sample(
            [
                "WHEN MATCHED AND {t}.id % 2 = 0 THEN UPDATE SET s = q.s || '~', a = {t}.a + 1",
                "WHEN MATCHED AND q.s = 'm' THEN DELETE",
                "WHEN MATCHED AND {t}.id < 4 THEN DO NOTHING",
                "WHEN MATCHED AND {t}.id = 29 THEN ERROR",
                "WHEN MATCHED THEN UPDATE SET d = q.d",
                "WHEN MATCHED AND {t}.id % 3 = 1 THEN UPDATE BY NAME",
            ],
            self.random.randrange(3),
        )
        whens += self.random.sample(
            [
                "WHEN NOT MATCHED AND q.id < 0 THEN INSERT VALUES (q.id, 1, 's', 1.5, [3])",
                "WHEN NOT MATCHED BY TARGET AND q.id > 10 THEN INSERT (id, s) VALUES (q.id, 'new')",
                "WHEN NOT MATCHED THEN INSERT BY NAME",
                "WHEN NOT MATCHED AND q.id = 0 THEN INSERT (s) VALUES ('no id')",
            ],
            self.random.randrange(1, 3),
        )
        if self.random.random() < 0.4:
            whens.append(
                self._pick(
                    [
                        "WHEN NOT MATCHED BY SOURCE AND {t}.id > {n} THEN DELETE",
                        "WHEN NOT MATCHED BY SOURCE AND {t}.id < 2 THEN UPDATE SET s = 'gone'",
                    ]
                )
            )
        returning = self.random.choice(["", "", " RETURNING merge_action, *", " RETURNING id, merge_action"])
        if (duckdb.__version__ < "2" and "BY SOURCE" in whens[-1]) or len(whens) > 2:
            returning = ""  # DuckDB returns values that were never stored
        text = f"MERGE INTO {{t}} USING {source} q(id, s, a, d, l) {on} {' '.join(whens)}{returning}"
        return self._with() + text.replace("{t}.", "t.")

    def _upsert(self) -> str:
        rows = [f"({self._number()}, {self._constant('a')}, 'up')" for _ in range(self.random.randrange(1, 4))]
        source = self.random.choice(
            [f"VALUES {', '.join(rows)}", "SELECT DISTINCT ON (id) id + 1, a, s FROM t ORDER BY id LIMIT 6"]
        )
        action = self.random.choice(
            [
                "DO NOTHING",
                "DO UPDATE SET s = excluded.s || coalesce(t.s, '?')",
                "DO UPDATE SET a = excluded.a, d = t.id WHERE t.id % 2 = 0",
            ]
        )
        return f"INSERT INTO {{t}} (id, a, s) {source} ON CONFLICT (id) {action}{self._returning()}"


def outcome(run: Callable[[], Any], refusals: tuple[type[BaseException], ...]) -> Any:
    """Return the sorted rows of a statement.

    Returns None if the statement is rejected.
    """
    try:
        return sorted(map(repr, run()))
    except refusals:
        return None
