"""Random statements that change a table; `{t}` is the placeholder for its name, `{new}` for a new table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import duckdb
from sql.random_expressions import KINDS, TYPES, Column, Expressions, scope_of
from sql.random_queries import Queries, Tables

_TWO: Final = duckdb.__version__ >= "2"


@dataclass
class Sample:
    """A random statement.

    Attributes:
        kind: Its clause, as it is counted.
        sql: Its text.
        parameters: Values of its placeholders.
    """

    kind: str
    sql: str
    parameters: list[Any] = field(default_factory=list)


@dataclass
class ChangeMaker:
    """Makes statements for a table with given columns.

    Attributes:
        random: Random generator.
        tables: Columns of each table; `{t}` is the one to change. Its first column is `id`.
        keyed: Its `id` is unique.
        prepared: Statements have placeholders.
        in_transaction: Statements run inside a transaction.
    """

    random: Random
    tables: Tables
    keyed: bool = False
    prepared: bool = False
    in_transaction: bool = False

    def __post_init__(self) -> None:
        self.make = Expressions(self.random, [] if self.prepared else None, "{t}")
        self.queries = Queries(self.make, self.tables)
        self.columns = [(name, type_) for name, type_ in self.tables["{t}"] if KINDS.get(type_)]

    def sample(self) -> Sample:
        """Return a statement that changes rows."""
        if self.keyed:
            makers = {"upsert": self._upsert, "or": self._or, "update": self._update, "delete": self._delete}
            weights = [6, 4, 2, 1]
        else:
            makers = {
                "values": self._values,
                "insert select": self._selected,
                "by name": self._by_name,
                "default values": lambda: "INSERT INTO {t} DEFAULT VALUES",
                "delete": self._delete,
                "using": self._using,
                "update": self._update,
                "update from": self._from,
                "merge": self._merge,
                "truncate": lambda: self.random.choice(["TRUNCATE {t}", "DELETE FROM {t}"]),
            }
            weights = [4, 6, 2, 0.3, 3, 3, 6, 4, 6, 0.2]
        kind = self.random.choices(list(makers), weights)[0]
        sql = makers[kind]()
        return Sample(kind, sql, list(self.make.parameters or ()))

    # Parts.

    def _kinds(self, names: Sequence[str]) -> list[str]:
        types = dict(self.columns)
        return [KINDS[types[name]] for name in names]

    def _some(self) -> list[str]:
        names = [name for name, _ in self.columns]
        chosen = self.random.sample(names, self.random.randrange(1, len(names) + 1))
        return chosen if "id" in chosen or self.random.random() < 0.1 else ["id", *chosen]

    def _value(self, name: str, scope: Sequence[Column]) -> str:
        (kind,) = self._kinds([name])
        if name == "id" and not self.random.random() < 0.1:
            return f"coalesce({self.make.of(kind, scope)}, 1)" if scope else str(self.random.randrange(50))
        return self.make.of(kind, scope) if scope else self.make.literal(kind)

    def _with(self) -> str:
        if self.random.random() < 0.8:
            return ""
        name = self.random.choice(["w", "W2"])
        query = self.queries.query(["int", "text"], ["k", "v"])
        words = self.random.choice(["", "", " MATERIALIZED", " NOT MATERIALIZED"])
        return f"WITH {name} AS{words} ({query}) "

    def _where(self, scope: Sequence[Column], ctes: str = "") -> str:
        if ctes and self.random.random() < 0.5:
            name = ctes.split()[1]
            return f" WHERE {scope[0].sql} IN (SELECT k FROM {name})"
        return self.queries.where(scope, 0.85)

    def _returning(self, alias: str = "", *, deletes: bool = False) -> str:
        if self.random.random() < 0.6 or (deletes and self.in_transaction and not _TWO):
            return ""
        scope = scope_of(self.columns, alias)
        subquery, self.make.subquery = self.make.subquery, ""
        parameters, self.make.parameters = self.make.parameters, None
        kind = self.random.choice(["int", "text", "bool", "list", "decimal", "tz", "struct"])
        items = [
            "*",
            "* EXCLUDE (id)",
            "*, id + 1 AS more",
            f"{self.make.of(kind, scope)} AS e, {scope[0].sql}",
            f"coalesce({self.make.of('text', scope)}, '')",
            "COLUMNS('^[ais]$')",
            "* REPLACE (id * 2 AS id)",
        ]
        self.make.subquery, self.make.parameters = subquery, parameters
        return f" RETURNING {self.random.choice(items)}"

    # INSERT.

    def _values(self) -> str:
        whole = self.random.random() < 0.4
        names = [name for name, _ in self.columns] if whole else self._some()
        whole = whole and len(self.columns) == len(self.tables["{t}"])
        rows = []
        for _ in range(self.random.randrange(1, 4)):
            values = [
                "DEFAULT" if self.random.random() < 0.06 and name != "id" else self._value(name, []) for name in names
            ]
            if self.random.random() < 0.2:
                values[-1] = self.make.of(self._kinds(names[-1:])[0], [])
            rows.append(f"({', '.join(values)})")
        if self.random.random() < 0.03:
            rows[0] = "(1, 2)"
        head = "" if whole else f" ({', '.join(names)})"
        return f"{self._with()}INSERT INTO {{t}}{head} VALUES {', '.join(rows)}{self._returning()}"

    def _rows(self, names: Sequence[str]) -> str:
        """Return a query for columns, whose ids are not null."""
        inner = self.queries.query(self._kinds(names), names)
        items = ", ".join(f"coalesce({name}, 3) AS {name}" if name == "id" else name for name in names)
        return f"SELECT {items} FROM ({inner}) AS src"

    def _selected(self) -> str:
        names = self._some()
        query = self._rows(names) if self.random.random() < 0.9 else self.queries.query(self._kinds(names), names)
        if self.random.random() < 0.3:
            query = f"({query})"
        return f"{self._with()}INSERT INTO {{t}} ({', '.join(names)}) {query}{self._returning()}"

    def _by_name(self) -> str:
        names = self._some()
        self.random.shuffle(names)
        query = self._rows(names)
        if self.random.random() < 0.1:
            query = query.replace("FROM (", ", 1 AS zz FROM (", 1)
        return f"INSERT INTO {{t}} BY NAME {query}{self._returning()}"

    # Existing rows.

    def _delete(self) -> str:
        ctes, alias = self._with(), self.random.choice(["", "z"])
        scope = scope_of(self.columns, alias)
        name = f"{{t}} AS {alias}" if alias else "{t}"
        return f"{ctes}DELETE FROM {name}{self._where(scope, ctes)}{self._returning(deletes=True)}"

    def _using(self) -> str:
        scope = [*scope_of(self.columns, "z"), Column("q.k", "int"), Column("q.v", "text")]
        query = self.queries.query(["int", "text"], ["k", "v"])
        extra = f" AND ({self.make.condition(scope)})" if self.random.random() < 0.5 else ""
        returning = self._returning("z", deletes=True) if _TWO else ""
        return f"{self._with()}DELETE FROM {{t}} AS z USING ({query}) AS q WHERE z.id = q.k{extra}{returning}"

    def _assignments(self, scope: Sequence[Column], *, key: bool = True) -> str:
        names = [name for name, _ in self.columns if key or name != "id"]
        chosen = self.random.sample(names, self.random.randrange(1, min(4, len(names)) + 1))
        values = [
            "DEFAULT" if self.random.random() < 0.05 and name != "id" else self._value(name, scope) for name in chosen
        ]
        if len(chosen) > 1 and self.random.random() < 0.25:
            row = self.random.choice(["", "", "ROW"])
            return f"({', '.join(chosen)}) = {row}({', '.join(values)})"
        return ", ".join(f"{name} = {value}" for name, value in zip(chosen, values, strict=True))

    def _update(self) -> str:
        ctes, alias = self._with(), self.random.choice(["", "z"])
        scope = scope_of(self.columns, alias)
        name = f"{{t}} AS {alias}" if alias else "{t}"
        sets = self._assignments(scope, key=not self.keyed)
        return f"{ctes}UPDATE {name} SET {sets}{self._where(scope, ctes)}{self._returning()}"

    def _keyed_source(self, kinds: Sequence[str], names: Sequence[str]) -> str:
        """Return a query whose first column, of numbers, has each value once."""
        rest = [f"min(src.{name}) AS {name}" for name in names[1:]]
        inner = self.queries.query(kinds, names)
        if self.keyed:  # DuckDB gives `excluded` the types of the source
            casts = ", ".join(
                f"CAST({name} AS {TYPES[kind]}) AS {name}" for name, kind in zip(names, kinds, strict=True)
            )
            inner = f"SELECT {casts} FROM ({inner}) AS q0"
        key = f"coalesce(src.{names[0]}, 2) AS {names[0]}"
        return f"SELECT {', '.join([key, *rest])} FROM ({inner}) AS src GROUP BY 1"

    def _from(self) -> str:
        scope = [*scope_of(self.columns, "z"), Column("q.k", "int"), Column("q.v", "text"), Column("q.w", "double")]
        query = self._keyed_source(["int", "text", "double"], ["k", "v", "w"])
        extra = f" AND ({self.make.condition(scope)})" if self.random.random() < 0.5 else ""
        returning = self._returning("z")
        sets = self._assignments(scope, key=not self.keyed)
        return f"{self._with()}UPDATE {{t}} AS z SET {sets} FROM ({query}) AS q WHERE z.id = q.k{extra}{returning}"

    def _merge(self) -> str:
        names = ["id", *[n for n in self._some() if n != "id"]]
        source = self._keyed_source(self._kinds(names), names)
        mine, theirs = scope_of(self.columns, "z"), scope_of([c for c in self.columns if c[0] in names], "q")
        both = [*mine, *theirs]
        join = self.random.choice(
            ["ON z.id = q.id", "USING (id)", "ON q.id = z.id AND z.id < 20", "ON z.id = q.id + 1", "ON (z.id = q.id)"]
        )

        def given() -> str:
            return f" AND {self.make.condition(both)}" if self.random.random() < 0.5 else ""

        def alone(scope: Sequence[Column]) -> str:
            return f" AND {self.make.condition(scope)}" if self.random.random() < 0.5 else ""

        whens = []
        for _ in range(self.random.randrange(3)):
            action = self.random.choices(
                [f"UPDATE SET {self._assignments(both)}", "DELETE", "DO NOTHING", "UPDATE BY NAME", "ERROR"],
                [5, 2, 1, 2, 0.2],
            )[0]
            whens.append(f"WHEN MATCHED{given()} THEN {action}")
        for _ in range(self.random.randrange(3)):
            some = [name for name in self._some() if name != "id"]
            values = ", ".join(["q.id", *[self._value(name, theirs) for name in some]])
            action = self.random.choices(
                [f"INSERT ({', '.join(['id', *some])}) VALUES ({values})", "INSERT BY NAME", "DO NOTHING", "INSERT"],
                [5, 2, 1, 0.3],
            )[0]
            by = self.random.choice(["", "", " BY TARGET"])
            whens.append(f"WHEN NOT MATCHED{by}{alone(theirs)} THEN {action}")
        if self.random.random() < 0.3 or not whens:
            action = self.random.choice([f"UPDATE SET {self._assignments(mine)}", "DELETE", "DELETE", "DO NOTHING"])
            whens.append(f"WHEN NOT MATCHED BY SOURCE{alone(mine)} THEN {action}")
        returning = ""
        if _TWO and len(whens) < 3 and self.random.random() < 0.4:
            returning = self.random.choice(
                [" RETURNING merge_action, *", " RETURNING id, merge_action", " RETURNING *"]
            )
        return f"{self._with()}MERGE INTO {{t}} AS z USING ({source}) AS q {join} {' '.join(whens)}{returning}"

    # Keys.

    def _new_rows(self) -> tuple[list[str], str]:
        names = ["id", *[name for name in self._some() if name != "id"]]
        if self.random.random() < 0.5:
            types = dict(self.columns)
            rows = []
            for _ in range(self.random.randrange(1, 4)):
                values = [f"CAST({self._value(name, [])} AS {types[name]})" for name in names[1:]]
                rows.append(f"({', '.join([str(self.random.randrange(40)), *values])})")
            return names, f"VALUES {', '.join(rows)}"
        return names, self._keyed_source(self._kinds(names), names)

    def _upsert(self) -> str:
        names, source = self._new_rows()
        mine = scope_of(self.columns, "z")
        excluded = [Column(f"excluded.{name}", kind) for name, kind in zip(names, self._kinds(names), strict=True)]
        subquery, self.make.subquery = self.make.subquery, ""
        where = f" WHERE {self.make.condition([*mine, *excluded])}" if self.random.random() < 0.4 else ""
        action = self.random.choice(
            ["DO NOTHING", f"DO UPDATE SET {self._assignments([*mine, *excluded], key=False)}{where}"]
        )
        self.make.subquery = subquery
        target = "" if action == "DO NOTHING" and self.random.random() < 0.4 else " (id)"
        head = f"{self._with()}INSERT INTO {{t}} AS z ({', '.join(names)})"
        return f"{head} {source} ON CONFLICT{target} {action}{self._returning()}"

    def _or(self) -> str:
        names, source = self._new_rows()
        word = self.random.choice(["REPLACE", "IGNORE"])
        if self.random.random() < 0.3 and source.startswith("SELECT"):
            return f"INSERT OR {word} INTO {{t}} BY NAME {source}{self._returning()}"
        return f"INSERT OR {word} INTO {{t}} ({', '.join(names)}) {source}{self._returning()}"


@dataclass
class SchemaMaker:
    """Makes statements that change columns or create tables.

    Attributes:
        random: Random generator.
        tables: Columns of each table; `{t}` is the one to change.
        new: Names of tables to create and recreate.
    """

    random: Random
    tables: Tables
    new: Sequence[str] = ("x1", "x2")

    def sample(self) -> Sample:
        """Return a statement."""
        makers = {
            "alter add": self._add,
            "alter drop": self._drop,
            "alter rename": self._rename,
            "alter type": self._type,
            "alter null": self._null,
            "create as": self._create_as,
            "create": self._create,
            "create like": self._create_like,
            "drop": self._drop_table,
            "rename": self._rename_table,
            "comment": self._comment,
        }
        kind = self.random.choice(list(makers))
        return Sample(kind, makers[kind]())

    def _columns(self) -> list[tuple[str, str]]:
        return list(self.tables["{t}"])

    def _add(self) -> str:
        kind = self.random.choice(list(TYPES))
        missing = self.random.choice(["", "", "IF NOT EXISTS "])
        name = self.random.choice([f"n{self.random.randrange(30)}", "a", "N1"])
        make = Expressions(self.random)
        default = f" DEFAULT {make.literal(kind)}" if self.random.random() < 0.4 else ""
        return f"ALTER TABLE {{t}} ADD {self.random.choice(['COLUMN ', ''])}{missing}{name} {TYPES[kind]}{default}"

    def _drop(self) -> str:
        name = self.random.choice([*[name for name, _ in self._columns() if name not in ("id", "s", "a")], "nope"])
        missing = self.random.choice(["", "IF EXISTS "])
        return f"ALTER TABLE {{t}} DROP COLUMN {missing}{name}"

    def _rename(self) -> str:
        old = self.random.choice([name for name, _ in self._columns() if name not in ("id", "s", "a")] + ["nope"])
        new = self.random.choice([f"m{self.random.randrange(30)}", "a", old.upper()])
        return f"ALTER TABLE {{t}} RENAME {self.random.choice(['COLUMN ', ''])}{old} TO {new}"

    def _type(self) -> str:
        name, _ = self.random.choice(self._columns()[1:])
        type_ = self.random.choice(["BIGINT", "DOUBLE", "VARCHAR", "DECIMAL(18,3)", "TIMESTAMP", "INTEGER"])
        return f"ALTER TABLE {{t}} ALTER {name} {self.random.choice(['TYPE', 'SET DATA TYPE'])} {type_}"

    def _null(self) -> str:
        name, _ = self.random.choice(self._columns())
        return f"ALTER TABLE {{t}} ALTER COLUMN {name} {self.random.choice(['SET', 'DROP'])} NOT NULL"

    def _head(self) -> tuple[str, str]:
        words = self.random.choice(["CREATE TABLE", "CREATE OR REPLACE TABLE", "CREATE TABLE IF NOT EXISTS"])
        return words, "{new:" + self.random.choice(list(self.new)) + "}"

    def _create_as(self) -> str:
        words, name = self._head()
        kinds = self.random.sample(list(TYPES), self.random.randrange(1, 5))
        queries = Queries(Expressions(self.random, None, "{t}"), self.tables)
        titles = [f"c{i}" for i in range(len(kinds))]
        inner = queries.query(kinds, titles)
        casts = ", ".join(
            f"CAST({title} AS {TYPES[kind]}) AS {title}" for title, kind in zip(titles, kinds, strict=True)
        )
        listed = f"({', '.join(title + 'x' for title in titles)}) " if self.random.random() < 0.2 else ""
        data = self.random.choice(["", "", "", " WITH NO DATA", " WITH DATA"])
        return f"{words} {name} {listed}AS SELECT {casts} FROM ({inner}) AS src{data}"

    def _create(self) -> str:
        words, name = self._head()
        kinds = self.random.sample(list(TYPES), self.random.randrange(1, 5))
        columns = [f"c{i} {TYPES[kind]}{self.random.choice(['', ' NOT NULL'])}" for i, kind in enumerate(kinds)]
        return f"{words} {name} ({', '.join(columns)})"

    def _create_like(self) -> str:
        words, name = self._head()
        return f"{words} {name} LIKE {self.random.choice(['{t}', 'u', 'n'])}"

    def _drop_table(self) -> str:
        missing = self.random.choice(["", "IF EXISTS "])
        return f"DROP TABLE {missing}{{new:{self.random.choice(list(self.new))}}}"

    def _rename_table(self) -> str:
        old, new = self.random.sample(list(self.new), 2)
        return f"ALTER TABLE {{new:{old}}} RENAME TO {new}"

    def _comment(self) -> str:
        text = self.random.choice(["'a comment'", "NULL", "'it''s'"])
        name = self.random.choice([name for name, _ in self._columns()] + ["nope"])
        return self.random.choice([f"COMMENT ON TABLE {{t}} IS {text}", f"COMMENT ON COLUMN {{t}}.{name} IS {text}"])
