from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import obstore
import pytest
from obstore.store import S3Store
from support.servers import BUCKET

from lance_duck.errors import CorruptError, InvalidInputError, LanceDuckError, NotFoundError, StoreError
from lance_duck.snapshot import open_snapshot
from lance_duck.store import Store, open_store
from lance_duck.store.client import MEMORY

HTTP = {"allow_http": "true"}


@pytest.fixture(params=["memory", "s3"])
def place(request: pytest.FixtureRequest) -> tuple[str, dict[str, str] | None, Any]:
    """Root of a fresh table: URI, storage options, and a client that writes below it."""
    name = uuid.uuid4().hex
    if request.param == "memory":
        return f"memory://{name}/t.lance", None, (MEMORY, f"{name}/t.lance/")
    options: dict[str, str] = request.getfixturevalue("options")
    client = S3Store(
        BUCKET,
        endpoint=options["aws_endpoint"],
        access_key_id="key",
        secret_access_key="secret",
        region="us-east-1",
        client_options={"allow_http": True},
    )
    return f"s3://{BUCKET}/{name}/t.lance", options, (client, f"{name}/t.lance/")


@pytest.fixture
def put(place: Any) -> Callable[[str, bytes], None]:
    client, prefix = place[2]
    return lambda path, data: obstore.put(client, prefix + path, data) and None


@pytest.fixture
def store(place: Any) -> Store:
    return open_store(place[0] + "/", place[1])


def test_objects_are_read_whole_and_by_range(store: Store, put: Any) -> None:
    put("data/x", bytes(range(256)) * 4096)
    assert store.get("data/x")[:3] == b"\0\1\2"
    file = store.open("data/x")
    assert file.size == 1 << 20
    found = file.read([(5, 3), (0, 0), (1_000_000, 4), (7, 1), (1 << 20, 0)])
    assert [bytes(f) for f in found] == [b"\5\6\7", b"", b"@ABC", b"\7", b""]
    assert not found[0].flags.writeable
    assert bytes(store.open("data/x", 1 << 20).read([(0, 2)])[0]) == b"\0\1"
    assert file.read([]) == []


def test_distant_ranges_are_returned_in_order(store: Store, put: Any) -> None:
    data = np.random.default_rng(0).integers(0, 256, 4 << 20, np.uint8)
    put("data/x", data.tobytes())
    rng = np.random.default_rng(1)
    starts = [*rng.integers(0, len(data) - 5000, 60).tolist(), *range(0, 4 << 20, 200 << 10)]
    ranges = [(start, int(rng.integers(1, 5000))) for start in starts]
    assert len({start >> 17 for start in starts}) > 10  # more requests than one call runs concurrently
    found = store.open("data/x").read(ranges)
    assert [bytes(each) for each in found] == [data[start : start + size].tobytes() for start, size in ranges]


def test_ranges_beyond_the_end_are_corrupt(store: Store, put: Any) -> None:
    put("x", b"0123456789")
    file = store.open("x")
    for wanted in ((0, 11), (11, 0), (-1, 2), (5, -1)):
        with pytest.raises(CorruptError):
            file.read([wanted])
    for wanted in ((5, 10), (15, 2)):
        with pytest.raises(CorruptError, match="the file is truncated"):
            store.open("x", 20).read([wanted])


def test_missing_objects_raise_not_found(store: Store) -> None:
    assert not store.exists("x")
    with pytest.raises(NotFoundError):
        store.get("x")
    with pytest.raises(NotFoundError):
        store.open("x")
    with pytest.raises(NotFoundError):
        store.open("x", 10).read([(0, 5)])
    assert list(store.names("d")) == []


def test_objects_of_a_directory_are_listed_by_name(store: Store, put: Any) -> None:
    for name in ("d/b", "d/a", "d/sub/c", "dd/x"):
        put(name, b"123")
    entries = list(store.entries("d"))
    assert [(e.path, e.size) for e in entries] == [("d/a", 3), ("d/b", 3)]
    assert entries[0].modified.utcoffset() is not None
    assert list(store.names("d/sub")) == ["c"]
    assert store.names_at_once("d/sub") is None


def test_paths_outside_the_root_are_rejected(store: Store) -> None:
    for path in ("", ".", "..", "../x", "a/../../x", "/x", "a\0b"):
        for read in (store.get, store.open, store.exists, lambda p: list(store.entries(p))):
            with pytest.raises(InvalidInputError):
                read(path)


def test_a_table_opens_on_an_object_store(place: Any, put: Any, hand_made: Any, make_data_file: Any) -> None:
    table = hand_made()
    data = make_data_file(10)
    files = [{"path": "x y#1.lance", "file_size_bytes": len(data)}]
    for version in (1, 2, 11):
        table.commit(version, fragments=[{"physical_rows": 10, "files": files}])
    table.files["data/x y#1.lance"] = data
    table.add_json("_refs/tags/first.json", {"version": 1})
    for path, content in table.files.items():
        put(path, content)
    snapshot = open_snapshot(place[0], storage_options=place[1])
    assert (snapshot.version, snapshot.version_numbers(), len(snapshot.versions())) == (11, [1, 2, 11], 3)
    assert snapshot.checkout("first").version == 1
    assert snapshot.count_rows() == snapshot.data_file(snapshot.fragments[0].files[0]).num_rows == 10


def test_a_branch_of_a_table_finds_its_base(place: Any, put: Any, hand_made: Any, make_data_file: Any) -> None:
    main, branch = hand_made(), hand_made()
    main.files["data/x.lance"] = make_data_file(3)
    main.commit(1)
    main.add_json("_refs/branches/b.json", {"parentVersion": 1, "identifier": {"version_mapping": []}})
    branch.commit(
        1,
        branch="b",
        base_paths=[{"id": 0, "is_dataset_root": True, "path": place[0]}],
        fragments=[{"physical_rows": 3, "files": [{"path": "x.lance", "base_id": 0}]}],
    )
    for path, content in (main.files | {f"tree/b/{p}": c for p, c in branch.files.items()}).items():
        put(path, content)
    options = {"base_0.timeout": "10s", **(place[1] or {})}
    snapshot = open_snapshot(place[0], ("b", None), storage_options=options)
    assert snapshot.data_file(snapshot.fragments[0].files[0]).num_rows == 3
    assert list(open_snapshot(f"{place[0]}/tree/b", storage_options=options).branches()) == ["b"]


def test_a_missing_table_or_bucket_raises_not_found(options: dict[str, str]) -> None:
    for uri in (f"s3://{BUCKET}/nothing", "s3://nowhere/x"):
        with pytest.raises(NotFoundError):
            open_snapshot(uri, storage_options=options)


def test_an_unreachable_service_is_a_store_error(options: dict[str, str]) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        silent = options | {"aws_endpoint": f"http://127.0.0.1:{port}", "client_max_retries": "0", "timeout": "2s"}
        with pytest.raises(StoreError):
            open_snapshot(f"s3://{BUCKET}/x", storage_options=silent)


@pytest.fixture
def web_server(tmp_path: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        thread = Thread(target=partial(server.serve_forever, 0.01))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("hint", [b'{"version": 4}', b'{"version": 9}', b"[1]"])
def test_a_web_server_is_probed_for_the_newest_version(
    web_server: str, tmp_path: Path, hand_made: Any, hint: bytes
) -> None:
    table = hand_made()
    for version in (1, 2, 3, 4, 5):
        table.commit(version)
    table.files["_versions/latest_version_hint.json"] = hint
    table.write(tmp_path / "t")
    assert open_snapshot(f"{web_server}/t", storage_options=HTTP).version == 5
    assert open_snapshot(f"{web_server}/t", 3, storage_options=HTTP).version == 3
    with pytest.raises(NotFoundError):
        open_snapshot(f"{web_server}/x", storage_options=HTTP)


def test_a_hint_to_a_failed_version_falls_back_to_the_previous_one(
    web_server: str, tmp_path: Path, hand_made: Any
) -> None:
    table = hand_made()
    for version in (3, 4):  # others were cleaned up
        table.commit(version)
    table.files["_versions/latest_version_hint.json"] = b'{"version": 5}'
    table.write(tmp_path / "t")
    assert open_snapshot(f"{web_server}/t", storage_options=HTTP).version == 4


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("s3://b/x", {"no_such_option": "1"}),
        ("s3://b/x", {"client_max_retries": "many"}),
        ("s3:///x", {}),
        ("s3://b/../x", {}),
        ("http://host/x", {"aws_region": "r"}),
    ],
)
def test_invalid_uris_and_options_are_rejected(uri: str, options: dict[str, str]) -> None:
    with pytest.raises(LanceDuckError) as caught:
        open_store(uri, options)
    assert isinstance(caught.value, InvalidInputError)


def test_options_may_be_booleans_and_numbers() -> None:
    options: Any = {"AWS_REGION": "r", "aws_skip_signature": True, "client_max_retries": 3, "allow_http": True}
    assert open_store("s3://b/x", options).uri == "s3://b/x"


@pytest.mark.parametrize("name", ["endpoint", "aws_endpoint", "aws_endpoint_url", "endpoint_url"])
@pytest.mark.parametrize("value", ["127.0.0.1:9000", "no url", "user:word@host", "https://", "ftp://host"])
def test_an_invalid_endpoint_is_rejected_without_being_shown(name: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{name}: not a URL: expected such as https://host") as refused:
        open_store("s3://bucket/t.lance", {name: value, "skip_signature": "true"})
    assert value == "https://" or value not in str(refused.value)


def test_a_panic_in_the_library_is_a_store_error() -> None:
    store = open_store("s3://bucket/t.lance", {"region": "a b", "skip_signature": "true", "client_max_retries": "0"})
    with pytest.raises(StoreError, match="the library panicked"):
        store.get("x")
