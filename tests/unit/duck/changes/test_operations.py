"""The table of upkeep agrees with the verbs that it runs, and with itself."""

from __future__ import annotations

import inspect
from datetime import timedelta
from pathlib import Path

import pytest

import lance_duck as ld
from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.registry import READERS, WORDS
from lance_duck.duck.changes.upkeep.operations import ALIASES, CLEANUP, COMPACT, OPERATIONS, PROCEDURES, TABLE
from lance_duck.duck.history.names import NAMES
from lance_duck.maintenance import cleanup_plan
from lance_duck.maintenance.options import CompactionArguments


def test_compaction_arguments_equal_those_of_the_method() -> None:
    assert set(COMPACT.parameters) == {*CompactionArguments.__annotations__, "dry_run"}


def test_cleanup_arguments_equal_those_of_the_method() -> None:
    verb = inspect.signature(LanceDataset.cleanup_old_versions).parameters
    assert {ALIASES.get(name, name) for name in CLEANUP.parameters} <= set(verb)


def test_operation_names_are_unique() -> None:
    names = [operation.name for operation in OPERATIONS if operation.name]
    assert len(names) == len(set(names)) == len(PROCEDURES)
    assert NAMES.isdisjoint(names)
    assert set(WORDS) >= PROCEDURES.keys()


def test_every_operation_is_callable() -> None:
    for operation in OPERATIONS:
        assert operation.name or operation.words
        assert not operation.words or operation.words.split()[0].lower() in READERS
        assert TABLE not in operation.parameters
        assert operation.required <= len(operation.parameters)
        assert set(operation.not_null) <= set(list(operation.parameters)[: operation.required])


def test_a_checkpoint_keeps_old_versions_that_have_a_tag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup_plan, "DEFAULT_AGE", timedelta(0))
    ds = ld.write_dataset({"id": [1]}, tmp_path / "t.lance")
    ds.tags.create("first", 1)
    for number in (2, 3):
        ds.insert({"id": [number]})
    with ld.connect(tmp_path) as con:
        con.execute("CHECKPOINT t")
        assert con.execute("FROM t AT (VERSION => 'first')").fetchall() == [(1,)]
    numbers = [version["version"] for version in ld.dataset(tmp_path / "t.lance").versions()]
    assert len(numbers) == 2
    assert numbers[0] == 1
