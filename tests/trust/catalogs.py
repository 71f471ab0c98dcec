"""Catalogs with wrong contents: rows of `__manifest`, and responses of REST services."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
from corruption.structures import NUMBERS

import lance_duck as ld
from lance_duck.errors import LanceDuckError
from lance_duck.namespaces import CatalogObject, ObjectKey, TypeDefinition, ViewDefinition
from lance_duck.namespaces.base import Namespace
from lance_duck.namespaces.listing import SCHEMA, NamedObject

CATALOGS = 40
ROWS = pa.table({"x": [1, 2, 3]})
NAMES = (
    *("t", "u", "a", "a$t", "a$b", "a$b$t", "", "$", "$t", "t$"),
    *("..", "t/../u", "ü", "x" * 3000, "__manifest", "t\0"),
)
KINDS = ("view", "macro", "table_macro", "type", "sequence", "", "later")
LOCATIONS = (
    *("t.lance", "u.lance", "", ".", "..", "../outside.lance", "/etc", "t.lance/../../outside.lance", "__manifest"),
    *("memory://elsewhere/t", "file:///etc", "t.lance/data", "//", "x" * 3000, "t\0.lance", "http://127.0.0.1:1/t"),
    None,
)
DEEP, LONG = "[" * 20_000, '{"a": "' + "x" * 9999 + '"}'
METADATA = (None, "", "{", "{}", "[1]", "null", DEEP, '{"a": 1}', '{"a": {"b": []}}', LONG)
TEXTS = ("", "t", "a$b", "../t", "x" * 5000, "\0", "\ud800", "[" * 3000)
ANSWERS: tuple[dict[str, Any], ...] = (
    {"tables": ["t", "u"], "page_token": "next"},
    {"namespaces": ["a"], "page_token": None},
    {
        "location": "memory://hostile/t.lance",
        "version": 1,
        "storage_options": {"region": "x"},
        "properties": {"a": "b"},
    },
    {"properties": {"a": "b"}},
    {"error": "no such table", "code": 4, "type": "x", "detail": "y"},
    {},
)


def hostile_folders(seed: int, folder: Path) -> Mapping[str, int]:
    """Use folders with random `__manifest` rows. Files outside the folders must not change."""
    rng = random.Random(seed)
    outside = ld.write_dataset(ROWS, folder / "outside.lance", storage_options={"fsync": "false"})
    for number in range(CATALOGS):
        root = folder / f"root {number}"
        for name in ("t", "u"):
            ld.write_dataset(ROWS, root / f"{name}.lance", storage_options={"fsync": "false"})
        rows = [
            NamedObject(rng.choice(NAMES), _kind(rng), rng.choice(LOCATIONS), rng.choice(METADATA)).row(SCHEMA)
            for _ in range(rng.randrange(1, 9))
        ]
        ld.write_dataset(pa.concat_tables(rows), root / "__manifest", storage_options={"fsync": "false"})
        if settings := _settings(rng):
            ld.dataset(root / "__manifest").update_config(settings)
        namespace = ld.DirectoryNamespace(str(root))
        _use(rng, namespace)
        with suppress(LanceDuckError):
            namespace.find_problems()
            namespace.repair()
        assert ld.dataset(outside.uri).to_table() == ROWS, f"folder {number}"
    return {"hostile folders": CATALOGS}


def hostile_answers(seed: int, folder: Path) -> Mapping[str, int]:
    """Use a REST service with random responses. No file may appear in the working directory."""
    rng, here = random.Random(seed), folder / "here"
    here.mkdir()
    with _service(lambda: _answer(rng)) as uri, contextlib.chdir(here):
        for number in range(CATALOGS):
            _use(rng, ld.RestNamespace(uri))
            assert not list(here.iterdir()), f"service {number}"
    return {"hostile services": CATALOGS}


def _use(rng: random.Random, namespace: Namespace) -> None:
    """Call all namespace methods in random order. They may only raise errors of this package."""
    name, other = rng.choice(NAMES), rng.choice(NAMES)
    ways: list[Callable[[], Any]] = [
        namespace.list_tables,
        namespace.list_namespaces,
        namespace.describe_tables,
        lambda: namespace.list_tables(name),
        lambda: namespace.describe_namespace(name),
        lambda: namespace.describe_table(name),
        lambda: namespace.open_table(name).to_table(),
        lambda: namespace.table_exists(name),
        lambda: namespace.create_table(name, ROWS, mode=rng.choice(("create", "overwrite"))),
        lambda: namespace.create_namespace(name),
        lambda: namespace.rename_table(name, other),
        lambda: namespace.register_table(name, rng.choice(LOCATIONS[:-1])),
        lambda: namespace.deregister_table(name),
        lambda: namespace.drop_table(other),
        lambda: namespace.drop_namespace(name),
        lambda: namespace.drop_namespace(other, cascade=True),
        lambda: namespace.update_namespace(name, {"comment": other}),
        lambda: namespace.catalog(name),
        lambda: namespace.objects(name),
        lambda: namespace.change_catalog(lambda draft: draft.put(_definition(rng, name), replace=True)),
        lambda: namespace.change_catalog(lambda draft: draft.rename(ObjectKey(rng.choice(KINDS), (name,)), other)),
        lambda: namespace.change_catalog(lambda draft: draft.remove(ObjectKey(rng.choice(KINDS), (other,)))),
    ]
    rng.shuffle(ways)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for way in ways:
            with suppress(LanceDuckError):
                way()


def _definition(rng: random.Random, name: str) -> CatalogObject:
    text = rng.choice(TEXTS)
    if rng.random() < 0.5:
        return ViewDefinition(name=name, query=text, column_comments={text: text}, columns=(text,))
    return TypeDefinition(name=(name,), definition=text)


def _settings(rng: random.Random) -> dict[str, str]:
    """Return settings with objects, some of them damaged."""
    texts = (*(text for text in METADATA if text is not None), '{"query":"SELECT 1"}', '{"definition":"INT"}')
    keys = [f"lance_duck.object.{rng.choice(KINDS)}.{rng.choice(NAMES)}" for _ in range(rng.randrange(4))]
    form = rng.choice(({}, {}, {"lance_duck.catalog": rng.choice(("1", "2", "", "x"))}))
    return {**{key: rng.choice(texts) for key in keys}, **form}


def _kind(rng: random.Random) -> str:
    return rng.choice(("table", "table", "table", "namespace", "table_version", "", "view"))


def _answer(rng: random.Random) -> tuple[int, bytes]:
    """Return a status, and a response that may be changed or truncated."""
    answer = _changed(rng, rng.choice(ANSWERS)) if rng.random() < 0.8 else rng.choice(ANSWERS)
    data = json.dumps(answer).encode()
    if rng.random() < 0.1:
        data = data[: rng.randrange(len(data) + 1)]
    return rng.choice((200, 200, 200, 200, 400, 401, 403, 404, 409, 201, 204)), data


def _changed(rng: random.Random, value: Any) -> Any:
    """Return JSON with one changed value at any depth."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = rng.choice(sorted(value))
        return {**value, key: _changed(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.6:
        at = rng.randrange(len(value))
        return [*value[:at], _changed(rng, value[at]), *value[at + 1 :]]
    writable = [each for each in LOCATIONS if each is None or not each.startswith(("/", "file:"))]
    return rng.choice((*NUMBERS, *TEXTS, *NAMES, *writable, [value] * 1000, {"x": value}))


@contextmanager
def _service(answer: Callable[[], tuple[int, bytes]]) -> Any:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            status, body = answer()
            self.send_response(status)
            self.send_header("content-length", str(len(body) if status != 204 else 0))
            self.end_headers()
            self.wfile.write(body if status != 204 else b"")

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
