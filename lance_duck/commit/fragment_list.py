"""The fragment list of a new version. It assigns ids, and adds, replaces and removes fragments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from google.protobuf.unknown_fields import UnknownFieldSet

from lance_duck.commit.index_coverage import Ids
from lance_duck.commit.row_lineage import forget_rows, number_rows
from lance_duck.errors import IncompatibleError, InvalidInputError
from lance_duck.wire import flags
from lance_duck.wire.limits import FRAGMENT_IDS
from lance_duck.wire.pb import table_pb2

_MOST_CUT_OUT = 32_000
"""Maximum number of fragments deleted from the list one by one. Above it, the list is rebuilt.

Each deletion moves all later fragments. With 100,000 fragments, deleting 16,000 takes half as long as a rebuild, and
deleting 33,000 takes 0.7 of the time of a rebuild (`benchmarks/costs.py`).
"""

_SEQUENCES = ("row_id_sequence", "created_at_version_sequence", "last_updated_at_version_sequence")


class FragmentList:
    """The fragments of a manifest under construction. All changes modify the manifest.

    Args:
        manifest: A copy of the previous version's manifest.
        version: Number of the new version.
    """

    def __init__(self, manifest: table_pb2.Manifest, version: int) -> None:
        self._manifest = manifest
        self._version = version
        self.is_stable = bool(manifest.reader_feature_flags & flags.STABLE_ROW_IDS)

    def ids(self) -> Ids:
        """Return the ids of the fragments, in order."""
        return np.array([f.id for f in self._manifest.fragments], np.uint32)

    def get(self, fragment_id: int) -> table_pb2.DataFragment:
        """Return a fragment's message, which may be modified. Raises IncompatibleError if it does not exist."""
        place = self._places.get(fragment_id)
        if place is None:
            raise IncompatibleError(f"fragment {fragment_id} is not in the table", where=f"version {self._version - 1}")
        return self._manifest.fragments[place]

    def find(self, fragment_id: int) -> table_pb2.DataFragment | None:
        """Return a fragment's message, or None if the fragment does not exist."""
        place = self._places.get(fragment_id)
        return None if place is None else self._manifest.fragments[place]

    def clear(self) -> None:
        """Drop all fragments."""
        self._set(())

    def append(self, fragments: Iterable[table_pb2.DataFragment]) -> list[int]:
        """Add new fragments, assign ids to them and their rows, and return the fragment ids."""
        ids = []
        for new_fragment in fragments:
            fragment_id = self.next_id()
            fragment = self._manifest.fragments.add()
            fragment.CopyFrom(new_fragment)
            fragment.id = fragment_id
            self._number(fragment)
            ids.append(fragment.id)
        self._forget_places()
        return ids

    def replace(self, fragment: table_pb2.DataFragment) -> None:
        """Replace the fragment with the same id. Unknown fields of the old message are kept."""
        carry_over(self.get(fragment.id), fragment)

    def remove(self, fragment_ids: Iterable[int]) -> None:
        """Drop fragments."""
        ids = set(fragment_ids)
        places = [place for place, f in enumerate(self._manifest.fragments) if f.id in ids] if ids else []
        if len(places) < len(ids):
            for fragment_id in ids:
                self.get(fragment_id)
        if len(places) > _MOST_CUT_OUT:
            self._set([f for f in self._manifest.fragments if f.id not in ids])
        elif places:
            self.note_id(self._highest)
            for place in reversed(places):
                del self._manifest.fragments[place]
            self._forget_places()

    def set_all(self, fragments: Sequence[table_pb2.DataFragment]) -> None:
        """Set the list to fragments that have ids.

        If the message of an existing fragment does not contain row ids, the fragment keeps its row ids.
        """
        by_id = {f.id: f for f in self._manifest.fragments}
        copies = []
        for new_fragment in fragments:
            fragment, before = table_pb2.DataFragment(), by_id.get(new_fragment.id)
            if before is None:
                fragment.CopyFrom(new_fragment)
                self.note_id(fragment.id)
                self._number(fragment)
            else:
                fragment.CopyFrom(before)
                carry_over(fragment, new_fragment)
            copies.append(fragment)
        if len({f.id for f in copies}) != len(copies):
            raise InvalidInputError("duplicate fragment id", where="fragments")
        self._set(sorted(copies, key=lambda f: f.id))

    def swap(self, groups: Sequence[tuple[Sequence[int], Sequence[table_pb2.DataFragment]]]) -> None:
        """Replace old fragments with new fragments that already have ids. Readers expect fragments in id order."""
        old_ids: set[int] = set()
        for old, _ in groups:
            for fragment_id in old:
                self.get(fragment_id)
            if not old_ids.isdisjoint(old):
                raise InvalidInputError("a fragment is rewritten twice", where="Rewrite", found=list(old))
            old_ids.update(old)
        untouched = [f for f in self._manifest.fragments if f.id not in old_ids]
        self._set(sorted([*untouched, *(f for _, new in groups for f in new)], key=lambda f: f.id))

    def change_all(self, change: Callable[[table_pb2.DataFragment], None]) -> None:
        """Change each fragment in place."""
        for fragment in self._manifest.fragments:
            change(fragment)

    def next_id(self, count: int = 1) -> int:
        """Assign ids and return the last one."""
        highest = self._highest + count
        self.note_id(highest)
        return highest

    def note_id(self, fragment_id: int) -> None:
        """Record that an id is assigned. Raises InvalidInputError if the id exceeds 32 bits."""
        if fragment_id >= FRAGMENT_IDS:
            raise InvalidInputError(
                "the table has used all fragment ids", expected=f"< {FRAGMENT_IDS}", found=fragment_id
            )
        self._manifest.max_fragment_id = max(fragment_id, self._highest)

    @property
    def _highest(self) -> int:
        if self._manifest.HasField("max_fragment_id"):
            return self._manifest.max_fragment_id
        return max((f.id for f in self._manifest.fragments), default=-1)

    @cached_property
    def _places(self) -> Mapping[int, int]:
        return {f.id: place for place, f in enumerate(self._manifest.fragments)}

    def _forget_places(self) -> None:
        self.__dict__.pop("_places", None)

    def _set(self, fragments: Sequence[table_pb2.DataFragment]) -> None:
        if not self._manifest.HasField("max_fragment_id") and self._highest >= 0:
            self._manifest.max_fragment_id = self._highest
        copies = table_pb2.Manifest(fragments=fragments)
        self._manifest.ClearField("fragments")
        self._manifest.fragments.MergeFrom(copies.fragments)
        self._forget_places()

    def _number(self, fragment: table_pb2.DataFragment) -> None:
        if fragment.files and not fragment.physical_rows:
            raise InvalidInputError(
                "the new fragment does not have rows", where=fragment.files[0].path, remedy="set its physical_rows"
            )
        if self.is_stable:
            self._manifest.next_row_id = number_rows(fragment, self._manifest.next_row_id, self._version)
        else:
            forget_rows(fragment)


def carry_over(target: table_pb2.DataFragment, source: table_pb2.DataFragment) -> None:
    """Copy `source` into `target`. Unknown fields of `target` are kept.

    Row ids and row versions of `target` are kept if `source` does not contain them.
    """
    result = table_pb2.DataFragment()
    result.CopyFrom(target)
    has_unknown = bool(len(UnknownFieldSet(target)))
    target.CopyFrom(source)
    for sequence in _SEQUENCES:
        name = result.WhichOneof(sequence)
        if name is not None and target.WhichOneof(sequence) is None:
            target.MergeFrom(table_pb2.DataFragment(**{name: getattr(result, name)}))
    if has_unknown:
        for field, _ in result.ListFields():
            result.ClearField(field.name)
        target.MergeFrom(result)
