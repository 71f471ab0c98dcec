"""Random transactions over the tables of a folder, and the same ones in a native database."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Final

import duckdb
import lance
import pyarrow as pa
from sql.group_support import Pair

import lance_duck as ld

FIRST: Final = (
    "CREATE SCHEMA s; CREATE TABLE a AS SELECT i AS id, i * 10 AS n FROM range(6) r(i);"
    "CREATE TABLE b AS FROM a; CREATE TABLE s.c AS FROM a; CREATE TABLE s.d AS FROM a"
)
_NAMES: Final = [f"{schema}{name}" for schema in ("", "s.") for name in "abcdefghij"]
_KINDS: Final = {"insert": 4, "copy": 2, "update": 4, "delete": 3, "alter": 2, "create": 2, "rename": 2, "drop": 1}
Tables = dict[str, list[str]]
"""The columns of each table."""


@dataclass
class RandomTransactions:
    """Runs random transactions on both sides, until there is a difference.

    Attributes:
        pair: The two sides, without tables.
        random: Random generator.
        counts: Statements that ran, by kind.
        log: The statements.
        tables: The committed tables.
    """

    pair: Pair
    random: Random
    counts: Counter[str] = field(default_factory=Counter)
    log: list[str] = field(default_factory=list)
    tables: Tables = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pair.run(FIRST)
        self.tables = {name: ["id", "n"] for name in ("a", "b", "s.c", "s.d")}
        self._columns = 0
        self._foreign: set[str] = set()

    def run(self, count: int) -> None:
        """Run transactions. Raises AssertionError after a difference."""
        for _ in range(count):
            self._transaction()

    def _transaction(self) -> None:
        begun = {name: [*columns] for name, columns in self.tables.items()}
        used: set[str] = set()
        named: set[str] = set()
        self._foreign = set()
        self._both("BEGIN")
        for _ in range(self.random.randint(1, 6)):
            kind = self.random.choices([*_KINDS], [*_KINDS.values()])[0]
            statement = self._statement(kind, used, named)
            if not self._both(statement):  # DuckDB cannot run it on native tables
                self.log.append("ROLLBACK")
                self.pair.run("ROLLBACK")
                self.tables = begun
                return
            self.counts[kind] += 1
            free = sorted(used - named)
            if free and self.random.random() < 0.2:
                self._change_elsewhere(self.random.sample(free, min(2, len(free))), begun)
        self.pair.check()
        end = self.random.choice(["COMMIT"] * 4 + ["ROLLBACK"])
        is_committed = self._both(end) and end == "COMMIT"
        if not is_committed:
            self.tables = begun
        if self.pair.con.in_transaction:  # DuckDB 1 refuses to commit some changes of native tables
            self.pair.con.execute("ROLLBACK")
        self.counts[end] += is_committed
        with ld.connect(self.pair.folder) as fresh:
            self.pair.check(fresh)

    def _both(self, statement: str) -> bool:
        """Run a statement on both sides. Returns False if the native side refuses it."""
        self.log.append(statement)
        try:
            self.pair.native.execute(statement)
        except duckdb.Error as error:
            self.log.append(f"-- {error}")
            return False
        self.pair.con.execute(statement)
        return True

    def _statement(self, kind: str, used: set[str], named: set[str]) -> str:
        """Return a valid statement, and apply it to the model.

        Args:
            kind: What it does.
            used: Gets the tables whose rows it reads or changes.
            named: Gets the tables whose names or columns it changes.
        """
        choice, number = self.random.choice, self.random.randrange(50)
        name, other = choice([*self.tables]), choice([*self.tables])
        kind = "drop" if kind == "create" and len(self.tables) > 6 else kind
        columns, column = self.tables[name], choice(self.tables[name])
        if kind in ("insert", "update", "delete", "copy"):
            used.add(name)
        if kind == "copy":
            used.add(other)
        values = [str(self.random.randrange(100)) for _ in columns]
        match kind:
            case "insert":
                return f"INSERT INTO {name} VALUES ({', '.join(values)}), ({', '.join(reversed(values))})"
            case "copy":
                read = ", ".join(choice(self.tables[other]) for _ in columns)
                return f"INSERT INTO {name} SELECT {read} FROM {other} ORDER BY ALL LIMIT {number % 7}"
            case "update":
                source = f"(SELECT coalesce(max({choice(self.tables[other])}), 0) FROM {other})"
                value = choice([str(number), f"{column} + 1", source, "NULL"])
                if value == source:
                    used.add(other)
                return f"UPDATE {name} SET {column} = {value} WHERE {choice(columns)} % {1 + number % 4} = 0"
            case "delete":
                return f"DELETE FROM {name} WHERE {column} % {2 + number % 4} = {number % 2}"
            case "alter" if name not in self._foreign:
                named.add(name)
                return self._alter(name, choice(["ADD", "ADD", "DROP", "RENAME"]), number)
        if kind == "create" or name in self._foreign:
            used.add(other)
            name = self._free_name("")
            self.tables[name] = [*self.tables[other]]
            named.add(name)
            return f"CREATE TABLE {name} AS FROM {other}"
        named.add(name)
        if kind == "drop" and len(self.tables) > 2:
            del self.tables[name]
            return f"DROP TABLE {name}"
        new = self._free_name("s." if name.startswith("s.") else "main")
        self.tables[new] = self.tables.pop(name)
        named.add(new)
        return f"ALTER TABLE {name} RENAME TO {new.removeprefix('s.')}"

    def _alter(self, name: str, action: str, number: int) -> str:
        columns = self.tables[name]
        self._columns += 1
        new, old = f"x{self._columns}", self.random.choice(columns)
        if action == "DROP" and len(columns) > 1:
            columns.remove(old)
            return f"ALTER TABLE {name} DROP COLUMN {old}"
        if action == "RENAME":
            columns[columns.index(old)] = new
            return f"ALTER TABLE {name} RENAME COLUMN {old} TO {new}"
        columns.append(new)
        return f"ALTER TABLE {name} ADD COLUMN {new} BIGINT DEFAULT {number}"

    def _free_name(self, schema: str) -> str:
        """Return an unused name in a schema: "s.", "main", or any."""
        names = [name for name in _NAMES if name not in self.tables and name.startswith("s.") == (schema == "s.")]
        return self.random.choice(names if schema else [name for name in _NAMES if name not in self.tables])

    def _change_elsewhere(self, names: list[str], begun: Tables) -> None:
        """Let another writer append rows to tables that the transaction has read already."""
        names = [name for name in names if name in begun]
        self._foreign.update(names)
        values = [(name, self.random.randrange(1000, 2000)) for name in names]
        inserts = [f"INSERT INTO {name} SELECT {', '.join([str(n)] * len(begun[name]))}" for name, n in values]
        way = self.random.choice(["pylance", "statements", "a group"])
        self.log.append(f"-- {way}: {inserts}")
        self.counts[way] += 1
        with self.pair.native.cursor() as cursor:
            for insert in inserts:
                cursor.execute(insert)
        if way == "pylance" and not any(name.startswith("s.") for name in names):
            for name, number in values:
                table = lance.dataset(self.pair.folder / f"{name}.lance")
                table.insert(pa.table({column: pa.array([number], pa.int64()) for column in table.schema.names}))
            return
        with ld.connect(self.pair.folder) as other:
            for statement in ["BEGIN", *inserts, "COMMIT"] if way == "a group" else inserts:
                other.execute(statement)
