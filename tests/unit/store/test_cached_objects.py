from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import obstore
import pytest
from obstore.store import S3Store
from support.servers import BUCKET

import lance_duck as ld
from lance_duck.errors import InvalidInputError, NotFoundError
from lance_duck.store import open_store
from lance_duck.store import uri as uris
from lance_duck.store.client import bucket_client
from lance_duck.store.disk_cache import cache as disk_cache
from lance_duck.store.disk_cache import clear, usage, wait_for_blocks
from lance_duck.store.object import ObjectStore
from lance_duck.wire.paths import is_immutable

SIZE = 200_000


@pytest.fixture(autouse=True)
def new_process() -> Iterator[None]:
    yield
    disk_cache._opened.cache_clear()


@pytest.fixture
def cached(options: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Storage options with a cache."""
    return options | {"cache": str(tmp_path / "cache")}


@pytest.fixture
def client(options: dict[str, str]) -> Any:
    return S3Store(
        BUCKET,
        endpoint=options["aws_endpoint"],
        access_key_id="key",
        secret_access_key="secret",
        region="us-east-1",
        client_options={"allow_http": True},
    )


@pytest.fixture
def root() -> str:
    return uuid.uuid4().hex


def content(seed: int) -> bytes:
    return np.random.default_rng(seed).bytes(SIZE)


def opened(root: str, options: dict[str, str]) -> ObjectStore:
    """Return the store as a new process opens it, after the process before has ended."""
    wait_for_blocks()
    disk_cache._opened.cache_clear()
    store = open_store(f"s3://{BUCKET}/{root}", options, (), is_immutable)
    assert isinstance(store, ObjectStore)
    return store


def requests() -> dict[str, float]:
    found = [each for each in ld.metrics() if each.name == "lance_object_store_requests_total"]
    return {each.labels["operation"]: each.value for each in found if each.labels["base"] == "s3"}


def new_requests(before: dict[str, float]) -> dict[str, float]:
    return {name: value - before.get(name, 0) for name, value in requests().items() if value != before.get(name, 0)}


def test_blocks_replace_requests(client: Any, root: str, cached: dict[str, str]) -> None:
    data = content(0)
    obstore.put(client, f"{root}/data/x.lance", data)
    for expected in ({"get": 1}, {"head": 1}):
        before = requests()
        pieces = opened(root, cached).open("data/x.lance", SIZE).read([(10, 100), (SIZE - 70_000, 70_000)])
        assert [bytes(piece) for piece in pieces] == [data[10:110], data[-70_000:]]
        assert new_requests(before) == expected
    store = opened(root, cached)
    before = requests()
    file = store.open("data/x.lance")
    assert bytes(file.read([(0, SIZE)])[0]) == data
    assert new_requests(before) == {"head": 1}  # for the size, and it also tells the e-tag


@pytest.mark.parametrize("path", ["data/x.lance", "_indices/u/x", "_deletions/0-1-2.bin"])
@pytest.mark.parametrize("size", [SIZE, SIZE + 1, SIZE - 1])
def test_an_object_that_was_replaced_under_its_name_is_read_anew(
    client: Any, root: str, cached: dict[str, str], path: str, size: int
) -> None:
    obstore.put(client, f"{root}/{path}", content(0))
    bytes(opened(root, cached).open(path, SIZE).read([(0, SIZE)])[0])
    replaced = (content(1) + b"x")[:size]
    obstore.put(client, f"{root}/{path}", replaced)
    for _ in range(2):
        assert bytes(opened(root, cached).open(path, size).read([(0, size)])[0]) == replaced
        assert bytes(opened(root, cached).open(path).read([(5, 10)])[0]) == replaced[5:15]
        assert opened(root, cached).get(path) == replaced


def test_a_deleted_object_is_not_served_by_another_process(client: Any, root: str, cached: dict[str, str]) -> None:
    obstore.put(client, f"{root}/data/x.lance", content(0))
    opened(root, cached).open("data/x.lance", SIZE).read([(0, SIZE)])
    obstore.delete(client, f"{root}/data/x.lance")
    with pytest.raises(NotFoundError):
        opened(root, cached).open("data/x.lance", SIZE).read([(0, 10)])


def test_whole_files_are_read_from_blocks_once_their_size_is_known(
    client: Any, root: str, cached: dict[str, str], tmp_path: Path
) -> None:
    obstore.put(client, f"{root}/_deletions/x.bin", content(0))
    store = opened(root, cached)
    for expected in ({"get": 1}, {}):
        before = requests()
        assert store.get("_deletions/x.bin") == content(0)
        assert new_requests(before) == expected
    for data in (content(1)[:50], b""):  # blocks are gone, and the object was replaced
        clear(str(tmp_path / "cache"))
        obstore.put(client, f"{root}/_deletions/x.bin", data)
        assert store.get("_deletions/x.bin") == data
        assert store.get("_deletions/x.bin") == data
    with pytest.raises(NotFoundError):
        store.get("_deletions/y.bin")


def test_files_that_change_are_not_cached(client: Any, root: str, cached: dict[str, str], tmp_path: Path) -> None:
    store = opened(root, cached)
    for path in ("_versions/1.manifest", "_refs/tags/a.json", "_transactions/1-x.txn", "__manifest/data/x", "x"):
        for text in (b"old", b"new"):
            obstore.put(client, f"{root}/{path}", text)
            assert store.get(path) == text
            assert bytes(store.open(path, 3).read([(0, 3)])[0]) == text
    assert usage(str(tmp_path / "cache")).blocks == 0


def test_services_and_accounts_have_blocks_of_their_own(cached: dict[str, str], monkeypatch: Any) -> None:
    def bucket(**more: str) -> Any:
        return getattr(uris._bucket_cache("s3://b", cached | more, is_immutable), "bucket", None)

    assert bucket() == bucket(aws_secret_access_key="other")
    assert len({bucket(), bucket(aws_endpoint="http://elsewhere"), bucket(account_name="x")}) == 3
    before = bucket()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://elsewhere")
    assert bucket() != before


def test_without_the_option_nothing_is_cached(options: dict[str, str], root: str) -> None:
    assert opened(root, options)._cache is None
    assert open_store(f"s3://{BUCKET}/{root}", options | {"cache": "/nowhere"}).uri  # not a table: nothing is opened


def test_objects_in_the_memory_of_a_process_are_not_cached(tmp_path: Path) -> None:
    ld.write_dataset({"a": [1]}, f"memory://{uuid.uuid4()}/t.lance", storage_options={"cache": str(tmp_path / "c")})
    assert not (tmp_path / "c").exists()


def test_local_tables_accept_the_options(tmp_path: Path) -> None:
    ds = ld.write_dataset({"a": [1]}, tmp_path / "t.lance")
    assert ld.dataset(ds.uri, cache=tmp_path / "c").count_rows() == 1
    assert not (tmp_path / "c").exists()


def test_a_folder_of_somebody_else_is_an_error_when_a_table_is_opened(
    options: dict[str, str], root: str, tmp_path: Path
) -> None:
    (tmp_path / "letter").touch()
    with pytest.raises(InvalidInputError, match="the cache folder contains other files"):
        ld.dataset(f"s3://{BUCKET}/{root}/t.lance", storage_options=options, cache=tmp_path)


def test_tables_are_cached_however_the_folder_is_named(options: dict[str, str], root: str, tmp_path: Path) -> None:
    folder = f"s3://{BUCKET}/{root}"
    ds = ld.write_dataset({"a": list(range(1000))}, f"{folder}/t.lance", storage_options=options)
    ds.delete("a = 3")
    ways = {
        "dataset": lambda cache: ld.dataset(ds.uri, storage_options=options, cache=cache).count_rows("a > 1"),
        "option": lambda cache: ld.dataset(ds.uri, storage_options=options | {"cache": str(cache)}).count_rows("a > 1"),
        "connection": lambda cache: (
            ld.connect(folder, storage_options=options, cache=cache)
            .execute("SELECT count(*) FROM t WHERE a > 1")
            .fetchone()[0]
        ),
        "namespace": lambda cache: ld.dataset(
            namespace_client=ld.DirectoryNamespace(folder, storage_options=options, cache=cache), table_id=["t"]
        ).count_rows("a > 1"),
        "properties": lambda cache: (
            ld.connect_namespace(
                "dir",
                {"root": folder, "storage.cache": str(cache)} | {f"storage.{k}": v for k, v in options.items()},
            )
            .open_table("t")
            .count_rows("a > 1")
        ),
    }
    for name, read in ways.items():
        assert read(tmp_path / name) == 997, name
        assert usage(str(tmp_path / name)).objects >= 1, name


def test_a_secret_names_a_cache(options: dict[str, str], root: str, tmp_path: Path) -> None:
    ld.write_dataset({"a": [1, 2]}, f"s3://{BUCKET}/{root}/t.lance", storage_options=options)
    con = ld.connect()
    endpoint = options["aws_endpoint"]
    con.execute(
        "CREATE SECRET x (TYPE lance, KEY_ID 'key', SECRET 'secret', REGION 'us-east-1', "
        f"aws_endpoint '{endpoint}', allow_http 'true', cache '{tmp_path / 'c'}')"
    )
    assert con.execute(f"SELECT sum(a) FROM 's3://{BUCKET}/{root}/t.lance'").fetchone() == (3,)
    assert usage(str(tmp_path / "c")).objects == 1


def test_the_client_of_a_bucket_does_not_depend_on_the_cache() -> None:
    plain, cached = (bucket_client("s3://b", (*extra, ("region", "r"))) for extra in ((), (("cache", "/x"),)))
    assert plain.config == cached.config
