"""Simulated file behaviour of Windows and macOS; no test runs on these systems."""

from __future__ import annotations

import atexit
import errno
import fcntl
import ntpath
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, StoreError
from lance_duck.snapshot.location import Location
from lance_duck.store import delete_temporary, flush, local_write, mapped, open_store, pages, split_place, uri
from lance_duck.wire.manifest import BasePath


class WindowsDisk:
    """System calls with Windows semantics. Attributes: `in_use`, names of open files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.in_use: dict[str, int] = {}
        self._replace, self._rename, self._unlink, self._fsync = os.replace, os.rename, os.unlink, os.fsync
        for name in ("replace", "rename", "unlink", "fsync"):
            monkeypatch.setattr(os, name, getattr(self, name))
        monkeypatch.setattr(os, "link", self.link)
        monkeypatch.setattr(local_write, "_IS_WINDOWS", True)
        monkeypatch.setattr(flush, "_CAN_FLUSH_DIRECTORIES", False)
        monkeypatch.setattr(pages, "_system", lambda: None)
        monkeypatch.setattr(mapped, "_CAN_PLAN", False)
        for advice in ("RANDOM", "WILL_NEED", "DONT_NEED"):
            monkeypatch.setattr(pages, advice, None)

    def _check_use(self, path: str) -> None:
        left = self.in_use.get(os.path.basename(path), 0)
        if left:
            self.in_use[os.path.basename(path)] = left - 1
            raise PermissionError(errno.EACCES, "The process cannot access the file", path)

    def replace(self, source: str, target: str) -> None:
        self._check_use(target)
        self._replace(source, target)

    def rename(self, source: str, target: str) -> None:
        if os.path.exists(target):
            raise FileExistsError(errno.EEXIST, "Cannot create a file when that file already exists", target)
        self._rename(source, target)

    def unlink(self, path: str, **options: Any) -> None:
        self._check_use(path)
        self._unlink(path, **options)

    def link(self, source: str, target: str) -> None:
        raise AssertionError("not every disk of Windows has hard links")

    def fsync(self, handle: int) -> None:
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "Bad file descriptor")
        self._fsync(handle)


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> WindowsDisk:
    return WindowsDisk(monkeypatch)


def test_a_table_is_written_changed_and_read_on_windows(windows: WindowsDisk, tmp_path: Path) -> None:
    ds = ld.write_dataset({"x": range(100)}, tmp_path / "t.lance")
    ds.delete("x >= 50")
    ds.update({"x": "x + 1000"}, where="x = 7")
    ds.create_scalar_index("x", "BTREE")
    ds.tags.create("a", 1)
    windows.in_use["a.json"] = 3
    ds.tags.update("a", 2)
    ds.optimize.compact_files()
    assert ds.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False).old_versions > 2
    again = ld.dataset(tmp_path / "t.lance")
    assert again.to_table(filter="x >= 1000")["x"].to_pylist() == [1007]
    assert (again.count_rows(), again.tags.list()["a"]["version"]) == (50, 2)
    again.validate()


def test_a_name_is_claimed_once_on_windows(windows: WindowsDisk, tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.put_if_absent("v/1", b"one", {"beside": b"b"})
    with pytest.raises(AlreadyExistsError):
        store.put_if_absent("v/1", b"two")
    assert (store.get("v/1"), [entry.path for entry in store.walk("v")]) == (b"one", ["v/1"])


def test_a_file_in_use_is_named_with_a_remedy(
    windows: WindowsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_write, "_BUSY_SECONDS", 0.1)
    store = open_store(tmp_path)
    store.put("a", b"1")
    windows.in_use["a"] = 1000
    for change in (lambda: store.put("a", b"2"), lambda: store.delete(["a"])):
        with pytest.raises(StoreError, match="close what reads the file, for Windows keeps one that is open"):
            change()
    assert (store.get("a"), [entry.path for entry in store.walk()]) == (b"1", ["a"])


def test_a_temporary_file_that_is_mapped_is_deleted_at_the_end(
    windows: WindowsDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_end: list[tuple[Callable[..., None], str]] = []
    monkeypatch.setattr(atexit, "register", lambda do, path: at_end.append((do, path)))
    path = tmp_path / "spill"
    path.write_bytes(b"x")
    windows.in_use["spill"] = 1
    delete_temporary(str(path))
    assert path.exists()
    for do, name in at_end * 2:
        do(name)
    assert not path.exists()
    delete_temporary(str(path))


@pytest.mark.parametrize("knows", [True, False])
def test_macos_writes_use_a_full_fsync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, knows: bool) -> None:
    asked, flushed = [], []

    def full(handle: int, command: int) -> None:
        asked.append(command)
        if not knows:
            raise OSError(errno.ENOTSUP, "Operation not supported")

    monkeypatch.setattr(flush, "fcntl", SimpleNamespace(fcntl=full))
    monkeypatch.setattr(flush, "_FULL_FSYNC", 51)
    monkeypatch.setattr(os, "fsync", flushed.append)
    store = open_store(tmp_path / "t")
    store.put("a", b"1")
    store.put_if_absent("v/1", b"1")
    assert set(asked) == {51}
    assert len(asked) > 3
    assert len(flushed) == (0 if knows else len(asked))


@pytest.mark.parametrize(
    ("place", "on_windows", "elsewhere"),
    [
        (r"C:\data\t.lance", (r"C:\data", "t.lance"), ("", r"C:\data\t.lance")),
        ("C:\\data/t.lance\\", (r"C:\data", "t.lance"), ("C:\\data", "t.lance\\")),
        (r"\\host\share\t.lance", (r"\\host\share", "t.lance"), ("", r"\\host\share\t.lance")),
        ("data/t.lance/", ("data", "t.lance"), ("data", "t.lance")),
        ("/t.lance", ("/", "t.lance"), ("/", "t.lance")),
        ("t.lance", ("", "t.lance"), ("", "t.lance")),
        ("s3://b/a\\b/t.lance", ("s3://b/a\\b", "t.lance"), ("s3://b/a\\b", "t.lance")),
    ],
)
def test_a_location_is_split_into_folder_and_name(
    place: str, on_windows: tuple[str, str], elsewhere: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert split_place(place) == elsewhere
    monkeypatch.setattr(uri, "_IS_WINDOWS", True)
    assert split_place(place) == on_windows


def test_a_base_path_with_a_drive_is_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    location = Location("C:/data/t.lance", {})
    monkeypatch.setattr(os.path, "isabs", ntpath.isabs)
    assert location.base_uri(BasePath(1, None, is_dataset_root=True, path=r"D:\more")) == r"D:\more"
    assert location.base_uri(BasePath(1, None, is_dataset_root=True, path="more")) == "C:/data/t.lance/more"
