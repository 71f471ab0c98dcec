"""Random SELECTs that compare columns with literals of every spelling and of mismatched types."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import duckdb
import pyarrow as pa

import lance_duck as ld
from lance_duck.errors import LanceDuckError

_ROWS: Final = (
    "SELECT CASE WHEN r % 9 <> 4 THEN (r % 13 - 2)::INTEGER END AS i, (r % 7)::UTINYINT AS u, r::BIGINT AS k, "
    "[1.5, 'NaN'::DOUBLE, NULL, -0.0, 0.0, 'inf'::DOUBLE, 1e300, 7][1 + r % 8] AS d, "
    "[0.1, NULL, 3, 'NaN'::FLOAT][1 + r % 4]::FLOAT AS f, (r * 0.25)::DECIMAL(6,2) AS c, "
    "['', 'a', NULL, 'ab', 'B', '7', ' 7', 'é', 'a_b', '%', 'true', '2020-01-03'][1 + r % 12] AS s, "
    "CASE WHEN r % 5 THEN r % 2 = 0 END AS b, CASE WHEN r % 6 THEN DATE '2020-01-01' + (r % 8)::INTEGER END AS t, "
    "TIMESTAMP '2020-01-01 23:00:00' + to_hours((r % 30)::BIGINT) AS ts, "
    "make_timestamptz((1577836800 + r * 3600)::BIGINT * 1000000) AS tz, TIME '00:00:00' + to_minutes(r::BIGINT) AS tm, "
    "encode(['', 'a', 'é'][1 + r % 3]) AS bl, {'x': (r % 4)::INTEGER, 'y': ['p', NULL][1 + r % 2]} AS st, "
    "CASE WHEN r % 4 THEN range(r % 3)::INTEGER[] END AS l FROM range(48) q(r)"
)
_INDEXES: Final = {
    "i": ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER"),
    "k": ("BTREE", "ZONEMAP"),
    "d": ("BTREE", "ZONEMAP"),
    "c": ("BTREE", "ZONEMAP"),
    "s": ("BTREE", "BITMAP", "ZONEMAP", "BLOOMFILTER", "NGRAM"),
    "b": ("BITMAP",),
    "t": ("BTREE",),
    "ts": ("BTREE", "ZONEMAP"),
    "l": ("LABEL_LIST",),
}
_NUMBERS: Final = ("i", "u", "k", "d", "f", "c", "st.x")
_TIMES: Final = ("t", "ts", "tz")
_NUMBER_LITERALS: Final = (
    *("0", "1", "7", "-2", "3.0", "1.5", "-0.0", "0.1", "0.25", "1e1", "300", "99999999999", "1e300", "NULL", "true"),
    *(
        "'3'",
        "'1.5'",
        "''",
        "'x'",
        "' 7 '",
        "'NaN'",
        "'inf'",
        "'1e2'",
        "0.1::FLOAT",
        "3::UTINYINT",
        "170141183460469231",
    ),
    *("2.25::DECIMAL(4,2)", "7::DECIMAL(18,6)", "'NaN'::DOUBLE", "-1::BIGINT", "1_0", "2 + 1", "-(-1)", "abs(-3)"),
)
_TEXT_LITERALS: Final = (
    *("''", "'a'", "'ab'", "'7'", "7", "7.0", "true", "NULL", "'é'", "'%'", "'a_b'", "'zz'", "'b'", "'B'", "$$a$$"),
    *("'a' || 'b'", "upper('b')", "DATE '2020-01-03'", "E'\\x61'", "chr(97)"),
)
_TIME_LITERALS: Final = (
    *("DATE '2020-01-03'", "'2020-01-03'", "TIMESTAMP '2020-01-02 05:00:00'", "'2020-01-02 05:00:00'", "''", "'x'"),
    *("TIMESTAMPTZ '2020-01-02 05:00:00+00'", "NULL", "'2020-01-03 00:00:00.5'", "'infinity'", "DATE '0001-01-01'"),
    *("TIMESTAMP_NS '2020-01-02 05:00:00'", "DATE '2020-01-01' + 2", "TIMESTAMP '2020-01-02' + INTERVAL 5 HOUR"),
)
_COMPARISONS: Final = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM", "==", "!=")
_SPECIAL: Final = (
    *(
        "b",
        "NOT b",
        "b = 'true'",
        "b IN ('x', true)",
        "b IS NOT TRUE",
        "b = 1",
        "b > false",
        "(b) IS NULL",
        "b = 'yes'",
    ),
    *(
        "s LIKE 'a%'",
        "s LIKE 'a\\_b' ESCAPE '\\'",
        "s LIKE '%'",
        "s NOT LIKE '_'",
        "s ILIKE 'A%'",
        "s GLOB 'a*'",
        "s LIKE NULL",
    ),
    *(
        "s ~ '^a'",
        "starts_with(s, 'a')",
        "contains(s, 'b')",
        "suffix(s, '')",
        "s SIMILAR TO 'a|B'",
        "s ^@ 'a'",
        "s::INT = 7",
    ),
    *("TRY_CAST(s AS INT) = 7", "length(s) = 1", "s COLLATE NOCASE = 'b'", "s || '' = 'a'", "s BETWEEN 'B' AND 'b'"),
    *(
        "list_contains(l, 1)",
        "1 IN l",
        "list_has_any(l, [0, 1])",
        "list_has_all(l, [0, 1])",
        "l = [0]",
        "l[1] = 0",
        "len(l) > 1",
    ),
    *(
        "list_contains(l, '1')",
        "list_has_any(l, ['x'])",
        "l IS NULL",
        "l = []",
        "l > [0]",
        "'x' IN l",
        "l IN ([0], [0, 1])",
    ),
    *(
        "st IS NULL",
        "st.y IS NULL",
        "st = {'x': 1, 'y': 'p'}",
        "st.x IN (1, '2')",
        "st['x'] = 3",
        "st.y = 'p'",
        "st.x = 'q'",
    ),
    *(
        "bl = 'a'",
        "bl = 'a'::BLOB",
        "bl IN ('', 'a')",
        "bl = '\\xC3\\xA9'",
        "bl > ''::BLOB",
        "bl = 1",
        "octet_length(bl) = 1",
    ),
    *(
        "tm = '00:05:00'",
        "tm < TIME '00:10:00'",
        "tm = 'x'",
        "tm IN ('00:01:00', '')",
        "tm BETWEEN '00:02:00' AND '00:04:00'",
    ),
    *(
        "isnan(d)",
        "isinf(d)",
        "d = d",
        "d <> d",
        "d IN ('NaN', 7)",
        "NOT isnan(f)",
        "f = 0.1",
        "f IN (0.1, 3)",
        "f = '0.1'",
    ),
    *(
        "i + 0 = 3",
        "i % 2 = 0",
        "-i = 1",
        "i = u",
        "i = d",
        "k < c",
        "i = s",
        "s = i",
        "i::VARCHAR = '3'",
        "i::TINYINT > 3",
    ),
    *("i IN (SELECT u FROM n)", "s IN (SELECT s FROM n)", "i = (SELECT max(i) FROM n)", "i NOT IN (SELECT i FROM n)"),
    *(
        "EXISTS (FROM n WHERE n.i = z.i)",
        "i = ANY (SELECT u FROM n)",
        "k <> ALL (SELECT i FROM n WHERE i < 5)",
        "i IN [1, 3]",
    ),
    *(
        "year(t) = 2020",
        "date_trunc('day', ts) = '2020-01-02'",
        "ts::DATE = DATE '2020-01-02'",
        "hour(ts) = 5",
        "t = ts",
    ),
    *(
        "coalesce(i, 0) = 0",
        "CASE WHEN b THEN i = 1 ELSE k = 2 END",
        "i IS NULL AND i = 1",
        "NULL",
        "true",
        "1 = 0",
        "'true'",
    ),
    *(
        "(i, s) = (1, 'a')",
        "(i, s) IN ((1, 'a'), (2, ''))",
        "(k, u) < (5, 3)",
        "ROW(i) = ROW(3)",
        "i BETWEEN SYMMETRIC 5 AND 2",
    ),
    *(
        "i NOT NULL",
        "i ISNULL",
        "greatest(i, u) = 3",
        "nullif(i, 3) IS NULL",
        "i & 1 = 1",
        "i // 2 = 1",
        "i / 2 = 1.5",
        "i ** 2 = 9",
    ),
)
_LISTS: Final = (
    "*",
    "k, s",
    "k, i, d",
    "count(*)",
    "count(i), sum(k), min(s), max(t)",
    "DISTINCT i",
    "k, st.x, l[1]",
    "b, count(*), min(d)",
    "COLUMNS('^[ikb]$')",
    "k AS s, s AS k",
)


@dataclass
class Conditions:
    """One table in Lance, with and without indexes, and in DuckDB.

    Attributes:
        folder: Folder of the Lance tables.
        random: Random generator.
        counts: Statements that returned rows, that both rejected, and that only one rejected by evaluation order.
        differences: Differences between the sides.
    """

    folder: Path
    random: Random
    counts: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.native = duckdb.connect()
        self.native.execute(
            f"SET TimeZone = 'UTC'; CREATE TABLE t AS {_ROWS}; CREATE TABLE n AS FROM t WHERE k % 11 = 3"
        )
        rows = self.native.sql("FROM t").to_arrow_table()
        for name in ("t", "plain"):
            size = self.random.choice([9, 20, 100])
            twice = pa.concat_tables([rows, rows.slice(0, 4)])
            dataset = ld.write_dataset(twice, self.folder / f"{name}.lance", max_rows_per_file=size)
            again = dataset.to_table(columns=["k"], with_row_address=True)["_rowaddr"].to_pylist()[48:]
            dataset.delete(f"_rowaddr IN ({', '.join(map(str, again))})")
        dataset = ld.dataset(self.folder / "t.lance")
        for column, kinds in _INDEXES.items():
            if self.random.random() < 0.7:
                dataset.create_scalar_index(column, self.random.choice(kinds))
        self.lance = ld.connect(self.folder)
        self.lance.execute("SET TimeZone = 'UTC'")
        self.lance.native.execute("CREATE TEMP TABLE n AS FROM t WHERE k % 11 = 3")

    def close(self) -> None:
        self.lance.close()
        self.native.close()

    def leaf(self) -> str:
        """Return a condition of one column."""
        chance, random = self.random.random(), self.random
        if chance < 0.3:
            return random.choice(_SPECIAL)
        columns, literals = random.choice(
            [
                (_NUMBERS, _NUMBER_LITERALS),
                (_NUMBERS, _NUMBER_LITERALS),
                (("s",), _TEXT_LITERALS),
                (_TIMES, _TIME_LITERALS),
            ]
        )
        column, one, other = random.choice(columns), random.choice(literals), random.choice(literals)
        if random.random() < 0.08:
            one = random.choice(_TEXT_LITERALS)
        if chance < 0.55:
            some = ", ".join([one, *random.choices(literals, k=random.randrange(4))])
            return f"{column} {random.choice(['IN', 'IN', 'NOT IN'])} ({some})"
        if chance < 0.65:
            return f"{column} {random.choice(['', 'NOT '])}BETWEEN {one} AND {other}"
        if chance < 0.7:
            return f"{column} IS {random.choice(['', 'NOT '])}NULL"
        comparison = random.choice(_COMPARISONS)
        return f"{one} {comparison} {column}" if random.random() < 0.2 else f"{column} {comparison} {one}"

    def condition(self, depth: int = 0) -> str:
        """Return a condition."""
        chance = self.random.random()
        if depth > 2 or chance < 0.5:
            return self.leaf()
        if chance < 0.6:
            return f"NOT ({self.condition(depth + 1)})"
        word = self.random.choice([" AND ", " OR "])
        return "(" + word.join(self.condition(depth + 1) for _ in range(self.random.randrange(2, 4))) + ")"

    def select(self) -> str:
        """Return a SELECT from `{t}`."""
        items = self.random.choice(_LISTS)
        where = f" WHERE {self.condition()}" if self.random.random() < 0.95 else ""
        group = " GROUP BY ALL" if items.startswith("b, count") else ""
        order = self.random.choice(["", " ORDER BY ALL LIMIT 5", " ORDER BY ALL DESC LIMIT 3 OFFSET 1"])
        return f"SELECT {items} FROM {{t}} AS z{where}{group}{order}"

    def run(self) -> None:
        """Run one SELECT on all tables, and compare."""
        sql = self.select()
        text = self.random.choice([sql] * 4 + [f"WITH q AS MATERIALIZED ({sql}) FROM q", f"SELECT * FROM ({sql}) AS q"])
        native = _answer(self.native, text.replace("{t}", "t"))
        tables = ["t", "plain", f"'{self.folder}/t.lance'", "lance_scan('t')"]
        for table in self.random.sample(tables, 2):
            mine = text.replace("{t}", table)
            ours = _answer(self.lance, mine)
            if ours == native:
                self.counts["refused by both" if isinstance(ours, str) else "statements"] += 1
            elif _may_depend_on_order(ours, native):
                self.counts["refused by the order of evaluation"] += 1
            else:
                self.differences.append(f"{mine}\n  {ours}\n  {native}")


def _answer(connection: Any, sql: str) -> Any:
    """Return titles, types and rows; the kind of its error as text."""
    try:
        cursor = connection.execute(sql)
        titles = [column[0] for column in cursor.description]
        types = [str(column[1]) for column in cursor.description]
        return [titles, types, sorted(map(repr, cursor.fetchall()))]
    except (duckdb.Error, LanceDuckError) as error:
        return type(error).__name__


def _may_depend_on_order(ours: Any, native: Any) -> bool:
    """Return whether one refuses a value of a row: which conditions see which rows, no database promises."""
    values = ("ConversionException", "OutOfRangeException", "InvalidInputException")
    return ours in values or native in values


def selected(folder: Path, seed: int, statements: int) -> Conditions:
    """Run random SELECTs until there is a difference."""
    conditions = Conditions(folder, Random(seed))
    for _ in range(statements):
        if not conditions.differences:
            conditions.run()
    conditions.close()
    return conditions
