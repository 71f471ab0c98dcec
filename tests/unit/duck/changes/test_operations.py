"""The table of upkeep agrees with the verbs that it runs, and with itself."""

from __future__ import annotations

import inspect

from lance_duck.dataset import LanceDataset
from lance_duck.duck.changes.registry import READERS, WORDS
from lance_duck.duck.changes.upkeep.operations import ALIASES, CLEANUP, COMPACT, OPERATIONS, PROCEDURES, TABLE
from lance_duck.duck.history.names import NAMES
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
