"""What do the thresholds of `lance_duck/scan/costs.py` decide, each against a quarter, a half, twice and four times it?

Each case does work of a size below or above the threshold, with each of the five values in turn. Figures are of the
processor time of all threads, which a busy machine does not change much; `--wall` asks the clock. A ratio above 1 says
that the other value would be faster.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

import lance_duck as ld
from benchmarks._cost_tables import PICKED, RUN_LENGTHS, CostTables
from benchmarks._harness import OURS, Case, chosen, options, race, report
from lance_duck.scan.read.fragment_reader import ColumnCache
from lance_duck.scan.read.take import Taker

Work = Callable[[], object]
Prepare = Callable[[CostTables, float], Work]

FACTORS: Final = {"a quarter": 0.25, "a half": 0.5, "twice": 2.0, "four times": 4.0}
EITHER_SIDE: Final = (3 / 8, 3 / 4, 3 / 2, 3.0)
"""Sizes of the work, in thresholds: at each one, other factors are on the other side of it."""

LEAST_SECONDS: Final = 0.02
"""Seconds that one timed run takes at least, by repetition."""


@dataclass(frozen=True)
class Question:
    """A threshold, and work that it decides about.

    Attributes:
        threshold: Module below `lance_duck.scan` that decides, and the name of the threshold.
        prepare: Returns the work of a size, in the unit of the threshold, with tables opened anew.
        times: Sizes of the work, in thresholds.
        label: Tells apart questions about one threshold.
    """

    threshold: str
    prepare: Prepare
    times: Sequence[float] = EITHER_SIDE
    label: str = ""


@contextmanager
def threshold_set(name: str, factor: float) -> Iterator[None]:
    """Let a threshold be so many times what it is."""
    module_name, _, constant = name.rpartition(".")
    module = import_module(f"lance_duck.scan.{module_name}")
    value = getattr(module, constant)
    setattr(module, constant, max(1, int(value * factor)) if isinstance(value, int) else value * factor)
    try:
        yield
    finally:
        setattr(module, constant, value)


def main() -> None:
    """Ask each question at each size."""
    parser = options(__doc__ or "", rows=None, rounds=15)
    parser.add_argument("--wall", action="store_true", help="time by the clock, not by the processor")
    arguments = parser.parse_args()
    clock = time.perf_counter if arguments.wall else time.process_time
    labels = {f"{question.threshold.rpartition('.')[2]}{question.label}": question for question in QUESTIONS}
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        tables = CostTables(Path(folder))
        for label in chosen(labels, arguments.only):
            for times in labels[label].times:
                cases.append(ask(label, labels[label], times, tables, arguments.rounds, clock))
                print(cases[-1].name, *(f"{cases[-1].ratio(peer):.2f}" for peer in FACTORS), flush=True)
    report("Thresholds of scans, as they are against others", cases, arguments.json)


def ask(
    label: str, question: Question, times: float, tables: CostTables, rounds: int, clock: Callable[[], float]
) -> Case:
    """Race the work with the threshold as it is and with the others."""
    module_name, _, constant = question.threshold.rpartition(".")
    value = getattr(import_module(f"lance_duck.scan.{module_name}"), constant)
    size = value * times
    works = {}
    for name, factor in {OURS: 1.0, **FACTORS}.items():
        with threshold_set(question.threshold, factor):
            works[name] = _under(question, factor, question.prepare(tables, size))
    works[OURS]()
    begin = time.perf_counter()
    works[OURS]()
    repeats = max(1, int(LEAST_SECONDS / (time.perf_counter() - begin)))
    repeated = {name: _repeated(work, repeats) for name, work in works.items()}
    return race(f"{label}, work of {size:,.4g}", repeated, rounds, clock)


def _under(question: Question, factor: float, work: Work) -> Work:
    def run() -> None:
        with threshold_set(question.threshold, factor):
            work()

    return run


def _repeated(work: Work, count: int) -> Work:
    def run() -> None:
        for _ in range(count):
            work()

    return run


# Takes


def _draws(rows: int, count: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(count)
    return itertools.cycle([np.sort(rng.choice(rows, count, replace=False)) for _ in range(20)])


def take(path: str, rows: int, count: int, columns: list[str]) -> Work:
    """Take random rows of the first `rows`, past the cache of decoded columns."""
    table = ld.dataset(path).handle.table
    taker, projection, draws = (
        Taker(table.snapshot, ColumnCache(), cache_bytes=0),
        table.projection(columns),
        _draws(rows, count),
    )
    return lambda: taker.by_position(next(draws), projection)


def fresh_takes(path: str, rows: int, takes: int) -> Work:
    """Take 100 rows so many times in turn, with a cache that is empty at first."""
    table = ld.dataset(path).handle.table
    projection, draws = table.projection(["y"]), _draws(rows, 100)

    def run() -> None:
        taker = Taker(table.snapshot, table.columns)
        for _ in range(takes):
            taker.by_position(next(draws), projection)

    return run


def cached_take(path: str, rows: int, count: int) -> Work:
    """Take rows of a column that is decoded in memory."""
    table = ld.dataset(path).handle.table
    taker, projection, draws = Taker(table.snapshot, ColumnCache()), table.projection(["y"]), _draws(rows, count)
    for _ in range(64):
        taker.by_position([0], projection)
    return lambda: taker.by_position(next(draws), projection)


def take_of_fragments(tables: CostTables, fragments: float) -> Work:
    """Take ten rows of each of so many fragments."""
    table = ld.dataset(tables.pieces).handle.table
    taker, projection = Taker(table.snapshot, ColumnCache(), cache_bytes=0), table.projection(["y", "text"])
    rows = (np.arange(int(fragments))[:, None] * 2_000 + np.arange(10) * 180).ravel()
    return lambda: taker.by_position(rows, projection)


# Scans


def scan(path: str, columns: list[str], filter_: str | None = None) -> Work:
    """Read columns of the rows that pass a filter."""
    dataset = ld.dataset(path)
    return lambda: dataset.to_table(columns=columns, filter=filter_)


def first_batch(path: str, columns: list[str]) -> Work:
    """Read the first batch."""
    dataset = ld.dataset(path)
    return lambda: next(iter(dataset.to_batches(columns=columns)))


def new_scan(path: str) -> Work:
    """Open the table and read all of it."""
    return lambda: ld.dataset(path).to_table()


def dense_rows(tables: CostTables, share: float) -> Work:
    """Read a column of one row in so many, at random."""
    return scan(tables.numbers, ["y", "id"], f"pick < {int(PICKED / share)}")


def wide_values(share: int) -> Prepare:
    """Return work that reads values of a width, in bytes, of one row in so many, at random."""
    return lambda tables, width: scan(tables.vectors(100_000, int(width) // 4), ["v"], f"pick < {PICKED // share}")


def some_of(rows: int, count: float) -> str:
    """Return so many ids at random, as a list in SQL."""
    rng = np.random.default_rng(int(count))
    return ", ".join(map(str, rng.choice(rows, int(count), replace=False).tolist()))


def equalities(tables: CostTables, count: float) -> Work:
    """Count the rows that so many equalities find together, each time by another text, as those of before are kept."""
    either = " OR ".join(f"pick = {number}" for number in some_of(200_000, count).split(", "))
    dataset, others = ld.dataset(tables.middle), itertools.count()
    return lambda: dataset.count_rows(f"({either}) AND y > -{next(others) + 1}")


def listed_rows(tables: CostTables, count: float) -> Work:
    """Look rows up by an index, and ask them another condition."""
    filter_ = f"id IN ({some_of(200_000, count)}) AND y > 100"
    return scan(tables.middle, ["pick", "text"], filter_)


def rows_of_each(tables: CostTables, rows: float) -> Work:
    """Read so many rows of each of 16 fragments, which an index knows."""
    return scan(tables.lots, ["y", "text"], f"spot < {int(rows)}")


def runs(tables: CostTables, length: float) -> Work:
    """Read rows that an index knows, in runs of about a length."""
    nearest = min(RUN_LENGTHS, key=lambda each: abs(each - length))
    return scan(tables.lots, ["y", "text"], f"run{nearest} = 1")


def two_indexes(rows: float, others: float) -> Prepare:
    """Return work whose one index leaves some rows, and whose other one is asked of so many times more or not."""

    def prepare(tables: CostTables, size: float) -> Work:
        count, more = int(rows or size), int((rows or size) * (others or size))
        return scan(tables.numbers, ["y", "text"], f"id < {count} AND shuffled < {more}")

    return prepare


def indexed_rows(path: str, count: float) -> Work:
    """Read rows that an index finds, at random."""
    return scan(path, ["y", "pick"], f"shuffled < {int(count)}")


# SQL


def sql(path: str, query: str) -> Work:
    """Run a query on the table `t`."""
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.register("t", ld.dataset(path))
    return lambda: connection.sql(query).fetchall()


def first_sql(path: str, query: str) -> Work:
    """Run a query on the table `t`, opened each time."""

    def run() -> Any:
        connection = duckdb.connect()
        connection.register("t", ld.dataset(path))
        return connection.sql(query).fetchall()

    return run


def sql_part(tables: CostTables, part: float) -> Work:
    """Ask for a part of the rows in SQL."""
    return sql(tables.numbers, f"SELECT sum(y), max(text) FROM t WHERE pick < {int(part * PICKED)}")


def wide_sql_part(tables: CostTables, part: float) -> Work:
    """Ask for a part of wide rows in SQL."""
    path = tables.vectors(100_000, 192)
    return sql(path, f"SELECT sum(v[1]) FROM t WHERE pick < {int(part * PICKED)}")


def grouped(distinct: float, width: float) -> Prepare:
    """Return work that groups by texts that repeat."""

    def prepare(tables: CostTables, size: float) -> Work:
        path = tables.texts(int(distinct or size), int(width or size))
        return sql(path, "SELECT text, count(*), sum(y) FROM t GROUP BY text")

    return prepare


def members(tables: CostTables, count: float) -> Work:
    """Ask for integers of a list in SQL."""
    return sql(tables.numbers, f"SELECT sum(y) FROM t WHERE pick IN ({some_of(PICKED, count)})")


# Searches


def search(path: str, dim: int, queries: float, k: float = 10, filter_: str | None = None) -> Work:
    """Search for so many queries together."""
    dataset = ld.dataset(path)
    rng = np.random.default_rng(7)
    vectors = rng.standard_normal((int(queries), dim)).astype(np.float32)
    nearest = {"column": "v", "q": vectors if len(vectors) > 1 else vectors[0], "k": int(k)}
    return lambda: dataset.to_table(columns=["id"], nearest=nearest, filter=filter_, prefilter=True)


def few_compared(rows: int) -> Prepare:
    """Return work that searches among so many rows of an indexed table, or one row in so many of a larger one."""

    def prepare(tables: CostTables, size: float) -> Work:
        count = int(size) if rows == 100_000 else int(rows / size)
        return search(tables.vectors(rows, 32, indexed=True), 32, 1, filter_=f"shuffled < {count}")

    return prepare


def flat(queries: float, k: float) -> Prepare:
    """Return work that searches without an index."""
    return lambda tables, size: search(tables.vectors(100_000, 64), 64, queries or size, k or size)


def sparse(tables: CostTables, share: float) -> Work:
    """Search without an index among one row in so many."""
    return search(tables.vectors(400_000, 32), 32, 1, filter_=f"shuffled < {int(400_000 / share)}")


ONCE: Final = (1.0,)
QUESTIONS: Final = (
    Question("read.row_access.POINT_ROWS", lambda t, n: take(t.small, 1_000, int(n), ["y", "text"])),
    Question("read.row_access.POINT_SHARE", lambda t, n: take(t.numbers, 250_000, int(250_000 / n), ["y", "text"])),
    Question("read.row_access.DENSE_SHARE", dense_rows),
    Question("read.morsel.WIDE_VALUE", wide_values(2), label=", of one row in 2"),
    Question("read.morsel.WIDE_VALUE", wide_values(3), label=", of one row in 3"),
    Question("read.column_cache.TAKES_BEFORE_CACHE", lambda t, n: fresh_takes(t.middle, 200_000, int(n))),
    Question(
        "read.column_cache.ROWS_DECODED_IN_A_TAKE", lambda t, n: fresh_takes(t.numbers, 1_000_000, int(1_000_000 / n))
    ),
    Question("read.column_cache.CACHED_TAKE_ROWS", lambda t, n: cached_take(t.middle, 200_000, int(n))),
    Question("read.take.FRAGMENTS_OF_A_TAKE", take_of_fragments),
    Question("read.selected_rows.FILTER_READ_AHEAD_ROWS", listed_rows),
    Question("read.tasks.SELECTION_TASK_ROWS", rows_of_each),
    Question("read.tasks.SELECTION_TASK_FRAGMENTS", lambda t, _: scan(t.pieces, ["y", "text"], "spot < 4"), ONCE),
    Question("read.tasks.RUN_ROWS", runs),
    Question("indexes.lookup.LOOKED_AT_ROWS", two_indexes(0, 8)),
    Question("indexes.lookup.LOOKUP_ROWS", two_indexes(1_000, 0)),
    Question("indexes.lookup.ANSWER_SHARE", lambda t, part: indexed_rows(t.numbers, 1_000_000 * part)),
    Question("indexes.lookup.ANSWER_ROWS", lambda t, n: indexed_rows(t.middle, n)),
    Question("plan.FIRST_ROWS", lambda t, _: first_batch(t.numbers, ["y"]), ONCE, ", first batch"),
    Question("plan.FIRST_ROWS", lambda t, _: scan(t.numbers, ["y"]), ONCE, ", whole"),
    Question("plan.FIRST_BYTES", lambda t, _: first_batch(t.vectors(100_000, 192), ["v"]), ONCE, ", first batch"),
    Question("plan.FIRST_BYTES", lambda t, _: scan(t.vectors(100_000, 192), ["v"]), ONCE, ", whole"),
    Question("plan.MORSEL_GROWTH", lambda t, _: scan(t.numbers, ["y", "pick", "text"]), ONCE),
    Question("plan.MORSEL_BYTES", lambda t, _: scan(t.vectors(100_000, 192), ["v"]), ONCE),
    Question("plan.MORSEL_ROWS", lambda t, _: scan(t.numbers, ["y", "pick", "text"]), ONCE),
    Question("read.tasks.JOINED_FRAGMENTS", lambda t, count: new_scan(t.fragments(int(count), 10))),
    Question("read.joined_fragments.JOINED_FILE_BYTES", lambda t, size: new_scan(t.fragments(200, int(size) // 8))),
    Question("read.selectivity.PAYS_BELOW", sql_part),
    Question("read.selectivity.PAYS_BELOW_WHEN_WIDE", wide_sql_part, (3 / 8, 3 / 4, 3 / 2, 9 / 4)),
    Question(
        "read.selectivity.SAMPLE_SLICES",
        lambda t, _: first_sql(t.numbers, f"SELECT sum(y) FROM t WHERE pick < {PICKED // 100}"),
        ONCE,
    ),
    Question(
        "read.selectivity.SAMPLE_SLICE_ROWS",
        lambda t, _: first_sql(t.numbers, f"SELECT sum(y) FROM t WHERE pick < {PICKED // 100}"),
        ONCE,
    ),
    Question("read.dictionary_hint.REPEATED_TEXTS", grouped(0, 8)),
    Question("read.dictionary_hint.REPEATED_TEXT_BYTES", grouped(24, 0)),
    Question("duckdb.nodes.COMPARED_VALUES", members),
    Question("sql.compare.GATHERED_OPERANDS", equalities, (1 / 8, 3 / 8, 3 / 4, 3 / 2, 3.0)),
    Question("nearest.search.ALWAYS_COMPARED_ROWS", few_compared(100_000)),
    Question("nearest.search.COMPARED_SHARE", few_compared(400_000)),
    Question("nearest.compare.PRODUCT_QUERIES", flat(0, 10)),
    Question("nearest.compare.PRODUCT_NEIGHBOURS", flat(16, 0)),
    Question("nearest.compare.PRODUCT_ROWS", flat(64, 10), ONCE),
    Question("nearest.compare.PRODUCT_QUERIES_AT_ONCE", flat(128, 10), ONCE),
    Question("nearest.compare.LONE_PRODUCT", flat(64, 10), ONCE),
    Question("nearest.exact.BLOCK_BYTES", flat(1, 10), ONCE),
    Question("nearest.exact.SPARSE_SHARE", sparse),
)

if __name__ == "__main__":
    main()
