"""Many writers commit to a table on a simulated store. The result must equal a series of single commits.

The fragments name data files that do not exist, because only manifests matter here. Each commit is recorded with its
effect and its outcome: done, refused or unknown. Afterwards, all versions are read in order. Each version must equal
the previous one plus one effect. Effects of done commits exist once. Effects of refused commits do not exist.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from trust.simulation.scheduler import Scheduler
from trust.simulation.service import SimulatedService, Weather

import lance_duck as ld
from lance_duck.commit import (
    Append,
    Delete,
    Operation,
    Overwrite,
    Restore,
    Rewrite,
    RewriteGroup,
    UpdateConfig,
    UpdateMap,
    commit,
    create_table,
)
from lance_duck.errors import CommitConflictError, StoreError
from lance_duck.snapshot import Location, Snapshot, open_snapshot
from lance_duck.wire.fragment import Fragment

TABLES = 4
COUNTER = "counter"
WEATHERS = (
    Weather(),
    Weather(repeated=0.1),
    Weather(lost=0.02, unanswered=0.02, repeated=0.05),
    Weather(lost=0.05, unanswered=0.05, late=0.05, repeated=0.05),
    Weather(late=0.1),
)

Rows = dict[str, int]


@dataclass
class Effect:
    """The effect of one commit.

    Attributes:
        added: Row counts by data file of the new fragments.
        removed: Data files of removed fragments.
        read: Version that the writer read.
        count: New value of the counter.
        restored: Restored version.
        replaces: Whether all other fragments are removed.
        outcome: "done", "refused" or "unknown".
        version: Committed version, if the outcome is "done".
    """

    added: Rows = field(default_factory=dict)
    removed: tuple[str, ...] = ()
    read: int = 0
    count: int | None = None
    restored: int | None = None
    replaces: bool = False
    outcome: str = "unknown"
    version: int = 0


@dataclass(frozen=True)
class Past:
    """The expected content of a version.

    Attributes:
        rows: Row counts by data file.
        count: Value of the counter.
        restored_at: Latest version that restored an older one, or 0.
    """

    rows: Rows
    count: int
    restored_at: int


class SimulatedTable:
    """A table, its writers, and their commits.

    Args:
        rng: Random generator.

    Attributes:
        effects: The effect of each transaction, by uuid.
    """

    uri = "memory://simulated/t.lance"

    def __init__(self, rng: Random) -> None:
        self.effects: dict[str, Effect] = {}
        self.scheduler = Scheduler(rng)
        self.service = SimulatedService(rng, self.scheduler)
        self._rng = rng
        self._seen = 1
        self._files = 0

    def live(self) -> None:
        """Create the table, let writers commit to it, and check the result."""
        first, schema = template()
        effect = self._new(Effect(added=self._rows(2), replaces=True, outcome="done", version=1))
        fragments = [self._fragment(first, file, rows) for file, rows in self.effects[effect].added.items()]
        create_table(Location.of(self.uri), Overwrite(schema, fragments), transaction_uuid=effect)
        self.service.weather = self._rng.choice(WEATHERS)
        writers = self._rng.randrange(2, 8)
        self.scheduler.run([lambda: self._write(self._rng.randrange(4, 16)) for _ in range(writers)])
        self.service.weather = Weather()
        self._check()

    def _write(self, changes: int) -> None:
        """Commit changes in sequence. Each one reads an old or a new version."""
        snapshot: Snapshot | None = None
        for _ in range(changes):
            try:
                least = self._seen
                if snapshot is None or self._rng.random() < 0.6:
                    snapshot = open_snapshot(self.uri)
                    assert snapshot.version >= least, f"version {snapshot.version} was read after version {least}"
            except StoreError:
                continue
            name, operation = self._drawn(snapshot)
            effect = self.effects[name]
            effect.read = snapshot.version
            retries = self._rng.choice((0, 2, 20, 20))
            try:
                snapshot = commit(snapshot, operation, retries=retries, transaction_uuid=name)
            except CommitConflictError:
                effect.outcome = "refused"
            except StoreError:
                continue
            else:
                effect.outcome, effect.version = "done", snapshot.version
                self._seen = max(self._seen, snapshot.version)

    def _drawn(self, snapshot: Snapshot) -> tuple[str, Operation]:
        """Return a random operation on a version, and its transaction uuid."""
        kind = self._rng.choices(
            ("append", "delete", "compact", "count", "overwrite", "restore"), (10, 3, 3, 4, 0.3, 0.3)
        )[0]
        present = list(snapshot.fragments)
        some = self._rng.sample(present, min(len(present), self._rng.randrange(1, 4)))
        first, schema = template()
        if kind == "count":
            count = int(snapshot.config.get(COUNTER, "0")) + 1
            return self._new(Effect(count=count)), UpdateConfig(UpdateMap({COUNTER: str(count)}))
        if kind == "restore":
            version = self._rng.randrange(1, snapshot.version + 1)
            return self._new(Effect(restored=version)), Restore(version)
        if kind == "delete" and some:
            effect = Effect(removed=tuple(fragment.files[0].path for fragment in some))
            return self._new(effect), Delete([], [fragment.id for fragment in some])
        if kind == "compact" and some:
            rows = {self._file(): sum(fragment.physical_rows for fragment in some)}
            effect = Effect(added=rows, removed=tuple(fragment.files[0].path for fragment in some))
            some.sort(key=lambda fragment: fragment.id)
            new = [self._fragment(first, file, count) for file, count in rows.items()]
            return self._new(effect), Rewrite([RewriteGroup(some, new)])
        effect = Effect(added=self._rows(self._rng.randrange(1, 3)), replaces=kind == "overwrite")
        fragments = [self._fragment(first, file, rows) for file, rows in effect.added.items()]
        return self._new(effect), Overwrite(schema, fragments) if effect.replaces else Append(fragments)

    def _new(self, effect: Effect) -> str:
        name = str(uuid.UUID(int=self._rng.getrandbits(128)))
        self.effects[name] = effect
        return name

    def _file(self) -> str:
        self._files += 1
        return f"{self._files}.lance"

    def _rows(self, count: int) -> Rows:
        return {self._file(): self._rng.randrange(1, 100) for _ in range(count)}

    def _fragment(self, first: Fragment, file: str, rows: int) -> Fragment:
        return replace(first, id=0, files=(replace(first.files[0], path=file),), physical_rows=rows)

    def _check(self) -> None:
        """Compare all versions with the recorded effects."""
        newest = open_snapshot(self.uri)
        numbers = newest.version_numbers()
        assert numbers == list(range(1, newest.version + 1)), f"versions {numbers}"
        past: dict[int, Past] = {0: Past({}, 0, 0)}
        visible: dict[str, int] = {}
        given: dict[int, str] = {}
        before = None
        for number in numbers:
            snapshot = open_snapshot(self.uri, number)
            transaction = snapshot.transaction()
            assert transaction is not None
            name = transaction.proto.uuid
            assert name not in visible, f"{self.effects[name]} is version {visible[name]} and {number}"
            visible[name] = number
            past[number] = after(past, number, self.effects[name])
            rows = {fragment.files[0].path: fragment.physical_rows for fragment in snapshot.fragments}
            assert rows == past[number].rows, f"version {number}: {rows}, not {past[number].rows}"
            assert int(snapshot.config.get(COUNTER, "0")) == past[number].count, f"version {number}"
            for fragment in snapshot.fragments:
                assert given.setdefault(fragment.id, fragment.files[0].path) == fragment.files[0].path
            assert before is None or snapshot.timestamp >= before, f"version {number} is older than the one before"
            before = snapshot.timestamp
        for name, effect in self.effects.items():
            if effect.outcome == "done":
                assert visible.get(name) == effect.version, f"{effect} is version {visible.get(name)}"
            assert effect.outcome != "refused" or name not in visible, f"{effect} was refused, but exists"


def after(past: Mapping[int, Past], number: int, effect: Effect) -> Past:
    """Return the expected content of a version that adds an effect."""
    before = past[number - 1]
    if effect.restored is not None:
        return replace(past[effect.restored], restored_at=number)
    gone = set(before.rows) if effect.replaces else set(effect.removed)
    assert gone <= set(before.rows), f"version {number} takes away what is gone: {gone - set(before.rows)}"
    if effect.read >= before.restored_at:  # Lance applies settings on top of a concurrently restored version
        assert effect.count in (None, before.count + 1), f"version {number} counts to {effect.count} after {before}"
    left = {file: count for file, count in before.rows.items() if file not in gone}
    return Past(left | effect.added, before.count if effect.count is None else effect.count, before.restored_at)


@cache
def template() -> tuple[Fragment, Any]:
    """Return a fragment and a schema for new tables."""
    snapshot = ld.write_dataset(pa.table({"a": [1]}), "memory://template").handle.snapshot
    return snapshot.fragments[0], snapshot.schema


def commits(seed: int, folder: Path) -> Mapping[str, int]:
    """Simulate several tables and count the outcomes of their commits."""
    rng, counts = Random(seed), {"commits": 0, "refused": 0, "unknown": 0, "requests": 0}
    template()
    for _ in range(TABLES):
        with pytest.MonkeyPatch.context() as patch:
            table = SimulatedTable(rng)
            table.service.install(patch)
            table.live()
        outcomes = [effect.outcome for effect in table.effects.values()]
        counts["commits"] += outcomes.count("done")
        counts["refused"] += outcomes.count("refused")
        counts["unknown"] += outcomes.count("unknown")
        counts["requests"] += table.service.requests
    return counts
