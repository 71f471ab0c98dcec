"""Symbolic links do not lead out of the served folder."""

import json
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError
from lance_duck.serve.gate.refusals import ForbiddenError
from lance_duck.serve.gate.served_names import ServedNamespace
from lance_duck.serve.run import Server


def status(url: str, body: object = None) -> int:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urlopen(Request(url, data, {"Content-Type": "application/json", "Accept": "text/html, */*"})) as answer:
            return int(answer.status)
    except HTTPError as error:
        return error.code


def test_a_linked_table_outside_is_refused(start: Callable[..., Server], tmp_path: Path) -> None:
    outside, served = tmp_path / "outside.lance", tmp_path / "served"
    ld.write_dataset({"a": [42]}, outside)
    ld.write_dataset({"a": [1]}, served / "t.lance")
    (served / "linked.lance").symlink_to(outside)
    (served / "same.lance").symlink_to(served / "t.lance")
    server = start(served, write=True)
    table = f"{server.url}/v1/table/linked"
    for verb in ("describe", "exists", "count_rows", "version/list", "stats", "deregister", "drop"):
        assert status(f"{table}/{verb}", {}) == 403, verb
    assert status(f"{table}/rename", {"new_table_name": "u"}) == 403
    assert status(f"{table}/register", {"location": "linked.lance"}) == 403
    assert status(f"{server.url}/table/linked") == 403
    assert status(f"{server.url}/sql", {"query": "FROM linked"}) == 403
    assert status(f"{server.url}/sql", {"query": "DROP TABLE linked"}) == 403
    assert status(f"{server.url}/v1/table?include_declared=false") == 200
    assert status(f"{server.url}/v1/table/same/count_rows", {}) == 200
    assert ld.dataset(outside).to_table().to_pydict() == {"a": [42]}


def test_no_table_is_created_behind_a_link(tmp_path: Path) -> None:
    outside, served = tmp_path / "outside", tmp_path / "served"
    outside.mkdir()
    served.mkdir()
    (served / "new.lance").symlink_to(outside)
    with pytest.raises(ForbiddenError):
        ServedNamespace(str(served)).create_table("new", {"a": [1]})
    assert list(outside.iterdir()) == []


def test_links_inside_a_table_do_not_lead_out_of_it(start: Callable[..., Server], tmp_path: Path) -> None:
    served, outside = tmp_path / "served", tmp_path / "outside"
    for name in ("folder", "file"):
        ld.write_dataset({"a": [42]}, served / f"{name}.lance")
    (served / "folder.lance" / "data").rename(outside)
    (served / "folder.lance" / "data").symlink_to(outside)
    (data,) = (served / "file.lance" / "data").iterdir()
    data.rename(outside / data.name)
    data.symlink_to(outside / data.name)
    server = start(served)
    for name in ("folder", "file"):
        assert status(f"{server.url}/sql", {"query": f"FROM {name}"}) == 400
        assert status(f"{server.url}/table/{name}") == 400
        with ld.connect(served, confined=True) as con, pytest.raises(InvalidInputError, match="outside the table's"):
            con.execute(f"FROM {name}").fetchall()
