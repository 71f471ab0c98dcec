"""Fragments whose lists were rewritten in place, although the segments over them still claim to cover them.

pylance says of such a change that the items changed, and takes the fragment out of no segment over the list. What shows
it is the order of the fragment's files: the items lie in one that comes after a file with dropped fields.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lance_duck.snapshot import Snapshot
from lance_duck.wire.fragment import TOMBSTONE, Fragment
from lance_duck.wire.schema import Field


def without_rewritten(snapshot: Snapshot, field: Field, fragments: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Leave out the fragments whose values of a nested field may have been rewritten unnoticed.

    Args:
        snapshot: The version.
        field: The field of a segment.
        fragments: Ids, all of this version.
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
