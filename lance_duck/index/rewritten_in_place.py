"""Fragments whose lists were rewritten in place, although the segments over the lists still claim to cover them.

For such a change pylance records that the items changed, and takes the fragment out of no segment over the list. The
order of the fragment's files reveals it: the items lie in a file that comes after one with dropped fields.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.snapshot import Snapshot
from lance_duck.wire.fragment import TOMBSTONE, Fragment
from lance_duck.wire.schema import Field


def without_rewritten(snapshot: Snapshot, field: Field, fragments: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the fragments without those whose values of a nested field may have been rewritten unnoticed.

    Args:
        snapshot: Version of the table.
        field: Field of a segment.
        fragments: Ids of fragments, all of this version.
    """
    if not field.children:
        return fragments
    below = {child.id for child in field.walk()}
    is_current = [not _may_be_rewritten(snapshot.fragment(i), below) for i in fragments.tolist()]
    return fragments[np.array(is_current, np.bool_)]


def _may_be_rewritten(fragment: Fragment, below: set[int]) -> bool:
    dropped = False
    for file in fragment.files:
        if not below.isdisjoint(file.fields):
            return dropped
        dropped |= TOMBSTONE in file.fields
    return False
