"""Changes of tables with file version 0.1, and of tables with data overlays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from oracle.predicates import Column
from oracle.test_index_answers import CHANGES, Life, append, compact, delete, upsert
from support.overlays import add_overlay

import lance_duck as ld

import lance  # isort: skip  after setting the environment variables that it reads

FILLED = "a"
"""String that replaces nulls and empty strings, which version 0.1 cannot distinguish."""


class OldLife(Life):
    """A table of file version 0.1. Its values are never null or empty, because the format confuses these."""

    VERSIONS: ClassVar[Sequence[str]] = ("legacy", "0.1", "legacy")

    def rows(self, keys: Sequence[int]) -> pa.Table:
        """Return rows with keys."""
        table = super().rows(keys)
        for number, column in enumerate(self.columns, 1):
            table = table.set_column(number, column.name, _storable(column, table[column.name].to_pylist()))
        return table

    def values(self, column: Column, count: int) -> pa.Array:
        """Return random values of a column."""
        return _storable(column, super().values(column, count).to_pylist())

    def literal(self, column: Column) -> str:
        """Return an SQL literal of a random value."""
        literal = super().literal(column)
        return f"'{FILLED}'" if literal == "''" else literal


def _storable(column: Column, values: Sequence[Any]) -> pa.Array:
    if pa.types.is_list(column.type):
        return pa.array([[item or FILLED for item in value or []] for value in values], column.type)
    filled = column.values[-1]
    return pa.array([filled if value is None or value == "" else value for value in values], column.type)


def compact_old(life: Life, **options: Any) -> None:
    """Compact the table. Most compactions keep file version 0.1."""
    if life.stable and options:
        return
    version = None if life.rng.random() < 0.3 else "0.1"
    life.said[-1] += f" into {version or '2.2'} by us"
    dataset = ld.dataset(life.path)
    if dataset.data_storage_version != "0.1":
        version = None
    dataset.optimize.compact_files(target_rows_per_fragment=90, data_storage_version=version, **options)


OLD_CHANGES: tuple[Callable[[Any], None], ...] = (
    *(change for change in CHANGES if getattr(change, "func", change) is not compact),
    append,
    compact_old,
    partial(compact_old, defer_index_remap=True),
)


def overlay(life: Life) -> None:
    """Overlay a column of some rows, with either library."""
    column = life.columns[int(life.rng.integers(0, len(life.columns)))]
    if life.writer() is ld and not pa.types.is_nested(column.type):
        life.said[-1] += f" {column.name} by us"
        where = f"key % {life.rng.integers(2, 9)} = 0"
        ld.dataset(life.path).update({column.name: life.literal(column)}, where=where, update_mode="data_overlay")
        return
    life.said[-1] += f" {column.name} by pylance"
    fragments = lance.dataset(life.path).get_fragments()
    if not fragments:
        return
    fragment = fragments[int(life.rng.integers(0, len(fragments)))]
    offsets = np.flatnonzero(life.rng.random(fragment.metadata.physical_rows) < 0.3)
    if len(offsets):
        values = pa.table({column.name: life.values(column, len(offsets))})
        add_overlay(life.path, fragment.fragment_id, values, offsets.tolist())


OVERLAYING_CHANGES: tuple[Callable[[Any], None], ...] = (*CHANGES, overlay, overlay, overlay, delete, upsert)
