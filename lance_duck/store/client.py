"""Clients of object stores, one per bucket and options. Errors of the library, obstore, become `LanceDuckError`s."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import lru_cache
from os import PathLike, fspath
from os.path import abspath, expanduser
from typing import Any, Final, NoReturn, TypeVar

from obstore.exceptions import AlreadyExistsError as ExistsError
from obstore.exceptions import (
    BaseError,
    NotSupportedError,
    PermissionDeniedError,
    UnauthenticatedError,
    UnknownConfigurationKeyError,
)
from obstore.store import MemoryStore, from_url

from lance_duck import forks
from lance_duck.arguments import did_you_mean, is_unicode
from lance_duck.errors import (
    AlreadyExistsError,
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    StoreError,
    WrongTypeError,
)
from lance_duck.redact import shown, shown_value, without_secrets
from lance_duck.store.counted import CountedRequests

MEMORY = MemoryStore()

CACHE_OPTION: Final = "cache"
"""Option with the folder of the disk cache: see `store.disk_cache`."""
CACHE_SIZE_OPTION: Final = "cache_size"
"""Option with the maximum size of the disk cache."""

_T = TypeVar("_T")
_used_since: int | None = None  # forks.count() at the first operation, which starts the library's threads
_CLIENT_OPTIONS = (
    "allow_http",
    "allow_invalid_certificates",
    "connect_timeout",
    "default_content_type",
    "pool_idle_timeout",
    "pool_max_idle_per_host",
    "proxy_url",
    "proxy_ca_certificate",
    "proxy_excludes",
    "read_timeout",
    "root_certificate",
    "randomize_addresses",
    "timeout",
    "user_agent",
)
_HUB_OPTION = "hf_token"
"""Option with the token for each request to the Hub."""
_REFUSED = ("401 Unauthorized", "403 Forbidden", "ExpiredToken")
"""Phrases in the library's messages about refused credentials. Some of these errors do not have a specific class."""
_RETRY_OPTIONS = ("client_max_retries", "client_retry_timeout")
_LEAST_HIDDEN = 4  # minimum length of values that are masked in the library's messages
OWN_OPTIONS: Final = (CACHE_OPTION, CACHE_SIZE_OPTION, "checksums", "fsync", "manifest_store")
"""Options of this package that services do not use."""
_NAMES = (
    *OWN_OPTIONS,
    *_CLIENT_OPTIONS,
    *_RETRY_OPTIONS,
    *("hf_endpoint", _HUB_OPTION),
    *("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_region", "aws_endpoint"),
    *("access_key_id", "secret_access_key", "session_token", "region", "endpoint", "endpoint_url", "skip_signature"),
    *("virtual_hosted_style_request", "conditional_put", "google_service_account", "google_service_account_key"),
    *("azure_storage_account_name", "azure_storage_account_key", "azure_storage_sas_token", "account_name"),
)
"""Suggestions for misspelled options. obstore decides which options a store supports."""
_URL_OPTIONS = frozenset({"endpoint", "endpoint_url", "endpoint_url_s3", "storage_endpoint", "base_url"})
_WEB_URL = re.compile(r"https?://[^\s/?#]+[^\s]*", re.IGNORECASE)
_PANIC = "PanicException"  # pyo3's class: a BaseException that cannot be imported
_EXAMPLES = ("s3://bucket", "gs://bucket", "az://container")


@lru_cache(maxsize=64)
def bucket_client(bucket: str, options: tuple[tuple[str, str], ...]) -> Any:
    """Return the client of a bucket.

    Args:
        bucket: URI without a path, for example "s3://name" or "https://host:port".
        options: Storage options sorted by name, with names in lower case.

    Raises:
        InvalidInputError: An option does not exist for this kind of store, a required option is missing, or a value is
            invalid.
    """
    if bucket.startswith("memory:"):
        return MEMORY
    _check_urls(options)
    config, client, retry = _split_options(options)
    arguments: dict[str, Any] = {"client_options": client or None, "retry_config": retry or None}
    if config:
        if _WEB_URL.fullmatch(bucket):
            _refuse_option(next(iter(config)), "see the options of HTTP clients of obstore")
        arguments["config"] = config
    try:
        return from_url(bucket, **arguments)
    except (BaseError, ValueError, TypeError) as error:
        values = [value for _, value in options if len(value) >= _LEAST_HIDDEN]
        refused = InvalidInputError(
            shown(_first_line(error), values),
            where=f"storage options of {bucket}",
            remedy="see the options of obstore for this scheme",
        )
        cause = without_secrets(error, values)
    raise refused from cause


def _check_urls(options: tuple[tuple[str, str], ...]) -> None:
    """Reject endpoints that are not URLs, because the library would panic on its first request."""
    for name, value in options:
        if _bare(name) in _URL_OPTIONS and value and not _WEB_URL.fullmatch(value):
            raise InvalidInputError(
                "not a URL", where=f"storage option {name}", expected="such as https://host", found=shown_value(value)
            )


def sorted_options(options: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Return storage options as an argument of `bucket_client`: sorted, with names in lower case and values as text."""
    return tuple(sorted((name.lower(), _text(value)) for name, value in (options or {}).items()))


def with_cache(options: Mapping[str, str] | None, cache: str | PathLike[str] | None) -> Mapping[str, str] | None:
    """Return storage options with a cache folder. It becomes absolute, because other processes may use the options."""
    if cache is None:
        return options
    return {**(options or {}), CACHE_OPTION: abspath(expanduser(cache)) if fspath(cache) else ""}


def service_options(options: Mapping[str, str]) -> dict[str, str]:
    """Return storage options that a service sent, without a cache: services do not choose folders of this machine."""
    return {name: value for name, value in options.items() if name.lower() not in (CACHE_OPTION, CACHE_SIZE_OPTION)}


def check_options(options: object) -> None:
    """Check storage options. Error messages omit the values.

    Raises:
        WrongTypeError: The options are not a dict, a name is not a string, or a value is not a string, a boolean or a
            number.
        InvalidInputError: A name or value contains a lone surrogate.
    """
    if options is None:
        return
    if not isinstance(options, Mapping):
        raise WrongTypeError("storage_options", expected="a dict of strings", found=type(options).__name__)
    for name, value in options.items():
        if not isinstance(name, str):
            raise WrongTypeError("storage_options", expected="names that are strings", found=type(name).__name__)
        if not isinstance(value, str | bool | int | float):
            type_name = type(value).__name__
            raise WrongTypeError(f"storage option {name!r}", expected="a string", found=type_name)
        if not (is_unicode(name) and is_unicode(str(value))):
            raise InvalidInputError(f"storage option {name!r}", expected="a valid string", found="a lone surrogate")


def refuse_unknown_options(options: Iterable[str], more: Iterable[str] = ()) -> None:
    """Reject storage options that are not options of any store. A local table may refer to files in any store.

    Args:
        options: Names of the options.
        more: More valid names, in lower case.

    Raises:
        InvalidInputError: An option is unknown. The message suggests a similar option.
    """
    others = frozenset(more)
    for name in options:
        if name.lower() not in others and not _is_known(name.lower()):
            _refuse_option(name, "see the options of obstore for S3, Google Cloud and Azure", others)


def _refuse_option(name: str, remedy: str, more: Iterable[str] = ()) -> NoReturn:
    names = (*more, *_NAMES)
    raise InvalidInputError(f"unknown storage option {name!r}", remedy=did_you_mean(name, names) or remedy)


@lru_cache(maxsize=256)
def _is_known(name: str) -> bool:
    """Return whether an option exists for any kind of store."""
    if name in _NAMES:
        return True
    config, client, retry = _split_options(((name, "0"),))
    return not config or bool(client or retry) or any(_takes(url, name) for url in _EXAMPLES)


def _takes(url: str, name: str) -> bool:
    try:
        from_url(url, config={name: ""})  # type: ignore[call-overload]  # any name is tried
    except UnknownConfigurationKeyError:
        return False
    except (BaseError, ValueError, TypeError):
        return True  # a known setting with an invalid value
    return True


def call(operation: str, where: str, do: Callable[[], _T], requests: int = 1) -> _T:
    """Run an operation of the library, count its requests, and translate its errors.

    Args:
        operation: Name of the operation: see `CountedRequests`.
        where: URI of the object or bucket.
        do: Calls the library.
        requests: Number of requests that the library sends. With 0, nothing is counted.

    Raises:
        ForkedError: The parent process used the library before the fork. The library's network threads do not exist in
            this process, and the operation would wait forever.
    """
    global _used_since
    if _used_since is None:
        _used_since = forks.count()
    elif not where.startswith("memory:"):
        forks.check_not_forked(
            _used_since,
            "a forked child cannot use an object store that its parent has used",
            where,
            remedy="start processes with spawn or forkserver, or fork before the first access",
        )
    if not requests:
        return _translated(where, do)
    with CountedRequests(operation, where, requests):
        return _translated(where, do)


def _translated(where: str, do: Callable[[], _T]) -> _T:
    try:
        return do()
    except LanceDuckError:
        raise
    except (BaseError, OSError, ValueError, NotImplementedError) as error:
        ours, cause = _as_ours(error, where), without_secrets(error)
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        ours, cause = StoreError(f"the library panicked: {_first_line(error)}", where=where), None
    raise ours from cause  # outside the handler: inside, the original error would become the context


def _as_ours(error: Exception, where: str) -> LanceDuckError:
    if isinstance(error, FileNotFoundError):
        return NotFoundError("no such object", where=where)
    if isinstance(error, ExistsError):
        return AlreadyExistsError("an object with this name already exists", where=where)
    if isinstance(error, NotSupportedError | NotImplementedError):
        return StoreError(
            _first_line(error),
            where=where,
            remedy="set manifest_store in storage_options, because this store does not support conditional writes",
        )
    told = _first_line(error)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or any(status in told for status in _REFUSED):
        remedy = "check the credentials in storage_options or the environment; they may have expired"
        return StoreError(told, where=where, remedy=remedy)
    if "404 Not Found" in told:  # the library's message for a listing of a missing bucket
        return NotFoundError("no such bucket", where=where)
    return StoreError(told, where=where)


def _split_options(options: tuple[tuple[str, str], ...]) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
    config: dict[str, str] = {}
    client: dict[str, Any] = {}
    retry: dict[str, Any] = {}
    for name, value in options:
        if name in OWN_OPTIONS:
            continue
        bare = _bare(name)
        if name == _HUB_OPTION:
            client["default_headers"] = {"Authorization": f"Bearer {value}"}
        elif bare in _CLIENT_OPTIONS:
            client[bare] = value
        elif name in _RETRY_OPTIONS:
            retry |= _retry_option(name, value)
        else:
            config[name] = value
    return config, client, retry


def _bare(name: str) -> str:
    """Return an option name without its service prefix."""
    return name.removeprefix("aws_").removeprefix("google_").removeprefix("azure_")


def _retry_option(name: str, value: str) -> dict[str, Any]:
    if not value.isdecimal():
        raise InvalidInputError("not a number", where=f"storage option {name}", found=shown_value(value))
    number = int(value)
    return {"max_retries": number} if name == "client_max_retries" else {"retry_timeout": timedelta(seconds=number)}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
