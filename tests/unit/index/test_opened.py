"""Segments whose manifest entry does not declare their kind."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from corruption.containers import manifest_path, with_segments

import lance_duck as ld
from lance_duck.index.catalog import catalog
from lance_duck.wire.pb import table_pb2

ROWS = pa.table(
    {
        "i": [3, 1, None, 2],
        "c": ["a", "b", None, "a"],
        "l": [["x"], ["y", "x"], None, []],
        "s": ["some ducks", "a lake", None, "ducks"],
    }
)


def without_details(table: Path, **fields: int) -> None:
    """Clear the details of all segment entries, and change other fields."""

    def change(section: table_pb2.IndexSection) -> None:
        for entry in section.indices:
            entry.ClearField("index_details")
            for name, value in fields.items():
                setattr(entry, name, value)

    manifest = manifest_path(table)
    manifest.write_bytes(with_segments(manifest.read_bytes(), change))


@pytest.mark.parametrize(
    ("column", "kind", "name", "filter_"),
    [
        ("i", "BTREE", "BTree", "i >= 2"),
        ("c", "BITMAP", "Bitmap", "c = 'a'"),
        ("l", "LABEL_LIST", "LabelList", "array_has_any(l, ['y'])"),
        ("c", "ZONEMAP", None, "c = 'a'"),
    ],
)
def test_a_segment_without_details_is_recognised_by_its_files(
    column: str, kind: str, name: str | None, filter_: str, tmp_path: Path
) -> None:
    dataset = ld.write_dataset(ROWS, tmp_path / "t.lance", storage_options={"checksums": "false"})
    truth = dataset.to_table(filter=filter_)
    dataset.create_scalar_index(column, kind)
    without_details(tmp_path / "t.lance")
    dataset = ld.dataset(tmp_path / "t.lance")
    (index,) = catalog(dataset.handle.snapshot)
    assert [segment.kind.name for segment in index.segments] == ([name] if name else [])
    assert dataset.list_indices()[0]["type"] == (name or "Unknown")
    assert dataset.to_table(filter=filter_) == truth
    if name is not None:
        assert "fragments: 1 through indexes, 0 scanned" in dataset.scanner(filter=filter_).explain_plan()


def test_words_are_found_in_a_segment_without_a_kind(tmp_path: Path) -> None:
    dataset = ld.write_dataset(ROWS, tmp_path / "t.lance", storage_options={"checksums": "false"})
    dataset.create_scalar_index("s", "INVERTED")
    found = dataset.to_table(["s"], full_text_query="ducks")
    without_details(tmp_path / "t.lance")
    dataset = ld.dataset(tmp_path / "t.lance")
    assert [segment.kind.name for index in catalog(dataset.handle.snapshot) for segment in index.segments] == [
        "Inverted"
    ]
    assert dataset.to_table(["s"], full_text_query="ducks") == found


def test_an_unreadable_index_section_does_not_affect_the_next_version(tmp_path: Path) -> None:
    uri = tmp_path / "t.lance"
    ld.write_dataset(ROWS, uri, storage_options={"checksums": "false"}).create_scalar_index("i", "BTREE")
    manifest = manifest_path(uri)
    data = bytearray(manifest.read_bytes())
    data[4:12] = b"\xff" * 8  # the index section is first
    sound = manifest.read_bytes()
    manifest.write_bytes(data)
    dataset = ld.dataset(uri)
    manifest.write_bytes(sound)
    ld.dataset(uri).delete("i = 1")
    dataset.checkout_latest()
    assert dataset.to_table(["i"])["i"].to_pylist() == [3, None, 2]


def test_an_unsupported_index_version_is_not_read(tmp_path: Path) -> None:
    ld.write_dataset(ROWS, tmp_path / "t.lance", storage_options={"checksums": "false"}).create_scalar_index(
        "i", "BTREE"
    )
    without_details(tmp_path / "t.lance", index_version=9)
    (index,) = catalog(ld.dataset(tmp_path / "t.lance").handle.snapshot)
    assert [each.reason for each in index.ignored] == ["version 9 of index kind BTree is not supported"]
