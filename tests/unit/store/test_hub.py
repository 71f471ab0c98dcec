"""Datasets on the Hugging Face Hub, simulated by a local server, and Windows paths as strings."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

import lance_duck as ld
from lance_duck.errors import (
    CorruptError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from lance_duck.store import hub as hub_module
from lance_duck.store import local_path, open_store, uri

TOKEN = "hf_0123456789"
HTTP = {"allow_http": "true"}


class Hub:
    """A file server with range requests and a request log."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.endpoint = ""
        self.asked: list[tuple[str, str | None]] = []
        self.next_page = "{address}?cursor={start}"
        self.busy = 0  # answers to pages after the first, before the Hub gives one

    def listing(self, path: str) -> list[dict[str, str]] | None:
        """Return a page of entries for "/api/datasets/{owner}/{name}/tree/{revision}/{path}"."""
        owner, name, _, revision, *below = path.removeprefix("/api/datasets/").strip("/").split("/")
        below = [unquote(part) for part in below]
        root = self.folder / "datasets" / owner / name / "resolve" / revision
        folder = root.joinpath(*below)
        if not folder.is_dir():
            return None
        return [
            {"type": "directory" if each.is_dir() else "file", "oid": "0" * 40, "path": str(each.relative_to(root))}
            for each in folder.iterdir()
        ]


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    made = Hub(tmp_path)

    class Files(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append((self.path, self.headers.get("authorization")))
            if self.path.startswith("/api/"):
                path, _, start = self.path.partition("?cursor=")
                return self.answer(made.listing(path), path, int(start or 0))
            path = Path(self.translate_path(self.path))
            span = self.headers.get("range")
            if span is None or not path.is_file():
                return super().do_GET()
            first, last = span.removeprefix("bytes=").split("-")
            data = path.read_bytes()
            part = data[int(first) : int(last) + 1] if first else data[-int(last) :]
            start = int(first) if first else len(data) - int(last)
            self.send_response(206)
            self.send_header("content-range", f"bytes {start}-{start + len(part) - 1}/{len(data)}")
            self.send_header("content-length", str(len(part)))
            self.end_headers()
            self.wfile.write(part)
            return None

        def translate_path(self, path: str) -> str:
            """Return the file of an address; revision names are folder names."""
            parts = path.strip("/").split("/")
            return str(Path(self.directory, *(part if at == 4 else unquote(part) for at, part in enumerate(parts))))

        def answer(self, entries: list[dict[str, str]] | None, path: str, start: int) -> None:
            if start and made.busy:
                made.busy -= 1
                return self.send_error(503)
            body = json.dumps(entries and entries[start : start + 1000]).encode()
            self.send_response(404 if entries is None else 200)
            self.send_header("content-type", "application/json")
            if entries is not None and len(entries) > start + 1000:
                following = made.next_page.format(address=made.endpoint + path, start=start + 1000)
                self.send_header("link", f'<{following}>; rel="next"')
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return None

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Files, directory=str(tmp_path)))
    with server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        made.endpoint = f"http://127.0.0.1:{server.server_port}"
        yield made
        server.shutdown()


def published(hub: Hub, revision: str) -> Path:
    return hub.folder / "datasets" / "ann" / "trips" / "resolve" / revision / "data" / "t.lance"


def test_a_table_on_the_hub_is_read_at_its_newest_version(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    table = ld.write_dataset({"x": range(1000)}, published(hub, "main"))
    table.delete("x >= 10")
    options = {**HTTP, "hf_endpoint": hub.endpoint, "hf_token": TOKEN}
    found = ld.dataset("hf://datasets/ann/trips/data/t.lance", storage_options=options)
    assert (found.version, found.to_table(filter="x > 7")["x"].to_pylist()) == (2, [8, 9])
    assert found.checkout_version(1).count_rows() == 1000
    assert {token for _, token in hub.asked} == {f"Bearer {TOKEN}"}
    hub.asked.clear()
    monkeypatch.setenv("HF_ENDPOINT", hub.endpoint + "/")
    assert ld.dataset("hf://datasets/ann/trips/data/t.lance", storage_options=HTTP).count_rows() == 10
    assert {token for _, token in hub.asked} == {None}


def test_a_revision_is_selected_by_name(hub: Hub) -> None:
    ld.write_dataset({"x": [1]}, published(hub, "main"))
    shutil.copytree(published(hub, "main"), published(hub, "v1"))
    ld.write_dataset({"x": [2]}, published(hub, "main"), mode="overwrite")
    options = {**HTTP, "hf_endpoint": hub.endpoint}
    values = {
        at: ld.dataset(f"hf://datasets/ann/trips{at}/data/t.lance", storage_options=options).to_table()["x"][0].as_py()
        for at in ("", "@main", "@v1")
    }
    assert values == {"": 2, "@main": 2, "@v1": 1}
    with pytest.raises(NotFoundError):
        ld.dataset("hf://datasets/ann/trips@v9/data/t.lance", storage_options=options)


def test_the_hub_is_read_only_and_its_token_stays_there(hub: Hub) -> None:
    table = ld.write_dataset({"x": [1]}, published(hub, "main"))
    options = {**HTTP, "hf_endpoint": hub.endpoint, "hf_token": TOKEN}
    place = "hf://datasets/ann/trips/data/t.lance"
    with pytest.raises(UnsupportedError, match="read-only"):
        ld.write_dataset({"x": [2]}, place, mode="append", storage_options=options)
    with pytest.raises(UnsupportedError, match="read-only"):
        ld.dataset(place, storage_options=options).delete("x = 1")
    hub.asked.clear()
    web = f"{hub.endpoint}/datasets/ann/trips/resolve/main/data/t.lance"
    assert ld.dataset(web, storage_options=options).count_rows() == table.count_rows()
    assert {token for _, token in hub.asked} == {None}
    with pytest.raises(LanceDuckError) as caught:
        ld.dataset(place, storage_options={**options, "hf_endpoint": f"http://127.0.0.1:1/{TOKEN}"})
    assert TOKEN not in str(caught.value)


def test_the_tables_of_a_repository_are_listed(hub: Hub) -> None:
    table = published(hub, "main")
    ld.write_dataset({"x": range(3)}, table)
    ld.write_dataset({"x": range(4)}, table.parents[1] / "u.lance")
    ld.write_dataset({"x": range(5)}, table.parents[1] / "a folder" / "v.lance")
    (table.parent / "README.md").write_text("no table")
    options = {**HTTP, "hf_endpoint": hub.endpoint, "hf_token": TOKEN}
    for place, counts in (
        ("hf://datasets/ann/trips", {"u": 4}),
        ("hf://datasets/ann/trips@main/data/", {"t": 3}),
        ("hf://datasets/ann/trips/a%20folder", {"v": 5}),
    ):
        with ld.connect(place, storage_options=options) as con:
            tables = [name for (name,) in con.sql("SHOW TABLES").fetchall()]
            assert {name: con.sql(f"SELECT count(*) FROM {name}").fetchall()[0][0] for name in tables} == counts
        properties = {"root": place, **{f"storage.{name}": value for name, value in options.items()}}
        assert ld.connect_namespace("dir", properties).list_tables() == list(counts)
    assert open_store("hf://datasets/ann/trips/nowhere", options).folders() is None
    assert {token for _, token in hub.asked} == {f"Bearer {TOKEN}"}


def test_a_paged_listing_is_read_completely(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [{"type": "directory", "path": f"data/{number:04}.lance"} for number in range(2500)]
    monkeypatch.setattr(hub, "listing", lambda path: entries)
    store = open_store("hf://datasets/ann/trips/data", {**HTTP, "hf_endpoint": hub.endpoint, "hf_token": TOKEN})
    assert store.folders() == [f"{number:04}.lance" for number in range(2500)]
    tree = "/api/datasets/ann/trips/tree/main/data"
    assert [path for path, _ in hub.asked] == [tree, tree, f"{tree}?cursor=1000", f"{tree}?cursor=2000"]
    assert {token for _, token in hub.asked} == {f"Bearer {TOKEN}"}
    hub.asked.clear()
    del entries[1000:]  # a page that is full, and the only one
    assert len(store.folders() or ()) == 1000
    assert [path for path, _ in hub.asked] == [tree, tree]


def test_an_endless_or_broken_listing_is_rejected(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store("hf://datasets/ann/trips", {**HTTP, "hf_endpoint": hub.endpoint, "hf_token": TOKEN})
    entries = [{"type": "file", "path": "x"}] * 2000
    monkeypatch.setattr(hub, "listing", lambda path: None if "broken" in path else entries)
    monkeypatch.setattr(hub_module, "MOST_PAGES", 3)
    for following, error in (
        ("{address}?cursor=0", UnsupportedError),
        ("http://127.0.0.1:1/{start}", CorruptError),
        ("{address}/broken?cursor=0", StoreError),
    ):
        hub.next_page = following
        with pytest.raises(error) as caught:
            store.folders()
        assert TOKEN not in str(caught.value)


def test_a_busy_hub_is_retried(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [{"type": "directory", "path": f"{number:04}.lance"} for number in range(1500)]
    monkeypatch.setattr(hub, "listing", lambda path: entries)
    monkeypatch.setattr(hub_module, "FIRST_WAIT", 0.001)
    store = open_store("hf://datasets/ann/trips", {**HTTP, "hf_endpoint": hub.endpoint})
    hub.busy = hub_module.RETRIES
    assert len(store.folders() or ()) == 1500
    hub.busy = hub_module.RETRIES + 1
    with pytest.raises(StoreError, match="the Hub does not respond: found HTTP Error 503"):
        store.folders()


@pytest.mark.parametrize("answer", [[{"type": 1}], [{"type": "directory", "path": None}], {"error": "busy"}])
def test_an_invalid_listing_is_rejected(hub: Hub, monkeypatch: pytest.MonkeyPatch, answer: object) -> None:
    monkeypatch.setattr(hub, "listing", lambda path: answer if isinstance(answer, list) else [answer["error"]])
    with pytest.raises(CorruptError, match="listing of a dataset on the Hub"):
        open_store("hf://datasets/ann/trips", {**HTTP, "hf_endpoint": hub.endpoint}).folders()


@pytest.mark.parametrize(
    ("written", "name"),
    [("refs%2Fpr%2F1", "refs%2Fpr%2F1"), ("refs/pr/1", "refs%2Fpr%2F1"), ("refs/convert/x", "refs%2Fconvert%2Fx")],
)
def test_a_revision_name_may_contain_slashes(hub: Hub, written: str, name: str) -> None:
    ld.write_dataset({"x": [1, 2]}, published(hub, name))
    options = {**HTTP, "hf_endpoint": hub.endpoint}
    table = ld.dataset(f"hf://datasets/ann/trips@{written}/data/t.lance", storage_options=options)
    assert table.to_table()["x"].to_pylist() == [1, 2]
    with ld.connect(f"hf://datasets/ann/trips@{written}/data", storage_options=options) as con:
        assert con.sql("SELECT count(*) FROM t").fetchall() == [(2,)]
    assert {path.split("/")[6 if path.startswith("/api") else 5] for path, _ in hub.asked} == {name}


@pytest.mark.parametrize(
    "place", ["hf://models/a/b/t.lance", "hf://datasets/a", "hf://datasets/a/b/../c", "hf://datasets/a/b/%2E%2E/c"]
)
def test_invalid_hub_locations_are_rejected(place: str) -> None:
    with pytest.raises(InvalidInputError):
        open_store(place)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("file:///C:/data/t.lance", r"C:\data\t.lance"),
        ("file:///c|/data/t%20u.lance", r"c:\data\t u.lance"),
        ("file:///C:", "C:\\"),
        ("file://localhost/D:/t.lance", r"D:\t.lance"),
        ("file://host/share/t.lance", r"\\host\share\t.lance"),
        (r"C:\data\t.lance", r"C:\data\t.lance"),
        (r"\\host\share\t.lance", r"\\host\share\t.lance"),
        ("\\\\?\\C:\\" + "a" * 300, "\\\\?\\C:\\" + "a" * 300),
    ],
)
def test_windows_locations_have_drives_and_hosts(text: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uri, "_IS_WINDOWS", True)
    assert local_path(text) == path


def test_a_file_uri_with_a_host_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="has a host"):
        local_path("file://host/share/t.lance")


def test_an_unknown_web_option_suggests_the_nearest(hub: Hub) -> None:
    with pytest.raises(InvalidInputError, match="'max_retries'; did you mean 'client_max_retries'"):
        ld.dataset("hf://datasets/me/birds/t.lance", storage_options={"hf_endpoint": hub.endpoint, "max_retries": "1"})
