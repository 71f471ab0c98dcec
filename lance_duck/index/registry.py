"""The kinds of indexes that there are: a new one is a module, and a line here."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from lance_duck.errors import UnsupportedError
from lance_duck.index.bitmap.kind import BITMAP
from lance_duck.index.bitmap.label_list import LABEL_LIST
from lance_duck.index.btree import BTREE
from lance_duck.index.inverted.kind import INVERTED
from lance_duck.index.kind import IndexKind
from lance_duck.index.ngram.kind import NGRAM
from lance_duck.index.vector.kind import VECTOR
from lance_duck.index.zones.bloom_filter import BLOOM_FILTER
from lance_duck.index.zones.zone_map import ZONE_MAP

KINDS: Final[tuple[IndexKind, ...]] = (BTREE, BITMAP, LABEL_LIST, ZONE_MAP, BLOOM_FILTER, NGRAM, INVERTED, VECTOR)

_ALIASES: Final = MappingProxyType({"fts": "inverted"})


def kind_of(type_url: str) -> IndexKind | None:
    """Return the kind whose details have this type; None when it is not known.

    Writers name the package differently, and spell in any case: only the name of the message counts.
    """
    message = _message(type_url)
    return next((kind for kind in KINDS if _message(kind.type_url) == message), None)


def kind_named(name: str) -> IndexKind:
    """Return a kind of scalar index by the name that users ask for it with, in any case, with or without underscores.

    Raises:
        UnsupportedError: There is none.
    """
    plain_name = _ALIASES.get(_plain(name), _plain(name))
    scalar = [kind for kind in KINDS if kind is not VECTOR]
    for kind in scalar:
        if _plain(kind.name) == plain_name:
            return kind
    raise UnsupportedError("kind of index", expected=", ".join(kind.name.upper() for kind in scalar), found=repr(name))


def name_of(type_url: str, details: bytes) -> str | None:
    """Return what an index is called by its details, as in "BTree" or "IVF_PQ".

    None: its kind is not known; or it is a vector index of an old writer, whose files alone say which.
    """
    kind = kind_of(type_url)
    return VECTOR.name_of(details) if kind is VECTOR else None if kind is None else kind.name


def _message(type_url: str) -> str:
    return type_url.rpartition("/")[2].rpartition(".")[2].lower()


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
