"""Tags and branches of a table: small JSON files in the root of its main branch.

_refs/tags/{name}.json        "branch" (null: main), "version", "createdAt" and "updatedAt" (ISO strings, UTC)
_refs/branches/{name}.json    "parentBranch" (null: main), "parentVersion", "createAt" (seconds since the epoch),
                              "identifier": {"version_mapping": [[parent version, 32 hex digits], …]}, one pair for each
                              branch on the path from main

Names are percent-encoded in UTF-8. Other writers store files with unencoded names, which are found by a listing. Both
kinds of files have "manifestSize" (bytes), "metadata" (an object of strings), and a seal: see `checksums.sealed`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from lance_duck.arguments import did_you_mean, known_names
from lance_duck.checksums.sealed import check_json, sealed_json
from lance_duck.errors import AlreadyExistsError, CorruptError, InvalidInputError, LanceDuckError, NotFoundError
from lance_duck.store import Store, join_uri, open_store
from lance_duck.wire import paths

MAIN = "main"


@dataclass(frozen=True)
class Kind:
    """A kind of reference: its name in messages, and its folder."""

    noun: str
    folder: str


TAG = Kind("tag", paths.TAGS)
BRANCH = Kind("branch", paths.BRANCHES)
_NAME = re.compile(r"(?!(.*/)?\.\.?(/|$))[\w.-]+(/[\w.-]+)*")
_TAG_NAME = re.compile(r"[A-Za-z0-9_-]([A-Za-z0-9._-]*[A-Za-z0-9_-])?")
_BRANCH_NAME = re.compile(r"(?!(.*/)?\.(/|$))[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")
_LONGEST_NAME = 200
"""Length of a new name, percent-encoded. Names of files have at most 255 bytes on most disks."""
_TREE_PART = f"/{paths.TREE}/"


@dataclass(frozen=True)
class Tag:
    """A named version.

    Attributes:
        branch: Branch of the version, or None for main.
        manifest_size: Size of the version's manifest, in bytes.
    """

    branch: str | None
    version: int
    created_at: datetime | None = None
    updated_at: datetime | None = None
    manifest_size: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the tag in pylance's form."""
        return asdict(self)


@dataclass(frozen=True)
class Branch:
    """A sequence of versions that diverges from main or another branch.

    Attributes:
        parent_branch: The branch from which this branch was created, or None for main.
        branch_identifier: (parent version, identifier) of each branch on the path from main. The last pair describes
            this branch.
        parent_version: The version from which this branch was created.
        create_at: Creation time, in seconds since the epoch.
    """

    parent_branch: str | None
    branch_identifier: list[tuple[int, str]]
    parent_version: int
    create_at: int | None = None
    manifest_size: int | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the branch in pylance's form."""
        return asdict(self)


def tag_names(store: Store) -> list[str]:
    """Return the sorted tag names of the table in a store."""
    return sorted(_files(store, TAG))


def branch_names(store: Store) -> list[str]:
    """Return the sorted branch names of the table in a store, without main."""
    return sorted(_files(store, BRANCH))


def list_tags(store: Store) -> dict[str, Tag]:
    """Return the tags of the table in a store, by name."""
    return {name: read_tag(store, name) for name in tag_names(store)}


def read_tag(store: Store, name: str) -> Tag:
    """Read a tag.

    Raises:
        NotFoundError: The tag does not exist.
        CorruptError: The file is corrupt.
    """
    path, data = _existing(store, TAG, name)
    where = join_uri(store.uri, path)
    with _named(store, TAG, name):
        raw = _parse(data, where)
        return Tag(
            branch=_optional(raw, "branch", str, where),
            version=_needed(raw, "version", where),
            created_at=_time(raw.get("createdAt")),
            updated_at=_time(raw.get("updatedAt")),
            manifest_size=_optional(raw, "manifestSize", int, where),
            metadata=_optional(raw, "metadata", dict, where) or {},
        )


def suggested_tag(store: Store, uri: str, name: str) -> Tag:
    """Return the tag of this name. The error for a missing one suggests a branch of the same name."""
    try:
        return read_tag(store, name)
    except NotFoundError as error:
        try:
            read_branch(store, name)
        except LanceDuckError:
            raise error from None
        raise NotFoundError(
            error.what,
            where=uri,
            expected=error.expected,
            remedy=f"a branch of this name exists: pass ({name!r}, None)",
        ) from error


def list_branches(store: Store) -> dict[str, Branch]:
    """Return the branches of the table in a store, by name, without main."""
    return {name: read_branch(store, name) for name in branch_names(store)}


def read_branch(store: Store, name: str) -> Branch:
    """Read the description of a branch.

    Raises:
        NotFoundError: The branch does not exist.
        CorruptError: The file is corrupt.
    """
    path, data = _existing(store, BRANCH, name)
    where = join_uri(store.uri, path)
    with _named(store, BRANCH, name):
        if not has_folder(name):
            raise CorruptError("the name is not valid for a folder", where=where)
        raw = _parse(data, where)
        return Branch(
            parent_branch=_optional(raw, "parentBranch", str, where),
            branch_identifier=_identifier(raw.get("identifier"), where),
            parent_version=_needed(raw, "parentVersion", where),
            create_at=_optional(raw, "createAt", int, where),
            manifest_size=_optional(raw, "manifestSize", int, where),
            metadata=_optional(raw, "metadata", dict, where) or {},
        )


def find(store: Store, kind: Kind, name: str) -> str:
    """Return the file path of a tag or branch, without reading the file.

    Raises:
        NotFoundError: The tag or branch does not exist.
    """
    path = paths.ref_file(kind.folder, name)
    return path if store.exists(path) else _listed(store, kind, name)


def has_folder(branch: str) -> bool:
    """Return whether a branch name is a valid folder name. An invalid name could lead outside the table."""
    return _NAME.fullmatch(branch) is not None


def check_tag_name(name: str) -> None:
    """Raise InvalidInputError if a new tag cannot have this name."""
    _check_name(name, "tag", _TAG_NAME, "letters, digits, '.', '-' and '_'")


def check_branch_name(name: str) -> None:
    """Raise InvalidInputError if a new branch cannot have this name."""
    if name == MAIN:
        raise InvalidInputError(f"{MAIN!r} is the default branch of every table", where="branch")
    _check_name(name, "branch", _BRANCH_NAME, "letters, digits, '.', '-', '_', and single slashes between")


def write_tag(store: Store, name: str, tag: Tag, *, new: bool) -> None:
    """Write a tag. With `new`, the name must be unused. Otherwise, the existing tag is replaced.

    Raises:
        AlreadyExistsError: A new tag's name is taken.
        NotFoundError: The tag to replace does not exist.
    """
    raw = {
        "branch": tag.branch,
        "version": tag.version,
        "createdAt": _time_text(tag.created_at),
        "updatedAt": _time_text(tag.updated_at),
        "manifestSize": tag.manifest_size,
        "metadata": dict(tag.metadata),
    }
    _write(store, TAG, name, raw, new=new)


def write_branch(store: Store, name: str, branch: Branch, *, new: bool) -> None:
    """Write the description of a branch: see `write_tag`."""
    raw = {
        "parentBranch": branch.parent_branch,
        "identifier": {"version_mapping": [list(pair) for pair in branch.branch_identifier]},
        "parentVersion": branch.parent_version,
        "createAt": branch.create_at,
        "manifestSize": branch.manifest_size,
        "metadata": dict(branch.metadata),
    }
    _write(store, BRANCH, name, raw, new=new)


def branch_uri(root_uri: str, branch: str | None) -> str:
    """Return the URI of a branch of the table at `root_uri`. None and "main" return the URI of the table."""
    return root_uri if branch in (None, MAIN) else join_uri(root_uri, paths.branch_root(str(branch)))


def root_uri(uri: str, storage_options: Mapping[str, str] | None = None) -> str:
    """Return the URI of a table. `uri` is the location of its main branch or of any other branch."""
    at = uri.find(_TREE_PART)
    while at >= 0:
        branch = uri[at + len(_TREE_PART) :].strip("/")
        file = paths.ref_file(paths.BRANCHES, branch)
        if has_folder(branch) and open_store(uri[:at], storage_options).exists(file):
            return uri[:at]
        at = uri.find(_TREE_PART, at + 1)
    return uri


def _check_name(name: str, kind: str, pattern: re.Pattern[str], expected: str) -> None:
    if not isinstance(name, str) or not pattern.fullmatch(name) or name.endswith(".lock") or ".." in name:
        remedy = "no two dots in a row, and no .lock at the end"
        raise InvalidInputError(f"invalid {kind} name", expected=expected, found=repr(name), remedy=remedy)
    length = len(quote(name, safe=""))
    if length > _LONGEST_NAME:
        expected = f"at most {_LONGEST_NAME} characters; a slash counts as three"
        raise InvalidInputError(f"the {kind} name is too long", expected=expected, found=length)


def _write(store: Store, kind: Kind, name: str, raw: Mapping[str, Any], *, new: bool) -> None:
    data = json.dumps(raw, indent=2, ensure_ascii=False).encode()
    if store.checksums:
        data = sealed_json(data)
    if not new:
        store.put(find(store, kind, name), data)
        store.sync()
        return
    path = paths.ref_file(kind.folder, name)
    try:
        store.put_if_absent(path, data)
    except AlreadyExistsError:
        # A service may execute a request twice and report the second result. The creation time and identifier in the
        # file show whether this call wrote it.
        if store.get(path) != data:
            raise AlreadyExistsError(f"{kind.noun} {name!r} already exists", where=store.uri) from None


def _existing(store: Store, kind: Kind, name: str) -> tuple[str, bytes]:
    """Return the path and content of a tag or branch file. Raises NotFoundError."""
    path = paths.ref_file(kind.folder, name)
    try:
        return path, store.get(path)
    except NotFoundError:
        path = _listed(store, kind, name)
    return path, store.get(path)


def _time_text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _files(store: Store, kind: Kind) -> dict[str, str]:
    """Return the paths of all tags or branches by name."""
    files = store.names(kind.folder) if store.can_list else ()
    return {name: f"{kind.folder}/{file}" for file in files if (name := paths.ref_name(file)) is not None}


def _listed(store: Store, kind: Kind, name: str) -> str:
    """Find the path of a tag or branch in the listing. Raises NotFoundError."""
    files = _files(store, kind)
    if name not in files:
        names = sorted(files)
        remedy = did_you_mean(name, names)
        raise NotFoundError(f"no {kind.noun} {name!r}", where=store.uri, expected=known_names(names), remedy=remedy)
    return files[name]


@contextmanager
def _named(store: Store, kind: Kind, name: str) -> Iterator[None]:
    """Add the name and a remedy to errors about a damaged tag or branch."""
    try:
        yield
    except CorruptError as error:
        if kind == TAG:
            remedy = f"remove it with tags.delete({name!r}), or repair it with tags.update({name!r}, version)"
            remedy += "; remove its checksum if you edited the file"
        else:
            remedy = f"branches.delete({name!r}) removes it with its versions"
            remedy += f"; until then they can be read at {branch_uri(store.uri, name)}" if has_folder(name) else ""
        problem = f"{kind.noun} {name!r}: {error.what}"
        facts = {"where": error.where, "expected": error.expected, "found": error.found}
        raise CorruptError(problem, **facts, remedy=remedy) from error


def _parse(data: bytes, where: str) -> dict[str, Any]:
    try:
        check_json(data, where)
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CorruptError("the file is not JSON", where=where) from error
    if not isinstance(raw, dict):
        raise CorruptError("the file is not a JSON object", where=where)
    return raw


def _needed(raw: Mapping[str, Any], key: str, where: str) -> int:
    value = raw.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise CorruptError(
            f"{key!r} of the reference has the wrong type", where=where, expected="a number", found=repr(value)
        )
    return value


def _optional(raw: Mapping[str, Any], key: str, kind: type, where: str) -> Any:
    value = raw.get(key)
    if value is not None and not isinstance(value, kind):
        raise CorruptError(
            f"{key!r} of the reference has the wrong type", where=where, expected=kind.__name__, found=repr(value)
        )
    return value


def _time(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None


def _identifier(raw: object, where: str) -> list[tuple[int, str]]:
    pairs = raw.get("version_mapping", []) if isinstance(raw, dict) else []
    try:
        return [(int(version), str(uuid)) for version, uuid in pairs]
    except (TypeError, ValueError):
        raise CorruptError("invalid branch identifier", where=where, found=repr(raw)) from None
