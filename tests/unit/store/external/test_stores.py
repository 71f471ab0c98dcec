from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from lance_duck.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StoreError, UnsupportedError
from lance_duck.store import ExternalManifestStore, open_store, register_manifest_store
from lance_duck.store.external import manifest_store
from lance_duck.store.external.sqlite import SqliteManifestStore

TABLE = "s3://bucket/t.lance"


@pytest.fixture
def store(tmp_path: Path) -> ExternalManifestStore:
    return SqliteManifestStore(str(tmp_path / "manifests.db"))


def test_a_version_is_claimed_once(store: ExternalManifestStore) -> None:
    assert store.get(TABLE, 1) is None
    assert store.get_latest(TABLE) is None
    store.put_if_not_exists(TABLE, 1, "a")
    with pytest.raises(AlreadyExistsError, match="version 1"):
        store.put_if_not_exists(TABLE, 1, "b")
    store.put_if_not_exists(TABLE + "2", 1, "c")
    assert store.get(TABLE, 1) == "a"
    store.put_if_not_exists(TABLE, 10, "d")
    store.put_if_not_exists(TABLE, 9, "e")
    assert store.get_latest(TABLE) == (10, "d")


def test_only_a_claimed_version_can_be_updated(store: ExternalManifestStore) -> None:
    store.put_if_not_exists(TABLE, 1, "a")
    store.put_if_exists(TABLE, 1, "b")
    assert store.get(TABLE, 1) == "b"
    with pytest.raises(NotFoundError):
        store.put_if_exists(TABLE, 2, "b")
    assert store.get(TABLE, 2) is None


def test_a_dropped_table_is_forgotten(store: ExternalManifestStore) -> None:
    store.put_if_not_exists(TABLE, 1, "a")
    others = ("other", f"{TABLE}2", f"{TABLE}/tree/side", TABLE.upper())
    for other in others:
        store.put_if_not_exists(other, 1, "a")
    store.delete(TABLE)
    assert store.get_latest(TABLE) is None
    assert [store.get_latest(other) for other in others] == [(1, "a")] * 4


def test_one_of_many_threads_claims_a_version(store: ExternalManifestStore) -> None:
    def claim(at: int) -> bool:
        barrier.wait()
        try:
            store.put_if_not_exists(TABLE, version, str(at))
        except AlreadyExistsError:
            return False
        return True

    barrier = Barrier(6)
    with ThreadPoolExecutor(6) as pool:
        for version in range(1, 9):
            won = list(pool.map(claim, range(6)))
            assert won.count(True) == 1
            assert store.get(TABLE, version) == str(won.index(True))


def test_an_invalid_database_raises_a_store_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"this is no database" * 100)
    for path in (broken, tmp_path / "no" / "such" / "directory.db", tmp_path):
        with pytest.raises(StoreError, match="manifest store"):
            open_store("memory://t", {"manifest_store": f"sqlite://{path}"})


def test_the_manifest_store_option_selects_a_store(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/with%20space.db"
    local = open_store(tmp_path / "t", {"manifest_store": url})
    memory = open_store("memory://t", {"manifest_store": url})
    assert local.external is memory.external
    assert open_store("memory://t", {"MANIFEST_STORE": url}).external is memory.external
    assert (tmp_path / "with space.db").exists()
    assert open_store(tmp_path / "t").external is None


@pytest.mark.parametrize("url", ["sqlite://host/x.db", "sqlite://", "sqlite:///", "sqlite:///a%00b"])
def test_an_invalid_manifest_store_url_is_rejected(url: str) -> None:
    with pytest.raises(InvalidInputError, match="URL of a file"):
        manifest_store(url)


def test_custom_manifest_stores_can_be_registered() -> None:
    class Mine(SqliteManifestStore):
        def __init__(self, url: str) -> None:
            self.url = url

    with pytest.raises(InvalidInputError, match="unknown kind of manifest store"):
        manifest_store("mine://table")
    register_manifest_store("mine", Mine)
    found = manifest_store("mine://table?region=x")
    assert isinstance(found, Mine)
    assert found.url == "mine://table?region=x"
    assert manifest_store("mine://table?region=x") is found
    register_manifest_store("mine", Mine)
    assert manifest_store("mine://table?region=x") is not found


@pytest.mark.parametrize("scheme", ["sqlite", "", "a b", "Mine", "x:"])
def test_only_unused_schemes_can_be_registered(scheme: str) -> None:
    with pytest.raises(InvalidInputError):
        register_manifest_store(scheme, SqliteManifestStore)


def test_a_manifest_store_in_the_uri_scheme_is_rejected_with_a_remedy() -> None:
    with pytest.raises(UnsupportedError, match=r"storage_options: \{\"manifest_store\""):
        open_store("s3+ddb://bucket/t?ddbTableName=x")
