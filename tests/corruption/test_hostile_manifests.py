"""Well-formed manifests with forbidden references."""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from corruption.containers import manifest_path, read_manifest, with_manifest

import lance_duck as ld
from lance_duck.errors import CorruptError, InvalidInputError, LanceDuckError, NotFoundError, UnsupportedError
from lance_duck.wire.pb import table_pb2

Change = Callable[[table_pb2.Manifest], object]


def changed(history: Path, folder: Path, change: Change) -> str:
    """Copy the table into the folder, change its latest manifest, and return its path."""
    table = folder / "inner" / "t.lance"
    shutil.copytree(history, table)
    path = manifest_path(table)
    manifest = read_manifest(path.read_bytes())
    change(manifest)
    path.write_bytes(with_manifest(path.read_bytes(), manifest))
    return str(table)


def _first_file(manifest: table_pb2.Manifest) -> table_pb2.DataFile:
    return manifest.fragments[0].files[0]


@pytest.fixture
def outside(history: Path, tmp_path: Path) -> Path:
    """A sound data file next to, but outside, the table."""
    path = tmp_path / "outside.lance"
    shutil.copy(next((history / "data").glob("*.lance")), path)
    return path


@pytest.mark.parametrize("prefix", ["../../../", "x/../../../../", "./../../../"])
def test_path_that_climbs_out_of_the_table(prefix: str, history: Path, outside: Path, tmp_path: Path) -> None:
    uri = changed(history, tmp_path, lambda m: setattr(_first_file(m), "path", prefix + outside.name))
    with pytest.raises(LanceDuckError, match="outside the table's folder"):
        ld.dataset(uri).to_table()


def test_absolute_data_paths_outside_the_table_are_rejected(history: Path, outside: Path, tmp_path: Path) -> None:
    for path in (str(outside), f"file://{outside}"):
        shutil.rmtree(tmp_path / "inner", ignore_errors=True)
        uri = changed(history, tmp_path, lambda m, p=path: setattr(_first_file(m), "path", p))
        with pytest.raises(LanceDuckError):
            ld.dataset(uri).to_table()


@pytest.mark.parametrize("what", ["file", "folder"])
def test_symbolic_link_out_of_the_table(what: str, history: Path, outside: Path, tmp_path: Path) -> None:
    table = tmp_path / "inner" / "t.lance"
    shutil.copytree(history, table)
    if what == "file":
        target = next((table / "data").glob("*.lance"))
        target.unlink()
        target.symlink_to(outside)
    else:
        (table / "data").rename(tmp_path / "elsewhere")
        (table / "data").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LanceDuckError, match="outside the table's folder"):
        ld.dataset(str(table)).to_table()


def test_a_table_behind_a_symbolic_link_is_readable(history: Path, tmp_path: Path) -> None:
    (tmp_path / "link.lance").symlink_to(history)
    assert ld.dataset(str(tmp_path / "link.lance")).to_table().num_rows == ld.dataset(str(history)).count_rows()


@pytest.mark.parametrize("path", ["../../../outside.lance", "/etc/hostname"])
def test_a_transaction_file_outside_the_table_is_not_read(path: str, history: Path, tmp_path: Path) -> None:
    uri = changed(history, tmp_path, lambda m: setattr(m, "transaction_file", path))
    assert ld.dataset(uri).to_table().num_rows == ld.dataset(str(history)).count_rows()


@pytest.mark.parametrize("bit", [9, 12, 13, *range(17, 64)])
def test_an_unknown_reader_flag_is_rejected(bit: int, history: Path, tmp_path: Path) -> None:
    uri = changed(history, tmp_path, lambda m: setattr(m, "reader_feature_flags", m.reader_feature_flags | 1 << bit))
    with pytest.raises(UnsupportedError, match=str(1 << bit)):
        ld.dataset(uri)


@pytest.mark.parametrize("bit", [9, 12, 20, 63])
def test_an_unknown_writer_flag_does_not_stop_a_reader(bit: int, history: Path, tmp_path: Path) -> None:
    uri = changed(history, tmp_path, lambda m: setattr(m, "writer_feature_flags", 1 << bit))
    assert ld.dataset(uri).to_table().num_rows > 0


@pytest.mark.parametrize("version", [(2, 4), (2, 9), (3, 0), (99, 0), (65535, 65535)])
def test_an_unsupported_data_file_version_is_rejected(version: tuple[int, int], history: Path, tmp_path: Path) -> None:
    table = tmp_path / "t.lance"
    shutil.copytree(history, table)
    for path in (table / "data").glob("*.lance"):
        data = path.read_bytes()
        path.write_bytes(data[:-8] + struct.pack("<HH", *version) + data[-4:])
    shown = ".".join(map(str, version))
    with pytest.raises(UnsupportedError, match=re.escape(shown)):
        ld.dataset(str(table)).to_table()


@pytest.mark.parametrize("version", [(0, 0), (0, 1), (0, 2)])
def test_a_version_that_the_container_is_not(version: tuple[int, int], history: Path, tmp_path: Path) -> None:
    table = tmp_path / "t.lance"
    shutil.copytree(history, table)
    for path in (table / "data").glob("*.lance"):
        data = path.read_bytes()
        path.write_bytes(data[:-8] + struct.pack("<HH", *version) + data[-4:])
    with pytest.raises(CorruptError):
        ld.dataset(str(table)).to_table()


@pytest.mark.parametrize("version", [(0, 0), (0, 2), (0, 3), (2, 9)])
def test_the_version_in_a_data_file_wins_over_the_manifest(
    version: tuple[int, int], history: Path, tmp_path: Path
) -> None:
    def change(manifest: table_pb2.Manifest) -> None:
        for fragment in manifest.fragments:
            for file in fragment.files:
                file.file_major_version, file.file_minor_version = version

    uri = changed(history, tmp_path, change)
    assert ld.dataset(uri).to_table() == ld.dataset(str(history)).to_table()


MORE_ROWS: dict[str, Change] = {
    "physical_rows too large": lambda m: setattr(m.fragments[0], "physical_rows", 1 << 40),
    "physical_rows too small": lambda m: setattr(m.fragments[0], "physical_rows", 3),
    "fragment twice": lambda m: m.fragments.add().CopyFrom(m.fragments[0]),
    "field twice": lambda m: m.fields.add().CopyFrom(m.fields[0]),
    "parent of itself": lambda m: setattr(m.fields[0], "parent_id", m.fields[0].id),
    "parents in a ring": lambda m: (
        setattr(m.fields[0], "parent_id", m.fields[1].id),
        setattr(m.fields[1], "parent_id", m.fields[0].id),
    ),
    "parent unknown": lambda m: setattr(m.fields[0], "parent_id", 77),
    "type unknown": lambda m: setattr(m.fields[0], "logical_type", "quaternion"),
    "type of nothing": lambda m: setattr(m.fields[0], "logical_type", ""),
    "width absurd": lambda m: setattr(m.fields[0], "logical_type", "fixed_size_binary:99999999999999999999"),
    "width negative": lambda m: setattr(m.fields[0], "logical_type", "fixed_size_list:float:-3"),
    "precision absurd": lambda m: setattr(m.fields[0], "logical_type", "decimal:128:900:2"),
    "time zone unknown": lambda m: setattr(m.fields[0], "logical_type", "timestamp:us:Mars/Base"),
    "another type": lambda m: setattr(m.fields[0], "logical_type", "string"),
    "column index too large": lambda m: _first_file(m).column_indices.__setitem__(0, 99),
    "column index negative": lambda m: _first_file(m).column_indices.__setitem__(0, -7),
    "base unknown": lambda m: setattr(_first_file(m), "base_id", 5),
    "size absurd": lambda m: setattr(_first_file(m), "file_size_bytes", 1 << 62),
    "more deleted than rows": lambda m: setattr(m.fragments[0].deletion_file, "num_deleted_rows", 1 << 40),
}


SAID = {
    "physical_rows too large": "the fragment is out of range",
    "physical_rows too small": "there are more deleted rows than rows",
    "fragment twice": "duplicate fragment id 0",
    "field twice": "duplicate field id",
    "parent of itself": "the parent field does not exist",
    "parents in a ring": "the parent field does not exist",
    "parent unknown": "the parent field does not exist",
    "type unknown": "unknown logical type 'quaternion'",
    "type of nothing": "unknown logical type ''",
    "width absurd": "unknown logical type 'fixed_size_binary:9",
    "width negative": "unknown logical type 'fixed_size_list:float:-3'",
    "precision absurd": "unknown logical type 'decimal:128:900:2'",
    "time zone unknown": 0,
    "another type": "values do not fit the type of the column",
    "column index too large": "the column index is out of range: expected below 3, found 99",
    "column index negative": 0,
    "base unknown": "no base path 5",
    "size absurd": "the file size differs from the manifest",
    "more deleted than rows": "there are more deleted rows than rows",
}
"""Expected error or warning for each manifest. A number is the count of additional rows."""


@pytest.mark.parametrize("name", MORE_ROWS)
def test_a_manifest_with_false_row_counts_is_rejected_or_reported(name: str, history: Path, tmp_path: Path) -> None:
    uri = changed(history, tmp_path, MORE_ROWS[name])
    said = SAID[name]
    if isinstance(said, str):
        with pytest.raises(LanceDuckError, match=re.escape(said)):
            ld.dataset(uri).to_table()
        return
    found = ld.dataset(uri).to_table()
    found.validate(full=True)
    assert found.num_rows == ld.dataset(uri).count_rows() == ld.dataset(str(history)).count_rows() + said


def test_a_missing_version_is_rejected(history: Path) -> None:
    for version in (77, 0, -1, 1 << 70):
        with pytest.raises((NotFoundError, InvalidInputError), match=r"."):
            ld.dataset(str(history), version=version)


def test_error_messages_name_the_problem_the_location_and_the_remedy(history: Path) -> None:
    dataset = ld.dataset(str(history))
    with pytest.raises(InvalidInputError, match="nope"):
        dataset.to_table(columns=["nope"])
    with pytest.raises(InvalidInputError, match="nope"):
        dataset.to_table(filter="nope > 3")
    with pytest.raises(NotFoundError, match="77"):
        dataset.checkout_version(77)


@pytest.mark.parametrize("num_rows", [1, (1 << 31) - 1])
def test_a_fragment_without_data_files_returns_no_invented_rows(num_rows: int, history: Path, tmp_path: Path) -> None:
    def change(manifest: table_pb2.Manifest) -> None:
        fragment = manifest.fragments[0]
        fragment.Clear()
        fragment.physical_rows = num_rows
        del manifest.fragments[1:]

    dataset = ld.dataset(changed(history, tmp_path, change))
    for read in (dataset.to_table, lambda: dataset.take([0]), lambda: dataset.to_table(limit=1)):
        with pytest.raises(CorruptError, match="rows without a data file"):
            read()
    with ld.connect({"t": dataset}) as con, pytest.raises(CorruptError, match="rows without a data file"):
        con.execute("FROM t").fetchall()


def test_duplicate_column_names_are_corrupt(history: Path, tmp_path: Path) -> None:
    def change(manifest: table_pb2.Manifest) -> None:
        first, second = [each for each in manifest.fields if each.parent_id == -1][:2]
        second.name = first.name

    uri = changed(history, tmp_path, change)
    with pytest.raises(CorruptError, match="duplicate field name"):
        ld.dataset(uri)
