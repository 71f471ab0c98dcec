"""Every column kind, file version and null pattern written by this package: pylance validates and reads it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from oracle import tables
from oracle.cases import Cases
from oracle.compare import assert_fields_same, assert_same
from oracle.kinds import PATTERNS, VERSIONS, Kind
from oracle.tables import ID, MISREAD, kinds_of, make_table
from support.matrix import pairwise

import lance_duck as ld
from lance_duck.errors import LanceDuckError

CASE_KIND = "written"
SMALL_PAGE = 16 * 1024
NO_FSYNC = {"fsync": "false"}
NARROW_ROWS = ((2100, 1), (1, 1), (150, 3))
WIDE_ROWS = ((60, 1), (1, 1), (20, 2))
LOSES_NULLS = ("struct_empty",)  # pylance 14.0.2 writes null structs without members as structs
TABLES = pairwise([*tables.GROUPS], VERSIONS, PATTERNS)


def write(uri: str, kinds: Sequence[Kind], group: str, version: str, pattern: str) -> pa.Table:
    """Write a large fragment, one of one row, and one of many small pages; return the written rows."""
    first = 0
    written = []
    for rows, batches in WIDE_ROWS if group == "wide" else NARROW_ROWS:
        parts = [make_table(kinds, pattern, rows, first + i * rows) for i in range(batches)]
        first += rows * batches
        written += parts
        cache = SMALL_PAGE * len(kinds) if batches > 1 else None
        whole = pa.concat_tables(parts)
        options = {"data_cache_bytes": cache, "storage_options": NO_FSYNC}
        ld.write_dataset(whole, uri, mode="append", data_storage_version=version, **options)
        if pattern == "empty":
            break
    return pa.concat_tables(written)


def given(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return written values as they are read: in storage types, without views, blobs as bytes, JSON without spaces."""
    kind = column.type
    if isinstance(kind, pa.JsonType):
        texts = [None if t is None else json.dumps(json.loads(t), separators=(",", ":")) for t in column.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    if isinstance(kind, pa.BaseExtensionType):
        storage = pa.chunked_array([c.storage for c in column.chunks], kind.storage_type)
        if kind.extension_name == "lance.blob.v2":
            return pa.chunked_array([c.flatten()[0] for c in storage.chunks], pa.large_binary())
        return storage
    if pa.types.is_dictionary(kind):
        return column.cast(kind.value_type)
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(kind, kind)
    return column if plain == kind else column.cast(plain)


def same(cases: Cases, name: str, expected: pa.Table, read: Callable[[str], pa.Table]) -> None:
    for column in expected.column_names:
        with cases.case(f"{name}: {column}"):
            right = given(read(column)[column])
            left = expected[column]
            assert_same(left if left.type == right.type else left.cast(right.type), right)


def whole_or_each(names: list[str], read: Callable[[list[str]], pa.Table]) -> Callable[[str], pa.Table]:
    """Return a function that reads columns together, or separately if pylance fails on the combination."""
    try:
        whole = read(names)
    except (OSError, ValueError, pa.ArrowException):
        return lambda name: read([name])
    return lambda name: whole


def is_common(kind: Kind, version: str, pattern: str) -> bool:
    """Return whether pylance writes these tables, and others of the kind with values."""
    if kind.name in LOSES_NULLS and pattern == "all_null":
        return False
    return not kind.is_refused(version, pattern) and not kind.is_refused(version, "none")


@pytest.mark.parametrize(("group", "version", "pattern"), TABLES)
def test_pylance_reads_all_written_types(group: str, version: str, pattern: str, tmp_path: Path, cases: Cases) -> None:
    kinds = [kind for kind in kinds_of(group, version, pattern) if is_common(kind, version, pattern)]
    uri = str(tmp_path / "t.lance")
    written = write(uri, kinds, group, version, pattern)
    expected = pa.table({name: given(written[name]) for name in written.column_names})
    theirs, ours = lance.dataset(uri), ld.dataset(uri)
    theirs.validate()
    with cases.case("schema"):
        for field in theirs.schema:
            assert_fields_same(field, ours.schema.field(field.name))
    everything = ours.to_table(blob_handling="all_binary")
    same(cases, "ours", expected, lambda name: everything)
    sound = [name for name in expected.column_names if name not in MISREAD]
    read = whole_or_each(sound, lambda names: theirs.to_table(columns=names, blob_handling="all_binary"))
    same(cases, "pylance", expected.select(sound), read)
    if expected.num_rows:
        rows = [0, expected.num_rows - 1, *np.random.default_rng(3).integers(0, expected.num_rows, 20).tolist()]
        plain = [name for name in sound if "blob" not in name]
        taken = whole_or_each(plain, lambda names: theirs.take(rows, columns=names))
        same(cases, "pylance takes", expected.select(plain).take(rows), taken)


def attempt(table: pa.Table, uri: str, version: str) -> tuple[str, pa.Table | None]:
    """Return written rows as they are read, or the error text."""
    try:
        return "", ld.write_dataset(table, uri, data_storage_version=version, storage_options=NO_FSYNC).to_table()
    except LanceDuckError as error:
        return str(error), None


@pytest.mark.parametrize("version", VERSIONS)
def test_types_that_pylance_cannot_write_are_rejected_or_round_trip(version: str, tmp_path: Path, cases: Cases) -> None:
    for kind in tables.KINDS:
        for pattern in kind.patterns():
            if is_common(kind, version, pattern):
                continue
            with cases.case(f"{kind.name} {pattern}"):
                table = make_table([kind], pattern, 150)
                uri = str(tmp_path / f"{kind.name}-{pattern}.lance")
                refusal, found = attempt(table, uri, version)
                if found is None:
                    assert kind.name in refusal
                    assert not any(Path(uri).rglob("*.lance"))
                else:
                    assert_same(given(table[kind.name]), given(found[kind.name]))
                    assert found[ID].to_pylist() == table[ID].to_pylist()
