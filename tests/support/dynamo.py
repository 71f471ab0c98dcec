"""A DynamoDB service with an external manifest store: the one that pylance uses for `s3+ddb://`.

The table, created by its owner, has the keys "base_uri" (string) and "version" (number). Items also have "path" and
"committer", and fields that only pylance uses. `base_uri` and `path` are keys of the bucket: "t.lance",
"t.lance/_versions/….manifest".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import boto3
from botocore.exceptions import ClientError

from lance_duck.errors import AlreadyExistsError, NotFoundError, StoreError

KEYS = {"base_uri": "S", "version": "N"}


@contextmanager
def claims_in(service: dict[str, str], table: str) -> Iterator[str]:
    """Make a table in a service; yields the URL of a manifest store in it."""
    store = DynamoManifestStore(table, service["aws_endpoint"], service["region"])
    store.client.create_table(
        TableName=table,
        KeySchema=[
            {"AttributeName": name, "KeyType": kind} for name, kind in zip(KEYS, ("HASH", "RANGE"), strict=True)
        ],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": kind} for name, kind in KEYS.items()],
        BillingMode="PAY_PER_REQUEST",
    )
    yield f"ddb://{table}?{urlencode({'endpoint': service['aws_endpoint'], 'region': service['region']})}"
    store.client.delete_table(TableName=table)


class DynamoManifestStore:
    """See `ExternalManifestStore`.

    Args:
        table: Name of the table.
        endpoint: Of the service.
        region: Of the table.
    """

    def __init__(self, table: str, endpoint: str, region: str) -> None:
        self.client: Any = boto3.client(
            "dynamodb",
            endpoint_url=endpoint,
            region_name=region,
            aws_access_key_id="key",
            aws_secret_access_key="secret",
        )
        self._table = table

    @classmethod
    def open(cls, url: str) -> DynamoManifestStore:
        """Open what `ddb://{table}?endpoint=…&region=…` names."""
        parts = urlsplit(url)
        return cls(parts.netloc, **dict(parse_qsl(parts.query)))

    def put_if_not_exists(self, base_uri: str, version: int, path: str) -> None:
        try:
            self._put(base_uri, version, path, "attribute_not_exists(base_uri)")
        except self.client.exceptions.ConditionalCheckFailedException:
            raise AlreadyExistsError(f"version {version} is claimed", where=base_uri) from None

    def put_if_exists(self, base_uri: str, version: int, path: str) -> None:
        try:
            self._put(base_uri, version, path, "attribute_exists(base_uri)")
        except self.client.exceptions.ConditionalCheckFailedException:
            raise NotFoundError(f"version {version} is not claimed", where=base_uri) from None

    def get(self, base_uri: str, version: int) -> str | None:
        key = {"base_uri": {"S": _key(base_uri)}, "version": {"N": str(version)}}
        item = self._ask("get_item", Key=key, ConsistentRead=True).get("Item")
        return None if item is None else _path(base_uri, item)

    def get_latest(self, base_uri: str) -> tuple[int, str] | None:
        items = self._items(base_uri, ScanIndexForward=False, Limit=1)["Items"]
        return (int(items[0]["version"]["N"]), _path(base_uri, items[0])) if items else None

    def delete(self, base_uri: str) -> None:
        for item in self._items(base_uri)["Items"]:
            self._ask("delete_item", Key={name: item[name] for name in KEYS})

    def _items(self, base_uri: str, **options: Any) -> dict[str, Any]:
        values = {":base": {"S": _key(base_uri)}}
        condition = {"KeyConditionExpression": "base_uri = :base", "ExpressionAttributeValues": values}
        return self._ask("query", ConsistentRead=True, **condition, **options)

    def _put(self, base_uri: str, version: int, path: str, condition: str) -> None:
        item = {
            "base_uri": {"S": _key(base_uri)},
            "version": {"N": str(version)},
            "path": {"S": f"{_key(base_uri)}/{path}"},
            "committer": {"S": "lance-duck"},
        }
        self._ask("put_item", Item=item, ConditionExpression=condition)

    def _ask(self, request: str, **options: Any) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = getattr(self.client, request)(TableName=self._table, **options)
        except self.client.exceptions.ConditionalCheckFailedException:
            raise
        except ClientError as error:
            raise StoreError("DynamoDB refuses a request", where="manifest store", found=str(error)) from None
        return answer


def _key(base_uri: str) -> str:
    """Return the key of a table in its bucket."""
    return urlsplit(base_uri).path.strip("/")


def _path(base_uri: str, item: dict[str, Any]) -> str:
    """Return the path of an item below its table."""
    return str(item["path"]["S"]).removeprefix(f"{_key(base_uri)}/")
