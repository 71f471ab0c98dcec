"""Planted secrets never appear in errors or displayed values, wherever a user may write them."""

from __future__ import annotations

import traceback
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import lance_duck as ld
from lance_duck.errors import LanceDuckError
from lance_duck.verbs.public.bases import DatasetBasePath
from lance_duck_command import app, main

PLANTED = "pLaNtEd"
CLOSED = "http://127.0.0.1:1"
IMPATIENT = {"client_max_retries": "0", "timeout": "2s", "connect_timeout": "1s", "allow_http": "true"}

KEYS = {"access_key_id": "x", "secret_access_key": "y"}  # avoids a lookup of other credentials
S3 = ("access_key_id", "secret_access_key", "session_token", "sse_kms_key_id", "sse_customer_key_base64", "role_arn")
GCS = ("google_service_account_key", "google_service_account", "google_application_credentials", "bearer_token")
AZURE = (
    *("azure_storage_account_key", "azure_storage_sas_token", "azure_storage_token", "azure_client_secret"),
    *("azure_client_id", "azure_tenant_id", "azure_federated_token_file", "azure_storage_connection_string"),
)
STORES = {
    "s3": (
        "s3://bucket/t.lance",
        {"aws_endpoint": CLOSED, "region": "eu-west-1"} | KEYS,
        S3 + tuple(f"aws_{k}" for k in S3),
    ),
    "gcs": ("gs://bucket/t.lance", {"google_base_url": CLOSED, "google_skip_signature": "true"}, GCS),
    "azure": (
        "az://container/t.lance",
        {"azure_storage_account_name": "account", "azure_endpoint": CLOSED, "azure_skip_signature": "true"},
        AZURE,
    ),
    "http": (f"{CLOSED}/t.lance", {}, ("password", "token")),
}
NUMBER_OPTIONS = ("client_max_retries", "client_retry_timeout", "timeout", "allow_http", "fsync")


def marker() -> str:
    return f"{PLANTED}-{uuid.uuid4().hex}"


def said(error: BaseException) -> str:
    """Return the text of an error and all its causes."""
    texts, waiting, seen = ["".join(traceback.format_exception(error))], [error], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:
            seen.add(id(each))
            parts = [getattr(each, name, None) for name in ("what", "where", "expected", "found", "remedy")]
            texts += [str(each), repr(each), repr(each.args), repr(parts)]
            waiting += [other for other in (each.__cause__, each.__context__) if other is not None]
    # Python shows the calling line of a script, which belongs to the test and does not contain a marker.
    return "\n".join(texts)


def refused(do: Callable[[], Any]) -> str:
    with pytest.raises((LanceDuckError, duckdb.Error)) as caught:
        do()
    return said(caught.value)


@pytest.mark.parametrize(
    ("kind", "option"), [(kind, option) for kind, (_, _, names) in STORES.items() for option in (*names, "nonsense")]
)
def test_store_options_do_not_leak(kind: str, option: str) -> None:
    uri, options, _ = STORES[kind]
    with_secret = options | IMPATIENT | {option: marker()}
    assert PLANTED not in refused(lambda: ld.dataset(uri, storage_options=with_secret))
    assert PLANTED not in refused(lambda: ld.write_dataset(pa.table({"a": [1]}), uri, storage_options=with_secret))


@pytest.mark.parametrize("option", NUMBER_OPTIONS)
def test_values_of_invalid_options_do_not_leak(option: str, tmp_path: Path) -> None:
    options = {"aws_endpoint": CLOSED, "region": "x", "access_key_id": "x", "secret_access_key": "y", option: marker()}
    uri = str(tmp_path / "t.lance") if option == "fsync" else "s3://bucket/t.lance"
    assert PLANTED not in refused(lambda: ld.write_dataset(pa.table({"a": [1]}), uri, storage_options=options))


@pytest.mark.parametrize(
    "uri",
    [
        "https://user:{}@127.0.0.1:1/t.lance",
        "https://{}@127.0.0.1:1/t.lance",
        "https://127.0.0.1:1/t.lance?sig={}",
        "https://127.0.0.1:1/t.lance?X-Amz-Signature={}&X-Amz-Credential=c",
        "s3://user:{}@bucket/t.lance",
        "s3://user:{}@bucket/../t.lance",
        "s3+ddb://bucket/t.lance?ddbTableName={}",
        "nothing://user:{}@bucket/t.lance",
        "file://user:{}@host/t.lance",
        "memory://user:{}@bucket/t.lance",
        "abfss://c:{}@account/t.lance",
    ],
)
@pytest.mark.parametrize("version", [None, 7, "tag"])
def test_secrets_in_uris_do_not_leak(uri: str, version: Any) -> None:
    secret = uri.format(marker())
    options = IMPATIENT | {"aws_endpoint": CLOSED, "region": "x", "access_key_id": "x", "secret_access_key": "y"}
    assert PLANTED not in refused(lambda: ld.dataset(secret, version, storage_options=options))
    if uri.startswith(("http", "s3:", "abfss")):
        return  # DuckDB receives no options that would keep these on this machine
    assert PLANTED not in refused(lambda: ld.connect({"t": secret}))
    assert PLANTED not in refused(lambda: ld.connect().execute(f"FROM lance_scan('{secret}')"))
    assert PLANTED not in refused(lambda: ld.connect().execute(f"FROM '{secret}'"))


def test_secrets_in_database_paths_do_not_leak() -> None:
    assert PLANTED not in refused(lambda: ld.connect(database=f"elsewhere://user:{marker()}@host/db"))


@pytest.mark.parametrize(
    "url",
    [
        "ddb://user:{}@host/table?key={}",
        "sqlite://user:{}@host/x",
        "{}",
        "failing://user:{}@host/x?key={}",
    ],
)
def test_secrets_in_manifest_store_urls_do_not_leak(url: str, tmp_path: Path) -> None:
    def fail(url: str) -> Any:
        raise OSError(f"cannot reach {url}")

    ld.register_manifest_store("failing", fail)
    options = {"manifest_store": url.format(*[marker()] * 2)}
    for uri in (str(tmp_path / "t.lance"), "memory://nowhere/t.lance"):
        assert PLANTED not in refused(lambda uri=uri: ld.dataset(uri, storage_options=options))


@pytest.fixture
def hidden() -> tuple[Any, str]:
    """A table in memory under a URI that holds a secret, as some put one there."""
    uri = f"memory://user:{marker()}@{uuid.uuid4().hex}/t.lance"
    data = pa.table({"id": range(300), "v": pa.FixedSizeListArray.from_arrays(pa.array([0.5] * 1200, pa.float32()), 4)})
    return ld.write_dataset(data, uri, storage_options={"access_key_id": marker()}), uri


def test_displayed_tables_contain_no_secrets(hidden: tuple[Any, str]) -> None:
    dataset, _ = hidden
    dataset.create_scalar_index("id", "BTREE")
    connection = ld.connect({"t": dataset})
    merge = dataset.merge_insert("id").when_not_matched_insert_all()
    nearest = {"column": "v", "q": [0.0] * 4, "k": 2}
    texts = [
        *(repr(dataset), dataset._repr_html_(), repr(dataset.scanner()), repr(dataset.handle.snapshot)),
        *(dataset.scanner(filter="id = 7").explain_plan(), dataset.scanner(filter="id = 7").analyze_plan()),
        *(dataset.scanner(nearest=nearest).explain_plan(), merge.explain_plan()),
        *(repr(connection), str(connection.execute("EXPLAIN ANALYZE SELECT * FROM t WHERE id = 7").fetchall())),
        *(repr(dataset.versions()), repr(dataset.list_indices()), repr(dataset.get_fragments())),
        repr(dataset.validate()),
    ]
    assert not [text for text in texts if PLANTED in text]
    assert dataset.to_table(filter="id = 7").num_rows == 1


def test_table_errors_contain_no_secrets(hidden: tuple[Any, str]) -> None:
    dataset, uri = hidden
    other = ld.dataset(uri)
    other.update({"id": "id + 1"})
    stale = ld.dataset(uri, version=1)
    failures: list[Callable[[], Any]] = [
        lambda: dataset.checkout_version(99),
        lambda: dataset.checkout_version("no tag"),
        lambda: ld.write_dataset(pa.table({"id": [1]}), uri, mode="create"),
        lambda: ld.write_dataset(pa.table({"x": [1]}), uri, mode="append"),
        lambda: dataset.drop_index("none"),
        lambda: dataset.tags.delete("none"),
        lambda: dataset.shallow_clone(f"memory://{uuid.uuid4().hex}", 1),
        lambda: stale.to_table(columns=["none"]),
        lambda: ld.connect(uri.rpartition("/")[0] + "/none").execute("FROM t"),
    ]
    for failure in failures:
        assert PLANTED not in refused(failure)


def test_credentials_are_not_written_into_a_table(tmp_path: Path) -> None:
    base = DatasetBasePath(f"s3://user:{marker()}@bucket/base", "base")
    data = pa.table({"a": [1]})
    assert PLANTED not in refused(lambda: ld.write_dataset(data, tmp_path / "t.lance", initial_bases=[base]))
    options = {"access_key_id": marker(), "fsync": "false"}
    ld.write_dataset(data, tmp_path / "u.lance", storage_options=options).insert(data)
    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert PLANTED.encode() not in written


@pytest.mark.parametrize(
    "command",
    [
        *(["info"], ["schema"], ["head"], ["versions"], ["files"], ["validate"], ["indices"], ["compact"], ["cleanup"]),
        *(["info", "--json"], ["versions", "--json"], ["indices", "--json"]),
    ],
)
def test_command_line_output_contains_no_secrets(
    command: list[str], hidden: tuple[Any, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, uri = hidden
    result = CliRunner().invoke(app, [command[0], uri, *command[1:]])
    assert result.exit_code == 0, result.output
    assert PLANTED not in result.output
    monkeypatch.setattr("sys.argv", ["lance-duck", command[0], f"s3://user:{marker()}@bucket/..?sig={marker()}"])
    with pytest.raises(SystemExit), warnings.catch_warnings():
        main()
    assert PLANTED not in "".join(capsys.readouterr())


def test_displayed_locations_contain_no_secrets() -> None:
    uri = f"https://user:{marker()}@host/x?sig={marker()}"
    assert repr(ld.Blob.from_uri(uri)) == "Blob(data=None, uri='https://***@host/x?sig=***', position=None, size=None)"
    assert repr(DatasetBasePath(uri, "base")) == (
        "DatasetBasePath(path='https://***@host/x?sig=***', name='base', is_dataset_root=False, id=None)"
    )
