"""The structure of the catalogue: column kinds and null patterns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import pyarrow as pa

VERSIONS = ("2.0", "2.1", "2.2")
NOT_LEGACY = frozenset(
    [
        "dictionary_of_date32",
        "dictionary_of_float64",
        "fsl_struct",
        "fsl_struct_null_items",
        "fsl_string",
        "struct_empty",
        "blob_v1",
        "blob_v2",
        "map_string_int32",
        "map_int64_struct",
        "map_string_list",
        "list_map",
        "struct_map",
    ]
)
"""Kinds that pylance does not write in files of version 0.1, or writes and cannot read."""
PATTERNS = ("none", "nulls", "all_null", "sliced", "empty")

Rng = np.random.Generator
Make = Callable[[Rng, int], pa.Array]


@dataclass(frozen=True, eq=False)
class Kind:
    """One column kind.

    Attributes:
        name: Column name, unique in the catalogue.
        make: Returns values without outer nulls, from a generator and a row count.
        metadata: Field metadata that requests an encoding.
        refused: Combinations that pylance rejects, or writes and cannot read: "2.0/nulls", or "2.0" for all but
            `empty`.
        nullable: False writes the field as not nullable; null patterns do not apply to it.
        wide: Values are large, so tables with this kind have fewer rows.
        duckdb: DuckDB can represent the type, nulls included.
    """

    name: str
    make: Make
    metadata: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    nullable: bool = True
    wide: bool = False
    duckdb: bool = True

    def field_of(self, array: pa.Array) -> pa.Field:
        """Return the schema field for an array of this kind."""
        return pa.field(self.name, array.type, self.nullable, dict(self.metadata) or None)

    def is_refused(self, version: str, pattern: str) -> bool:
        """Whether pylance gives back no table of this kind."""
        if version == "legacy":
            return self.name in NOT_LEGACY
        return f"{version}/{pattern}" in self.refused or (pattern != "empty" and version in self.refused)

    def patterns(self) -> tuple[str, ...]:
        """Return the null patterns that the kind allows."""
        return PATTERNS if self.nullable else ("none", "sliced", "empty")


def lay_nulls(array: pa.Array, pattern: str, rng: Rng) -> pa.Array:
    """Return the array under a null pattern; `sliced` has an offset and the nulls of `nulls`."""
    n = len(array)
    if pattern == "none":
        return array
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        plain = lay_nulls(pa.array(array.to_pylist(), _plain(array.type)), pattern, rng)
        return pa.array(plain.to_pylist(), array.type)
    if pattern == "all_null":
        return array.take(pa.nulls(n, pa.int64()))
    mask = rng.random(n) < 0.2
    mask[n // 3 : n // 3 + n // 10] = True
    return array.take(pa.array(np.arange(n), mask=mask))


@lru_cache(maxsize=1500)  # about the arrays of one null pattern, which tables of each storage version have
def build(kind: Kind, pattern: str, rows: int, seed: int) -> pa.Array:
    """Return `rows` values of the kind under the pattern (0 rows for `empty`), the same for the same seed."""
    rng = np.random.default_rng([seed, *kind.name.encode()])
    if pattern == "empty":
        return kind.make(rng, 5).slice(0, 0)
    if pattern == "sliced":
        array = kind.make(rng, rows + 13)
        return (lay_nulls(array, "nulls", rng) if kind.nullable else array).slice(7, rows)
    return lay_nulls(kind.make(rng, rows), pattern, rng)


def _plain(view: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_string_view(view) else pa.binary()
