"""Clients of object stores: one per bucket and options; their errors become those of this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any, TypeVar

from obstore.exceptions import AlreadyExistsError as ExistsError
from obstore.exceptions import BaseError, NotSupportedError, PermissionDeniedError, UnauthenticatedError
from obstore.store import MemoryStore, from_url

from lance_duck.errors import AlreadyExistsError, InvalidInputError, LanceDuckError, NotFoundError, StoreError

MEMORY = MemoryStore()

_T = TypeVar("_T")
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
_RETRY_OPTIONS = ("client_max_retries", "client_retry_timeout")
# Options of ours that mean nothing to a service.
_OWN_OPTIONS = ("fsync", "manifest_store")


@lru_cache(maxsize=64)
def bucket_client(bucket: str, options: tuple[tuple[str, str], ...]) -> Any:
    """Return the client of a bucket.

    Args:
        bucket: URI without a path, for example "s3://name" or "https://host:port".
        options: Storage options, sorted by name; names in lower case.

    Raises:
        InvalidInputError: An option has no meaning for this kind of store, or a needed one is missing.
    """
    if bucket.startswith("memory:"):
        return MEMORY
    config, client, retry = _split_options(options)
    arguments: dict[str, Any] = {"client_options": client or None, "retry_config": retry or None}
    if config:
        arguments["config"] = config
    try:
        return from_url(bucket, **arguments)
    except (BaseError, ValueError, TypeError) as error:
        raise InvalidInputError(
            _first_line(error),
            where=f"storage options of {bucket}",
            remedy="see the options of obstore for this scheme",
        ) from error


def sorted_options(options: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Storage options as a key of `bucket_client`: names in lower case, values as text."""
    return tuple(sorted((name.lower(), _text(value)) for name, value in (options or {}).items()))


def call(where: str, do: Callable[[], _T]) -> _T:
    """Run an operation of the library; its errors become those of this package."""
    try:
        return do()
    except LanceDuckError:
        raise
    except FileNotFoundError as error:
        raise NotFoundError("no such object", where=where) from error
    except ExistsError as error:
        raise AlreadyExistsError("the name is taken", where=where) from error
    except (NotSupportedError, NotImplementedError) as error:
        raise StoreError(
            _first_line(error),
            where=where,
            remedy="a store that cannot put an object only if it is absent needs a manifest_store in storage_options",
        ) from error
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise StoreError(_first_line(error), where=where, remedy="check the credentials in storage_options") from error
    except (BaseError, OSError, ValueError) as error:
        if "404 Not Found" in _first_line(error):  # how the library puts a listing of a bucket that does not exist
            raise NotFoundError("no such bucket", where=where) from error
        raise StoreError(_first_line(error), where=where) from error


def _split_options(options: tuple[tuple[str, str], ...]) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
    config: dict[str, str] = {}
    client: dict[str, Any] = {}
    retry: dict[str, Any] = {}
    for name, value in options:
        if name in _OWN_OPTIONS:
            continue
        bare = name.removeprefix("aws_").removeprefix("google_").removeprefix("azure_")
        if bare in _CLIENT_OPTIONS:
            client[bare] = value
        elif name in _RETRY_OPTIONS:
            retry |= _retry_option(name, value)
        else:
            config[name] = value
    return config, client, retry


def _retry_option(name: str, value: str) -> dict[str, Any]:
    try:
        number = int(value)
    except ValueError:
        raise InvalidInputError("not a number", where=f"storage option {name}", found=repr(value)) from None
    return {"max_retries": number} if name == "client_max_retries" else {"retry_timeout": timedelta(seconds=number)}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
