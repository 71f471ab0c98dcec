"""The interface of external manifest stores, and the kinds of stores by the scheme of their URL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from lance_duck import lazy
from lance_duck.arguments import checked_call
from lance_duck.errors import InvalidInputError, LanceDuckError, StoreError
from lance_duck.forks import Lock
from lance_duck.redact import shown, without_secrets

if TYPE_CHECKING:
    from lance_duck.store.external import sqlite
else:
    sqlite = lazy.modules(globals(), "lance_duck.store.external", "sqlite")

OPTION = "manifest_store"


class ExternalManifestStore(Protocol):
    """A map from tables and versions to manifests, used concurrently by many threads and processes.

    `base_uri` is the URI with which the table was opened, without a trailing slash. A local base URI is an absolute
    path without links. `path` is relative to `base_uri`.
    """

    def put_if_not_exists(self, base_uri: str, version: int, path: str) -> None:
        """Claim a version. The claim is durable when this method returns.

        If several writers try concurrently, one succeeds.

        Raises:
            AlreadyExistsError: The version is claimed.
            StoreError: The claim failed, or its outcome is unknown.
        """

    def put_if_exists(self, base_uri: str, version: int, path: str) -> None:
        """Change the path of a claimed version. Raises NotFoundError if the version is not claimed."""

    def get(self, base_uri: str, version: int) -> str | None:
        """Return the path of a version, or None if it is not claimed."""

    def get_latest(self, base_uri: str) -> tuple[int, str] | None:
        """Return the highest claimed version and its path, or None if no version is claimed."""

    def delete(self, base_uri: str) -> None:
        """Delete the entries of a dropped table or branch, but not of tables or branches below its base URI."""


Opener = Callable[[str], ExternalManifestStore]


@checked_call
def register_manifest_store(scheme: str, opener: Opener) -> None:
    """Register an external manifest store for `storage_options={"manifest_store": "{scheme}://…"}`.

    Args:
        scheme: For example "ddb".
        opener: Called with the whole URL, once per process for each URL. Returns the store.

    Raises:
        InvalidInputError: The scheme is built in, or is not a valid URL scheme in lower case.
    """
    if scheme in ("", "sqlite") or urlsplit(f"{scheme}://x").scheme != scheme:
        raise InvalidInputError(
            "the scheme is already registered, or not in lower case", where="scheme", found=repr(scheme)
        )
    with _lock:
        _openers[scheme] = opener
        for url in [url for url in _opened if urlsplit(url).scheme == scheme]:
            del _opened[url]


def manifest_store(url: str | None) -> ExternalManifestStore | None:
    """Return the external manifest store for the URL in a storage option, or None if `url` is None.

    Raises:
        InvalidInputError: The scheme is not registered, or the URL is invalid.
        StoreError: The store cannot be opened.
    """
    if url is None:
        return None
    with _lock:
        manifest_store_ = _opened.get(url)
        if manifest_store_ is None:
            opener = _openers.get(urlsplit(url).scheme)
            if opener is None:
                raise InvalidInputError(
                    "unknown kind of manifest store",
                    where=f"storage option {OPTION}",
                    expected="a URL of " + ", ".join(sorted(_openers)),
                    found=repr(urlsplit(url).scheme),
                    remedy="add other kinds with register_manifest_store()",
                )
            manifest_store_ = _opened[url] = _open(opener, url)
        return manifest_store_


def _open(opener: Opener, url: str) -> ExternalManifestStore:
    try:
        return opener(url)
    except LanceDuckError:
        raise
    except Exception as error:
        text, cause = shown(error, [url]), without_secrets(error, [url])
    raise StoreError(f"the manifest store cannot be opened: {text}", where=f"storage option {OPTION}") from cause


_lock = Lock()
_openers: dict[str, Opener] = {"sqlite": lambda url: sqlite.SqliteManifestStore.open(url)}
_opened: dict[str, ExternalManifestStore] = {}
