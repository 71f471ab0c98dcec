from __future__ import annotations

import ctypes
import gc
import mmap
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError, StoreError, UnsupportedError
from lance_duck.store import Entry, local_path, mapped, open_store
from lance_duck.store.checked import look
from lance_duck.store.local import LocalStore
from lance_duck.store.mapped import MappedFile, OpenMaps, Residency
from lance_duck.store.pages import FilePages


def _forget(path: Path) -> None:
    """Let the system drop cached pages of a file, if possible."""
    if not hasattr(os, "posix_fadvise"):
        pytest.skip("no posix_fadvise")
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _cached(path: Path) -> int:
    """Bytes of a file that the system has in memory."""
    pages = -(-path.stat().st_size // mmap.PAGESIZE)
    found = (ctypes.c_ubyte * pages)()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as map_:
        start = ctypes.addressof(ctypes.c_char.from_buffer(map_))
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.mincore(ctypes.c_void_p(start), ctypes.c_size_t(len(map_)), found) == 0
    return sum(page & 1 for page in found) * mmap.PAGESIZE


def test_reads_are_views_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    file = open_store(tmp_path).open("f")
    assert (file.size, file.path) == (10, str(tmp_path / "f"))
    found = file.read([(2, 3), (0, 0), (10, 0), (0, 10)])
    assert [bytes(f) for f in found] == [b"234", b"", b"", b"0123456789"]
    assert np.shares_memory(found[0], found[3])
    assert not found[0].flags.writeable


def test_opening_a_file_does_not_read_it(tmp_path: Path) -> None:
    size = 32 << 20
    (tmp_path / "f").write_bytes(bytes(range(256)) * (size // 256))
    file = open_store(tmp_path).open("f")
    _forget(tmp_path / "f")
    if _cached(tmp_path / "f"):
        pytest.skip("files here stay in memory")
    assert look(file, 512, size - 512, 10)[1_000_001] == (512 + 1_000_001) % 256
    assert _cached(tmp_path / "f") <= 1 << 20
    (found,) = file.read([(1 << 20, 8 << 20)])
    assert found[-1] == 255
    assert not found.flags.writeable


@pytest.mark.parametrize("wanted", [(0, 11), (11, 0), (-1, 2), (5, -1), (2**62, 2**62), (10, 1)])
def test_a_read_beyond_the_end_is_corrupt(tmp_path: Path, wanted: tuple[int, int]) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    with pytest.raises(CorruptError, match="beyond the end"):
        open_store(tmp_path).open("f").read([wanted])
    with pytest.raises(CorruptError, match="beyond the end"):
        look(open_store(tmp_path).open("f"), *wanted, 1)


def test_an_empty_file_reads_as_empty(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"")
    file = MappedFile(str(tmp_path / "f"))
    assert [len(f) for f in file.read([(0, 0)])] == [0]
    file.release()


def test_an_expected_size_is_checked(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123")
    assert open_store(tmp_path).open("f", 4).size == 4
    with pytest.raises(CorruptError, match="expected 5, found 4"):
        open_store(tmp_path).open("f", 5)


def test_views_outlive_their_file_and_a_release(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x" * 100_000)
    file = MappedFile(str(tmp_path / "f"))
    (view,) = file.read([(10, 50_000)])
    file.release(0, 60_000)
    file.release()
    os.unlink(tmp_path / "f")
    del file
    gc.collect()
    assert bytes(view) == b"x" * 50_000


def test_the_least_recently_used_maps_are_released_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released = []
    monkeypatch.setattr(MappedFile, "release", lambda self: released.append(Path(self.path).name))
    files = []
    for name in "abc":
        (tmp_path / name).write_bytes(b"x" * 100)
        files.append(MappedFile(str(tmp_path / name)))
    a, b, c = files
    residency = Residency(250)
    residency.touch(a, 80)
    residency.touch(b, 80)
    residency.touch(a, 80)
    assert residency.total == 180
    residency.touch(c, 90)
    assert released == ["b", "a"]
    assert residency.total == 90
    files.clear()
    del c
    gc.collect()
    residency.touch(a, 1)
    assert residency.total == 1


def test_maps_are_released_again_after_late_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released = []
    monkeypatch.setattr(MappedFile, "release", lambda self: released.append(Path(self.path).name))
    for name in "abc":
        (tmp_path / name).write_bytes(b"x" * 100)
    a, b, c = (MappedFile(str(tmp_path / name)) for name in "abc")
    residency = Residency(90)

    residency.touch(a, 100)
    residency.touch(b, 100)
    residency.touch(c, 100)

    assert released == ["a", "a", "b", "b", "c"]


def test_repeated_reads_have_a_separate_page_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    released = []
    monkeypatch.setattr(MappedFile, "release", lambda self: released.append(Path(self.path).name))
    monkeypatch.setattr(mapped, "residency", Residency(1 << 20))
    monkeypatch.setattr(mapped, "repeated_residency", Residency(3 << 20))
    for name in "ab":
        (tmp_path / name).write_bytes(b"x" * (2 << 20))
    store = open_store(tmp_path)
    a, b = (store.open(name) for name in "ab")
    rows = np.array([0, 9], np.int64)

    for _ in range(100):
        look(a, 0, 2 << 20, 64 << 10, rows, lambda some: (some, some + 1), repeats=True)
    assert released == []
    for _ in range(100):
        look(b, 0, 2 << 20, 64 << 10, rows, lambda some: (some, some + 1), repeats=True)
    assert released == ["a"]
    for _ in range(17):
        look(b, 0, 2 << 20, 64 << 10, rows, lambda some: (some, some + 1))
    assert released == ["a", "b"]


def descriptors(folder: Path) -> int:
    """Count the descriptors of this process that are of files below a folder."""
    names = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            names.append(os.readlink(f"/proc/self/fd/{name}"))
    return sum(name.startswith(str(folder)) for name in names)


def maps(folder: Path) -> int:
    """Count the maps of this process that are of files below a folder."""
    return sum(f" {folder}/" in line for line in Path("/proc/self/maps").read_text().splitlines())


def bytes_of(file: MappedFile) -> bytes:
    return bytes(file.read([(0, file.size)])[0])


@pytest.mark.skipif(sys.platform != "linux", reason="counts by /proc")
def test_mapped_files_hold_no_descriptor_and_their_number_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped, "open_maps", OpenMaps(40))
    contents = [f"file {i}".encode() for i in range(200)]
    files = []
    for i, content in enumerate(contents):
        (tmp_path / str(i)).write_bytes(content)
        files.append(MappedFile(str(tmp_path / str(i))))
        assert bytes_of(files[0]) == contents[0]
        assert maps(tmp_path) <= 40
    assert descriptors(tmp_path) == 0
    assert [bytes_of(file) for file in files] == contents
    assert 30 <= maps(tmp_path) == len(mapped.open_maps) <= 40
    kept = [file.read([(0, file.size)])[0] for file in files]  # views keep unmapped files
    assert [bytes(view) for view in kept] == contents
    assert (maps(tmp_path), descriptors(tmp_path)) == (200, 0)
    del kept, files
    gc.collect()
    assert maps(tmp_path) == 0


def test_a_frequently_read_file_stays_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "open_maps", OpenMaps(20))
    for i in range(100):
        (tmp_path / str(i)).write_bytes(b"x")
    often = [MappedFile(str(tmp_path / str(i))) for i in range(10)]
    seldom, made = [], []
    monkeypatch.setattr(mapped, "FilePages", lambda *arguments: made.append(1) or FilePages(*arguments))
    for i in range(10, 100):
        seldom.append(MappedFile(str(tmp_path / str(i))))
        assert [bytes_of(file) for file in often] == [b"x"] * 10
    assert len(made) == 90


@pytest.mark.skipif(sys.platform != "linux", reason="counts by /proc")
def test_deleted_files_are_unmapped_soon_after_their_last_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "open_maps", OpenMaps(1000))
    files = []
    for i in range(100):
        (tmp_path / str(i)).write_bytes(b"x" * 5000)
        files.append(MappedFile(str(tmp_path / str(i))))
    for file in files[:90]:
        os.unlink(file.path)
    more = []
    for i in range(100, 200):
        assert bytes_of(files[0]) == b"x" * 5000  # one that is still read stays
        (tmp_path / str(i)).write_bytes(b"y")
        more.append(MappedFile(str(tmp_path / str(i))))
    lines = Path("/proc/self/maps").read_text().splitlines()
    assert sum(f" {tmp_path}/" in line and line.endswith("(deleted)") for line in lines) == 1
    assert bytes_of(files[95]) == b"x" * 5000
    with pytest.raises(NotFoundError):
        bytes_of(files[7])


def test_a_file_replaced_while_open_raises_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "open_maps", OpenMaps(1000))
    (tmp_path / "f").write_bytes(b"before")
    file = MappedFile(str(tmp_path / "f"))
    (tmp_path / "g").write_bytes(b"behind")
    os.replace(tmp_path / "g", tmp_path / "f")
    assert bytes_of(file) == b"before"
    file.let_go()
    with pytest.raises(StoreError, match="the file was replaced while it was open"):
        bytes_of(file)


def test_threads_can_read_files_that_are_unmapped_concurrently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped, "open_maps", OpenMaps(8))
    files = []
    for i in range(32):
        (tmp_path / str(i)).write_bytes(bytes([i]) * 10_000)
        files.append(MappedFile(str(tmp_path / str(i))))

    def read(seed: int) -> bool:
        chosen = np.random.default_rng(seed).integers(0, 32, 400).tolist()
        return all(bytes_of(files[i]) == bytes([i]) * 10_000 for i in chosen)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(8)))


def test_files_of_a_directory_are_listed_by_name(tmp_path: Path) -> None:
    (tmp_path / "d" / "sub").mkdir(parents=True)
    for name in ("b", "a", "c"):
        (tmp_path / "d" / name).write_bytes(name.encode() * 3)
    store = open_store(tmp_path)
    entries = list(store.entries("d"))
    assert [(e.path, e.size) for e in entries] == [("d/a", 3), ("d/b", 3), ("d/c", 3)]
    assert isinstance(entries[0], Entry)
    assert entries[0].modified.timestamp() == pytest.approx((tmp_path / "d" / "a").stat().st_mtime)
    assert list(store.names("d")) == ["a", "b", "c", "sub"]
    assert list(store.names("none")) == list(store.entries("d/a")) == []
    assert sorted(store.names_at_once("d") or ()) == ["a", "b", "c", "sub"]
    assert store.names_at_once("none") == store.names_at_once("d/a") == []


def test_a_missing_file_raises_not_found(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert not store.exists("f")
    with pytest.raises(NotFoundError):
        store.get("f")
    with pytest.raises(NotFoundError):
        store.open("f/g")
    (tmp_path / "d").mkdir()
    with pytest.raises(StoreError):
        store.get("d")


def test_a_named_pipe_is_rejected_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (open_store(tmp_path).get, open_store(tmp_path).open):
        with pytest.raises(StoreError, match="regular"):
            read("pipe")


@pytest.mark.parametrize("path", ["", ".", "..", "../x", "a/../../x", "/etc/passwd", "a\0b"])
def test_paths_outside_the_root_are_rejected(tmp_path: Path, path: str) -> None:
    store = open_store(tmp_path)
    for read in (store.get, store.open, store.exists, lambda p: list(store.entries(p))):
        with pytest.raises(InvalidInputError, match="outside the table's folder"):
            read(path)


def test_links_may_point_to_allowed_locations(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "root"
    outside.mkdir()
    root.mkdir()
    (outside / "f").write_bytes(b"1")
    (root / "link").symlink_to(outside / "f")
    with pytest.raises(InvalidInputError):
        LocalStore(str(root)).get("link")
    assert open_store(root, allowed=[f"file://{outside}"]).get("link") == b"1"
    with pytest.raises(InvalidInputError):
        open_store(root, allowed=[f"{outside}x"]).get("link")


def test_uris_and_paths_name_local_roots(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "f").write_bytes(b"1")
    for uri in (
        tmp_path / "a b",
        str(tmp_path / "a b") + "/",
        f"file://{tmp_path}/a%20b",
        f"file://localhost{tmp_path}/a b",
    ):
        store = open_store(uri)
        assert store.get("f") == b"1"
        assert store.uri == str(tmp_path / "a b")
    assert local_path("s3://bucket/x") is None
    assert local_path("~/x") == os.path.expanduser("~/x")
    with pytest.raises(InvalidInputError, match="host"):
        open_store("file://elsewhere/x")
    with pytest.raises(UnsupportedError, match="unknown scheme 'ftp'"):
        open_store("ftp://host/x")


@pytest.mark.parametrize("path", ["data/a", "link", "folder/a", "data/../data/a", "./data/a", "data//a"])
def test_a_path_is_resolved_through_its_links(tmp_path: Path, path: str) -> None:
    root = tmp_path / "t.lance"
    (root / "data").mkdir(parents=True)
    (root / "data" / "a").write_bytes(b"a")
    (root / "link").symlink_to("data/a")
    (root / "folder").symlink_to("data")
    assert LocalStore(str(root)).open(path).path == os.path.realpath(root / "data" / "a")
