"""Secrets for Lance tables in object stores, which show their values nowhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import duckdb
import pytest
from support.servers import BUCKET, s3_server

import lance_duck as ld
from lance_duck.errors import AlreadyExistsError, InvalidInputError, LanceDuckError, UnsupportedError

Connect = Callable[..., ld.Connection]


@pytest.fixture(scope="module")
def service() -> Iterator[dict[str, str]]:
    with s3_server() as options:
        yield options


@pytest.fixture
def con(connect: Connect) -> ld.Connection:
    return connect()


def secret(service: dict[str, str], name: str = "store", more: str = "") -> str:
    endpoint = service["aws_endpoint"].removeprefix("http://")
    return (
        f"CREATE SECRET {name} (TYPE lance, KEY_ID 'key-of-a-user', SECRET 'password-of-a-user', REGION 'us-east-1', "
        f"ENDPOINT '{endpoint}', USE_SSL false, URL_STYLE 'path'{more})"
    )


def test_a_secret_allows_reading_and_writing_in_a_store(con: ld.Connection, service: dict[str, str]) -> None:
    root = f"s3://{BUCKET}/tables"
    assert con.execute(secret(service, more=f", SCOPE '{root}'")).fetchall() == [(True,)]
    con.execute(f"CREATE TABLE '{root}/t.lance' AS SELECT 1 AS id")
    con.execute(f"INSERT INTO '{root}/t.lance' VALUES (2)")
    con.execute(f"COPY (SELECT 3 AS id) TO '{root}/t.lance' (FORMAT lance, MODE 'append')")
    assert con.execute(f"SELECT sum(id) FROM '{root}/t.lance'").fetchall() == [(6,)]
    con.execute(f"ATTACH '{root}' AS ns (TYPE lance)")
    con.execute("CREATE TABLE ns.u AS FROM ns.t")
    con.execute("UPDATE ns.u SET id = id * 10")
    assert con.execute("SELECT * FROM ns.u ORDER BY ALL").fetchall() == [(10,), (20,), (30,)]
    con.execute("DROP TABLE ns.u")
    con.execute(f"DROP TABLE '{root}/t.lance'")
    assert con.execute("SHOW TABLES FROM ns").fetchall() == []


def test_the_longest_scope_counts(con: ld.Connection, service: dict[str, str]) -> None:
    con.execute("CREATE SECRET wide (TYPE lance, ENDPOINT 'http://127.0.0.1:1', KEY_ID 'a', SECRET 'b')")
    con.execute(secret(service, "narrow", f", SCOPE ['s3://other', 's3://{BUCKET}/scoped']"))
    con.execute(f"CREATE TABLE 's3://{BUCKET}/scoped/t.lance' AS SELECT 1 AS id")
    options = con._catalog.options_for
    assert options(f"s3://{BUCKET}/scoped/t.lance")["aws_access_key_id"] == "key-of-a-user"
    for uri in (f"s3://{BUCKET}/scoped2/t.lance", "s3://elsewhere/t.lance"):
        assert options(uri)["aws_access_key_id"] == "a"
    assert options("a/local/path.lance") is None


def test_secret_names_are_unique_and_case_insensitive(con: ld.Connection, service: dict[str, str]) -> None:
    con.execute(secret(service))
    with pytest.raises(AlreadyExistsError, match="secret 'STORE'"):
        con.execute(secret(service, "STORE"))
    assert con.execute("CREATE SECRET IF NOT EXISTS store (TYPE lance, REGION 'x')").fetchall() == [(True,)]
    con.execute("CREATE OR REPLACE TEMPORARY SECRET store (TYPE lance, REGION 'other')")
    assert dict(con._catalog.options_for("s3://b/t.lance") or {}) == {"region": "other"}
    assert con.execute("DROP SECRET store").fetchall() == []
    con.execute("DROP SECRET IF EXISTS store")
    with pytest.raises(duckdb.Error):
        con.execute("DROP SECRET store")
    con.execute("CREATE SECRET (TYPE lance, REGION 'x')")
    con.execute("DROP SECRET __default_lance")
    assert con._catalog.options_for("s3://b/t.lance") is None


def test_other_cursors_share_the_secret(con: ld.Connection, service: dict[str, str]) -> None:
    other = con.cursor()
    con.execute(secret(service))
    other.execute(f"CREATE TABLE 's3://{BUCKET}/cursor.lance' AS SELECT 1 AS id")
    assert con.execute(f"FROM 's3://{BUCKET}/cursor.lance'").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("CREATE PERSISTENT SECRET s (TYPE lance, REGION 'x')", UnsupportedError),
        ("CREATE SECRET s IN local_file (TYPE lance, REGION 'x')", UnsupportedError),
        ("CREATE SECRET s (TYPE lance, PROVIDER credential_chain)", UnsupportedError),
        ("CREATE SECRET s (TYPE lance, URL_STYLE 'other')", InvalidInputError),
        ("CREATE SECRET s (TYPE lance, SCOPE 3)", LanceDuckError),
        ("CREATE SECRET s (TYPE lance, KEY_ID 'k', KEY_ID 'l')", InvalidInputError),
        ("CREATE SECRET s (TYPE nope)", duckdb.Error),
    ],
)
def test_invalid_secrets_are_rejected(con: ld.Connection, sql: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        con.execute(sql)
    assert not con._catalog.secrets.has("s")


def test_secret_values_are_never_shown(con: ld.Connection) -> None:
    values = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG")
    key, password = values
    con.execute(
        f"CREATE SECRET s (TYPE lance, KEY_ID ?, SECRET '{password}', ENDPOINT '127.0.0.1:1', USE_SSL false)", [key]
    )
    texts = [repr(con), repr(con._catalog.options_for), str(con.execute("FROM duckdb_secrets()").fetchall())]
    for sql in (
        "FROM 's3://bucket/t.lance'",
        "ATTACH 's3://bucket/folder' AS ns (TYPE lance)",
        "CREATE TABLE 's3://bucket/t.lance' AS SELECT 1 AS a",
        f"CREATE SECRET s (TYPE lance, SECRET '{password}')",
        f"CREATE SECRET u (TYPE lance, SECRET CAST('{password}' AS INTEGER))",
        f"CREATE SECRET u (TYPE lance, KEY_ID '{key}' + )",
    ):
        with pytest.raises((LanceDuckError, duckdb.Error)) as raised:
            con.execute(sql)
        error: BaseException | None = raised.value
        while error is not None:
            texts.append(str(error))
            error = error.__cause__ or error.__context__
    assert [text for text in texts if any(value in text for value in values)] == []


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("KEYID 'x'", "'keyid'; did you mean 'key_id'?"),
        ("regoin NULL", "'regoin'; did you mean 'region'?"),
        ("scop 's3://b'", "'scop'; did you mean 'scope'?"),
        ("aws_acess_key_id 'x'", "'aws_acess_key_id'; did you mean 'aws_access_key_id'?"),
        ("nothing 'secret-value'", "'nothing'; see the options of obstore"),
    ],
)
def test_unknown_options_of_a_secret_are_refused(option: str, told: str) -> None:
    with ld.connect() as con, pytest.raises(InvalidInputError) as refused:
        con.execute(f"CREATE SECRET s (TYPE lance, {option})")
    assert f"unknown storage option {told}" in str(refused.value)
    assert "secret-value" not in str(refused.value)


@pytest.mark.parametrize(
    "options", ["allow_http true, ENDPOINT 'h:1', USE_SSL false, URL_STYLE 'path'", "timeout '5s', checksums false"]
)
def test_storage_options_are_options_of_a_secret(options: str) -> None:
    with ld.connect() as con:
        assert con.execute(f"CREATE SECRET s (TYPE lance, SCOPE 's3://b', {options})").fetchall() == [(True,)]
