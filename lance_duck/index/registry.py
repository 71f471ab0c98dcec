"""The registry of index kinds. See "Add an index kind" in CONTRIBUTING.md.

A kind is imported when a manifest or a caller names it. Filtered scans of tables without indexes do not import any
kind. Vector indexes use faiss, which is the slowest import of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from lance_duck import lazy
from lance_duck.errors import UnsupportedError
from lance_duck.index.kind import IndexKind

if TYPE_CHECKING:
    from lance_duck.index.bitmap import kind as bitmap
    from lance_duck.index.btree import kind as btree
    from lance_duck.index.inverted import kind as inverted
    from lance_duck.index.ngram import kind as ngram
    from lance_duck.index.vector import kind as vector
    from lance_duck.index.zones import kind as zones
else:
    bitmap = lazy.modules(globals(), "lance_duck.index.bitmap", "kind")
    btree = lazy.modules(globals(), "lance_duck.index.btree", "kind")
    inverted = lazy.modules(globals(), "lance_duck.index.inverted", "kind")
    ngram = lazy.modules(globals(), "lance_duck.index.ngram", "kind")
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


_VECTOR: Final = KindEntry("Vector", "/lance.index.pb.VectorIndexDetails", lambda: vector.VECTOR)

KINDS: Final[tuple[KindEntry, ...]] = (
    KindEntry("BTree", "/lance.table.BTreeIndexDetails", lambda: btree.BTREE),
    KindEntry("Bitmap", "/lance.table.BitmapIndexDetails", lambda: bitmap.BITMAP),
    KindEntry("LabelList", "/lance.table.LabelListIndexDetails", lambda: bitmap.LABEL_LIST),
    KindEntry("ZoneMap", "/lance.table.ZoneMapIndexDetails", lambda: zones.ZONE_MAP),
    KindEntry("BloomFilter", "/lance.index.pb.BloomFilterIndexDetails", lambda: zones.BLOOM_FILTER),
    KindEntry("NGram", "/lance.table.NGramIndexDetails", lambda: ngram.NGRAM),
    KindEntry("Inverted", "/lance.table.InvertedIndexDetails", lambda: inverted.INVERTED),
    _VECTOR,
)

_SQL_NAMES: Final = MappingProxyType({"LabelList": "LABEL_LIST"})
_ALIASES: Final = MappingProxyType({"fts": "inverted"})


def kind_of(type_url: str) -> IndexKind | None:
    """Return the kind whose details message has this type URL. Returns None if it is unknown.

    Writers use different packages and cases, so only the name of the message is compared.
    """
    listed = _listed(type_url)
    return None if listed is None else listed.load()


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
