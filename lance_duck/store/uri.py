"""Opens stores from user-given locations: paths, file:// and object store URIs.

Hugging Face datasets have a separate module, `store.hub`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from lance_duck import lazy
from lance_duck.arguments import nearest_name
from lance_duck.errors import InvalidInputError, UnsupportedError, WrongTypeError
from lance_duck.redact import remember, remember_uri, shown_value
from lance_duck.store.base import Store
from lance_duck.store.client import (
    CACHE_OPTION,
    CACHE_SIZE_OPTION,
    OWN_OPTIONS,
    bucket_client,
    check_options,
    refuse_unknown_options,
    sorted_options,
)
from lance_duck.store.external import OPTION, ExternalManifestStore, manifest_store
from lance_duck.store.local import LocalStore
from lance_duck.store.object import ObjectStore
from lance_duck.store.request import ByteSource

if TYPE_CHECKING:
    from lance_duck.store import disk_cache, hub
else:
    disk_cache, hub = lazy.modules(globals(), "lance_duck.store", "disk_cache", "hub")

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")
_IS_WINDOWS = os.name == "nt"
_OBJECT_SCHEMES = ("s3", "s3a", "gs", "az", "adl", "azure", "abfs", "abfss", "http", "https", "memory")
_WEB = ("http", "https")
_OF_PROCESS = ("memory",)
"""Schemes that are not cached on disk, because each process has its own objects."""
_SERVICE = re.compile(r"endpoint|account_name")
"""Names of options and environment variables that say which service has a bucket."""
_NEIGHBOURS = 10_000  # maximum number of names to compare with a misspelled name; takes tens of milliseconds


def open_store(
    uri: str | os.PathLike[str],
    storage_options: Mapping[str, str] | None = None,
    allowed: Sequence[str] = (),
    is_immutable: Callable[[str], bool] | None = None,
) -> Store:
    """Open the store with the root `uri`. Does not read anything.

    Args:
        uri: Local path, file:// URI, or s3:// gs:// az:// abfss:// http(s):// hf:// memory:// URI.
        storage_options: Credentials and settings of the object store, with the names that pylance and obstore use. For
            a table on a local disk, they apply to other locations that the table refers to. "fsync": "false" disables
            flushes, for tables that do not need to survive a power failure. With "checksums": "false", files are
            written without checksums, and only small files are verified. "manifest_store" is the URL of an external
            manifest store: see `store.external`. "cache" is a local folder that caches immutable files of object
            stores, and "cache_size" is its maximum size: see `store.disk_cache`.
        allowed: Other roots that paths and links of a local store may lead into. Non-local roots are ignored.
        is_immutable: Returns whether the content of a path, relative to the root, never changes. Without this function,
            nothing is cached.

    Raises:
        UnsupportedError: The scheme is unknown.
        InvalidInputError: The URI or an option is invalid, or the cache folder belongs to somebody else.
    """
    text = os.fspath(uri)
    remember_uri(text)
    remember(storage_options)
    path = local_path(text)
    external = manifest_store(dict(sorted_options(storage_options)).get(OPTION))
    checksums = boolean_option(storage_options, "checksums", default=True)
    if path is not None:
        refuse_unknown_options(storage_options or {})
        fsync = boolean_option(storage_options, "fsync", default=True)
        inner = [p for a in allowed if (p := local_path(a)) is not None]
        return LocalStore(path, inner, fsync=fsync, external=external, checksums=checksums)
    parts, options = urlsplit(text), sorted_options(storage_options)
    if parts.scheme.lower() == hub.SCHEME:
        return _hub_store(text, dict(options), external, checksums, is_immutable)
    options = tuple(option for option in options if option[0] not in hub.OPTIONS)
    if parts.scheme.lower() not in _OBJECT_SCHEMES:
        if "+" in parts.scheme:  # s3+ddb://bucket/table?ddbTableName=…
            raise UnsupportedError(
                "the scheme of the URI names a manifest store",
                where=text,
                remedy='remove it, and set the manifest store in storage_options: {"manifest_store": "…"}',
            )
        raise UnsupportedError(
            f"unknown scheme {parts.scheme!r}", where=text, expected="a path, file, hf, " + ", ".join(_OBJECT_SCHEMES)
        )
    bucket, names = object_place(text)
    if not parts.netloc and parts.scheme != "memory":
        raise InvalidInputError("the URI does not have a bucket", where=text)
    prefix = "/".join(names)
    if "\0" in prefix:
        raise InvalidInputError("uri", expected="a path or URI without NUL", found=repr(text))
    if ".." in names:
        raise InvalidInputError("the URI contains '..'", where=text)
    client = bucket_client(bucket, tuple(option for option in options if option[0] not in OWN_OPTIONS))
    can_list = parts.scheme.lower() not in _WEB
    cache = None if parts.scheme in _OF_PROCESS else _bucket_cache(bucket, dict(options), is_immutable)
    return ObjectStore(
        text.rstrip("/"), client, prefix, can_list=can_list, external=external, checksums=checksums, cache=cache
    )


def _bucket_cache(
    bucket: str, options: Mapping[str, str], is_immutable: Callable[[str], bool] | None
) -> disk_cache.BucketCache | None:
    """Return the cache for a bucket, or None. Buckets of different services and accounts have different names in it."""
    if CACHE_OPTION not in options and CACHE_SIZE_OPTION not in options:
        return None
    cache = disk_cache.open_cache(options)
    if cache is None or is_immutable is None:
        return None
    services = {name: value for name, value in (os.environ | dict(options)).items() if _SERVICE.search(name.lower())}
    return disk_cache.BucketCache(cache, f"{bucket} {sorted(services.items())}", is_immutable)


def _hub_store(
    uri: str,
    options: Mapping[str, str],
    external: ExternalManifestStore | None,
    checksums: bool,
    is_immutable: Callable[[str], bool] | None,
) -> ObjectStore:
    folder = hub.HubFolder.of(uri, options)
    return ObjectStore(
        uri.rstrip("/"),
        folder.client(),
        folder.path,
        can_list=False,
        hub_folders=folder.folders,
        external=external,
        checksums=checksums,
        cache=_bucket_cache(folder.root, options, is_immutable),
    )


def object_place(uri: str) -> tuple[str, list[str]]:
    """Return the bucket of an object store's URI, and the names in the key of the object, decoded."""
    parts = urlsplit(uri)
    if parts.scheme == "memory":
        bucket, key = "memory://", unquote(parts.netloc + parts.path)
    else:
        bucket, key = f"{parts.scheme.lower()}://{parts.netloc}", unquote(parts.path)
    return bucket, [name for name in key.split("/") if name]


def checked_place(uri: object, storage_options: object = None) -> str:
    """Validate a user's path or URI, and return it as a string.

    Raises:
        WrongTypeError: The value is not a path, or the storage options are not a dict of strings.
        InvalidInputError: The path is empty, or contains characters that are not allowed in paths.
    """
    check_options(storage_options)
    text = os.fspath(uri) if isinstance(uri, str | os.PathLike) else None
    if not isinstance(text, str):
        raise WrongTypeError("uri", expected="a path or URI", found=f"{uri!r} of type {type(uri).__name__}")
    if not text:
        raise InvalidInputError("uri", expected="a path or URI", found="an empty string")
    if "\0" in text:
        raise InvalidInputError("uri", expected="a path or URI without NUL", found=repr(text))
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise InvalidInputError("uri", expected="a path or URI that can be encoded", found=ascii(text)) from None
    return text


def open_source(uri: str, storage_options: Mapping[str, str] | None = None) -> ByteSource:
    """Open a single file by path or URI.

    Args:
        uri: URI with a scheme, or absolute local path.
        storage_options: See `open_store`.

    Raises:
        InvalidInputError: The URI is not absolute, or does not contain a file name.
        NotFoundError: The file does not exist.
        UnsupportedError: The scheme is unknown.
    """
    path = local_path(uri) if _SCHEME.match(uri) else uri
    if path is not None:
        if not os.path.isabs(path):
            raise InvalidInputError("not an absolute URI", where=repr(uri))
        return LocalStore(_anchor(path)).open(path)
    folder, _, name = uri.rpartition("/")
    if not name or folder.endswith(":/"):
        raise InvalidInputError("the URI does not name a file", where=repr(uri))
    return open_store(folder, storage_options).open(unquote(name))


def local_path(uri: str) -> str | None:
    """Return the local path of a path or file URI, or None for other URIs.

    Raises:
        InvalidInputError: A file URI has a host, or its path contains an encoded NUL.
    """
    if not _SCHEME.match(uri):
        return os.path.expanduser(uri)
    parts = urlsplit(uri)
    if parts.scheme.lower() != "file":
        return None
    if "\0" in unquote(parts.path):
        raise InvalidInputError("uri", expected="a path or URI without NUL", found=repr(uri))
    if _IS_WINDOWS:
        return _windows_path("" if parts.netloc == "localhost" else parts.netloc, unquote(parts.path))
    if parts.netloc not in ("", "localhost"):
        raise InvalidInputError("the file URI has a host", where=uri, expected="file:///path")
    return unquote(parts.path)


def _windows_path(host: str, path: str) -> str:
    r"""Return the path of a file URI on Windows: C:\x of file:///C:/x, \\host\share\x of file://host/share/x."""
    if host:
        return rf"\\{host}" + path.replace("/", "\\")
    has_drive = re.match(r"/[A-Za-z][:|](/|$)", path) is not None
    return (f"{path[1]}:{path[3:] or '/'}" if has_drive else path).replace("/", "\\")


def _anchor(path: str) -> str:
    r"""Return the root of an absolute path: "/", or on Windows C:\ or \\host\share\."""
    return os.path.splitdrive(path)[0] + os.sep


def split_place(place: str) -> tuple[str, str]:
    """Return the folder and the last name of a path or URI. The folder is empty if `place` is only a name.

    On Windows, a backslash also separates names.
    """
    separators = "/\\" if _IS_WINDOWS and not _SCHEME.match(place) else "/"
    text = place.rstrip(separators)
    end = max(text.rfind(separator) for separator in separators)
    return text[: max(end, 1)] if end >= 0 else "", text[end + 1 :]


def did_you_mean_path(uri: str) -> str | None:
    """Return the remedy "did you mean …?" for a missing local path, or None if no similar name exists.

    Extensions are ignored, because users often omit the `.lance` of a table.
    """
    path = local_path(uri)
    folder, name = os.path.split(os.path.abspath(path)) if path is not None else ("", "")
    try:
        # Not `os.scandir`, because Ctrl-C between this call and its `with` would leave an iterator open.
        names = {Path(other).stem: other for other in islice(os.listdir(folder), _NEIGHBOURS) if other != name}
    except OSError:
        return None
    near = nearest_name(Path(name).stem, names)
    return None if near is None else f"did you mean {names[near]!r}?"


def boolean_option(options: Mapping[str, str] | None, name: str, *, default: bool) -> bool:
    """Return a storage option that is "true" or "false". Raises InvalidInputError."""
    text = dict(sorted_options(options)).get(name)
    if text is None:
        return default
    if text.lower() in ("true", "1"):
        return True
    if text.lower() in ("false", "0"):
        return False
    raise InvalidInputError(
        "not a boolean", where=f"storage option {name}", expected="true or false", found=shown_value(text)
    )


def join_uri(root: str, path: str) -> str:
    """Return the URI of a path below a root."""
    return f"{root.rstrip('/')}/{path}"
