from __future__ import annotations

import pytest

from lance_duck.errors import InvalidInputError
from lance_duck.redact import has_secrets, remember, remember_uri, shown, without_secrets


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://bucket/a@b/t.lance", "s3://bucket/a@b/t.lance"),
        ("s3://user:word@bucket/t.lance", "s3://***@bucket/t.lance"),
        ("https://token@host:8080/t?x", "https://***@host:8080/t?***"),
        ("https://h/t.lance?sig=a%2Fb&se=2030#part", "https://h/t.lance?sig=***&se=***#part"),
        ("open 'ddb://u:p@h/x?key=v' failed", "open 'ddb://***@h/x?key=***' failed"),
        ("abfss://container@account.dfs.core.windows.net/t", "abfss://container@account.dfs.core.windows.net/t"),
        ("abfss://name:word@account/t", "abfss://***@account/t"),
        ("/data/what?x=1: no such file", "/data/what?x=1: no such file"),
        ("s3://a:b@c/x and s3://d:e@f/y", "s3://***@c/x and s3://***@f/y"),
    ],
)
def test_uris_are_shown_without_users_and_values_of_queries(text: str, expected: str) -> None:
    assert shown(text) == expected
    assert shown(expected) == expected
    assert has_secrets(text) == (text != expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("open --s3://u:p@b/x", "open --s3://***@b/x"),
        ("1.a-b://u:p@b 1://u:p@b _a://u:p@b", "1.a-b://***@b 1://u:p@b _a://u:p@b"),
        ("-abfss://container@account/t", "-abfss://container@account/t"),
        ("read 's3://u:pass... failed", "read 's3://***... failed"),
        ("[s3://u:p@b/x?k=...v]...,", "[s3://***...,"),
        ("name: ...word@b/t.lance", "name: ***...b/t.lance"),
    ],
)
def test_uris_are_found_inside_of_words_and_where_they_are_truncated(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize("part", ["a.", "a", "1-", "a://?;", "a://", "a://x@", "x...", "://...", ": ...", "?;"])
def test_a_long_text_is_searched_in_one_pass(part: str) -> None:
    # A search from each position would take minutes.
    assert len(shown(part * 200_000)) > 3


def test_option_values_are_masked_in_any_string_except_harmless_ones() -> None:
    remember({"aws_secret_access_key": "Sesame/Open+1", "region": "eu-somewhere-1", "no_such_option": "unheard-of"})
    assert shown("signed by Sesame/Open+1 in eu-somewhere-1, unheard-of") == "signed by *** in eu-somewhere-1, ***"
    assert shown("?k=Sesame%2FOpen%2B1") == "?k=***"


def test_secrets_of_a_uri_are_found_without_the_uri() -> None:
    remember_uri("https://someone:longpassword@host/t?sig=longsignature")
    assert shown("login someone:longpassword, longpassword, longsignature") == "login ***, ***, ***"


def test_error_parts_with_secrets_are_masked() -> None:
    uri = "s3://user:word@bucket"
    error = InvalidInputError(f"no {uri}", where=uri, expected=uri, found=[uri], remedy=f"not {uri}")
    assert str(error) == (
        "s3://***@bucket: no s3://***@bucket: expected s3://***@bucket, found ['s3://***@bucket']; not s3://***@bucket"
    )
    assert "word" not in f"{error!r}{error.args}{error.where}{error.expected}{error.remedy}"


def test_exception_causes_are_masked_and_keep_their_type() -> None:
    plain = OSError("no such host")
    assert without_secrets(plain) is plain
    try:
        try:
            raise ValueError("s3://user:word@bucket")
        except ValueError as first:
            raise KeyError("key") from first
    except KeyError as error:
        clean = without_secrets(error)
    assert type(clean) is KeyError
    assert clean.__cause__ is clean.__context__ is None
    assert str(without_secrets(OSError("https://h/?sig=x"))) == "https://h/?sig=***"
    assert str(without_secrets(UnicodeDecodeError("utf-8", b"", 0, 1, "s3://user:word@bucket"))).startswith("Unicode")
