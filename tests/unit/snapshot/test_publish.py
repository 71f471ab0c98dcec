from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from lance_duck.errors import AlreadyExistsError, NotFoundError, StoreError
from lance_duck.snapshot import open_snapshot
from lance_duck.snapshot.publish import external_key, finish_claimed, forget_table, publish_manifest, write_version_hint
from lance_duck.snapshot.versions import all_versions, latest_version, load_version
from lance_duck.store import Store, open_store
from lance_duck.wire import paths
from lance_duck.wire.paths import ManifestName
from lance_duck.wire.pb import table_pb2

Make = Callable[..., bytes]


@pytest.fixture(params=["put if absent", "external"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    return {} if request.param == "put if absent" else claims(tmp_path)


@pytest.fixture(params=["local", "memory"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "t") if request.param == "local" else f"memory://{uuid.uuid4().hex}/t"


@pytest.fixture
def manifest(make_manifest: Make) -> Callable[[int], bytes]:
    def make(version: int) -> bytes:
        proto = table_pb2.Manifest(version=version)
        proto.fields.add(name="a", id=0, parent_id=-1, logical_type="int32", nullable=True)
        return make_manifest(proto)

    return make


def claims(tmp_path: Path) -> dict[str, str]:
    return {"manifest_store": f"sqlite://{tmp_path}/claims.db"}


def listed(store: Store) -> list[str]:
    return sorted(store.names(paths.VERSIONS))


@pytest.mark.parametrize("naming", [1, 2])
def test_a_version_is_published_once(
    uri: str, options: dict[str, str], manifest: Callable[[int], bytes], naming: int
) -> None:
    store = open_store(uri, options)
    name = ManifestName(1, naming)
    publish_manifest(store, name, manifest(1))
    with pytest.raises(AlreadyExistsError):
        publish_manifest(store, name, b"another")
    assert store.get(name.path) == manifest(1)
    assert [f"_versions/{file}" for file in listed(store)] == [name.path]
    publish_manifest(store, ManifestName(2, naming), manifest(2))
    assert [found.version for found in all_versions(store)] == [1, 2]
    assert open_snapshot(uri, storage_options=options).version == 2
    assert open_snapshot(uri, 1, storage_options=options).version == 1


def test_one_of_many_threads_publishes_a_version(
    uri: str, options: dict[str, str], manifest: Callable[[int], bytes]
) -> None:
    def publish(at: int) -> bool:
        barrier.wait()
        try:
            publish_manifest(open_store(uri, options), ManifestName(version, 2), manifest(version) + b"%d" % at)
        except AlreadyExistsError:
            return False
        return True

    barrier = Barrier(5)
    with ThreadPoolExecutor(5) as pool:
        for version in range(1, 6):
            won = list(pool.map(publish, range(5)))
            assert won.count(True) == 1
            store = open_store(uri, options)
            assert store.get(ManifestName(version, 2).path)[-1:] == b"%d" % won.index(True)
    assert len(listed(store)) == 5


def test_a_detached_version_needs_no_claim(tmp_path: Path, uri: str) -> None:
    store = open_store(uri, claims(tmp_path))
    name = ManifestName(1 << 63 | 5, 0)
    publish_manifest(store, name, b"x")
    with pytest.raises(AlreadyExistsError):
        publish_manifest(store, name, b"y")
    assert store.external is not None
    assert store.external.get_latest(external_key(store)) is None


class Stopping:
    """A claim store, or its file store, whose write calls fail after `steps` calls."""

    def __init__(self, inner: Any, steps: list[int]) -> None:
        self._inner = inner
        self._steps = steps

    @property
    def external(self) -> Any:
        return Stopping(self._inner.external, self._steps)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ("put", "copy", "delete", "put_if_not_exists", "put_if_exists"):
            return found

        def call(*arguments: Any, **more: Any) -> Any:
            self._steps[0] -= 1
            if self._steps[0] < 0:
                raise KeyboardInterrupt
            return found(*arguments, **more)

        return call


@pytest.mark.parametrize("naming", [1, 2])
@pytest.mark.parametrize("steps", range(6))
def test_a_version_is_published_once_it_is_claimed(
    tmp_path: Path, uri: str, manifest: Callable[[int], bytes], naming: int, steps: int
) -> None:
    store = open_store(uri, claims(tmp_path))
    publish_manifest(store, ManifestName(1, naming), manifest(1))
    name = ManifestName(2, naming)
    stopping: Any = Stopping(store, [steps])
    if steps < 5:  # stage, claim, copy, record, delete
        with pytest.raises(KeyboardInterrupt):
            publish_manifest(stopping, name, manifest(2))
    else:
        publish_manifest(stopping, name, manifest(2))
    published = steps >= 2
    reader = open_store(uri, claims(tmp_path))
    assert latest_version(reader).version == (2 if published else 1)
    assert [found.version for found in all_versions(reader)] == ([1, 2] if published else [1])
    left = [file for file in listed(store) if paths.parse_staged_manifest(file)]
    assert len(left) == (1 if steps in (1, 4) else 0)
    publish_manifest(store, ManifestName(3 if published else 2, naming), manifest(3 if published else 2))
    assert latest_version(reader).version == (3 if published else 2)
    if published:
        assert load_version(reader, 2).version == 2


def test_a_claimed_version_is_finished_by_the_next_reader(
    tmp_path: Path, uri: str, manifest: Callable[[int], bytes]
) -> None:
    store = open_store(uri, claims(tmp_path))
    stopping: Any = Stopping(store, [2])
    with pytest.raises(KeyboardInterrupt):
        publish_manifest(stopping, ManifestName(1, 2), manifest(1))
    assert load_version(store, 1).version == 1
    assert listed(store) == ["18446744073709551614.manifest"]
    assert finish_claimed(store) == finish_claimed(store, 1) == ManifestName(1, 2)
    assert finish_claimed(store, 2) is None
    assert finish_claimed(open_store(uri)) is None


def test_a_claim_executed_twice_belongs_to_its_writer(
    tmp_path: Path, uri: str, manifest: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(uri, claims(tmp_path))
    once = type(store.external).put_if_not_exists

    def twice(*arguments: Any) -> None:
        once(*arguments)
        once(*arguments)

    monkeypatch.setattr(type(store.external), "put_if_not_exists", twice)
    publish_manifest(store, ManifestName(1, 2), manifest(1))
    assert latest_version(store).version == 1
    assert listed(store) == ["18446744073709551614.manifest"]
    with pytest.raises(AlreadyExistsError):
        publish_manifest(store, ManifestName(1, 2), manifest(1))
    assert listed(store) == ["18446744073709551614.manifest"]


def test_several_readers_can_finish_a_claimed_version(
    tmp_path: Path, uri: str, manifest: Callable[[int], bytes]
) -> None:
    store = open_store(uri, claims(tmp_path))
    stopping: Any = Stopping(store, [2])
    with pytest.raises(KeyboardInterrupt):
        publish_manifest(stopping, ManifestName(1, 2), manifest(1))
    with ThreadPoolExecutor(6) as pool:
        opened = list(pool.map(lambda _: open_snapshot(uri, storage_options=claims(tmp_path)).version, range(12)))
    assert opened == [1] * 12
    assert listed(store) == ["18446744073709551614.manifest"]


def test_a_version_without_a_claim_is_seen_and_not_overwritten(
    tmp_path: Path, uri: str, manifest: Callable[[int], bytes]
) -> None:
    store = open_store(uri, claims(tmp_path))
    publish_manifest(store, ManifestName(1, 2), manifest(1))
    publish_manifest(open_store(uri), ManifestName(2, 2), manifest(2))
    assert latest_version(store).version == 2
    with pytest.raises(AlreadyExistsError):
        publish_manifest(store, ManifestName(2, 2), b"another")
    publish_manifest(store, ManifestName(3, 2), manifest(3))
    assert [found.version for found in all_versions(store)] == [1, 2, 3]


def test_claims_of_a_deleted_table_are_an_error_until_removed(
    tmp_path: Path, uri: str, manifest: Callable[[int], bytes]
) -> None:
    store = open_store(uri, claims(tmp_path))
    stopping: Any = Stopping(store, [2])
    with pytest.raises(KeyboardInterrupt):
        publish_manifest(stopping, ManifestName(1, 2), manifest(1))
    store.delete([entry.path for entry in store.walk()])
    with pytest.raises(NotFoundError, match="its manifest does not exist"):
        latest_version(store)
    forget_table(store)
    with pytest.raises(NotFoundError, match="Lance table not found"):
        latest_version(store)
    publish_manifest(store, ManifestName(1, 2), manifest(1))
    assert latest_version(store).version == 1


@pytest.mark.parametrize(
    "path", ["", "x", "_versions/7.manifest", "../../etc/passwd", "_versions/9.manifest-" + "0" * 32]
)
def test_an_unexpected_path_in_the_manifest_store_is_an_error(
    tmp_path: Path, uri: str, manifest: Callable[[int], bytes], path: str
) -> None:
    store = open_store(uri, claims(tmp_path))
    publish_manifest(store, ManifestName(1, 2), manifest(1))
    assert store.external is not None
    store.external.put_if_not_exists(external_key(store), 2, path)
    with pytest.raises(StoreError, match="unexpected path"):
        latest_version(store)


def test_writing_the_hint_never_fails(uri: str, options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(uri, options)
    write_version_hint(store, 7)
    assert store.get("_versions/latest_version_hint.json") == b'{"version":7}'
    write_version_hint(store, 8)
    assert store.get(paths.VERSION_HINT) == b'{"version":8}'
    write_version_hint(open_store("http://127.0.0.1:9/t"), 9)
