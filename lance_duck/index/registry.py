"""The registry of index kinds. See "Add an index kind" in CONTRIBUTING.md.

A kind is imported when a manifest or a caller names it. Filtered scans of tables without indexes do not import any
kind. Vector indexes use faiss, which is the slowest import of all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from lance_duck import lazy
from lance_duck.errors import UnsupportedError
from lance_duck.index.kind import IndexKind

if TYPE_CHECKING:
    from lance_duck.index import json_kind
    from lance_duck.index.bitmap import kind as bitmap
    from lance_duck.index.btree import kind as btree
    from lance_duck.index.inverted import kind as inverted
    from lance_duck.index.ngram import kind as ngram
    from lance_duck.index.rtree import kind as rtree
    from lance_duck.index.vector import kind as vector
    from lance_duck.index.zones import kind as zones
else:
    json_kind = lazy.modules(globals(), "lance_duck.index", "json_kind")
    bitmap = lazy.modules(globals(), "lance_duck.index.bitmap", "kind")
    btree = lazy.modules(globals(), "lance_duck.index.btree", "kind")
    inverted = lazy.modules(globals(), "lance_duck.index.inverted", "kind")
    ngram = lazy.modules(globals(), "lance_duck.index.ngram", "kind")
    rtree = lazy.modules(globals(), "lance_duck.index.rtree", "kind")
    vector = lazy.modules(globals(), "lance_duck.index.vector", "kind")
    zones = lazy.modules(globals(), "lance_duck.index.zones", "kind")


@dataclass(frozen=True)
class KindEntry:
    """A kind in the registry.

    Attributes:
        name: Name of the kind.
        type_url: Type url of the details of its segments in the manifest.
        load: Imports and returns the kind.
    """

    name: str
    type_url: str
    load: Callable[[], IndexKind]

    @property
    def sql_name(self) -> str:
        """Name in SQL and in the documentation, such as "LABEL_LIST"."""
        return _SQL_NAMES.get(self.name, self.name.upper())

    @classmethod
    def of(cls, kind: IndexKind) -> KindEntry:
        """Return the entry of a kind that is imported already."""
        return cls(kind.name, kind.type_url, lambda: kind)


_JSON: Final = KindEntry("Json", "/lance.index.pb.JsonIndexDetails", lambda: json_kind.WHOLE)
_VECTOR: Final = KindEntry("Vector", "/lance.index.pb.VectorIndexDetails", lambda: vector.VECTOR)

KINDS: Final[tuple[KindEntry, ...]] = (
    KindEntry("BTree", "/lance.table.BTreeIndexDetails", lambda: btree.BTREE),
    KindEntry("Bitmap", "/lance.table.BitmapIndexDetails", lambda: bitmap.BITMAP),
    KindEntry("LabelList", "/lance.table.LabelListIndexDetails", lambda: bitmap.LABEL_LIST),
    KindEntry("ZoneMap", "/lance.table.ZoneMapIndexDetails", lambda: zones.ZONE_MAP),
    KindEntry("BloomFilter", "/lance.index.pb.BloomFilterIndexDetails", lambda: zones.BLOOM_FILTER),
    KindEntry("NGram", "/lance.table.NGramIndexDetails", lambda: ngram.NGRAM),
    KindEntry("Inverted", "/lance.table.InvertedIndexDetails", lambda: inverted.INVERTED),
    KindEntry("RTree", "/lance.index.pb.RTreeIndexDetails", lambda: rtree.RTREE),
    _JSON,
    _VECTOR,
)

_SQL_NAMES: Final = MappingProxyType({"LabelList": "LABEL_LIST"})
_ALIASES: Final = MappingProxyType({"fts": "inverted"})


def kind_of(type_url: str, details: bytes = b"") -> IndexKind | None:
    """Return the kind whose details message has this type URL. Returns None if it is unknown.

    Writers use different packages and cases, so only the name of the message is compared.

    Args:
        type_url: Type URL of the details.
        details: The details message, which names the path and the target of a JSON index.
    """
    listed = _listed(type_url)
    if listed is _JSON:
        return json_kind.JsonKind.of(details)
    return None if listed is None else listed.load()


def json_path_kind(kind: IndexKind | None) -> json_kind.JsonKind | None:
    """Return a kind if it is over the values at a path of JSON documents, otherwise None."""
    return kind if kind is not None and kind.name == _JSON.name else None  # type: ignore[return-value]


def files_kind(kind: IndexKind) -> IndexKind:
    """Return the kind that wrote the files: the target of a JSON index, otherwise the kind itself."""
    over_path = json_path_kind(kind)
    return kind if over_path is None else over_path.target


def own_details(kind: IndexKind) -> bytes:
    """Return the details from which `kind_of` makes an equal kind: those of a JSON index, otherwise none."""
    over_path = json_path_kind(kind)
    return b"" if over_path is None else over_path.details


def unknown_reason(type_url: str, details: bytes) -> str:
    """Return why `kind_of` returns None."""
    if _listed(type_url) is _JSON:
        return json_kind.problem_of(details)
    return f"index kind {type_url!r} is unknown"


def kind_asked_for(name: str, parameters: Mapping[str, Any]) -> tuple[IndexKind, dict[str, Any]]:
    """Return a scalar index kind by name, and its parameters. A JSON index has its path and target in the parameters.

    Raises:
        UnsupportedError: The kind does not exist.
        InvalidInputError: The path or the target of a JSON index is missing or not supported.
    """
    if _plain(name) == _plain(_JSON.name):
        return json_kind.JsonKind.asked(parameters)
    return kind_named(name), dict(parameters)


def scalar_kinds() -> list[KindEntry]:
    """Return the entries of all kinds except vector indexes."""
    return [listed for listed in KINDS if listed is not _VECTOR]


def kind_named(name: str) -> IndexKind:
    """Return a scalar index kind by name. Case and underscores are ignored.

    Raises:
        UnsupportedError: The kind does not exist.
    """
    plain_name = _ALIASES.get(_plain(name), _plain(name))
    scalar = scalar_kinds()
    for listed in scalar:
        if _plain(listed.name) == plain_name:
            return listed.load()
    if plain_name == "minhashlsh":
        raise UnsupportedError(
            "this package reads MinHash indexes, but does not build them",
            remedy="build it with pylance, or call near_duplicates without an index",
        )
    raise UnsupportedError("unknown index kind", expected=", ".join(each.sql_name for each in scalar), found=repr(name))


def name_of(type_url: str, details: bytes) -> str | None:
    """Return the name of an index by its details, such as "BTree" or "IVF_PQ".

    Returns None for unknown kinds, and for vector indexes of old writers, which only their files identify.
    """
    listed = _listed(type_url)
    return vector.VECTOR.name_of(details) if listed is _VECTOR else None if listed is None else listed.name


def _listed(type_url: str) -> KindEntry | None:
    message = _message(type_url)
    return next((listed for listed in KINDS if _message(listed.type_url) == message), None)


def _message(type_url: str) -> str:
    return type_url.rpartition("/")[2].rpartition(".")[2].lower()


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
