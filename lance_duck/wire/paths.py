"""All file names on disk, relative to the root of a table.

_versions/{2^64 - 1 - version, 20 digits}.manifest    V2 naming: the newest version sorts first
_versions/{version}.manifest                          V1 naming
_versions/{either of these}-{uuid}                    staged for an external manifest store; not visible yet
_versions/d{version}.manifest                         detached: a random version with its top bit set, never the latest
_versions/latest_version_hint.json                    {"version": N}; may be stale, wrong or missing
_transactions/{read version}-{uuid}.txn
_deletions/{fragment}-{read version}-{id}.arrow|.bin
_indices/{uuid}/…
_refs/tags/{name, percent-encoded}.json, _refs/branches/{name, percent-encoded}.json
_mem_wal/…                                            the write-ahead log of other writers: see `snapshot.mem_wal`
tree/{branch}/                                        root of a branch, laid out like a table
data/{any name}.lance
data/{bits and digits of a transaction}-{uuid}.lance  a data file whose name contains its transaction
data/{stem}/{blob id, 32 binary digits, reversed}.blob
_blobs/{any name}.blob                                blobs of any data files below the same root
{any of these}#{number}                               a file that is still being written on a local disk (see
`store.base`)
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, unquote
from uuid import UUID

VERSIONS = "_versions"
DATA = "data"
DELETIONS = "_deletions"
MANAGED_BLOBS = "_blobs"
TRANSACTIONS = "_transactions"
INDICES = "_indices"
TAGS = "_refs/tags"
BRANCHES = "_refs/branches"
TREE = "tree"
WRITE_AHEAD_LOG = "_mem_wal"
FOLDERS = frozenset({VERSIONS, DATA, DELETIONS, TRANSACTIONS, INDICES, "_refs", TREE})
"""Folders directly in the root of a table, except `MANAGED_BLOBS` and `WRITE_AHEAD_LOG`."""
_IMMUTABLE = frozenset({DATA, DELETIONS, INDICES, MANAGED_BLOBS})
ROOT_ENTRIES = FOLDERS | {MANAGED_BLOBS, WRITE_AHEAD_LOG}
"""Entries directly in the root of a table, also of other writers."""
TABLE_SUFFIX = ".lance"
GROUP_COMMITS = "__lance_duck/commits"
STAGED_GROUPS = "__lance_duck/staged"
"""Beside tables: the log of commits of several tables, and changes that are not published yet."""
VERSION_HINT = f"{VERSIONS}/latest_version_hint.json"

MAX_VERSION = 2**64 - 1
_DETACHED_BIT = 1 << 63
_V2_DIGITS = 20
_SUFFIX = ".manifest"
_V2_LENGTH = _V2_DIGITS + len(_SUFFIX)
_STAGED = re.compile(r"^([0-9]{1,20}\.manifest)-[0-9a-fA-F-]{32,36}$")
_OF_INDEX = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}[/\\][^/\\]+$")
_MANIFEST = re.compile(r"^(d?)([0-9]{1,20})\.manifest$")


@dataclass(frozen=True, slots=True)
class ManifestName:
    """A parsed manifest name.

    Attributes:
        version: Version number.
        naming: 1 or 2; 0 for a detached version.
    """

    version: int
    naming: int

    @property
    def path(self) -> str:
        """Path of the manifest."""
        if self.naming == 0:
            return f"{VERSIONS}/d{self.version}.manifest"
        if self.naming == 1:
            return f"{VERSIONS}/{self.version}.manifest"
        return f"{VERSIONS}/{MAX_VERSION - self.version:0{_V2_DIGITS}d}.manifest"


def parse_manifest_name(name: str) -> ManifestName | None:
    """Parse a file name in _versions/. Returns None if it is not the name of a manifest."""
    match = _MANIFEST.match(name)
    if match is None:
        return None
    number = int(match[2])
    if number > MAX_VERSION:
        return None
    if match[1]:
        return ManifestName(number, 0)
    if len(match[2]) == _V2_DIGITS:
        return ManifestName(MAX_VERSION - number, 2)
    return ManifestName(number, 1)


def parse_manifest_path(path: str) -> ManifestName | None:
    """Parse a manifest path below the root of a table. Returns None if it is not a manifest."""
    name = path.removeprefix(f"{VERSIONS}/")
    return None if name == path else parse_manifest_name(name)


def staged_manifest(name: ManifestName, uuid: UUID) -> str:
    """Return the path of a manifest before its version is claimed in an external manifest store."""
    return f"{name.path}-{uuid}"


def parse_staged_manifest(path: str) -> ManifestName | None:
    """Parse the path of a staged manifest. Returns None if it is not a staged manifest."""
    match = _STAGED.match(path.removeprefix(f"{VERSIONS}/"))
    return None if match is None else parse_manifest_name(match[1])


def newest_manifest(names: Sequence[str]) -> ManifestName | None:
    """Return the newest manifest among file names in _versions/, given in any order.

    Detached versions are ignored. Returns None if no other manifest is found.

    If a version has a V1 name and a V2 name, the V2 name is returned. All V2 names have the same length and sort newest
    first. V1 names are plain numbers. Names are therefore parsed one by one only if both namings occur.
    """
    others = [name for name in names if len(name) != _V2_LENGTH]
    short_names = [name for name in others if name.endswith(_SUFFIX)]
    if names and not short_names:
        first = parse_manifest_name(min(names))
        if first is not None and first.naming == 2:
            return first
    manifests = [*short_names, *(name for name in names if len(name) == _V2_LENGTH and name.endswith(_SUFFIX))]
    lengths = set(map(len, manifests))
    if lengths and min(lengths) > len(_SUFFIX) and max(lengths) < _V2_DIGITS + len(_SUFFIX):
        numbers = [name[: -len(_SUFFIX)] for name in manifests]
        text = "".join(numbers)
        if text.isascii() and text.isdecimal():
            return ManifestName(max(map(int, numbers)), 1)
    versions = [name for name in map(parse_manifest_name, manifests) if name is not None and name.naming]
    return max(versions, key=lambda name: (name.version, name.naming), default=None)


def manifest_candidates(version: int) -> tuple[str, ...]:
    """Return the paths that the manifest of a version may have, most likely first."""
    if version & _DETACHED_BIT:
        return (ManifestName(version, 0).path,)
    return ManifestName(version, 2).path, ManifestName(version, 1).path


def is_immutable(path: str) -> bool:
    """Return whether the content of a file never changes: a data, blob, deletion or index file.

    Args:
        path: Path relative to the root of a table, or the name of a data file in a base path without subfolders.
    """
    folder, _, name = path.partition("/")
    return folder in _IMMUTABLE if name else path.endswith(TABLE_SUFFIX)


def data_file(path: str, *, is_dataset_root: bool = True) -> str:
    """Return the path of a data file, given its name in a manifest. Plain base paths do not use subfolders.

    An absolute name remains absolute. The store determines whether it is allowed.
    """
    return posixpath.join(DATA, path) if is_dataset_root else path


def new_data_file(uuid: UUID) -> str:
    """Return a new data file name. Its binary prefix spreads names over object store partitions."""
    return f"{_spread(uuid)}.lance"


def transaction_data_file(transaction: UUID, uuid: UUID) -> str:
    """Return a new name for a data file. The name contains the transaction, which makes the file recognizable."""
    return f"{_spread(transaction)}-{uuid.hex}.lance"


def transaction_data(transaction: UUID) -> str:
    """Return the common path prefix of a transaction's data files and their blobs."""
    return f"{DATA}/{_spread(transaction)}-"


def data_stem(path: str) -> str:
    """Return the common prefix, below data/, of a data file, its temporary file and its blob sidecars."""
    return path.removeprefix(f"{DATA}/").partition("/")[0].partition(".")[0]


def deletion_file(fragment_id: int, read_version: int, file_id: int, suffix: str) -> str:
    """Return the path of a deletion file. `suffix` is "arrow" or "bin"."""
    return f"{DELETIONS}/{fragment_id}-{read_version}-{file_id}.{suffix}"


def transaction_name(read_version: int, uuid: str) -> str:
    """Return the name of a new transaction, in the form used by manifests."""
    return f"{read_version}-{uuid}.txn"


def is_transaction(name: str, uuid: str) -> bool:
    """Return whether a transaction name from a manifest contains this UUID."""
    return name.removesuffix(".txn").partition("-")[2] == uuid


def detached_version(number: int) -> int:
    """Return the number of a detached version, given any 63 bits."""
    return number | _DETACHED_BIT


def is_detached(version: int) -> bool:
    """Return whether a version is detached: it is not in the table's history, and never the latest version."""
    return bool(version & _DETACHED_BIT)


def transaction_file(name: str) -> str:
    """Return the path of a transaction, given its name in a manifest."""
    return posixpath.join(TRANSACTIONS, name)


def index_directory(uuid: UUID, *, is_dataset_root: bool = True) -> str:
    """Return the directory of an index segment. Plain base paths do not use the folder _indices/."""
    return f"{INDICES}/{uuid}" if is_dataset_root else str(uuid)


def is_of_index(path: str) -> bool:
    """Return whether a path below any root belongs to an index segment."""
    return _OF_INDEX.search(path) is not None


def ref_file(folder: str, name: str) -> str:
    """Return the path of a tag or branch file. `folder` is TAGS or BRANCHES."""
    return f"{folder}/{quote(name, safe='', errors='replace')}.json"


def branch_root(name: str) -> str:
    """Return the directory of a branch."""
    return f"{TREE}/{name}"


def ref_name(file_name: str) -> str | None:
    """Return the name of the tag or branch in a file, given the file's name. Returns None for other files."""
    stem, dot, suffix = file_name.rpartition(".")
    return unquote(stem) if dot and suffix == "json" and stem else None


def blob_file(data_file_name: str, blob_id: int, *, is_dataset_root: bool = True) -> str:
    """Return the path of a blob of the data file `data_file_name`."""
    stem = data_file_name.removesuffix(".lance")
    return data_file(f"{stem}/{f'{blob_id:032b}'[::-1]}.blob", is_dataset_root=is_dataset_root)


def blob_directory(data_file_name: str, *, is_dataset_root: bool = True) -> str:
    """Return the directory with the blobs of the data file `data_file_name`, with a slash at the end."""
    return data_file(f"{data_file_name.removesuffix('.lance')}/", is_dataset_root=is_dataset_root)


def _spread(uuid: UUID) -> str:
    return f"{int.from_bytes(uuid.bytes[:3], 'big'):024b}{uuid.bytes[3:].hex()}"
