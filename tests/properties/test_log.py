"""Random lives of tables with a write-ahead log: the view of main table and log equals a dict."""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from support.write_ahead_log import KEY, ShardWriter, create_log

import lance_duck as ld

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), False, KEY),
        pa.field("x", pa.int64()),
        pa.field("s", pa.struct([("a", pa.int64()), ("b", pa.string())])),
        pa.field("v", pa.list_(pa.float32(), 2)),
        pa.field("t", pa.string()),
    ]
)
SHARDS = ["00000000-0000-4000-8000-000000000001", "ffffffff-0000-4000-8000-000000000002"]


def row(rng: random.Random, key: int) -> dict[str, Any]:
    x = rng.choice([None, *range(6)])
    words = " ".join(rng.choices(["lake", "duck", "log", "row"], k=rng.randrange(1, 5)))
    return {"id": key, "x": x, "s": {"a": x, "b": str(key)}, "v": [rng.random(), float(key % 7)], "t": words}


class Life:
    """A table with a log, and its rows by key. `flushed` lacks entries that are not in an SSTable."""

    def __init__(self, rng: random.Random, path: str, *, stable: bool) -> None:
        self.rng, self.path = rng, path
        self.main = {key: row(rng, key) for key in range(0, 40, 2)}
        rows = pa.Table.from_pylist(list(self.main.values()), SCHEMA)
        dataset = ld.write_dataset(rows, path, max_rows_per_file=7, enable_stable_row_ids=stable)
        for column in ("id", "x"):
            dataset.create_scalar_index(column, "BTREE")
        dataset.create_scalar_index("t", "INVERTED")
        dataset.create_index("v", "IVF_FLAT", num_partitions=2)
        create_log(path)
        self.shards = [ShardWriter(path, name) for name in SHARDS]
        self.tables: list[list[dict[int, Any]]] = [[], []]
        self.pending: list[dict[int, Any]] = [{}, {}]

    def step(self, kind: str | None = None) -> None:
        number = self.rng.randrange(2)
        shard = self.shards[number]
        kinds = ["put", "delete", "flush", "merge", "compact", "main"]
        match kind or self.rng.choices(kinds, [6, 3, 3, 1, 1, 1])[0]:
            case "put":
                keys = [2 * key + number for key in self.rng.choices(range(25), k=self.rng.randrange(5))]
                rows = [row(self.rng, key) for key in keys]
                shard.put(pa.Table.from_pylist(rows, SCHEMA))
                self.pending[number] |= {each["id"]: each for each in rows}
            case "delete":
                keys = [2 * key + number for key in self.rng.choices(range(25), k=2)]
                shard.put(pa.Table.from_pylist([{"id": key} for key in keys], SCHEMA), deletes=True)
                self.pending[number] |= dict.fromkeys(keys)
            case "flush":
                shard.flush(indexes=self.rng.choice([(), ("id", "x"), ("id", "x")]))
                if self.pending[number]:
                    self.tables[number].append(self.pending[number])
                    self.pending[number] = {}
            case "merge" if self.tables[number]:
                shard.merge()
                self._merge(number)
            case "compact":
                ld.dataset(self.path).optimize.compact_log()
                for each in range(2):
                    self._merge(each)
            case "main":
                self._change_main()

    def _merge(self, number: int) -> None:
        for table in self.tables[number]:
            self.main |= table
        self.main = {key: each for key, each in self.main.items() if each is not None}
        self.tables[number] = []

    def _change_main(self) -> None:
        dataset = ld.dataset(self.path)
        match self.rng.randrange(3):
            case 0:
                dataset.delete("id % 5 = 3")
                self.main = {key: each for key, each in self.main.items() if key % 5 != 3}
            case 1:
                dataset.optimize.compact_files()
            case 2:
                dataset.optimize.optimize_indices()

    def rows(self, log: str | None) -> list[dict[str, Any]]:
        known = dict(self.main)
        if log is not None:
            for tables in self.tables:
                for table in tables:
                    known |= table
        if log == "fresh":
            for table in self.pending:
                known |= table
        return sorted((each for each in known.values() if each is not None), key=lambda each: each["id"])


FILTERS = {
    "id = 3": lambda r: r["id"] == 3,
    "id IN (2, 5, 8, 49)": lambda r: r["id"] in (2, 5, 8, 49),
    "id > 30": lambda r: r["id"] > 30,
    "x = 2": lambda r: r["x"] == 2,
    "x IS NULL": lambda r: r["x"] is None,
    "x >= 4 AND id < 20": lambda r: r["x"] is not None and r["x"] >= 4 and r["id"] < 20,
    "s.a = 3 OR id = 7": lambda r: r["x"] == 3 or r["id"] == 7,
}


def by_id(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda each: each["id"])


def rounded(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return pa.Table.from_pylist(rows, SCHEMA).to_pylist()


def check(life: Life, log: str | None) -> None:
    dataset = ld.dataset(life.path, log=log)
    rows = rounded(life.rows(log))
    table = dataset.to_table()
    assert table.schema == ld.dataset(life.path).schema
    assert by_id(table) == rows
    assert dataset.count_rows() == len(rows) == sum(b.num_rows for b in dataset.to_batches(columns=["x"], batch_size=5))
    for text, keep in FILTERS.items():
        expected = [each for each in rows if keep(each)]
        assert by_id(dataset.to_table(filter=text)) == expected, text
        assert dataset.count_rows(text) == len(expected)
    assert dataset.to_table(limit=7, offset=3) == table.slice(3, 7)
    assert dataset.to_table(columns=["id"], order_by=["id"], limit=5)["id"].to_pylist() == [r["id"] for r in rows][:5]
    places = [life.rng.randrange(len(rows)) for _ in range(5)] if rows else []
    assert dataset.take(places) == table.take(places)
    query = [life.rng.random(), 3.0]
    found = dataset.to_table(nearest={"column": "v", "q": query, "k": 5, "nprobes": 2}, columns=["id", "_distance"])
    distances = sorted(sum((a - b) ** 2 for a, b in zip(each["v"], query, strict=True)) for each in rows)[:5]
    assert found["_distance"].to_pylist() == pytest.approx(distances, rel=1e-4, abs=1e-5)
    assert set(found["id"].to_pylist()) <= {each["id"] for each in rows}
    check_words(dataset, table)


def check_words(dataset: ld.LanceDataset, table: pa.Table) -> None:
    """Scores are those of a table with the same rows."""
    plain = ld.write_dataset(table, f"{dataset.uri[:-6]}_{uuid4().hex}.lance")
    plain.create_scalar_index("t", "INVERTED")
    found, expected = (
        each.search("duck log", 100, "t", columns=["id", "_score"]).sort_by("id") for each in (dataset, plain)
    )
    assert found.to_pydict() == expected.to_pydict()


@pytest.mark.parametrize("seed", range(2))
def test_views_of_random_logs_equal_a_dict(seed: int, tmp_path: Path) -> None:
    life = Life(random.Random(seed), str(tmp_path / "t.lance"), stable=seed == 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ld.MemWalWarning)
        for kind in [*[None] * 10, *["put", "delete", "flush", "put", "flush", "put", "flush", "put"]]:
            life.step(kind)
        check(life, "flushed")
        check(life, "fresh")
    assert by_id(ld.dataset(life.path).to_table()) == rounded(life.rows(None))
