"""Feature flags one by one: the operations that each flag allows, in this package and in pylance."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import lance
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import CorruptError, LanceDuckError, UnsupportedError
from lance_duck.wire.manifest import read_manifest
from lance_duck.wire.pb import table_pb2

ROWS: Final = pa.table({"a": [1, 2, 3]})
WORDS: Final = ("both", "writer", "reader")
FINE, READ_ONLY, REFUSED, CORRUPT = "read and written", "read", "refused", "corrupt"

KNOWN: Final = (FINE, FINE, FINE)
PAIR: Final = (FINE, CORRUPT, CORRUPT)
UNKNOWN: Final = (REFUSED, READ_ONLY, REFUSED)
BITS: Final[dict[int, tuple[str, tuple[str, str, str]]]] = {
    1: ("deletion files", KNOWN),
    2: ("stable row ids", KNOWN),
    4: ("2.x data files", KNOWN),
    8: ("table config", KNOWN),
    16: ("base paths", KNOWN),
    32: ("no transaction file", KNOWN),
    64: ("data overlay files", KNOWN),
    128: ("covered index metadata", KNOWN),
    256: ("mixed data file versions", PAIR),
    512: ("unknown", UNKNOWN),
    1024: ("tagged fragment reuse index", PAIR),
    2048: ("spilled row lineage", KNOWN),
    4096: ("unknown", UNKNOWN),
    8192: ("unknown", UNKNOWN),
    16384: ("managed blobs", PAIR),
    32768: ("field ids not used again", (CORRUPT, CORRUPT, CORRUPT)),
    65536: ("zone write seeds", (REFUSED, CORRUPT, CORRUPT)),
    131072: ("unknown", UNKNOWN),
    262144: ("unknown", UNKNOWN),
    524288: ("unknown", UNKNOWN),
}
"""Name of each flag, and the operations it allows.

The flag is set for readers and writers, for writers only, and for readers only.
"""

ELSEWHERE: Final = {
    (2, "both"): REFUSED,  # it reads the row ids, which the table does not have
    (2, "reader"): REFUSED,
}
"""Where pylance differs, with overlays allowed by `conftest`."""

CASES: Final = [(bit, word, BITS[bit][1][i]) for bit in BITS for i, word in enumerate(WORDS)]


def with_flags(path: Path, change: Callable[[table_pb2.Manifest], None]) -> str:
    """Make a table whose only manifest is changed, and return its path."""
    ld.write_dataset(ROWS, path)
    (file,) = (path / "_versions").glob("*.manifest")
    data = file.read_bytes()
    manifest = read_manifest(data, "manifest").proto
    change(manifest)
    (position,) = struct.unpack_from("<Q", data, len(data) - 16)
    message = manifest.SerializeToString()
    file.write_bytes(data[:position] + struct.pack("<I", len(message)) + message + data[-16:])
    return str(path)


def table(path: Path, bit: int, word: str) -> str:
    def change(manifest: table_pb2.Manifest) -> None:
        manifest.reader_feature_flags |= 0 if word == "writer" else bit
        manifest.writer_feature_flags |= 0 if word == "reader" else bit

    return with_flags(path, change)


def outcome(module: Any, uri: str, errors: Any) -> str:
    try:
        assert module.dataset(uri).to_table() == ROWS
    except errors as error:
        return CORRUPT if "corrupt" in str(error) or isinstance(error, CorruptError) else REFUSED
    try:
        module.write_dataset(ROWS, uri, mode="append")
    except errors:
        return READ_ONLY
    assert module.dataset(uri).count_rows() == 6
    return FINE


@pytest.mark.parametrize(("bit", "word", "expected"), CASES)
def test_each_feature_flag_allows_what_the_table_documents(bit: int, word: str, expected: str, tmp_path: Path) -> None:
    assert outcome(ld, table(tmp_path / "t.lance", bit, word), LanceDuckError) == expected


@pytest.mark.parametrize(("bit", "word", "expected"), CASES)
def test_each_feature_flag_allows_the_same_in_pylance(bit: int, word: str, expected: str, tmp_path: Path) -> None:
    found = outcome(lance, table(tmp_path / "t.lance", bit, word), (ValueError, OSError))
    assert found == ELSEWHERE.get((bit, word), expected)


@pytest.mark.parametrize(("bit", "word", "expected"), [case for case in CASES if case[2] != FINE])
def test_a_rejection_names_the_flag_and_changes_nothing(bit: int, word: str, expected: str, tmp_path: Path) -> None:
    uri = table(tmp_path / "t.lance", bit, word)
    before = {f: f.read_bytes() for f in Path(uri).rglob("*") if f.is_file()}
    kind = CorruptError if expected == CORRUPT else UnsupportedError
    with pytest.raises(kind, match=rf"\b{bit} \({BITS[bit][0]}\)"):
        ld.write_dataset(ROWS, uri, mode="append")
    assert {f: f.read_bytes() for f in Path(uri).rglob("*") if f.is_file()} == before


@pytest.mark.parametrize("bit", [bit for bit in BITS if BITS[bit][1][1] == READ_ONLY])
def test_unknown_writer_flags_allow_tags_but_not_cleanup(bit: int, tmp_path: Path) -> None:
    dataset = ld.dataset(table(tmp_path / "t.lance", bit, "writer"))
    dataset.tags.create("first", 1)
    assert [*dataset.tags.list()] == ["first"]
    changes: list[Callable[[], Any]] = [
        lambda: dataset.cleanup_old_versions(timedelta(0)),
        lambda: dataset.explain_cleanup_old_versions(timedelta(0)),
        lambda: dataset.delete("a = 1"),
        lambda: dataset.create_scalar_index("a", "BTREE"),
        lambda: dataset.create_branch("b"),
        lambda: dataset.update_config({"k": "v"}),
        lambda: dataset.restore(),
    ]
    for change in changes:
        with pytest.raises(UnsupportedError, match=str(bit)):
            change()


@pytest.mark.parametrize(
    ("reader", "writer", "highest", "is_fine"),
    [(0, 1, 0, True), (0, 1, 5, True), (0, 0, 5, False), (0, 1, None, False), (1, 1, 5, False), (1, 0, 5, False)],
)
def test_the_highest_field_id_requires_its_writer_flag(
    reader: int, writer: int, highest: int | None, is_fine: bool, tmp_path: Path
) -> None:
    def change(manifest: table_pb2.Manifest) -> None:
        manifest.reader_feature_flags, manifest.writer_feature_flags = reader << 15, writer << 15
        if highest is not None:
            manifest.max_allocated_field_id = highest

    uri = with_flags(tmp_path / "t.lance", change)
    assert outcome(lance, uri, (ValueError, OSError)) == (FINE if is_fine else CORRUPT)
    found = outcome(ld, with_flags(tmp_path / "u.lance", change), LanceDuckError)
    assert found == (FINE if is_fine else CORRUPT)
