"""The memory of a server's process has a limit. A request beyond it is refused, and the server goes on."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import IndexWarning
from lance_duck.index.vector import threads
from tests.serve.test_command import running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process")

HUGE = (
    "SELECT range(1000000000)",
    "SELECT repeat('x', 2000000000)",
    "SELECT list(i) FROM range(300000000) r(i)",
    "SELECT string_agg(a::VARCHAR || '-') FROM range(100000) r(a), range(20000) s(b)",
    "SELECT [x + 1 FOR x IN range(300000000)]",
    "SELECT array_agg(repeat('x', 1000000)) FROM range(5000)",
    "SELECT repeat('x', 300000000) FROM range(9)",
    "CREATE TABLE huge AS SELECT repeat('x', 400000000) AS s FROM range(9)",
    "UPDATE t SET s = repeat(s, 100000)",
)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("data")
    texts = pa.array(f"word {i} of a text that is repeated" for i in range(20_000))
    ld.write_dataset(pa.table({"s": texts}), folder / "t.lance")
    with running(str(folder), "--write", "--memory", "256MB", "--log-level", "error") as (process, url):
        yield url
        assert process.poll() is None


def sent(url: str, path: str, **body: Any) -> tuple[int, str]:
    headers = {"Accept": "application/vnd.apache.arrow.stream"}
    try:
        with urlopen(Request(url + path, json.dumps(body).encode(), headers)) as answer:
            return answer.status, answer.read().decode(errors="replace")
    except HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize("query", HUGE)
def test_a_huge_value_is_refused_and_the_server_goes_on(url: str, query: str) -> None:
    status, text = sent(url, "/sql", query=query)
    assert (status, "the request needs too much memory" in text) == (413, True)
    assert sent(url, "/sql", query="SELECT count(*) FROM t")[0] == 200


def test_a_filter_with_huge_values_is_refused_and_the_server_goes_on(url: str) -> None:
    status, text = sent(url, "/v1/table/t/query", k=100, filter="repeat(s, 10000000) = 'x'")
    assert (status, "the request needs too much memory" in text) == (413, True)
    assert sent(url, "/v1/table/t/query", k=3)[0] == 200


def test_a_refused_change_leaves_no_version(url: str) -> None:
    status, text = sent(url, "/v1/table/t/update", updates=[["s", "repeat(s, 1000000)"]])
    assert (status, "the request needs too much memory" in text) == (413, True)
    status, text = sent(url, "/v1/table/t/version/list")
    assert (status, len(json.loads(text)["versions"])) == (200, 1)


def test_an_index_is_searched_again_after_the_memory_was_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = np.random.default_rng(0).random((512, 8), dtype=np.float32)
    table = ld.write_dataset(
        {"v": list(vectors)}, tmp_path / "t.lance", schema=pa.schema({"v": pa.list_(pa.float32(), 8)})
    )
    table.create_index("v", "IVF_FLAT", num_partitions=4)
    expected = table.to_table(nearest={"column": "v", "q": vectors[0], "k": 3})

    def fail(size: int) -> None:
        raise MemoryError

    with monkeypatch.context() as short:
        short.setattr(threads, "check_room", fail)
        with pytest.warns(IndexWarning, match="its rows are scanned"):
            assert table.to_table(nearest={"column": "v", "q": vectors[0], "k": 3}).num_rows == 3
    with warnings.catch_warnings(action="error"):
        assert table.to_table(nearest={"column": "v", "q": vectors[0], "k": 3}) == expected
