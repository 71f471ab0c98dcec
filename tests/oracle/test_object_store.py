"""Both libraries write to one table of an S3 service, alternately and concurrently."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import lance
import pyarrow as pa
import pytest
from support.servers import s3_server

import lance_duck as ld


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, str]]:
    with s3_server() as options:
        yield options


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def test_both_libraries_write_alternately(options: dict[str, str]) -> None:
    uri = "s3://bucket/turns.lance"
    ld.write_dataset(rows(1), uri, storage_options=options)
    lance.write_dataset(rows(2), uri, mode="append", storage_options=options)
    ld.dataset(uri, storage_options=options).insert(rows(3))
    lance.dataset(uri, storage_options=options).delete("id = 1")
    ld.dataset(uri, storage_options=options).delete("id = 2")
    ours, theirs = ld.dataset(uri, storage_options=options), lance.dataset(uri, storage_options=options)
    assert ours.version == theirs.version == 5
    assert ours.to_table() == theirs.to_table() == rows(3)
    theirs.validate()


def test_concurrent_writers_of_both_libraries_lose_nothing(options: dict[str, str]) -> None:
    uri = "s3://bucket/once.lance"
    ld.write_dataset(rows(0), uri, storage_options=options)

    def append(who: int) -> None:
        library = (ld, lance)[who % 2]
        for turn in range(5):
            library.write_dataset(rows(100 * who + turn + 1), uri, mode="append", storage_options=options)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(4)))
    wanted = sorted([0, *(100 * who + turn + 1 for who in range(4) for turn in range(5))])
    for library in (ld, lance):
        dataset = library.dataset(uri, storage_options=options)
        assert sorted(dataset.to_table()["id"].to_pylist()) == wanted
        assert dataset.version == 21
