"""One side of a meeting: writes tables into a folder, or reads another side's tables, and reports the result.

    python meeting.py lance write FOLDER 2.1        with any pylance: nothing but its own environment is needed
    python meeting.py lance_duck read FOLDER 0.1 2.0 2.1 2.2

Both libraries have the same calls, so both sides run the same code. The result is a JSON object of attempts with "ok",
"unused" (a right answer without an index in the plan), or the error.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

os.environ.setdefault("LANCE_LOG", "error")
sys.path.insert(0, str(Path(__file__).parent))
data = importlib.import_module("data")

PARTITIONS = 4
RECALL = {"IVF_FLAT": 1.0}
USUAL_RECALL = 0.9
INDEX_MARKS = ("ScalarIndexQuery", "MaterializeIndex", "VectorIndexQuery", "ANN")
CHANGES = ("deleted", "stable")


class Side:
    """A library at work in a folder.

    Args:
        name: "lance" or "lance_duck".
        folder: Of the tables.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.library: Any = importlib.import_module(name)
        self.folder = folder
        self.outcome: dict[str, str] = {}

    def attempt(self, what: str, work: Callable[[], str | None]) -> None:
        """Run some work and record the result."""
        try:
            self.outcome[what] = work() or "ok"
        except BaseException as error:  # a Rust panic does not inherit from Exception
            if isinstance(error, KeyboardInterrupt):
                raise
            self.outcome[what] = f"{type(error).__name__}: {str(error)[:200]}"

    def place(self, name: str) -> str:
        """Return the path of a table."""
        return str(self.folder / f"{name}.lance")


def write(side: Side, version: str) -> None:
    """Write all tables of a file version."""
    side.attempt(f"{version} kinds", lambda: _write_kinds(side, version))
    side.attempt(f"{version} deleted", lambda: _write_deleted(side, version))
    if version == "0.1":  # whose rows ids and indexes do not differ by the files
        return
    side.attempt(f"{version} stable", lambda: _write_stable(side, version))
    _write_indexed(side, version)


def read(side: Side, version: str) -> None:
    """Read all tables of a file version that there are."""
    for name in ("kinds", *CHANGES):
        if (side.folder / f"{name}-{version}.arrow").exists():
            _read_columns(side, version, name)
    for name, columns in (("stable", ("id", "few")), ("indexed", tuple(data.SCALAR_KINDS))):
        if (side.folder / f"{name}-{version}.json").exists():
            expected = json.loads((side.folder / f"{name}-{version}.json").read_text(encoding="utf-8"))
            for column in columns:
                if column in expected:
                    _ask(side, version, name, column, expected[column])
            for kind in data.VECTOR_KINDS if name == "indexed" else ():
                if kind in expected:
                    _search(side, version, kind, expected)


def _write_kinds(side: Side, version: str) -> None:
    place = side.place(f"kinds-{version}")
    tables = [data.kinds(rows, seed, version) for seed, rows in enumerate(data.ROWS)]
    for table in tables:
        side.library.write_dataset(table, place, mode="append" if table is not tables[0] else "create", **_of(version))
    _keep(side, f"kinds-{version}", pa.concat_tables(tables).unify_dictionaries())


def _write_deleted(side: Side, version: str) -> None:
    """Deletion files of both kinds: one for few rows, and one for many."""
    place = side.place(f"deleted-{version}")
    table = data.indexed(0, 14_000).select(["id", "word", "labels"])
    dataset = side.library.write_dataset(table, place, max_rows_per_file=7_000, **_of(version))
    dataset.delete("id < 7000 AND id % 5 <> 0")
    dataset.delete("id >= 7000 AND id % 1000 = 1")
    _keep(side, f"deleted-{version}", dataset.to_table())


def _write_stable(side: Side, version: str) -> None:
    """Stable row ids, with indexes, through an update, a deletion, a compaction and an append."""
    place = side.place(f"stable-{version}")
    columns = ["id", "few", "word", "x"]
    table = data.indexed(0, 6_000).select(columns)
    dataset = side.library.write_dataset(
        table, place, max_rows_per_file=3_000, enable_stable_row_ids=True, **_of(version)
    )
    dataset.create_scalar_index("id", "BTREE")
    dataset.create_scalar_index("few", "BITMAP")
    dataset.update({"x": "x + 1"}, where="id % 10 = 3")
    dataset.delete("id % 7 = 2")
    dataset.optimize.compact_files()
    side.library.write_dataset(data.indexed(6_000, 500).select(columns), place, mode="append")
    dataset = side.library.dataset(place)
    _keep(side, f"stable-{version}", dataset.scanner(with_row_id=True).to_table())
    _keep_answers(side, f"stable-{version}", dataset, ("id", "few"))


def _write_indexed(side: Side, version: str) -> None:
    """A table with an index of every kind, rows that none covers, and deleted rows."""
    place = side.place(f"indexed-{version}")
    rows = data.INDEXED_ROWS
    dataset = side.library.write_dataset(data.indexed(0, sum(rows)), place, max_rows_per_file=rows[0], **_of(version))
    for column, kind in data.SCALAR_KINDS.items():
        side.attempt(f"{version} {kind} on {column}", lambda c=column, k=kind: _build(dataset, c, k))
    for kind in data.VECTOR_KINDS:
        side.attempt(f"{version} {kind}", lambda k=kind: _build_vectors(dataset, k))
    side.library.write_dataset(data.indexed(sum(rows), 500), place, mode="append")
    dataset = side.library.dataset(place)
    dataset.delete("id % 11 = 4")
    made = [c for c, kind in data.SCALAR_KINDS.items() if side.outcome[f"{version} {kind} on {c}"] == "ok"]
    kinds = [kind for kind in data.VECTOR_KINDS if side.outcome[f"{version} {kind}"] == "ok"]
    _keep_answers(side, f"indexed-{version}", dataset, made, kinds)


def _build(dataset: Any, column: str, kind: str) -> None:
    dataset.create_scalar_index(column, kind)


def _build_vectors(dataset: Any, kind: str) -> None:
    more = {"num_sub_vectors": 8} if kind.endswith("PQ") else {}
    dataset.create_index(kind.lower(), kind, metric="l2", num_partitions=PARTITIONS, **more)


def _of(version: str) -> dict[str, str]:
    return {"data_storage_version": version}


def _keep(side: Side, name: str, table: pa.Table) -> None:
    with pa.OSFile(str(side.folder / f"{name}.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())


def _keep_answers(side: Side, name: str, dataset: Any, columns: Any, kinds: Any = ()) -> None:
    """Store the answers of scans without an index, and the nearest rows by numpy."""
    answers: dict[str, Any] = {
        column: {q: sorted(_ids(dataset.to_table(["id"], filter=q, use_scalar_index=False))) for q in questions}
        for column, questions in data.QUESTIONS.items()
        if column in columns
    }
    if kinds:
        living = dataset.to_table(["id", "ivf_flat"])
        vectors = living["ivf_flat"].combine_chunks().flatten().to_numpy().reshape(-1, data.DIM)
        answers |= dict.fromkeys(kinds, data.nearest(vectors, np.array(_ids(living))))
    (side.folder / f"{name}.json").write_text(json.dumps(answers), encoding="utf-8")


def _ids(table: pa.Table) -> list[int]:
    found: list[int] = table["id"].to_pylist()
    return found


def _read_columns(side: Side, version: str, name: str) -> None:
    with pa.memory_map(str(side.folder / f"{name}-{version}.arrow")) as source:
        expected = pa.ipc.open_file(source).read_all()
    dataset = side.library.dataset(side.place(f"{name}-{version}"))
    for column in expected.column_names:
        if column == "_rowid":
            found = dataset.scanner(columns=["id"], with_row_id=True).to_table
        else:
            found = lambda c=column: dataset.to_table([c])  # noqa: E731
        side.attempt(f"{version} {name}: {column}", lambda c=column, f=found: _compare(expected[c], f()[c]))
    rows = [0, 5, 499, 500, 3_333, expected.num_rows - 1]
    columns = [c for c in expected.column_names if c != "_rowid" and c not in _NOT_TAKEN]
    side.attempt(f"{version} {name}: take", lambda: _take(dataset, expected.select(columns), rows))


_NOT_TAKEN = ("dictionary", "dictionary_13", "dictionary_runs")


def _take(dataset: Any, expected: pa.Table, rows: list[int]) -> str | None:
    found = dataset.take(rows, columns=expected.column_names)
    wanted = expected.take(pa.array(rows))
    wrong = [name for name in expected.column_names if _compare(wanted[name], found[name])]
    return f"other values in {', '.join(wrong)}" if wrong else None


def _compare(expected: pa.ChunkedArray, found: pa.ChunkedArray) -> str | None:
    if len(found) != len(expected):
        return f"{len(found)} rows, not {len(expected)}"
    if pa.types.is_dictionary(expected.type):
        expected, found = (pa.chunked_array([c.dictionary_decode() for c in x.chunks]) for x in (expected, found))
    if found.type != expected.type:
        found = found.cast(expected.type)
    return None if found.equals(expected) else "other values"


def _ask(side: Side, version: str, name: str, column: str, expected: dict[str, list[int]]) -> None:
    dataset = side.library.dataset(side.place(f"{name}-{version}"))

    def answer() -> str | None:
        used = True
        for question, ids in expected.items():
            found = sorted(_ids(dataset.to_table(["id"], filter=question)))
            if found != ids:
                return f"{question}: {len(found)} rows, not {len(ids)}"
            used &= _is_used(side, dataset.scanner(["id"], filter=question))
        return None if used else "unused"

    side.attempt(f"{version} {name}: {data.SCALAR_KINDS[column]} on {column}", answer)


def _search(side: Side, version: str, kind: str, expected: dict[str, Any]) -> None:
    dataset = side.library.dataset(side.place(f"indexed-{version}"))

    def answer() -> str | None:
        seen, used = 0, True
        for query, ids in zip(data.queries(), expected[kind], strict=True):
            asked = {"column": kind.lower(), "q": query, "k": data.K, "nprobes": PARTITIONS}
            if kind != "IVF_FLAT":
                asked["refine_factor"] = 20
            found = _ids(dataset.to_table(["id"], nearest=asked))
            seen += len(set(found) & set(ids))
            used &= _is_used(side, dataset.scanner(["id"], nearest=asked))
        recall = seen / (data.K * len(expected[kind]))
        if recall < RECALL.get(kind, USUAL_RECALL):
            return f"recall {recall}"
        return None if used else "unused"

    side.attempt(f"{version} indexed: {kind}", answer)


def _is_used(side: Side, scanner: Any) -> bool:
    plan = scanner.explain_plan(True)
    return any(mark in plan for mark in INDEX_MARKS)


def _versions() -> Iterator[str]:
    yield from sys.argv[4:]


def main() -> None:
    """Run the command line."""
    side = Side(sys.argv[1], Path(sys.argv[3]))
    for version in _versions():
        {"write": write, "read": read}[sys.argv[2]](side, version)
    json.dump(side.outcome, sys.stdout)


if __name__ == "__main__":
    main()
