from __future__ import annotations

import errno
import os
import resource
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_duck.errors import (
    AlreadyExistsError,
    InternalError,
    InvalidInputError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from lance_duck.store import Store, copy_bytes, is_temporary, local_write, new_folder, open_store
from lance_duck.store.base import temporary_name
from lance_duck.store.costs import PART_BYTES


@pytest.fixture(params=["local", "unflushed", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param in ("local", "unflushed"):
        return open_store(tmp_path / "t.lance", {"fsync": "true" if request.param == "local" else "false"})
    name = uuid.uuid4().hex
    if request.param == "memory":
        return open_store(f"memory://{name}/t.lance")
    return open_store(f"s3://bucket/{name}/t.lance", request.getfixturevalue("options"))


@pytest.fixture
def local(tmp_path: Path) -> Store:
    return open_store(tmp_path / "t.lance")


def files(store: Store, directory: str = "") -> dict[str, int]:
    return {entry.path: entry.size for entry in store.walk(directory)}


def test_a_file_appears_when_it_is_closed(store: Store) -> None:
    with store.create("data/deep/a.lance") as sink:
        sink.write(b"abc")
        sink.write(np.arange(2, dtype=np.uint16))
        sink.write(memoryview(b""))
        sink.write(np.empty((0, 3)))
        sink.write(pa.py_buffer(b"xyz"))
        assert sink.position == 10
        assert not store.exists("data/deep/a.lance")
    assert store.get("data/deep/a.lance") == b"abc\0\0\1\0xyz"
    assert files(store) == {"data/deep/a.lance": 10}
    sink.close()
    with pytest.raises(InternalError):
        sink.write(b"more")


def test_an_empty_file_can_be_written(store: Store) -> None:
    store.create("a").close()
    store.put("b", b"")
    assert files(store) == {"a": 0, "b": 0}


def test_a_multipart_file_is_written_completely(store: Store) -> None:
    data = np.random.default_rng(0).integers(0, 256, 2 * PART_BYTES + 7, np.uint8)
    with store.create("big") as sink:
        sink.write(data[:5])
        sink.write(data[5:])
    assert store.get("big") == data.tobytes()
    store.copy("big", "copies/big")
    assert store.get("copies/big") == data.tobytes()


@pytest.mark.parametrize("size", [10, PART_BYTES + 1])
def test_an_aborted_file_leaves_nothing(store: Store, size: int) -> None:
    store.put("a", b"old")
    sink = store.create("a")

    def write() -> None:
        with sink:
            sink.write(bytes(size))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write()
    sink.abort()
    assert files(store) == {"a": 3}
    assert store.get("a") == b"old"


def test_put_replaces_an_existing_file(store: Store) -> None:
    store.put("x/a.json", b"1")
    store.put("x/a.json", bytearray(b"22"), safe=False)
    assert store.get("x/a.json") == b"22"
    with store.create("x/a.json") as sink:
        sink.write(b"333")
    assert files(store) == {"x/a.json": 3}


def test_a_note_of_the_same_length_is_written_over(local: Store, tmp_path: Path) -> None:
    local.put("hint", b"11", safe=False)
    note = Path(local.uri) / "hint"
    number = note.stat().st_ino
    local.put("hint", b"12", safe=False)
    assert (note.read_bytes(), note.stat().st_ino) == (b"12", number)
    local.put("hint", b"100", safe=False)
    assert note.read_bytes() == b"100"
    assert files(local) == {"hint": 3}


def test_a_hint_shared_by_a_hard_link_is_replaced(local: Store, tmp_path: Path) -> None:
    local.put("hint", b"11", safe=False)
    note = Path(local.uri) / "hint"
    os.link(note, tmp_path / "hard")
    local.put("hint", b"12", safe=False)
    assert (note.read_bytes(), (tmp_path / "hard").read_bytes()) == (b"12", b"11")
    note.unlink()
    note.symlink_to(tmp_path / "hard")
    local.put("hint", b"13", safe=False)
    assert (note.read_bytes(), (tmp_path / "hard").read_bytes()) == (b"13", b"11")


def test_a_name_is_claimed_once(store: Store) -> None:
    store.put_if_absent("v/1", b"first")
    with pytest.raises(AlreadyExistsError, match="with this name already exists"):
        store.put_if_absent("v/1", b"second")
    assert store.get("v/1") == b"first"
    assert files(store) == {"v/1": 5}


def test_one_of_many_threads_claims_a_name(store: Store) -> None:
    def claim(at: int) -> bool:
        barrier.wait()
        try:
            store.put_if_absent(f"v/{turn}", b"%d" % at)
        except AlreadyExistsError:
            return False
        return True

    barrier = threading.Barrier(6)
    with ThreadPoolExecutor(6) as pool:
        for turn in range(8):
            won = list(pool.map(claim, range(6)))
            assert won.count(True) == 1
            assert store.get(f"v/{turn}") == b"%d" % won.index(True)
    assert len(files(store)) == 8


def test_threads_write_concurrently(store: Store) -> None:
    def write(at: int) -> None:
        with store.create(f"data/{at}/f") as sink:
            for _ in range(20):
                sink.write(bytes([at]) * 100)
        store.sync()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(24)))
    assert files(store) == {f"data/{at}/f": 2000 for at in range(24)}
    assert store.get("data/7/f") == b"\7" * 2000


def test_deletes_remove_files_and_ignore_missing_ones(store: Store) -> None:
    for name in ("a/1", "a/b/2", "c"):
        store.put(name, b"x")
    store.delete(["a/b/2", "a/b/none", "none/none", "c/below a file"])
    assert files(store) == {"a/1": 1, "c": 1}
    store.delete(iter([]))
    store.delete(["a/1"])
    assert files(store) == {"c": 1}


def test_many_files_are_deleted_together(store: Store) -> None:
    for at in range(5):
        store.put(f"d/{at}", b"")
    store.delete(f"d/{at}" for at in range(1, 1100))
    assert files(store) == {"d/0": 0}


def test_walk_finds_everything_below_a_directory(store: Store) -> None:
    for name in ("data/1", "data/x/2", "database/3", "4"):
        store.put(name, name.encode())
    assert files(store, "data") == files(store, "data/") == {"data/1": 6, "data/x/2": 8}
    assert set(files(store)) == {"data/1", "data/x/2", "database/3", "4"}
    assert files(store, "none") == {}
    entry = next(store.walk("data/x"))
    assert entry.modified.tzinfo is not None
    assert abs(entry.modified.timestamp() - time.time()) < 60


def test_files_are_found_by_path_prefix(store: Store) -> None:
    found = ["data/a-1.lance", "data/a-1/0.blob", "data/a-2.lance#7"]
    for name in (*found, "data/a.lance", "data/b-1.lance", "data/0-1.lance", "other/a-1"):
        store.put(name, b"")
    assert sorted(store.beginning("data/a-")) == found
    assert list(store.beginning("data/c")) == []
    assert list(store.beginning("none/a-")) == []


def test_a_stamp_distinguishes_a_replaced_file(store: Store) -> None:
    assert store.stamp("a") is None
    store.put("a", b"1")
    before = store.stamp("a")
    assert before == store.stamp("a")
    store.put("a", b"2")
    assert store.stamp("a") not in (before, None)


def test_copy_replaces_and_needs_a_source(store: Store) -> None:
    store.put("a", b"1")
    store.put("b/c", b"22")
    store.copy("a", "b/c")
    assert store.get("b/c") == b"1"
    with pytest.raises(NotFoundError):
        store.copy("none", "d")
    assert set(files(store)) == {"a", "b/c"}


def test_bytes_are_copied_from_store_to_store(store: Store, local: Store) -> None:
    store.put("a", b"xyz")
    copy_bytes(store.open("a"), local.create("copied/b"))
    assert local.get("copied/b") == b"xyz"


@pytest.mark.parametrize("path", ["", "..", "../a", "/etc/passwd", "a/../../b", "a\0b", "/"])
def test_writes_cannot_leave_the_root(store: Store, path: str) -> None:
    store.put("kept", b"")
    for write in (
        lambda: store.create(path),
        lambda: store.put(path, b""),
        lambda: store.put_if_absent(path, b""),
        lambda: store.delete([path]),
        lambda: store.copy("kept", path),
    ):
        with pytest.raises(InvalidInputError):
            write()
    assert files(store) == {"kept": 0}


def test_a_local_link_out_of_the_root_is_not_followed(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "t"
    outside.mkdir()
    (outside / "file").write_bytes(b"theirs")
    root.mkdir()
    (root / "link").symlink_to(outside)
    (root / "name").symlink_to(outside / "file")
    store = open_store(root)
    with pytest.raises(InvalidInputError):
        store.put("link/new", b"")
    with pytest.raises(InvalidInputError):
        store.delete(["link/file"])
    assert "link/file" not in files(store)
    store.put("name", b"ours")
    assert store.get("name") == b"ours"
    (root / "again").symlink_to(outside / "file")
    store.delete(["again"])
    assert (outside / "file").read_bytes() == b"theirs"
    base = open_store(root, allowed=[str(outside)])
    base.put(str(outside / "new"), b"1")
    assert (outside / "new").read_bytes() == b"1"
    base.delete([str(outside / "new")])
    assert sorted(os.listdir(outside)) == ["file"]


def test_empty_directories_are_removed_except_the_root(local: Store, tmp_path: Path) -> None:
    local.put("data/a/1", b"")
    local.put("data/b/2", b"")
    local.delete(["data/a/1"])
    assert os.listdir(tmp_path / "t.lance" / "data") == ["b"]
    local.delete(["data/b/2"])
    assert os.listdir(tmp_path / "t.lance") == []
    other = open_store(tmp_path / "u")
    other.put("a", b"")
    other.delete(["a"])
    assert os.listdir(tmp_path / "u") == []


def test_directories_may_disappear_under_a_writer(local: Store) -> None:
    def churn(at: int) -> None:
        for turn in range(60):
            local.put(f"data/d/{at}-{turn}", b"", safe=False)
            local.delete([f"data/d/{at}-{turn}"])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(churn, range(4)))
    assert files(local) == {}


def test_web_servers_are_for_reading() -> None:
    store = open_store("http://localhost:1/t")
    for write in (
        lambda: store.create("a"),
        lambda: store.put("a", b""),
        lambda: store.put_if_absent("a", b""),
        lambda: store.delete(["a"]),
    ):
        with pytest.raises(UnsupportedError, match="read-only"):
            write()


def test_an_unreachable_service_is_a_store_error() -> None:
    options = {"aws_endpoint": "http://127.0.0.1:9", "allow_http": "true", "client_max_retries": "0", "region": "x"}
    options |= {"aws_access_key_id": "k", "aws_secret_access_key": "s"}
    store = open_store("s3://bucket/t", options)
    for write in (
        lambda: store.put("a", b""),
        lambda: store.put_if_absent("a", b""),
        lambda: store.delete(["a"]),
        store.create("a").close,
    ):
        with pytest.raises(StoreError):
            write()


def test_claims_without_conditional_put_require_a_manifest_store(options: dict[str, str]) -> None:
    store = open_store("s3://bucket/plain", options | {"aws_conditional_put": "disabled"})
    with pytest.raises(StoreError, match="manifest_store"):
        store.put_if_absent("a", b"1")
    assert files(store) == {}


def test_files_left_by_a_killed_writer_are_recognised_as_temporary(local: Store, tmp_path: Path) -> None:
    sink = local.create("data/a.lance")
    sink.write(b"x" * 100)
    (left,) = files(local)
    assert is_temporary(left)
    assert list(local.names("data")) == [Path(left).name]
    sink.abort()
    assert is_temporary(temporary_name("_versions/1.manifest"))
    assert is_temporary("data/.tmpA1b2")
    assert is_temporary("_versions/18446744073709551614.manifest#1")
    assert not any(map(is_temporary, ("data/a.lance", "a#b/c.lance", "x#y", ".tmp/x", "data/a#1.lance")))


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EROFS, "mounted read-only"),
        (errno.EACCES, "permissions"),
        (errno.EIO, "check the disk"),
        (errno.EDQUOT, "quota"),
    ],
)
@pytest.mark.parametrize("call", ["fsync", "replace", "link", "open"])
def test_a_failing_disk_leaves_no_file_and_names_the_remedy(
    local: Store, monkeypatch: pytest.MonkeyPatch, code: int, remedy: str, call: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise OSError(code, os.strerror(code))

    if call == "open":
        monkeypatch.setattr(local_write, "open", fail, raising=False)
    else:
        monkeypatch.setattr(local_write.os, call, fail)
    write = local.put_if_absent if call == "link" else local.put
    with pytest.raises(StoreError, match=remedy) as found:
        write("a/b", b"1")
    assert str(found.value).startswith(f"{local.uri}/a/b: cannot write: {os.strerror(code)}")
    monkeypatch.undo()
    assert files(local) == {}


def test_a_disk_without_hard_links_requires_a_manifest_store(local: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: Any) -> None:
        raise OSError(errno.EOPNOTSUPP, "no links here")

    monkeypatch.setattr(local_write.os, "link", link)
    with pytest.raises(StoreError, match="manifest_store"):
        local.put_if_absent("a", b"")
    assert files(local) == {}


def test_a_link_with_a_lost_response_succeeds(local: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    really = os.link

    def link(source: str, target: str) -> None:
        really(source, target)
        raise FileExistsError(errno.EEXIST, "a request that was carried out twice")

    monkeypatch.setattr(local_write.os, "link", link)
    local.put_if_absent("a", b"1")
    assert local.get("a") == b"1"


def test_a_file_beyond_the_limit_of_the_system_is_an_error(local: Store) -> None:
    with _file_size_limit(1 << 20), pytest.raises(StoreError, match="smaller files"):
        local.put("a", bytes(1 << 22))
    assert files(local) == {}


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_for_reading_only_is_an_error(tmp_path: Path) -> None:
    root = tmp_path / "t"
    root.mkdir()
    root.chmod(0o500)
    with pytest.raises(StoreError, match="permissions"):
        open_store(root).put("data/a", b"")
    root.chmod(0o700)


def test_a_file_where_a_directory_is_needed_is_an_error(local: Store) -> None:
    local.put("data", b"")
    with pytest.raises(StoreError, match="cannot write"):
        local.put("data/a", b"")
    with pytest.raises(StoreError):
        local.put_if_absent("data/a/b", b"")
    assert files(local) == {"data": 0}


def test_a_directory_where_a_file_is_needed_is_an_error(local: Store) -> None:
    local.put("a/b", b"")
    with pytest.raises((StoreError, AlreadyExistsError)):
        local.put("a", b"")
    with pytest.raises(AlreadyExistsError):
        local.put_if_absent("a", b"")
    assert files(local) == {"a/b": 0}


@pytest.mark.parametrize("flushed", [True, False])
def test_files_and_directories_are_flushed_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flushed: bool
) -> None:
    seen: list[str] = []
    really = os.fsync

    def fsync(handle: int) -> None:
        seen.append(os.path.realpath(f"/proc/self/fd/{handle}"))
        really(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    store = open_store(tmp_path / "t", {"fsync": str(flushed)})
    root = str(tmp_path / "t")
    store.put("data/x/a", b"1")
    assert [is_temporary(place) for place in seen] == [True] * flushed
    store.sync()
    assert set(seen[1:]) == ({str(tmp_path), root, f"{root}/data", f"{root}/data/x"} if flushed else set())
    seen.clear()
    store.sync()
    assert seen == []
    store.put_if_absent("v/1", b"1")
    assert {place for place in seen if not is_temporary(place)} == ({root, f"{root}/v"} if flushed else set())
    seen.clear()
    store.put_if_absent("v/2", b"1")
    assert seen[1:] == [f"{root}/v"] * flushed
    seen.clear()
    store.put_if_absent("v/3", b"1", late=True)
    assert [is_temporary(place) for place in seen] == [True] * flushed
    store.sync()
    assert seen[1:] == [f"{root}/v"] * flushed


def test_side_files_are_durable_before_the_name_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    really, link = os.fsync, os.link

    def fsync(handle: int) -> None:
        seen.append(os.path.relpath(os.path.realpath(f"/proc/self/fd/{handle}"), tmp_path))
        really(handle)

    def name(source: str, target: str) -> None:
        seen.append("named")
        link(source, target)

    store = open_store(tmp_path / "t")
    store.put_if_absent("v/1", b"1", {"txn/1": b"one"})
    with store.create("data/1") as sink:
        sink.write(b"2")
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(local_write.os, "link", name)
    store.put_if_absent("v/2", b"2", {"txn/2": b"two"})
    at = seen.index("named")
    assert {"t/txn/2", "t/txn", "t/data"} < set(seen[:at])
    assert any(is_temporary(place) for place in seen[:at])
    assert seen[at + 1 :] == ["t/v"]
    assert store.get("txn/2") == b"two"


def test_an_invalid_fsync_option_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="fsync"):
        open_store(tmp_path, {"fsync": "maybe"})
    open_store("memory://x", {"fsync": "false"})


@contextmanager
def _file_size_limit(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


def test_empty_directories_are_removed_with_their_last_file(local: Store, tmp_path: Path) -> None:
    local.create("data/x.lance").abort()
    assert [path.name for path in (tmp_path / "t.lance").iterdir()] == ["data"]
    local.delete(["data/x.lance"])
    assert list((tmp_path / "t.lance").iterdir()) == []


def failing(folder: Path, error: BaseException, file: str | None = None) -> None:
    with new_folder(str(folder)):
        (folder / "data").mkdir(parents=True)
        if file is not None:
            (folder / file).touch()
        raise error


@pytest.mark.parametrize("error", [StoreError("full"), KeyboardInterrupt()])
def test_a_new_folder_is_removed_if_its_creation_fails(tmp_path: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        failing(tmp_path / "a" / "t.lance", error)
    assert list(tmp_path.iterdir()) == []


def test_existing_and_nonempty_folders_are_kept(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    with pytest.raises(StoreError):
        failing(tmp_path / "old", StoreError("full"))
    with pytest.raises(StoreError):
        failing(tmp_path / "new", StoreError("full"), "x")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "old"]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["x"]
