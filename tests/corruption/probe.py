"""Read damaged tables in a separate process: argv names a job; problems go to standard output, one JSON line each.

A job is a folder with `job.json` and the damaged files. The number of a file is written to `at` before each read, so
the parent process can identify the file that killed the reader. A hanging read ends the process.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import duckdb
import pyarrow as pa

import lance_duck as ld
from lance_duck.errors import IndexWarning, LanceDuckError
from lance_duck.index.catalog import catalog
from lance_duck.index.query import (
    Among,
    Between,
    ContainsAll,
    ContainsAny,
    ContainsTrigrams,
    Except,
    HasPrefix,
    Null,
    Query,
)
from lance_duck.index.search import _WARNED, estimate, open_index, search
from lance_duck.maintenance.validation.indexes import index_problems

SECONDS = 20
HEADROOM = 1 << 31
# DuckDB shows the class of an error of this package, or Arrow's class for a ValueError.
OUR_ERRORS = (
    "CorruptError: ",
    "UnsupportedError: ",
    "NotFoundError: ",
    "InvalidInputError: ",
    "StoreError: ",
    "failed: Invalid: ",
    "failed(): Invalid: ",
    "must have at least one column",  # DuckDB does not accept a table without columns
)
TEXTS = "texts"
"""The column with a MinHash index, in tables that have one."""
WRONG_VALUES = (
    "UTF8",
    "does not fit in precision",
    "not within the acceptable range",
    "does not represent a whole number",
)


def read(uri: str) -> None:
    """Open a table and read it in several ways; bytes that are wrong but readable may give any valid answer."""
    dataset = ld.dataset(uri)
    table = dataset.to_table()
    check(table)
    if table.num_rows:
        check(dataset.take([table.num_rows - 1, 0, table.num_rows // 2]))
    check(dataset.to_table(limit=5, offset=3, with_row_id=True))
    blobs = [field.name for field in dataset.handle.snapshot.schema.fields if field.blob_version]
    if blobs:
        check(dataset.to_table(blobs, blob_handling="all_binary"))


def read_with_log(uri: str) -> None:
    """Read a table together with its write-ahead log."""
    check(ld.dataset(uri, log="fresh").to_table())


class ReadThroughDuckDB:
    """Reads all columns in the types that DuckDB accepts; DuckDB raises the errors of this package with their text.

    All reads share one connection, because opening one costs as much as a read. Leftovers of a damaged table would
    show.
    """

    def __init__(self) -> None:
        self._connection = duckdb.connect()

    def __call__(self, uri: str) -> None:
        try:
            self._connection.register("ours", ld.dataset(uri))
            self._connection.execute("FROM ours").to_arrow_table()
        except (duckdb.InternalException, duckdb.FatalException):
            self._connection = duckdb.connect()
            raise
        except duckdb.Error as error:
            if not any(name in str(error) for name in OUR_ERRORS):
                raise


def read_through_indexes(uri: str, columns: list[str], filters: list[str]) -> None:
    """Query the index segments over some columns with all predicates they support, and filter with all indexes.

    Broken segments are skipped. Wrong but readable bytes may give any valid answer.
    """
    dataset = ld.dataset(uri)
    snapshot = dataset.handle.snapshot
    _WARNED._uuids.clear()
    for segment in (s for path in columns for index in catalog(snapshot).over(path) for s in index.segments):
        for query in QUERIES[segment.path]:
            if segment.kind.answers(query, segment.type):
                search(snapshot, segment, query)
                estimate(snapshot, segment, query)
        with suppress(LanceDuckError):
            index = open_index(snapshot, segment)
            index.statistics()
            index.prewarm()
    for each in catalog(snapshot):
        for segment in each.segments:
            list(index_problems(snapshot, segment.metadata))
    for text in filters:
        check(dataset.to_table(filter=text))
    if TEXTS in dataset.schema.names:
        check(dataset.near_duplicates(TEXTS))


def read_by_searches(uri: str) -> None:
    """Search through all vector and full-text indexes; broken ones are skipped."""
    dataset = ld.dataset(uri)
    _WARNED._uuids.clear()
    for index in catalog(dataset.handle.snapshot):
        for segment in index.segments:
            list(index_problems(dataset.handle.snapshot, segment.metadata))
            with suppress(LanceDuckError):
                opened = open_index(dataset.handle.snapshot, segment)
                opened.statistics()
                opened.prewarm()
        if index.kind.name == "INVERTED":
            for query in ("lake", '"the lake"', "lake~1"):
                check(dataset.to_table(full_text_query=query))
        else:
            for options in ({}, {"nprobes": 1}, {"nprobes": 9, "ef": 50, "refine_factor": 3}, {"recall": 0.9}):
                nearest = {"column": "v", "q": [0.5] * 8, "k": 7, **options}
                check(dataset.to_table(["id"], nearest=nearest))
                check(dataset.to_table(["id"], nearest=nearest, filter="g = 2"))


def queries(values: pa.Array) -> list[Query]:
    """Return queries for a column with some values."""
    asked: list[Query] = [Null(), Among(values), Between(values[0], values[1], True), Between(None, values[0])]
    if pa.types.is_string(values.type):
        asked += [HasPrefix(pa.scalar("te")), ContainsAny(values), ContainsAll(values)]
    return [*asked, *(Except(query) for query in asked)]


QUERIES = {
    "i": queries(pa.array([17, 80], pa.int64())),
    "f": queries(pa.array([0.5, float("nan")])),
    "z": queries(pa.array([10, 20], pa.int64())),
    "s": queries(pa.array(["text 3", "text 7"])),
    "b": queries(pa.array(["k7", "none"])),
    "l": queries(pa.array(["w1", "w4"])),
    "g": [
        *queries(pa.array(["some trigrams 1", "none"])),
        ContainsTrigrams(("trigrams",)),
        ContainsTrigrams(("none",)),
    ],
}


def check(table: pa.Table) -> None:
    """Fail if the Arrow data is invalid. Wrong bytes may decode to unusual values."""
    try:
        table.validate(full=True)
    except pa.ArrowInvalid as error:
        if not any(value in str(error) for value in WRONG_VALUES):
            raise


def limit_memory() -> None:
    """Let the process grow by HEADROOM from here on."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    size = pages * resource.getpagesize() + HEADROOM
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def replace(target: Path, source: Path) -> None:
    """Replace the target by a new file with the damaged bytes; mapped memory keeps the old file."""
    target.unlink()
    os.link(source, target)


def main(folder: Path) -> None:
    """Run the job from its number `start` on."""
    job = json.loads((folder / "job.json").read_text())
    faulthandler.enable()
    ways: list[Callable[[str], None]] = [read, ReadThroughDuckDB()]
    if job["indexed"]:
        warnings.simplefilter("ignore", IndexWarning)
        warnings.filterwarnings("error", ".*cannot be read: found ", IndexWarning)  # errors outside this package
        ways = [lambda uri: read_through_indexes(uri, *job["indexed"])]
    elif job["searched"]:
        warnings.simplefilter("ignore", IndexWarning)
        warnings.filterwarnings("error", ".*cannot be read: found ", IndexWarning)
        ways = [read_by_searches]
    if (Path(job["sound"]) / "_mem_wal").exists():
        ways.append(read_with_log)
    for way in ways:
        way(job["sound"])
    limit_memory()
    for i in range(job["start"], job["count"]):
        (folder / "at").write_text(str(i))
        replace(Path(job["target"]), folder / str(i))
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        for way in ways:
            try:
                way(job["table"])
            except LanceDuckError:
                pass
            except BaseException:
                print(json.dumps({"at": i, "error": traceback.format_exc(limit=-6)}), flush=True)
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
