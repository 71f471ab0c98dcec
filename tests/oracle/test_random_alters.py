"""Random ALTER TABLE statements: a Lance table and a native table stay equal, and pylance reads the same rows.

Native tables do not change the type of a field. There, the reference changes the type of the whole column.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import lance
import pytest

import lance_duck as ld
from lance_duck.duck.changes.tables.altered_types import type_with
from lance_duck.duck.statement.identifiers import quoted
from lance_duck.errors import LanceDuckError

IS_NEW = duckdb.__version__ >= "2"
"""Whether DuckDB's grammar has field types and NOT NULL of new columns."""
LEAVES = {
    "SMALLINT": ("-3", "300", "7"),
    "INTEGER": ("1", "70000", "0"),
    "BIGINT": ("5", "99999999999", "1"),
    "DOUBLE": ("1.5", "1e300", "2.0"),
    "FLOAT": ("0.25", "3.0"),
    "DECIMAL(9,2)": ("1.25", "300.00"),
    "VARCHAR": ("'7'", "'x'", "'2020-01-02'", "''"),
    "DATE": ("'2020-02-03'", "'1969-12-31'"),
    "TIMESTAMP": ("'2020-02-03 04:05:06.789'",),
    "TIMESTAMPTZ": ("'2020-02-03 04:05:06+00'",),
    "BOOLEAN": ("true", "false"),
    "BLOB": ("'ab'", "'\\xAA'"),
    "UUID": ("'eeccb8c5-9943-b2bb-bb5e-222f4e14b687'",),
    "TIME": ("'12:13:14'",),
}
NAMES = ("x", "y", "Zed", "a b")


@dataclass
class Generator:
    """Random types, values and statements.

    Attributes:
        random: The source of randomness.
        maps: Whether files store maps and null structs.
    """

    random: random.Random
    maps: bool

    def kind(self, depth: int = 2) -> str:
        """Return a type, with at most this many levels of nesting."""
        choice = self.random.random()
        if depth == 0 or choice < 0.45:
            return self.random.choice(list(LEAVES))
        if choice < 0.75:
            names = self.random.sample(NAMES, self.random.randint(1, 3))
            return f"STRUCT({', '.join(f'{quoted(name)} {self.kind(depth - 1)}' for name in names)})"
        if choice < 0.9:
            return f"{self.kind(depth - 1)}[]"
        if depth == 2 and choice > 0.95:
            return "FLOAT[2]"  # native tables do not change fields next to arrays
        return f"MAP(INTEGER, {self.kind(depth - 1)})" if self.maps else "DOUBLE"

    def value(self, type_: Any) -> str:
        """Return SQL of a value of a type."""
        is_struct = type_.id == "struct"
        if self.random.random() < 0.2 and (self.maps or not is_struct):
            return "NULL"
        if is_struct:
            members = (f"{quoted(name)}: {self.value(each)}" for name, each in type_.children)
            return f"CAST({{{', '.join(members)}}} AS {type_})"
        if type_.id == "map":
            keys = self.random.sample(range(5), self.random.randint(0, 2))
            items = ", ".join(f"{key}: {self.value(type_.children[1][1])}" for key in keys)
            return f"CAST(MAP {{{items}}} AS {type_})"
        if type_.id == "array":
            return f"CAST([1.5, 2] AS {type_})"
        if type_.id == "list":
            items = ", ".join(self.value(type_.children[0][1]) for _ in range(self.random.randint(0, 3)))
            return f"CAST([{items}] AS {type_})"
        return f"CAST({self.random.choice(LEAVES[_leaf(type_)])} AS {type_})" if _leaf(type_) in LEAVES else "NULL"

    def rows(self, types: Sequence[Any]) -> str:
        """Return a VALUES clause."""
        rows = (", ".join([str(i), *map(self.value, types)]) for i in range(self.random.randint(1, 6)))
        return f"VALUES {', '.join(f'({row})' for row in rows)}"

    def path(self, name: str, type_: Any) -> list[tuple[str, Any]]:
        """Return a random path from a column down, as names and types."""
        path = [(name, type_)]
        while self.random.random() < 0.7 and (inner := _inner(path[-1][1])):
            path.append(self.random.choice(inner))
        return path

    def statements(self, columns: Sequence[tuple[str, Any]]) -> tuple[str, str]:
        """Return an ALTER of a Lance table, and the statement with the same effect on a native table."""
        path = self.path(*self.random.choice(columns))
        dotted, type_ = ".".join(quoted(name) for name, _ in path), path[-1][1]
        new = self.random.choice(("n", "m", "x", "X"))
        verb = self.random.choice(("add", "add", "drop", "rename", "type", "type", "type", "using"))
        if verb == "add":
            prefix = f"{dotted}." if type_.id == "struct" or self.random.random() < 0.1 else ""
            kind = self.kind(1)
            leaf = self.random.choice(list(LEAVES))
            value = self.random.choice(("NULL", *LEAVES[leaf]))
            required = " NOT NULL" if IS_NEW and self.random.random() < 0.3 else ""
            default = f"{leaf} DEFAULT CAST({value} AS {leaf})" if self.random.random() < 0.6 else f"{kind}"
            return (f"ADD COLUMN {prefix}{new} {default}{required}",) * 2
        if verb == "drop":
            return (f"DROP COLUMN {dotted}",) * 2
        if verb == "rename":
            return (f"RENAME COLUMN {dotted} TO {new}",) * 2
        if verb == "using":
            others = [quoted(other) for other, _ in columns]
            value = self.random.choice(("{0} || 'q'", "{0}", "coalesce({0}, {0})", "t.{0} IS NULL", "[{0}]"))
            using = f"USING {value.format(self.random.choice(others))}"
            return (f"ALTER COLUMN {quoted(path[0][0])} TYPE {self.random.choice(list(LEAVES))} {using}",) * 2
        kind = self.random.choice(list(LEAVES)) if type_.id not in ("struct", "map") else self.retyped(type_)
        names = [name for name, _ in path[1:]]
        if not names or not IS_NEW:
            kind = kind if not names else type_with(path[0][1], names, lambda _: kind)
            return (f"ALTER COLUMN {quoted(path[0][0])} TYPE {kind}",) * 2
        whole = type_with(path[0][1], names, lambda _: kind)
        return f"ALTER COLUMN {dotted} TYPE {kind}", f"ALTER COLUMN {quoted(path[0][0])} TYPE {whole}"

    def retyped(self, type_: Any) -> str:
        """Return a struct or map with fewer, more or other members."""
        if type_.id == "map":
            return f"MAP(VARCHAR, {self.random.choice((str(type_.children[1][1]), 'VARCHAR'))})"
        members = [(name, str(each)) for name, each in type_.children if self.random.random() < 0.8]
        if self.random.random() < 0.5:
            members.append(("more", self.kind(1)))
        if members and self.random.random() < 0.5:
            members[0] = (members[0][0], "VARCHAR")
        return f"STRUCT({', '.join(f'{quoted(name)} {each}' for name, each in members) or 'i INTEGER'})"


def _leaf(type_: Any) -> str:
    return {"timestamp with time zone": "TIMESTAMPTZ"}.get(type_.id, str(type_))


def _inner(type_: Any) -> list[tuple[str, Any]]:
    if type_.id == "list":
        return [("element", type_.children[0][1])]
    return list(type_.children) if type_.id in ("struct", "map") else []


def outcome(run: Callable[[str], Any], statement: str) -> str:
    """Run a statement. Returns its error, or an empty text."""
    try:
        run(f"ALTER TABLE t {statement}")
    except (duckdb.Error, LanceDuckError) as error:
        return str(error) or "error"
    return ""


def state(connection: Any) -> tuple[Any, list[str]]:
    """Return the columns and the rows of `t`."""
    rows = connection.execute("FROM t").fetchall()
    return [row[:3] for row in connection.execute("DESCRIBE t").fetchall()], sorted(map(repr, rows))


@pytest.mark.parametrize("seed", range(24))
def test_random_alters_change_lance_tables_as_native_tables(tmp_path: Path, seed: int) -> None:
    version = ("2.0", "2.1", "2.2", "2.2")[seed % 4]
    generator = Generator(random.Random(seed), maps=version == "2.2")
    native = duckdb.connect()
    kinds = [generator.kind() for _ in range(3)]
    native.execute(f"CREATE TABLE t (id INTEGER, {', '.join(f'c{i} {kind}' for i, kind in enumerate(kinds))})")
    types = native.sql("FROM t").types[1:]
    with ld.connect(tmp_path) as con:
        columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(kinds))
        options = f"data_storage_version = '{version}', enable_stable_row_ids = {seed % 3 == 0}"
        con.execute(f"CREATE TABLE lance.t (id INTEGER, {columns}) WITH ({options})")
        for connection in (native, con):
            connection.execute("SET TimeZone = 'America/New_York'")
        for _ in range(2):
            for statement in (f"INSERT INTO t {generator.rows(types)}", "DELETE FROM t WHERE id = 1"):
                native.execute(statement)
                con.execute(statement)
        native.execute("CREATE OR REPLACE TABLE t AS FROM t")  # native tables also cast items of deleted rows
        log: list[str] = []
        for _ in range(12):
            described = native.sql("FROM t")
            known = list(zip(described.columns, described.types, strict=True))[1:] or [("id", described.types[0])]
            statement, reference = generator.statements(known)
            expected, found = outcome(native.execute, reference), outcome(con.execute, statement)
            log.append(f"{statement}: {expected.partition(chr(10))[0] or 'works'}")
            if "cannot store null structs" in found or "INTERNAL Error" in expected:
                break
            assert bool(expected) == bool(found), (version, kinds, log, found)
            assert state(con) == state(native), (version, kinds, log)
            if not found:
                uri = tmp_path / "t.lance"
                assert lance.dataset(uri).to_table().to_pylist() == ld.dataset(uri).to_table().to_pylist(), log
    native.close()
