"""Tables on Azure, in Azurite where `make test-hosts` has installed it, and on GCS, in a service of the tests."""

from __future__ import annotations

import json
import logging
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from urllib.parse import parse_qsl

import numpy as np
import pyarrow as pa
import pytest
from concurrency.hammer import check, create, hammer
from support.clouds import ACCOUNT_KEY, AZURITE, BUCKET, Gcs, azure_service, azure_token, gcs_service

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, NotFoundError, StoreError
from lance_duck.store import open_store

PARTS = pa.table({"x": np.random.default_rng(3).random(1_500_000)})
"""More bytes than one request puts."""


@dataclass(frozen=True)
class Cloud:
    """A bucket.

    Attributes:
        scheme: The URI scheme.
        options: The storage options.
        secret: A secret among the options, or a part of it.
        gcs: The simulated service, if the tests run one.
    """

    scheme: str
    options: dict[str, str]
    secret: str
    gcs: Gcs | None = None

    def fresh(self) -> str:
        return f"{self.scheme}://{BUCKET}/{uuid.uuid4().hex}.lance"


@pytest.fixture(scope="module", params=["azure", "gcs"])
def cloud(request: pytest.FixtureRequest) -> Iterator[Cloud]:
    if request.param == "gcs":
        with gcs_service() as (app, options):
            yield Cloud("gs", options, "a private key", app)
        return
    if not AZURITE.exists():
        pytest.skip("no Azurite: make test-hosts installs it, where there is npm")
    with azure_service() as options:
        yield Cloud("az", options, ACCOUNT_KEY)


def test_a_table_can_be_created_and_read_in_the_cloud(cloud: Cloud) -> None:
    uri = cloud.fresh()
    dataset = ld.write_dataset(pa.table({"id": [1, 2, 3]}), uri, storage_options=cloud.options)
    dataset.insert(pa.table({"id": [4]}))
    dataset.create_scalar_index("id", "BTREE")
    dataset.update({"id": "id + 10"}, where="id = 2")
    dataset.delete("id = 1")
    dataset.tags.create("kept", 2)
    dataset.optimize.compact_files()
    dataset.cleanup_old_versions(retain_versions=1, delete_unverified=True, error_if_tagged_old_versions=False)
    opened = ld.dataset(uri, storage_options=cloud.options)
    assert sorted(opened.to_table(filter="id > 2")["id"].to_pylist()) == [3, 4, 12]
    assert opened.find_problems() == []
    assert [version["version"] for version in opened.versions()] == [2, opened.version]
    with pytest.raises(NotFoundError):
        ld.dataset(cloud.fresh(), storage_options=cloud.options)


def test_one_of_many_conditional_puts_of_a_name_succeeds_and_is_listed(cloud: Cloud) -> None:
    store = open_store(cloud.fresh(), cloud.options)

    def claim(number: int) -> bool:
        try:
            store.put_if_absent("folder/name", str(number).encode())
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(claim, range(8)))
    assert won.count(True) == 1
    assert store.get("folder/name") == str(won.index(True)).encode()
    assert list(store.names("folder")) == ["name"]


def test_multipart_values_read_back_and_a_failed_write_leaves_no_uploads(cloud: Cloud) -> None:
    uri = cloud.fresh()
    dataset = ld.write_dataset(PARTS, uri, storage_options=cloud.options, max_rows_per_file=10**8)
    assert dataset.to_table() == PARTS
    store = open_store(uri, cloud.options)
    before = {entry.path for entry in store.walk()}
    sink = store.create("data/given up")
    sink.write(bytes(25 << 20))
    sink.abort()
    assert {entry.path for entry in store.walk()} == before
    if cloud.gcs is not None:
        assert (cloud.gcs.begun, cloud.gcs.uploads) == (2, {})


@pytest.mark.slow
def test_concurrent_writers_lose_no_rows(cloud: Cloud) -> None:
    uri = cloud.fresh()
    create(uri, cloud.options)
    what = {"append": 3, "count": 3, "upsert": 2, "delete": 1, "compact": 1}
    with ThreadPoolExecutor(3) as pool:
        made = [pool.submit(hammer, uri, cloud.options, who, 1.0, what, True) for who in range(3)]
        tallies = [each.result() for each in made]
    check(uri, cloud.options, tallies)


def test_throttled_requests_are_retried(cloud: Cloud) -> None:
    if cloud.gcs is None:
        pytest.skip("Azurite never throttles")
    uri = cloud.fresh()
    dataset = ld.write_dataset(pa.table({"id": [1]}), uri, storage_options=cloud.options)
    cloud.gcs.refusals = 3
    dataset.insert(pa.table({"id": [2]}))
    assert cloud.gcs.refusals == 0
    assert ld.dataset(uri, storage_options=cloud.options).count_rows() == 2


def test_wrong_credentials_raise_an_error_that_hides_them(cloud: Cloud) -> None:
    if cloud.gcs is not None:
        pytest.skip("the service of the tests asks for no credentials")
    wrong = cloud.options | {"azure_storage_account_key": "A" * 86 + "=="}
    with pytest.raises(StoreError) as caught:
        ld.write_dataset(pa.table({"id": [1]}), cloud.fresh(), storage_options=wrong)
    assert wrong["azure_storage_account_key"] not in str(caught.value)


def test_credentials_that_expire_in_the_middle_are_renewed(cloud: Cloud) -> None:
    uri = cloud.fresh()
    options, wait = expiring(cloud)
    dataset = ld.write_dataset(pa.table({"id": range(5)}), uri, storage_options=options)
    dataset.delete("id = 0")
    wait()
    for attempt in (
        lambda: dataset.delete("id = 1"),
        lambda: dataset.insert(pa.table({"id": [9]})),
        dataset.checkout_latest,
    ):
        with pytest.raises(StoreError, match="credentials") as caught:
            attempt()
        told = "".join(traceback.format_exception(caught.value))
        assert not any(secret in told for secret in secrets_of(options))
    options, _ = expiring(cloud)
    if cloud.gcs is not None:
        cloud.gcs.is_expired = False
    renewed = ld.dataset(uri, storage_options=options)
    renewed.delete("id = 1")
    assert renewed.to_table()["id"].to_pylist() == [2, 3, 4]
    assert [version["version"] for version in renewed.versions()] == [1, 2, 3]
    assert renewed.find_problems() == []


def test_google_tokens_are_renewed_under_an_open_handle(monkeypatch: pytest.MonkeyPatch) -> None:
    with gcs_service() as (app, options):
        address = json.loads(options["google_service_account_key"])["gcs_base_url"]
        monkeypatch.setenv("GCE_METADATA_HOST", address.removeprefix("http://"))
        options = {"google_base_url": address, "allow_http": "true"}
        uri = f"gs://{BUCKET}/{uuid.uuid4().hex}.lance"
        dataset = ld.write_dataset(pa.table({"id": range(5)}), uri, storage_options=options)
        dataset.delete("id = 0")
        first = len(app.tokens)
        assert first
        time.sleep(2.2)
        dataset.delete("id = 1")
        dataset.insert(pa.table({"id": [9]}))
        assert len(app.tokens) > first
        assert ld.dataset(uri, storage_options=options).to_table()["id"].to_pylist() == [2, 3, 4, 9]
        store = open_store(uri, options)
        assert not any(app.tokens[-1].encode() in store.get(entry.path) for entry in store.walk())


def expiring(cloud: Cloud) -> tuple[dict[str, str], Callable[[], None]]:
    """Return options with credentials that expire soon or on request, and a function that waits for it."""
    if cloud.gcs is not None:
        app = cloud.gcs
        key = json.loads(cloud.options["google_service_account_key"]) | {"private_key": f"a key {uuid.uuid4().hex}"}
        return cloud.options | {"google_service_account_key": json.dumps(key)}, lambda: setattr(app, "is_expired", True)
    seconds = 6.0
    begin = time.monotonic()
    options = {name: value for name, value in cloud.options.items() if name != "azure_storage_account_key"}
    options["azure_storage_sas_token"] = azure_token(seconds)
    return options, lambda: time.sleep(max(0.0, begin + seconds + 1 - time.monotonic()))


def secrets_of(options: dict[str, str]) -> list[str]:
    """Return the secret values in the options of a cloud."""
    if "azure_storage_sas_token" in options:
        return [dict(parse_qsl(options["azure_storage_sas_token"]))["sig"]]
    return [json.loads(options["google_service_account_key"])["private_key"]]


def test_secrets_are_in_no_file_and_no_log(cloud: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    uri = cloud.fresh()
    with caplog.at_level(logging.DEBUG):
        dataset = ld.write_dataset(pa.table({"id": [1, 2]}), uri, storage_options=cloud.options)
        dataset.create_scalar_index("id", "BTREE")
        clone = dataset.shallow_clone(cloud.fresh(), storage_options=cloud.options)
        clone.insert(pa.table({"id": [3]}))
        dataset.create_branch("side")
    for root in (uri, clone.uri):
        store = open_store(root, cloud.options)
        for entry in store.walk():
            assert cloud.secret.encode() not in store.get(entry.path)
    assert cloud.secret not in caplog.text + repr(clone) + str(clone.scanner().explain_plan())
