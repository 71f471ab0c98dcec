"""Versions claimed in PostgreSQL: `register_manifest_store` with a real server, if one is installed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from concurrency.hammer import check, create, hammer
from support.postgres import PostgresManifestStore, is_installed, postgres_server

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, NotFoundError

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not is_installed(), reason="no PostgreSQL on this machine")]

TABLE = 's3://bucket/it\'s a "table".lance'


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with postgres_server() as url:
        ld.register_manifest_store("postgres", PostgresManifestStore.open)
        yield url


def test_one_of_many_claims_of_a_version_succeeds(url: str) -> None:
    def claim(number: int) -> bool:
        try:
            PostgresManifestStore.open(url).put_if_not_exists(TABLE, 1, f"path {number}")
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(claim, range(4)))
    assert won.count(True) == 1
    store = PostgresManifestStore.open(url)
    assert store.get(TABLE, 1) == f"path {won.index(True)}"
    store.put_if_exists(TABLE, 1, "$$; --")
    assert store.get_latest(TABLE) == (1, "$$; --")
    with pytest.raises(NotFoundError):
        store.put_if_exists(TABLE, 2, "x")
    store.delete(TABLE)
    assert store.get_latest(TABLE) is None
    assert store.get(TABLE, 1) is None


@pytest.mark.parametrize("place", ["disk", "memory"])
def test_concurrent_writers_lose_no_rows(url: str, tmp_path: Path, place: str) -> None:
    uri = str(tmp_path / "t.lance") if place == "disk" else f"memory://{tmp_path.name}/t.lance"
    options = {"manifest_store": url, "fsync": "false"}
    create(uri, options)
    what = {"append": 2, "count": 2, "upsert": 2, "delete": 1, "compact": 1}
    with ThreadPoolExecutor(3) as pool:
        made = [pool.submit(hammer, uri, options, who, 1.0, what, True) for who in range(3)]
        tallies = [each.result() for each in made]
    check(uri, options, tallies)
    assert sum(sum(tally.tried[name] for name in what) for tally in tallies) >= 15
    dataset = ld.dataset(uri, storage_options=options)
    assert dataset.version == PostgresManifestStore.open(url).get_latest(uri)[0]
