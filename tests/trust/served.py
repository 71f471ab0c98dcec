"""A server under damaged and random requests."""

from __future__ import annotations

import http.client
import json
import random
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pyarrow as pa

import lance_duck as ld
from lance_duck.errors import NotFoundError
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.rest.routes import ROUTES
from lance_duck.serve.run import Server

REQUESTS: Final = 200
NAMES: Final = ("t", "u", "nope", "$", "a$b", "..", "%2e%2e", "t.lance", "\u00fc", " ", "__manifest")
VALUES: Final[tuple[Any, ...]] = (
    *(None, True, 0, 1, -1, 2**63, 1e308, "", "id", "v", "id < 3", "v[", "\u0000", "main"),
    *([], [1.0, 0.0], [[1.0, 0.0]], ["id"], {}, {"x": "id + 1"}, {"match": {"terms": "a"}}, {"single_vector": [0, 0]}),
)
BODIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "query": {"vector": [1.0, 0.0], "k": 3, "filter": "id < 9"},
    "count_rows": {"predicate": "id < 9"},
    "explain_plan": {"query": {"vector": [], "filter": "id = 3"}},
    "update": {"predicate": "id = 1", "updates": [["id", "id + 1000"]]},
    "delete": {"predicate": "id = 2"},
    "create_index": {"column": "id", "index_type": "BTREE"},
    "add_columns": {"new_columns": [{"name": "x", "expression": "id + 1"}]},
    "alter_columns": {"alterations": [{"path": "x", "rename": "y"}]},
    "drop_columns": {"columns": ["y"]},
    "rename": {"new_table_name": "u"},
}
"""Bodies by the last part of a path. Other routes need none."""
_ENDS: Final = ("/drop", "/deregister", "/rename", "/drop_columns")
"""Routes after which others find nothing."""
FIELDS: Final = (
    *("vector", "k", "filter", "columns", "predicate", "updates", "column", "index_type", "version", "tag", "mode"),
    *("full_text_query", "offset", "prefilter", "order_by", "new_columns", "alterations", "new_table_name", "query"),
    *("metric_type", "distance_type", "limit", "properties", "location", "behavior", "name", "id"),
)


def requested(seed: int, folder: Path) -> Mapping[str, int]:
    """Send damaged and random requests. None is answered with a status of 500 or above, and the table stays whole."""
    rng = random.Random(seed)
    table = ld.write_dataset(_rows(range(50)), folder / "t.lance")
    table.create_scalar_index("id", "BTREE")
    statuses: Counter[int] = Counter()
    with Server(ServeSettings(str(folder), port=0, write=True, timeout=20, max_body=1 << 20)) as server:
        address = server.url.removeprefix("http://")
        for _ in range(REQUESTS):
            statuses[_send(rng, address)] += 1
        assert server.gate.admission.drained(20)
        assert server.gate.uploads.drained(20)
        wrong = {status: count for status, count in statuses.items() if status >= 500}
        assert not wrong, wrong
        for name in server.gate.namespace.list_tables():
            with suppress(NotFoundError):  # a name that is only declared
                server.gate.namespace.open_table(name).validate()
    return {"requests": REQUESTS, "accepted requests": statuses[200]}


def _rows(ids: range) -> pa.Table:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(i % 7) for i in range(2 * len(ids))], pa.float32()), 2)
    return pa.table({"id": pa.array(ids, pa.int64()), "v": vectors})


def _send(rng: random.Random, address: str) -> int:
    """Send one request, and return the status of its answer."""
    route = rng.choice(ROUTES)
    if route.handler.__module__.endswith("refused") or (route.path.endswith(_ENDS) and rng.random() < 0.9):
        route = rng.choice([each for each in ROUTES if each.path.endswith(("/create", "/insert", "/query", "/update"))])
    path = route.path
    for part in ("{id}", "{name}"):
        path = path.replace(part, quote(rng.choice(NAMES if rng.random() < 0.2 else NAMES[:2]), safe="%$"))
    if rng.random() < 0.2:
        path += "?" + "&".join(f"{rng.choice(FIELDS)}={quote(str(rng.choice(VALUES)))}" for _ in range(2))
    connection = http.client.HTTPConnection(address, timeout=60)
    try:
        connection.request(route.method, path, _body(rng, route.path.rpartition("/")[2], is_upload=route.takes_upload))
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def _body(rng: random.Random, verb: str, *, is_upload: bool) -> bytes:
    if is_upload:
        sink = pa.BufferOutputStream()
        rows = _rows(range(100, 100 + rng.randrange(20)))
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_table(rows)
        body = sink.getvalue().to_pybytes()
    else:
        wrong = {rng.choice(FIELDS): rng.choice(VALUES) for _ in range(rng.choice((0, 0, 0, 1, 4)))}
        body = json.dumps({**BODIES.get(verb, {}), **wrong}).encode()
    return _damaged(rng, body) if rng.random() < 0.3 else body


def _damaged(rng: random.Random, body: bytes) -> bytes:
    """Return bytes that are cut, or have wrong bytes."""
    if rng.random() < 0.4 or not body:
        return body[: rng.randrange(len(body) + 1)]
    changed = bytearray(body)
    for _ in range(rng.randrange(1, 4)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)
