"""Secrets contain object store settings for URIs with a given prefix, the scope. Their values are never displayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lance_duck.duck.statement.identifiers import folded
from lance_duck.errors import AlreadyExistsError, InvalidInputError
from lance_duck.forks import Lock
from lance_duck.redact import remember
from lance_duck.store.client import check_options, refuse_unknown_options

_OPTIONS: Final = {
    "key_id": "aws_access_key_id",
    "secret": "aws_secret_access_key",
    "session_token": "aws_session_token",
    "region": "region",
    "account_name": "account_name",
    "account_key": "account_key",
    "max_retries": "client_max_retries",
    "retry_timeout": "client_retry_timeout",
}
"""Storage options by their names in DuckDB secrets. Other options keep their names."""


@dataclass(frozen=True)
class Secret:
    """A secret.

    Attributes:
        name: Its name.
        scopes: URI prefixes to which the secret applies. Empty for all URIs.
        options: Storage options.
    """

    name: str
    scopes: tuple[str, ...]
    options: Mapping[str, str] = field(repr=False)

    def length(self, uri: str) -> int:
        """Return the length of the longest matching scope, or -1."""
        if "://" not in uri:
            return -1
        fitting = (len(scope) for scope in self.scopes if _is_within(uri, scope))
        return max(fitting, default=-1) if self.scopes else 0


class Secrets:
    """The secrets of one DuckDB instance. Thread-safe."""

    def __init__(self) -> None:
        self._secrets: dict[str, Secret] = {}
        self._lock = Lock()

    def add(self, secret: Secret, *, replaces: bool = False) -> None:
        """Add a secret. `replaces` allows replacing a secret with the same name.

        Raises:
            AlreadyExistsError: A secret with this name exists.
        """
        with self._lock:
            if folded(secret.name) in self._secrets and not replaces:
                raise AlreadyExistsError(
                    f"secret {secret.name!r} already exists",
                    remedy="use CREATE OR REPLACE SECRET, or CREATE SECRET IF NOT EXISTS",
                )
            self._secrets = {**self._secrets, folded(secret.name): secret}

    def has(self, name: str) -> bool:
        """Return whether a secret with this name exists."""
        return folded(name) in self._secrets

    def remove(self, name: str) -> None:
        """Forget a secret."""
        with self._lock:
            self._secrets = {key: secret for key, secret in self._secrets.items() if key != folded(name)}

    def options_for(self, uri: str) -> Mapping[str, str] | None:
        """Return the storage options of the secret whose scope is the longest prefix of a URI, or None."""
        secrets = sorted(self._secrets.values(), key=lambda secret: secret.length(uri))
        return secrets[-1].options if secrets and secrets[-1].length(uri) >= 0 else None


def storage_options(values: Mapping[str, Any]) -> dict[str, str]:
    """Return storage options, given values by DuckDB's names or by storage option names.

    Raises:
        InvalidInputError: A value is invalid, or an option does not exist.
        WrongTypeError: A value is not a string.
    """
    refuse_unknown_options(values, (*_OPTIONS, "endpoint", "use_ssl", "url_style", "type", "scope", "provider"))
    settings = {name: value for name, value in values.items() if value is not None}
    options = {_OPTIONS.get(name, name): value for name, value in settings.items()}
    remember(options)
    check_options(options)
    use_ssl, style = options.pop("use_ssl", True), options.pop("url_style", None)
    if style is not None:
        if style not in ("path", "vhost"):
            raise InvalidInputError("invalid URL_STYLE of a secret", expected="'path' or 'vhost'")
        options["virtual_hosted_style_request"] = style == "vhost"
    is_secure = str(use_ssl).lower() not in ("false", "0")
    endpoint = options.pop("endpoint", None)
    if endpoint is not None:
        endpoint = str(endpoint)
        if "://" not in endpoint:
            endpoint = f"{'https' if is_secure else 'http'}://{endpoint}"
        options["endpoint"] = endpoint
        if endpoint.startswith("http://"):
            options.setdefault("allow_http", True)
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


def _is_within(uri: str, scope: str) -> bool:
    """Return whether a URI is equal to a scope or below it."""
    return scope == "" or uri == scope or uri.startswith(scope if scope.endswith("/") else scope + "/")
