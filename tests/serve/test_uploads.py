"""An upload that is damaged, cut or too large commits nothing, and leaves no files."""

from __future__ import annotations

import errno
import io
import json
import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.faults import Faults, fail_from

import lance_duck as ld
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.http import arrow_upload
from lance_duck.serve.run import Server

ARROW: Final = "application/vnd.apache.arrow.stream"
SCHEMA: Final = pa.schema([("id", pa.int64()), ("s", pa.string()), ("v", pa.list_(pa.float32(), 2))])
ROWS: Final = pa.table({"id": [1, 2, 3], "s": ["a", None, "c"], "v": [[1, 2], None, [3, 4]]}, SCHEMA)


def stream(*batches: pa.RecordBatch, compression: str | None = None) -> bytes:
    """Return batches as an Arrow IPC stream."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batches[0].schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return sink.getvalue()


PLAIN: Final = stream(*ROWS.to_batches(max_chunksize=2))
PACKED: Final = stream(*ROWS.to_batches(max_chunksize=2), compression="zstd")


class Place:
    """A server with the table `t`, which has the version 1."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder = folder
        self.address = urlsplit(server.url).netloc
        ld.write_dataset(ROWS, folder / "t.lance")
        self.before = self.files()

    def files(self) -> set[str]:
        """Return the paths of all files."""
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}

    def send(self, path: str, body: bytes | Iterator[bytes]) -> int:
        """Send an upload, and return the status of the answer."""
        return self.answer(path, body)[0]

    def answer(self, path: str, body: bytes | Iterator[bytes]) -> tuple[int, str]:
        """Send an upload, and return the status and the text of the answer."""
        connection = HTTPConnection(self.address, timeout=60)
        try:
            connection.request("POST", f"/v1/table/{path}", body, {"Content-Type": ARROW})
            answer = connection.getresponse()
            text = answer.read().decode()
            json.loads(text)
            return answer.status, text
        finally:
            connection.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server whose table does not change."""
    folder = tmp_path_factory.mktemp("served")
    with Server(ServeSettings(str(folder), port=0, write=True)) as server:
        yield Place(folder, server)


VERBS: Final = (
    "new/create",
    "t/create?mode=overwrite",
    "t/insert",
    "t/insert?mode=overwrite",
    "t/merge_insert?on=id&when_matched_update_all=true&when_not_matched_insert_all=true",
)


@given(st.data())
def test_a_cut_upload_changes_nothing(place: Place, data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from([PLAIN, PACKED]))
    end = data.draw(st.integers(0, len(whole) - 1))
    assert place.send(data.draw(st.sampled_from(VERBS)), whole[:end]) in (400, 406)
    assert place.files() == place.before


@given(st.data())
def test_a_damaged_upload_is_refused_or_read_as_what_it_says(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Arrow has no checksums, so that other values are not noticed. The check runs without a server."""
    whole = bytearray(data.draw(st.sampled_from([PLAIN, PACKED])))
    for _ in range(data.draw(st.integers(1, 3))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    pieces = iter([bytes(whole)])
    try:
        rows = arrow_upload.read_upload(lambda: next(pieces, b""), "upload").read_all()
    except ld.LanceDuckError:
        return
    assert rows.nbytes < 1 << 20
    assert ld.write_dataset(rows, tmp_path_factory.mktemp("t") / "t.lance").count_rows() == len(rows)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"\xff" * 64,
        PLAIN + b"x",
        PLAIN + PLAIN,
        PLAIN[8:],
        b"\xff\xff\xff\xff" + struct.pack("<i", 2**31 - 1) + PLAIN[8:],
        b"\xff\xff\xff\xff" + struct.pack("<i", -1) + PLAIN[8:],
    ],
)
def test_bytes_that_are_no_stream_change_nothing(place: Place, verb: str, body: bytes) -> None:
    assert place.send(verb, body) == 400
    assert place.files() == place.before


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb.startswith("t/") and "overwrite" not in verb])
@pytest.mark.parametrize(
    "rows",
    [
        pa.table({"other": [1]}),
        pa.table({"id": ["x"], "s": ["a"]}),
        pa.table({"id": [[1]], "s": ["a"]}),
        pa.table({"id": [1], "v": pa.array([[1, 2, 3]], pa.list_(pa.float32(), 3))}),
    ],
)
def test_rows_that_do_not_fit_change_nothing(place: Place, verb: str, rows: pa.Table) -> None:
    assert place.send(verb, stream(*rows.to_batches())) == 400
    assert place.files() == place.before


@pytest.mark.parametrize("at", range(0, len(PLAIN) - 16, 8))
def test_an_enormous_length_anywhere_needs_no_memory(at: int) -> None:
    whole = bytearray(PLAIN)
    whole[at : at + 8] = struct.pack("<q", 1 << 60)
    pieces = iter([bytes(whole)])
    before = pa.total_allocated_bytes()
    with suppress(ld.LanceDuckError):
        assert arrow_upload.read_upload(lambda: next(pieces, b""), "upload").read_all().nbytes < 1 << 20
    assert pa.total_allocated_bytes() - before < 1 << 20


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("problem", [MemoryError, pa.ArrowMemoryError])
@pytest.mark.parametrize("after", [0, 1])
def test_an_upload_without_memory_is_too_large(
    place: Place, monkeypatch: pytest.MonkeyPatch, verb: str, problem: type[Exception], after: int
) -> None:
    checked = count()

    def check(self: object, batch: object, body: bytes) -> None:
        if next(checked) >= after:
            raise problem("no memory")

    monkeypatch.setattr(arrow_upload._MessageFile, "_check_size", check)
    status, text = place.answer(verb, PLAIN)
    assert (status, "the request needs too much memory" in text) == (413, True)
    assert place.files() == place.before


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_a_batch_that_is_small_only_while_packed_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    monkeypatch.setattr(arrow_upload, "MOST_BYTES", 1 << 20)
    batch = pa.record_batch({"id": pa.array(np.zeros(1 << 18, np.int64))})
    assert place.send("new/create", stream(batch, compression=compression)) == 400
    assert place.files() == place.before


def test_dictionaries_and_empty_batches_are_read(start: Callable[..., Server], tmp_path: Path) -> None:
    place = Place(tmp_path, start(tmp_path, write=True))
    words = pa.record_batch({"d": pa.array(["a", "b", "a"]).dictionary_encode()})
    assert place.send("words/create", stream(words.slice(0, 0), words, words.slice(1))) == 200
    assert ld.dataset(tmp_path / "words.lance").to_table()["d"].cast(pa.string()).to_pylist() == [*"abab", "a"]
    assert place.send("none/create", stream(words.slice(0, 0))) == 200
    assert ld.dataset(tmp_path / "none.lance").count_rows() == 0


def test_rows_are_written_while_they_arrive(start: Callable[..., Server], tmp_path: Path) -> None:
    """The client sends the end only after the server has written rows, so that the server cannot wait for it."""
    place = Place(tmp_path, start(tmp_path, write=True))
    rows = pa.record_batch({"id": pa.array(range(100_000), pa.int64())})
    whole = stream(*[rows] * 60)

    def body() -> Iterator[bytes]:
        yield whole[:-8]
        while not any("data/" in path for path in place.files() - place.before):
            yield b""
        yield whole[-8:]

    assert place.send("new/create", iter(body())) == 200
    assert ld.dataset(tmp_path / "new.lance").count_rows() == 6_000_000


@pytest.mark.parametrize("verb", VERBS)
def test_a_client_that_goes_away_leaves_nothing(start: Callable[..., Server], tmp_path: Path, verb: str) -> None:
    server = start(tmp_path, write=True)
    place = Place(tmp_path, server)
    batch = pa.record_batch({"id": pa.array(range(100_000), pa.int64())})
    uploads = server.gate.uploads
    with socket.create_connection(tuple(place.address.split(":"))) as client:
        head = f"POST /v1/table/{verb} HTTP/1.1\r\nHost: {place.address}\r\nContent-Type: {ARROW}\r\n"
        client.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        part = stream(batch, batch)[:-8]
        client.sendall(f"{len(part):x}\r\n".encode() + part + b"\r\n")
        while not uploads.running:
            os.sched_yield()
    assert uploads.drained(30)
    assert place.files() == place.before
    assert ld.dataset(tmp_path / "t.lance").version == 1


@pytest.mark.parametrize("verb", ["t/insert", "new/create"])
def test_a_full_disk_under_an_upload_is_told_and_changes_nothing(tmp_path: Path, verb: str) -> None:
    with Server(ServeSettings(str(tmp_path), port=0, write=True)) as server:
        place = Place(tmp_path, server)
        with Faults() as seen:
            assert place.send("other/create", PLAIN) == 200
        statuses = []
        for at in range(0, len(seen.steps), 3):
            with Faults(fail_from(at, errno.ENOSPC)):
                statuses.append(place.send(verb, PLAIN))
            table = ld.dataset(tmp_path / "t.lance")
            assert table.count_rows() == 3 * table.version
            if statuses[-1] == 200:
                break
        assert statuses[0] == 503
        assert {*statuses} <= {200, 503}
        assert place.send("t/insert", PLAIN) == 200
