"""A change whose answer is lost runs once, although the client repeats it.

LanceDB repeats a request after the statuses 409, 429 and 5xx, which a proxy may send in place of an answer. It gives
uploads a new id each time, so that no server can tell that they are repeated.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import lancedb
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import RetryableError
from lance_duck.serve import run
from lance_duck.serve.http.app import ServeApp
from lance_duck.serve.run import Server

ROWS: Final = [{"id": i} for i in range(10)]

Handled = list[str]


@pytest.fixture
def handled() -> Handled:
    """The ids of requests with lost answers, and of their repetitions."""
    return []


@pytest.fixture
def lossy(
    monkeypatch: pytest.MonkeyPatch, start: Callable[..., Server], handled: Handled
) -> Callable[[Path, str], Server]:
    """A function that starts a server which loses the first two answers of paths with a verb, after the change."""

    def started(place: Path, verb: str) -> Server:
        class LossyApp(ServeApp):
            async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
                path = scope.get("path", "").rstrip("/")
                if not path.endswith(verb):
                    await super().__call__(scope, receive, send)
                    return
                handled.append(dict(scope["headers"])[b"x-request-id"].decode())

                async def lose(message: Any) -> None:
                    if message["type"] == "http.response.start":
                        await send({"type": "http.response.start", "status": 503, "headers": []})
                        await send({"type": "http.response.body", "body": b"lost"})

                await super().__call__(scope, receive, lose if len(handled) < 3 else send)

        monkeypatch.setattr(run, "ServeApp", LossyApp)
        return start(place, write=True)

    return started


CHANGES: dict[str, Callable[[Any], Any]] = {
    "delete": lambda table: table.delete("id < 5").num_deleted_rows,
    "update": lambda table: table.update(values_sql={"id": "id + 100"}).rows_updated,
    "add_columns": lambda table: table.add_columns({"y": "id"}).version,
    "tags/create": lambda table: table.tags.create("v", 1),
}
EXPECTED: Final = {"delete": 5, "update": 10, "add_columns": 2, "tags/create": None}


@pytest.mark.parametrize("verb", CHANGES)
def test_lancedb_repeats_a_change_that_runs_once(
    lossy: Callable[[Path, str], Server], tmp_path: Path, handled: Handled, verb: str
) -> None:
    table = ld.write_dataset(ROWS, tmp_path / "t.lance")
    server = lossy(tmp_path, verb)
    remote = lancedb.connect("db://test", api_key="any", host_override=server.url).open_table("t")
    assert CHANGES[verb](remote) == EXPECTED[verb]
    assert (len(handled), len(set(handled))) == (3, 1)
    assert table.latest_version == (1 if verb == "tags/create" else 2)


def test_lancedb_gives_a_repeated_upload_a_new_id(
    lossy: Callable[[Path, str], Server], tmp_path: Path, handled: Handled
) -> None:
    ld.write_dataset(ROWS, tmp_path / "t.lance")
    server = lossy(tmp_path, "merge_insert")
    remote = lancedb.connect("db://test", api_key="any", host_override=server.url).open_table("t")
    merged = remote.merge_insert("id").when_not_matched_insert_all().execute([{"id": 50}])
    assert (len(set(handled)), merged.num_inserted_rows) == (3, 0)  # the first request has inserted the row
    assert remote.count_rows() == 11


@pytest.mark.parametrize(("verb", "versions", "later"), [("create", 1, 400), ("insert", 2, 200)])
def test_an_upload_with_the_same_id_runs_once(
    lossy: Callable[[Path, str], Server], tmp_path: Path, verb: str, versions: int, later: int
) -> None:
    server = lossy(tmp_path, verb)
    table = tmp_path / "t.lance"
    if verb == "insert":
        ld.write_dataset(ROWS, table)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("id", pa.int64())])) as writer:
        writer.write_table(pa.table({"id": [1, 2]}))

    def send(request_id: str) -> int:
        headers = {"Content-Type": "application/vnd.apache.arrow.stream", "X-Request-Id": request_id}
        try:
            url = f"{server.url}/v1/table/t/{verb}/"
            with urlopen(Request(url, sink.getvalue().to_pybytes(), headers)) as answer:
                return int(answer.status)
        except HTTPError as error:
            return error.code

    assert [send("one") for _ in range(3)] == [503, 503, 200]
    assert len(ld.dataset(table).versions()) == versions
    assert send("two") == later


def test_the_same_id_with_another_body_is_another_change(server: Server, remote: Any) -> None:
    remote.create_table("t", ROWS)

    def delete(predicate: str) -> int:
        body = json.dumps({"predicate": predicate}).encode()
        headers = {"Content-Type": "application/json", "X-Request-Id": "same"}
        with urlopen(Request(f"{server.url}/v1/table/t/delete/", body, headers)) as answer:
            return int(json.loads(answer.read())["num_deleted_rows"])

    assert [delete("id = 1"), delete("id = 2"), delete("id = 1")] == [1, 1, 1]
    assert remote.open_table("t").count_rows() == 8


def test_lancedb_repeats_a_change_after_a_conflict(
    server: Server, remote: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.create_table("t", ROWS)
    attempts = []
    commit = ld.LanceDataset.delete

    def conflicting(self: Any, *args: Any, **options: Any) -> Any:
        attempts.append(args)
        if len(attempts) < 3:
            raise RetryableError("another writer was first")
        return commit(self, *args, **options)

    monkeypatch.setattr(ld.LanceDataset, "delete", conflicting)
    assert remote.open_table("t").delete("id < 5").num_deleted_rows == 5
    assert len(attempts) == 3
