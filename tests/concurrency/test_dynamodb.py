"""Versions claimed in DynamoDB like by pylance: both libraries write one table alternately and concurrently."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import lance
import pyarrow as pa
import pytest
from support.dynamo import DynamoManifestStore, claims_in
from support.servers import s3_server

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, UnsupportedError
from lance_duck.store import open_store

TABLE = "claims"


@pytest.fixture(scope="module")
def service() -> Iterator[dict[str, str]]:
    """A service with a bucket whose puts are never conditional, and a table for claims."""
    ld.register_manifest_store("ddb", DynamoManifestStore.open)
    with pytest.MonkeyPatch.context() as patch, s3_server() as options, claims_in(options, TABLE) as url:
        patch.setenv("DYNAMODB_ENDPOINT", options["aws_endpoint"])
        yield {**options, "aws_conditional_put": "disabled", "manifest_store": url}


@dataclass(frozen=True)
class Shared:
    """A table that pylance and this package write.

    Attributes:
        name: Name in the bucket.
        options: Storage options of this package.
    """

    name: str
    options: dict[str, str]

    @property
    def uri(self) -> str:
        return f"s3://bucket/{self.name}"

    def ours(self) -> ld.LanceDataset:
        return ld.dataset(self.uri, storage_options=self.options)

    def theirs(self) -> Any:
        return lance.dataset(**self.as_theirs())

    def as_theirs(self) -> dict[str, Any]:
        own = ("manifest_store", "aws_conditional_put")
        options = {name: value for name, value in self.options.items() if name not in own}
        return {"uri": f"s3+ddb://bucket/{self.name}?ddbTableName={TABLE}", "storage_options": options}


@pytest.fixture
def table(service: dict[str, str]) -> Shared:
    return Shared(f"{uuid.uuid4().hex}.lance", service)


def rows(first: int, count: int) -> pa.Table:
    return pa.table({"id": list(range(first, first + count))})


def test_pylance_and_lance_duck_share_one_dynamodb_table(table: Shared) -> None:
    lance.write_dataset(rows(0, 4), **table.as_theirs())
    ours = table.ours()
    assert ours.to_table() == rows(0, 4)
    ours.insert(rows(4, 2))
    ours.delete("id = 0")
    again = table.theirs()
    assert (again.version, sorted(again.to_table()["id"].to_pylist())) == (3, [1, 2, 3, 4, 5])
    again.insert(rows(6, 1))
    again.optimize.compact_files()
    last = table.ours()
    assert (last.version, sorted(last.to_table()["id"].to_pylist())) == (again.version, [1, 2, 3, 4, 5, 6])
    assert last.checkout_version(2).count_rows() == 6
    assert last.find_problems() == []


@pytest.mark.slow
def test_concurrent_claims_with_pylance_commit_one_after_the_other(table: Shared) -> None:
    ld.write_dataset(rows(0, 1), table.uri, storage_options=table.options)

    def insert(number: int) -> None:
        if number % 2:
            table.ours().insert(rows(number, 1))
        else:
            table.theirs().insert(rows(number, 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(insert, range(1, 9)))
    for dataset in (table.ours(), table.theirs()):
        assert dataset.version == 9
        assert sorted(dataset.to_table()["id"].to_pylist()) == list(range(9))


def test_a_version_claimed_but_not_finished_by_pylance_is_finished(table: Shared) -> None:
    lance.write_dataset(rows(0, 4), **table.as_theirs())
    dataset = table.ours()
    dataset.insert(rows(4, 2))
    store, claims = open_store(table.uri, table.options), DynamoManifestStore.open(table.options["manifest_store"])
    manifest = claims.get(table.uri, 2)
    assert manifest is not None
    staged = f"{manifest}-7d9d3ce7-2b8b-4ee3-8cfa-5e8b5e9e2a11"
    store.copy(manifest, staged)
    store.delete([manifest])
    claims.put_if_exists(table.uri, 2, staged)
    assert table.ours().count_rows() == 6
    assert claims.get(table.uri, 2) == manifest
    with pytest.raises(AlreadyExistsError):
        claims.put_if_not_exists(table.uri, 2, staged)


def test_the_ddb_scheme_of_pylance_is_rejected_with_a_remedy(table: Shared) -> None:
    with pytest.raises(UnsupportedError, match="manifest_store"):
        ld.dataset(**table.as_theirs())
