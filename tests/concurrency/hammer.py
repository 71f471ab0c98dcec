"""Writers of one table that record all their changes; each runs in a separate process or thread."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa

import lance_duck as ld
from lance_duck.errors import CommitConflictError, StoreError

KEYS = 8
COUNTER = -1
LEAST = 5
SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("by", pa.int64())])


@dataclass
class Tally:
    """The changes of one writer.

    Attributes:
        added: Appended ids that it did not delete.
        deleted: Appended ids that it deleted.
        counted: Number of counter increments.
        upserted: Upserted keys.
        tried: Attempts by name, with lost races as "name lost", and store failures as "name failed".
        unsure: Ids of appends, upserts or deletes with a store failure: they may exist or not.
        unsure_counts: Number of counter increments with a store failure.
    """

    added: set[int] = field(default_factory=set)
    deleted: set[int] = field(default_factory=set)
    counted: int = 0
    upserted: set[int] = field(default_factory=set)
    tried: Counter[str] = field(default_factory=Counter)
    unsure: set[int] = field(default_factory=set)
    unsure_counts: int = 0
    trying: set[int] = field(default_factory=set)


def create(uri: str, options: dict[str, str], **more: object) -> None:
    """Write a table with only the counter in it."""
    ld.write_dataset(_rows([COUNTER], 0), uri, storage_options=options, **more)


def hammer(uri: str, options: dict[str, str], who: int, seconds: float, what: dict[str, int], stale: bool) -> Tally:
    """Change a table until the time is over.

    Args:
        uri: The table.
        options: Storage options.
        who: Number of this writer.
        seconds: How long; at least `LEAST` changes are made.
        what: Name of each change and how often to choose it.
        stale: Whether one handle is opened for each change at the beginning, and never moved to a newer version by
            another.
    """
    rng, tally = random.Random(who), Tally()
    handles = {name: ld.dataset(uri, storage_options=options) for name in what}
    names = rng.choices(list(what), list(what.values()), k=10_000)
    end = time.monotonic() + seconds
    for turn, name in enumerate(names):
        if turn >= LEAST and time.monotonic() > end:
            break
        change(uri, options, name, who, turn, tally, rng, handles[name] if stale else None)
    return tally


def change(
    uri: str,
    options: dict[str, str],
    name: str,
    who: int,
    turn: int,
    tally: Tally,
    rng: random.Random,
    dataset: ld.LanceDataset | None = None,
) -> None:
    """Make one change with a handle or on the newest version, and record the result."""
    tally.tried[name] += 1
    tally.trying = set()
    try:
        dataset = ld.dataset(uri, storage_options=options) if dataset is None else dataset
        _CHANGES[name](dataset, who, turn, tally, rng)
    except CommitConflictError:
        tally.tried[f"{name} lost"] += 1
    except StoreError:
        tally.tried[f"{name} failed"] += 1
        tally.unsure |= tally.trying
        tally.unsure_counts += name in ("count", "overlay")


def check(uri: str, options: dict[str, str], tallies: list[Tally]) -> None:
    """Check that nothing is lost or duplicated."""
    dataset = ld.dataset(uri, storage_options=options)
    dataset.validate()
    table = dataset.to_table().to_pydict()
    found = Counter(table["id"])
    assert max(found.values()) == 1
    wanted = {COUNTER}.union(*(tally.added | tally.upserted for tally in tallies))
    unsure = set().union(*(tally.unsure for tally in tallies))
    assert set(found) - unsure == wanted - unsure
    assert not (set(found) - unsure) & set().union(*(tally.deleted for tally in tallies))
    count, least = table["n"][table["id"].index(COUNTER)], sum(tally.counted for tally in tallies)
    assert least <= count <= least + sum(tally.unsure_counts for tally in tallies)
    assert dataset.count_rows() == len(found)


def _rows(ids: list[int], who: int) -> pa.Table:
    return pa.table({"id": ids, "n": [0] * len(ids), "by": [who] * len(ids)}, schema=SCHEMA)


def _append(dataset: ld.LanceDataset, who: int, turn: int, tally: Tally, rng: random.Random) -> None:
    first = 1000 + who * 1_000_000 + turn * 10
    ids = list(range(first, first + rng.randint(1, 5)))
    tally.trying = set(ids)
    dataset.insert(_rows(ids, who))
    tally.added.update(ids)


def _delete(dataset: ld.LanceDataset, who: int, turn: int, tally: Tally, rng: random.Random) -> None:
    if not tally.added:
        return
    chosen = rng.choice(sorted(tally.added))
    tally.trying = {chosen}
    if dataset.delete(f"id = {chosen}")["num_deleted_rows"]:  # a stale handle may not know the row
        tally.added.remove(chosen)
        tally.deleted.add(chosen)


def _overlay(dataset: ld.LanceDataset, who: int, turn: int, tally: Tally, rng: random.Random) -> None:
    done = dataset.update({"n": "n + 1"}, where=f"id = {COUNTER}", update_mode="data_overlay")
    assert done["num_rows_updated"] == 1
    tally.counted += 1


def _count(dataset: ld.LanceDataset, who: int, turn: int, tally: Tally, rng: random.Random) -> None:
    done = dataset.update({"n": "n + 1"}, where=f"id = {COUNTER}")
    assert done["num_rows_updated"] == 1
    tally.counted += 1


def _upsert(dataset: ld.LanceDataset, who: int, turn: int, tally: Tally, rng: random.Random) -> None:
    keys = sorted(rng.sample(range(KEYS), 2))
    tally.trying = set(keys)
    dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(_rows(keys, who))
    tally.upserted.update(keys)


def _compact(dataset: ld.LanceDataset, who: int, turn: int, tally: Tally, rng: random.Random) -> None:
    dataset.optimize.compact_files()


_CHANGES = {
    "append": _append,
    "delete": _delete,
    "count": _count,
    "overlay": _overlay,
    "upsert": _upsert,
    "compact": _compact,
}
