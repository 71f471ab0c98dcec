"""Files replaced by an empty file, a folder, a Parquet file, another table's file, or nothing."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lance_duck as ld
from lance_duck.errors import LanceDuckError


def _empty(path: Path, _: Path) -> None:
    path.write_bytes(b"")


def _folder(path: Path, _: Path) -> None:
    path.mkdir()


def _parquet(path: Path, _: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2, 3]}), path)


def _nothing(path: Path, _: Path) -> None:
    pass


def _magic_only(path: Path, _: Path) -> None:
    path.write_bytes(b"LANC")


def _zeros(path: Path, _: Path) -> None:
    path.write_bytes(bytes(5000))


def _text(path: Path, _: Path) -> None:
    path.write_text('{"version": 3}\n' * 20)


def _manifest(path: Path, table: Path) -> None:
    shutil.copy(next((table / "_versions").glob("*.manifest")), path)


def _data_file(path: Path, table: Path) -> None:
    shutil.copy(max((table / "data").glob("*.lance")), path)


def _loop(path: Path, _: Path) -> None:
    path.symlink_to(path)


REPLACEMENTS = [_empty, _folder, _parquet, _nothing, _magic_only, _zeros, _text, _manifest, _data_file, _loop]
TARGETS = ["data/*.lance", "_versions/*.manifest", "_deletions/*.arrow", "_versions", "data", "_deletions"]


@pytest.mark.parametrize("replacement", REPLACEMENTS, ids=lambda f: f.__name__.strip("_"))
@pytest.mark.parametrize("target", TARGETS)
def test_a_file_replaced_by_another_file_is_rejected(
    target: str, replacement: Callable[[Path, Path], None], history: Path, tmp_path: Path
) -> None:
    if target == "_versions/*.manifest" and replacement is _manifest:
        pytest.skip("the manifest of another version is a manifest")
    table = tmp_path / "t.lance"
    shutil.copytree(history, table)
    for path in [table / target] if "*" not in target else list(table.glob(target)):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        replacement(path, history)
    with pytest.raises(LanceDuckError):
        ld.dataset(str(table)).to_table()


@pytest.mark.parametrize("target", ["_refs/tags/tagged.json", "_refs/branches/side.json"])
@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"version": "x"}', b'{"version": -1}', b'{"branch": 7}']
)
def test_an_invalid_reference_file_is_rejected_and_the_table_stays_readable(
    target: str, content: bytes, history: Path, tmp_path: Path
) -> None:
    table = tmp_path / "t.lance"
    shutil.copytree(history, table)
    (table / target).write_bytes(content)
    dataset = ld.dataset(str(table))
    listed, name = (dataset.tags, "tagged") if "tags" in target else (dataset.branches, "side")
    with contextlib.suppress(LanceDuckError):
        assert name in listed.list()
    if "tags" in target:
        with pytest.raises(LanceDuckError):
            ld.dataset(str(table), version="tagged").to_table()
    assert ld.dataset(str(table)).count_rows() == ld.dataset(str(history)).count_rows()


def test_a_path_that_is_not_a_table_is_rejected(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "x.parquet")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "x.parquet", tmp_path / "folder", tmp_path / "nothing", "", "no-such-scheme://x/y"):
        with pytest.raises(LanceDuckError):
            ld.dataset(str(path))


def test_a_wrong_magic_number_appears_in_the_error(history: Path, tmp_path: Path) -> None:
    table = tmp_path / "t.lance"
    shutil.copytree(history, table)
    for path in (table / "data").glob("*.lance"):
        path.write_bytes(b"PAR1".rjust(path.stat().st_size, b"."))
    with pytest.raises(LanceDuckError, match="PAR1"):
        ld.dataset(str(table)).to_table()
