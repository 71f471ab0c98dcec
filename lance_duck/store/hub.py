"""Datasets on the Hugging Face Hub, which serves files over HTTP.

    hf://datasets/{owner}/{name}[@{revision}]/{path}
    {endpoint}/datasets/{owner}/{name}/resolve/{revision}/{path}       a file
    {endpoint}/api/datasets/{owner}/{name}/tree/{revision}/{path}      a page of a folder's entries, as JSON;
                                                                       the header `Link` names the next page

Without a path, the folder is the whole repository. The default revision is `main`. A slash in the name of a revision is
written as %2F, except in `refs/pr/{number}` and `refs/convert/{name}`. The endpoint and a token for private datasets
come from the storage options `hf_endpoint` and `hf_token`, or from the environment variables HF_ENDPOINT and HF_TOKEN,
as in Hugging Face's libraries.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urljoin, urlsplit

import obstore

from lance_duck import lazy
from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError, StoreError, UnsupportedError
from lance_duck.redact import remember, shown
from lance_duck.store.client import bucket_client, call, sorted_options
from lance_duck.store.counted import CountedRequests

if TYPE_CHECKING:
    from lance_duck import retry
else:
    retry = lazy.modules(globals(), "lance_duck", "retry")

SCHEME: Final = "hf"
OPTIONS: Final = ("hf_endpoint", "hf_token")
PAGE_ENTRIES: Final = 1000
"""Maximum number of entries in one response of the Hub."""
MOST_PAGES: Final = 1000
"""Maximum number of pages in a listing. They contain a million entries, and take minutes."""

_PLACE: Final = re.compile(
    r"hf://datasets/(?P<name>[^/@\s]+/[^/@\s]+)(?:@(?P<revision>refs/(?:convert|pr)/[^/\s]+|[^/\s]+))?(?:/+(?P<path>[^?#]*))?",
    re.IGNORECASE,
)
_ENDPOINT: Final = "https://huggingface.co"
_NEXT: Final = re.compile(r'<([^<>]*)>\s*;[^,]*\brel="?next"?')
_TIMEOUT: Final = 60.0
"""Timeout without any received byte, in seconds."""
RETRIES: Final = 3
"""Number of retries for a page if the Hub is busy or the connection breaks."""
FIRST_WAIT: Final = 0.5
"""Maximum wait before the first retry, in seconds. It doubles up to 4 seconds, as in the client for the first page."""
_PASSING: Final = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)
_LARGEST_PAGE: Final = 16 << 20
"""Maximum page size, in bytes. A page of 1,000 entries has about 200 kB."""


@dataclass(frozen=True)
class HubFolder:
    """A folder of a dataset on the Hub, at one revision.

    Attributes:
        uri: The URI from the user, for messages.
        root: Web address of the files of the revision.
        tree: Web address of the listing of the folder.
        path: The folder, or "" for the whole repository.
        options: Options of the client, see `bucket_client`.
    """

    uri: str
    root: str
    tree: str
    path: str
    options: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, uri: str, options: Mapping[str, str]) -> HubFolder:
        """Return the folder at a location, with its web addresses.

        Args:
            uri: The location.
            options: Storage options, with names in lower case.

        Raises:
            InvalidInputError: The URI is not the location of a dataset.
        """
        place = _PLACE.fullmatch(uri)
        path = "/".join(part for part in unquote(place["path"] or "").split("/") if part) if place else ""
        if place is None or ".." in path.split("/"):
            expected = "hf://datasets/owner/name[@revision][/path]"
            raise InvalidInputError("the URI is not a location on the Hub", where=uri, expected=expected)
        known = {name: value for name, value in options.items() if name not in OPTIONS}
        endpoint = (options.get("hf_endpoint") or os.environ.get("HF_ENDPOINT") or _ENDPOINT).rstrip("/")
        token = options.get("hf_token") or os.environ.get("HF_TOKEN")
        if token:
            known["hf_token"] = token
            remember({"hf_token": token})
        revision = quote(unquote(place["revision"] or "main"), safe="")
        tree = f"{endpoint}/api/datasets/{place['name']}/tree/{revision}/{quote(path)}".rstrip("/")
        root = f"{endpoint}/datasets/{place['name']}/resolve/{revision}"
        return cls(uri, root, tree, path, sorted_options(known))

    def client(self) -> Any:
        """Return the client for the files of the revision."""
        return bucket_client(self.root, self.options)

    def folders(self) -> list[str] | None:
        """Return the sorted names of the subfolders, or None if the folder does not exist.

        Raises:
            CorruptError: The response is not a listing.
            StoreError: The Hub does not answer.
            UnsupportedError: There are more than a million entries.
        """
        client = bucket_client(self.tree, self.options)
        try:
            answer = call("list", self.uri, lambda: bytes(obstore.get(client, "").bytes()))
        except NotFoundError:
            return None
        entries = self._entries(answer)
        if len(entries) >= PAGE_ENTRIES:  # there may be more pages, but the first client does not return headers
            entries = [entry for page in self._pages() for entry in self._entries(page)]
        return sorted(path.rpartition("/")[2] for kind, path in entries if kind == "directory")

    def _entries(self, answer: bytes) -> list[tuple[str, str]]:
        """Return kind and path of each entry of a page."""
        try:
            entries = [(entry["type"], entry["path"]) for entry in json.loads(answer)]
            if not all(isinstance(text, str) for entry in entries for text in entry):
                raise TypeError
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CorruptError(
                "invalid listing of a dataset on the Hub", where=self.uri, found=type(error).__name__
            ) from error
        return entries

    def _pages(self) -> Iterator[bytes]:
        address = self.tree
        for _ in range(MOST_PAGES):
            page, following = self._page(address)
            yield page
            if following is None:
                return
            address = following
        raise UnsupportedError(
            f"the folder on the Hub has more than {MOST_PAGES * PAGE_ENTRIES:,} entries",
            where=self.uri,
            remedy="open the tables by name, or list a subfolder",
        )

    def _page(self, address: str) -> tuple[bytes, str | None]:
        """Return a page of a listing and the next page's address, through Python's HTTP client."""
        from urllib.error import URLError  # both imports take 30 ms, and only large listings need them
        from urllib.request import Request

        request = Request(address)  # noqa: S310  # the endpoint has served the first page, hence its scheme is valid
        token = dict(self.options).get("hf_token")
        if token:
            # The header is not sent to other servers after a redirect.
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        passing = (URLError, HTTPException, ConnectionError, TimeoutError)
        try:
            policy = retry.RetryPolicy(RETRIES, _TIMEOUT, FIRST_WAIT, longest_wait=4.0)
            page, links = policy.run(lambda _: _read(request, self.uri), on=passing)
        except (OSError, HTTPException, ValueError) as error:
            raise StoreError("the Hub does not respond", where=self.uri, found=shown(str(error))) from None
        if len(page) > _LARGEST_PAGE:
            raise CorruptError(
                "invalid listing of a dataset on the Hub",
                where=self.uri,
                expected=f"at most {_LARGEST_PAGE:,} bytes in a page",
            )
        following = _NEXT.search(", ".join(links))
        if following is None:
            return page, None
        target = urljoin(address, following[1])
        if urlsplit(target)[:2] != urlsplit(self.tree)[:2]:
            raise CorruptError(
                "invalid next page of a listing on the Hub",
                where=self.uri,
                expected="the same server",
                found=shown(target),
            )
        return page, target


def _read(request: Any, where: str) -> tuple[bytes, Sequence[str]]:
    """Return a response and its `Link` headers. Raises StoreError for permanent failures."""
    from urllib.error import HTTPError
    from urllib.request import urlopen

    try:
        with CountedRequests("list", where), urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
            return answer.read(_LARGEST_PAGE + 1), answer.headers.get_all("link", ())
    except HTTPError as error:
        error.close()  # otherwise it keeps the connection open
        if error.code in _PASSING or error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        raise StoreError(str(error)) from None
