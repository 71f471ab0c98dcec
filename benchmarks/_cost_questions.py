"""Work on both sides of each threshold that `costs.py` varies."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import duckdb
import numpy as np

import lance_duck as ld
from benchmarks._cost_tables import PICKED, RUN_LENGTHS, CostTables
from benchmarks._index_costs import (
    built_texts,
    deletions,
    named_rows,
    placed_rows,
    row_set,
    together,
)
from benchmarks._text_costs import Prepare, Work, filtered_words, flat_words, met_phrases, met_words
from lance_duck.commit.fragment_list import FragmentList
from lance_duck.query import FullTextOperator
from lance_duck.rows.address_map import AddressMap, MovedGroup
from lance_duck.scan.nearest.extremes import extremes
from lance_duck.scan.nearest.options import vector_column
from lance_duck.scan.read.fragment_reader import ColumnCache
from lance_duck.scan.read.take import Taker
from lance_duck.wire.pb import table_pb2

EITHER_SIDE: Final = (3 / 8, 3 / 4, 3 / 2, 3.0)
"""Sizes of the work, as multiples of the threshold. Each one separates other factors."""


@dataclass(frozen=True)
class Question:
    """A threshold, and work that depends on it.

    Attributes:
        threshold: Module below `lance_duck`, and name of the constant.
        prepare: Returns work of a given size, in the unit of the threshold.
        times: Sizes of the work, as multiples of the threshold.
        label: Distinguishes several questions about one threshold.
    """

    threshold: str
    prepare: Prepare
    times: Sequence[float] = EITHER_SIDE
    label: str = ""


# Takes


def _draws(rows: int, count: int) -> Iterator[np.ndarray]:
    rng = np.random.default_rng(count)
    return itertools.cycle([np.sort(rng.choice(rows, count, replace=False)) for _ in range(20)])


def take(path: str, rows: int, count: int, columns: list[str]) -> Work:
    """Take random rows from the first `rows`, without the cache of decoded columns."""
    table = ld.dataset(path).handle.table
    taker, projection, draws = (
        Taker(table.snapshot, ColumnCache(), cache_bytes=0),
        table.projection(columns),
        _draws(rows, count),
    )
    return lambda: taker.by_position(next(draws), projection)


def fresh_takes(path: str, rows: int, takes: int) -> Work:
    """Take 100 rows several times, beginning with an empty cache."""
    table = ld.dataset(path).handle.table
    projection, draws = table.projection(["y"]), _draws(rows, 100)

    def run() -> None:
        taker = Taker(table.snapshot, table.columns)
        for _ in range(takes):
            taker.by_position(next(draws), projection)

    return run


def take_of_fragments(tables: CostTables, fragments: float) -> Work:
    """Take ten rows from each of several fragments."""
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
    """Read two columns of a random share of the rows: 1 / `share`."""
    return scan(tables.numbers, ["y", "id"], f"pick < {int(PICKED / share)}")


def wide_values(share: int) -> Prepare:
    """Return work that reads wide values in a random share of the rows: 1 / `share`."""
    return lambda tables, width: scan(tables.vectors(100_000, int(width) // 4), ["v"], f"pick < {PICKED // share}")


def some_of(rows: int, count: float) -> str:
    """Return random ids as a list in SQL."""
    rng = np.random.default_rng(int(count))
    return ", ".join(map(str, rng.choice(rows, int(count), replace=False).tolist()))


def equalities(tables: CostTables, count: float) -> Work:
    """Count rows by a disjunction of equalities. The filter text changes, because parsed filters are cached."""
    either = " OR ".join(f"pick = {number}" for number in some_of(200_000, count).split(", "))
    dataset, others = ld.dataset(tables.middle), itertools.count()
    return lambda: dataset.count_rows(f"({either}) AND y > -{next(others) + 1}")


def rows_of_each(tables: CostTables, rows: float) -> Work:
    """Read several rows from each of 16 fragments, through an index."""
    return scan(tables.lots, ["y", "text"], f"spot < {int(rows)}")


def runs(tables: CostTables, length: float) -> Work:
    """Read runs of rows with about this length, through an index."""
    nearest = min(RUN_LENGTHS, key=lambda each: abs(each - length))
    return scan(tables.lots, ["y", "text"], f"run{nearest} = 1")


def two_indexes(rows: float, others: float) -> Prepare:
    """Return work with two indexed conditions. The second one matches more rows, and the search may skip it."""

    def prepare(tables: CostTables, size: float) -> Work:
        count, more = int(rows or size), int((rows or size) * (others or size))
        return scan(tables.numbers, ["y", "text"], f"id < {count} AND shuffled < {more}")

    return prepare


def indexed_rows(path: str, count: float) -> Work:
    """Read random rows through an index."""
    return scan(path, ["y", "pick"], f"shuffled < {int(count)}")


def listed_numbers(tables: CostTables, characters: float) -> Work:
    """Count rows by a long filter, which changes each time."""
    dataset, others = ld.dataset(tables.small), itertools.count(10**6)
    count = max(2, int(characters) // 10)
    return lambda: dataset.count_rows(f"pick IN ({', '.join(str(next(others)) for _ in range(count))})")


# SQL


def sql(path: str, query: str) -> Work:
    """Run a query on the table `t`."""
    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    connection.register("t", ld.dataset(path))
    return lambda: connection.sql(query).fetchall()


def first_sql(path: str, query: str) -> Work:
    """Open the table `t` and run a query on it."""

    def run() -> Any:
        connection = duckdb.connect()
        connection.register("t", ld.dataset(path))
        return connection.sql(query).fetchall()

    return run


def sql_part(tables: CostTables, part: float) -> Work:
    """Aggregate a share of the rows in SQL."""
    return sql(tables.numbers, f"SELECT sum(y), max(text) FROM t WHERE pick < {int(part * PICKED)}")


def one_in_sql(tables: CostTables, one_in: float) -> Work:
    """Aggregate one row in so many in SQL, with a connection that may restrict the table."""
    path = Path(tables.numbers)
    connection = ld.connect(str(path.parent))
    connection.execute("SET threads = 2")
    query = f"SELECT sum(y), max(text) FROM {path.stem} WHERE pick < {int(PICKED / one_in)}"
    return lambda: connection.execute(query).fetchall()


def wide_sql_part(tables: CostTables, part: float) -> Work:
    """Aggregate a share of wide rows in SQL."""
    path = tables.vectors(100_000, 192)
    return sql(path, f"SELECT sum(v[1]) FROM t WHERE pick < {int(part * PICKED)}")


def members(tables: CostTables, count: float) -> Work:
    """Aggregate the rows whose integer is in a list, in SQL."""
    return sql(tables.numbers, f"SELECT sum(y) FROM t WHERE pick IN ({some_of(PICKED, count)})")


def wide_rows(tables: CostTables, width: float) -> Work:
    """Aggregate one row in ten, with rows of this width, in SQL."""
    path = tables.vectors(100_000, max(1, int(width) // 4 - 6))
    return sql(path, f"SELECT sum(v[1]) FROM t WHERE pick < {PICKED // 10}")


# Searches


def search(path: str, dim: int, queries: float, k: float = 10, filter_: str | None = None) -> Work:
    """Search for several queries in one call."""
    dataset = ld.dataset(path)
    rng = np.random.default_rng(7)
    vectors = rng.standard_normal((int(queries), dim)).astype(np.float32)
    nearest = {"column": "v", "q": vectors if len(vectors) > 1 else vectors[0], "k": int(k)}
    return lambda: dataset.to_table(columns=["id"], nearest=nearest, filter=filter_, prefilter=True)


def few_compared(rows: int) -> Prepare:
    """Return work that searches the few rows of an indexed table that pass a filter."""

    def prepare(tables: CostTables, size: float) -> Work:
        count = int(size) if rows == 100_000 else int(rows / size)
        return search(tables.vectors(rows, 32, indexed=True), 32, 1, filter_=f"shuffled < {count}")

    return prepare


def flat(queries: float, k: float) -> Prepare:
    """Return work that searches without an index."""
    return lambda tables, size: search(tables.vectors(100_000, 64), 64, queries or size, k or size)


def sparse(tables: CostTables, share: float) -> Work:
    """Search a share of the rows without an index: 1 / `share`."""
    return search(tables.vectors(400_000, 32), 32, 1, filter_=f"shuffled < {int(400_000 / share)}")


def ranked(tables: CostTables, queries: float) -> Work:
    """Search an index with re-ranking of the candidates."""
    dataset = ld.dataset(tables.vectors(100_000, 32, indexed=True))
    vectors = np.random.default_rng(7).standard_normal((int(queries), 32)).astype(np.float32)
    nearest = {"column": "v", "q": vectors, "k": 10, "nprobes": 8, "refine_factor": 16}
    return lambda: dataset.to_table(columns=["id"], nearest=nearest)


def lengths(tables: CostTables, _: float) -> Work:
    """Find the shortest and the longest vector."""
    path = tables.vectors(100_000, 64)

    def run() -> None:
        table = ld.dataset(path).handle.table
        extremes(table, vector_column(table, "v"))

    return run


def multivectors(tables: CostTables, _: float) -> Work:
    """Search rows that hold several vectors for a query with several vectors."""
    dataset = ld.dataset(tables.multivectors)
    query = np.random.default_rng(8).standard_normal((4, 16)).astype(np.float32)
    return lambda: dataset.to_table(columns=["id"], nearest={"column": "v", "q": query, "k": 10})


# Rows and fragments


def moved_rows(tables: CostTables, share: float) -> Work:
    """Look up random rows that a compaction moved: a share of 1 / `share`."""
    runs, length = 2_000, 1_000
    first = np.arange(runs, dtype=np.uint64) * np.uint64(length + 1)
    moved = AddressMap([MovedGroup((0,), ((1, runs * length),), first, np.full(runs, length, np.uint64))])
    count = runs * (length + 1)
    addresses = np.random.default_rng(9).integers(0, count, int(count / share)).astype(np.uint64)
    return lambda: moved.follow(addresses)


def dropped_fragments(tables: CostTables, count: float) -> Work:
    """Remove several of a manifest's 100,000 fragments."""
    manifest = table_pb2.Manifest()
    for number in range(100_000):
        fragment = manifest.fragments.add(id=number, physical_rows=10)
        fragment.files.add(path=f"{number:032x}.lance", fields=[0, 1, 2])
    ids = list(range(0, 100_000, max(1, int(100_000 / count))))

    def run() -> None:
        copy = table_pb2.Manifest()
        copy.CopyFrom(manifest)
        FragmentList(copy, 2).remove(ids)

    return run


ONCE: Final = (1.0,)
EVERY: Final = FullTextOperator.AND
QUESTIONS: Final = (
    Question("scan.read.row_access.POINT_ROWS", lambda t, n: take(t.small, 1_000, int(n), ["y", "text"])),
    Question(
        "scan.read.row_access.POINT_SHARE", lambda t, n: take(t.numbers, 250_000, int(250_000 / n), ["y", "text"])
    ),
    Question("scan.read.row_access.DENSE_SHARE", dense_rows),
    Question("scan.read.morsel.WIDE_VALUE", wide_values(2), label=", of one row in 2"),
    Question("scan.read.morsel.WIDE_VALUE", wide_values(3), label=", of one row in 3"),
    Question("scan.read.column_cache.TAKES_BEFORE_CACHE", lambda t, n: fresh_takes(t.middle, 200_000, int(n))),
    Question(
        "scan.read.column_cache.ROWS_DECODED_IN_A_TAKE",
        lambda t, n: fresh_takes(t.numbers, 1_000_000, int(1_000_000 / n)),
    ),
    Question("scan.read.take.FRAGMENTS_AT_ONCE", take_of_fragments, label=", of takes"),
    Question("scan.read.tasks.TASK_ROWS", rows_of_each),
    Question(
        "scan.read.tasks.FRAGMENTS_AT_ONCE",
        lambda t, _: scan(t.pieces, ["y", "text"], "spot < 4"),
        ONCE,
        ", of chosen rows",
    ),
    Question("scan.read.tasks.RUN_ROWS", runs),
    Question("scan.indexes.lookup.LOOKED_AT_ROWS", two_indexes(0, 8)),
    Question("scan.indexes.lookup.LOOKUP_ROWS", two_indexes(1_000, 0)),
    Question("scan.indexes.lookup.ANSWER_SHARE", lambda t, part: indexed_rows(t.numbers, 1_000_000 * part)),
    Question("scan.indexes.lookup.ANSWER_ROWS", lambda t, n: indexed_rows(t.middle, n)),
    Question("scan.plan.SMALL_BATCH_ROWS", lambda t, _: first_batch(t.numbers, ["y"]), ONCE, ", first batch"),
    Question("scan.plan.SMALL_BATCH_ROWS", lambda t, _: scan(t.numbers, ["y"]), ONCE, ", whole"),
    Question(
        "scan.plan.SMALL_BATCH_BYTES",
        lambda t, _: first_batch(t.vectors(100_000, 192), ["v"]),
        ONCE,
        ", first batch",
    ),
    Question("scan.plan.SMALL_BATCH_BYTES", lambda t, _: scan(t.vectors(100_000, 192), ["v"]), ONCE, ", whole"),
    Question("scan.plan.GROWTH", lambda t, _: scan(t.numbers, ["y", "pick", "text"]), ONCE),
    Question("scan.plan.MORSEL_BYTES", lambda t, _: scan(t.vectors(100_000, 192), ["v"]), ONCE),
    Question("scan.plan.MORSEL_ROWS", lambda t, _: scan(t.numbers, ["y", "pick", "text"]), ONCE),
    Question("scan.read.tasks.JOINED_FRAGMENTS", lambda t, count: new_scan(t.fragments(int(count), 10))),
    Question(
        "scan.read.joined_fragments.JOINED_FILE_BYTES", lambda t, size: new_scan(t.fragments(200, int(size) // 8))
    ),
    Question("scan.table_scan.PAYS_BELOW", sql_part),
    Question("duck.restrictions.tables.SELECTIVE", one_in_sql, (1 / 4, 3 / 4, 3 / 2, 3)),
    Question("scan.table_scan.PAYS_BELOW_WHEN_WIDE", wide_sql_part, (3 / 8, 3 / 4, 3 / 2, 9 / 4)),
    Question(
        "scan.table_scan.SAMPLE_SLICES",
        lambda t, _: first_sql(t.numbers, f"SELECT sum(y) FROM t WHERE pick < {PICKED // 100}"),
        ONCE,
    ),
    Question("scan.duckdb.nodes.COMPARED_VALUES", members),
    Question("scan.sql.compare.GATHERED_OPERANDS", equalities, (1 / 8, 3 / 8, 3 / 4, 3 / 2, 3.0)),
    Question("scan.nearest.search.ALWAYS_COMPARED_ROWS", few_compared(100_000)),
    Question("scan.nearest.search.COMPARED_SHARE", few_compared(400_000)),
    Question("scan.nearest.compare.PRODUCT_QUERIES", flat(0, 10)),
    Question("scan.nearest.compare.PRODUCT_NEIGHBOURS", flat(16, 0)),
    Question("scan.nearest.compare.PRODUCT_ROWS", flat(64, 10), ONCE),
    Question("scan.nearest.compare.PRODUCT_QUERIES_AT_ONCE", flat(128, 10), ONCE),
    Question("scan.nearest.compare.LONE_PRODUCT", flat(64, 10), ONCE),
    Question("scan.nearest.exact.BLOCK_BYTES", flat(1, 10), ONCE),
    Question("scan.nearest.exact.SPARSE_SHARE", sparse),
    Question("scan.table_scan.WIDE_ROW", wide_rows),
    Question(
        "scan.table_scan.FRAGMENTS_AT_ONCE",
        lambda t, n: first_sql(t.text_fragments(int(n)), "SELECT text, count(*), sum(y) FROM t GROUP BY text"),
        label=", with dictionaries",
    ),
    Question("scan.sql.tokens.LISTS_IN_TEXT", listed_numbers),
    Question("scan.nearest.exact.SMALL_BATCH_BYTES", lambda t, size: search(t.paged_vectors(int(size)), 32, 1)),
    Question("scan.nearest.exact.SMALL_BATCH_ROWS", ranked, (64 / 8192, 256 / 8192), ", ranked again"),
    Question("scan.nearest.exact.SMALL_BATCH_ROWS", lambda t, _: sparse(t, 66), ONCE, ", few of a table"),
    Question("scan.nearest.extremes.SMALL_BATCH_ROWS", lengths, ONCE, ", of lengths"),
    Question("scan.nearest.multivector.TASK_ROWS", multivectors, ONCE, ", of several vectors"),
    Question("scan.text.flat.ANALYSED_ROWS", flat_words, ONCE),
    Question("scan.scored.candidates.CHECKED_FOR_EACH", filtered_words(200_000, 10, 0)),
    Question(
        "scan.scored.candidates.SMALL_BATCH_ROWS",
        filtered_words(200_000, 0, 10),
        (1 / 128, 1 / 64, 3 / 128, 3 / 64),
        ", checked",
    ),
    Question("scan.scored.candidates.CHECKED_SHARE", filtered_words(1_000_000, 10, 1_000), ONCE, ", one in 1,000"),
    Question("scan.scored.candidates.CHECKED_SHARE", filtered_words(1_000_000, 10, 10_000), ONCE, ", one in 10,000"),
    Question("index.inverted.search.bounds.SEARCH_WINDOW", met_words(0, 100), ONCE),
    Question("index.inverted.search.bounds.WINDOW_POSTINGS", met_words(500, 2_000), ONCE),
    Question("index.inverted.search.bounds.LARGEST_WINDOW", met_words(2_000, 6_000), ONCE),
    Question("index.inverted.search.phrases.WAITING_DOCUMENTS", met_phrases(100), ONCE),
    Question("index.inverted.search.intersect.FEW_MATCHES", met_words(0, 400, EVERY), ONCE, ", frequent words"),
    Question("index.inverted.search.intersect.FEW_MATCHES", met_words(100, 2_000, EVERY), ONCE, ", other words"),
    Question("index.inverted.search.intersect.LARGEST_WINDOW", met_words(500, 2_000, EVERY), ONCE, ", required words"),
    Question("index.inverted.invert.INDEX_BLOCK_ROWS", built_texts(200_000), ONCE),
    Question("index.vector.search.ivf.BATCH_QUERIES", together(0)),
    Question("index.vector.search.ivf.SLICE_QUERIES", together(1_000), ONCE),
    Question("scan.nearest.covered.NAMED_SHARE", named_rows),
    Question(
        "duck.tables.table._FEW_ROWS", lambda t, n: sql(t.middle, f"SELECT sum(y) FROM t WHERE shuffled < {int(n)}")
    ),
    Question("rows.row_set.DENSE_NAMES", row_set),
    Question("rows.row_positions.TABLE_IDS", placed_rows(1_000), label=", of 1,000 rows"),
    Question("rows.row_positions.TABLE_IDS", placed_rows(100_000), label=", of 100,000 rows"),
    Question("rows.deletion.COMPRESSED_ROWS", deletions),
    Question("rows.address_map.LISTED_SHARE", moved_rows, (3 / 8, 3 / 4, 3 / 2, 3.0, 6.0)),
    Question("commit.fragment_list._MOST_CUT_OUT", dropped_fragments, (1 / 16, 1 / 4, 1.0, 2.0)),
)
