"""Written files are hardly larger than pylance's, for every column kind, file version and null pattern."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance.file import LanceFileWriter as TheirWriter
from oracle import tables
from oracle.kinds import VERSIONS, build

from lance_duck.file import LanceFileWriter

ROWS = 5000
WIDE_ROWS = 150
LARGER = 1.1
FEW_BYTES = 200
NO_TYPE = ("fsl_string",)  # Lance does not have this type; pylance writes it if all lists are null
LOSES_NULLS = ("struct_empty",)  # pylance 14.0.2 writes null structs without members as structs
READ_BY_ALL = ("list_int32_items_all_null",)  # pylance 1 to 4 lose rows of constant pages from pylance 14.0.2
FEWEST = 700


def size(writer: type[Any], path: Path, table: pa.Table, **options: Any) -> int:
    """Bytes of a file that holds the table."""
    with writer(str(path), table.schema, **options) as file:
        file.write_batch(table.to_batches()[0])
    return path.stat().st_size


@pytest.mark.parametrize("pattern", ["none", "nulls", "all_null"])
def test_columns_are_hardly_larger_than_in_pylance(pattern: str, tmp_path: Path) -> None:
    larger, seen = [], 0
    skipped = (*NO_TYPE, *LOSES_NULLS) if pattern == "all_null" else NO_TYPE
    for kind in tables.KINDS:
        versions = [version for version in VERSIONS if not kind.is_refused(version, pattern)]
        if pattern not in kind.patterns() or kind.name in skipped or not versions:
            continue
        array = build(kind, pattern, WIDE_ROWS if kind.wide else ROWS, 1)
        table = pa.table([array], schema=pa.schema([kind.field_of(array)]))
        for version in versions:
            try:
                theirs = size(TheirWriter, tmp_path / "theirs.lance", table, version=version)
            except (ValueError, OSError):  # single files of pylance hold less than its tables
                continue
            options = {"version": version, "storage_options": {"fsync": "false"}}
            ours = size(LanceFileWriter, tmp_path / "ours.lance", table, **options)
            seen += 1
            if ours > LARGER * theirs + FEW_BYTES and kind.name not in READ_BY_ALL:
                larger.append(f"{kind.name} {version}: {ours} bytes, {theirs} theirs")
    assert not larger
    assert seen > FEWEST
