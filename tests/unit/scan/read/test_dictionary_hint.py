from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.scan.costs import LARGEST_REPEATED_TEXT
from lance_duck.scan.projection import reads
from lance_duck.scan.read.fragment_reader import ColumnCache
from lance_duck.scan.table_scan import repeats

FEW = [f"text {i}" for i in range(4)]
MANY = [f"{i:06d}" for i in range(4_000)]


def asked(path: Path, *fragments: list[str]) -> bool:
    for texts in fragments:
        ld.write_dataset(pa.table({"s": pa.array(texts, pa.string())}), path, mode="append")
    snapshot = ld.dataset(path).handle.snapshot
    (read,) = reads(snapshot.schema, [("s",)])
    return repeats(snapshot, ColumnCache(), read)


@pytest.mark.parametrize(
    ("fragments", "expected"),
    [([FEW * 1000], True), ([FEW * 1000, FEW * 1000], True), ([MANY], False), ([FEW * 1000, MANY], False)],
)
def test_strings_are_exported_as_a_dictionary_if_all_pages_have_one(
    tmp_path: Path, fragments: list[list[str]], expected: bool
) -> None:
    assert asked(tmp_path / "t.lance", *fragments) == expected


def test_long_and_empty_columns_are_not_exported_as_a_dictionary(tmp_path: Path) -> None:
    long = [f"{i}" * 4 * LARGEST_REPEATED_TEXT for i in range(4)]
    assert not asked(tmp_path / "long.lance", [each for each in long for _ in range(5)])
    assert not asked(tmp_path / "empty.lance", [])
