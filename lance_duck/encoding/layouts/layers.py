"""The layers of a column, from the values outwards, and the meaning of definition levels.

Layers are listed innermost first. A definition level of 0 is a valid value. Each layer then takes the next levels:

    layer                | levels
    ALL_VALID_ITEM       | none
    ALL_VALID_LIST       | none
    NULLABLE_ITEM        | null
    NULLABLE_LIST        | null
    EMPTYABLE_LIST       | empty
    NULL_AND_EMPTY_LIST  | null, empty

Pages of a column may describe their layers differently. The full form has NULLABLE_ITEM for every item and
NULL_AND_EMPTY_LIST for every list; `to_full` maps the levels of a page to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.wire.pb import encodings21_pb2 as pb

ALL_VALID_ITEM = int(pb.REPDEF_ALL_VALID_ITEM)
ALL_VALID_LIST = int(pb.REPDEF_ALL_VALID_LIST)
NULLABLE_ITEM = int(pb.REPDEF_NULLABLE_ITEM)
NULLABLE_LIST = int(pb.REPDEF_NULLABLE_LIST)
EMPTYABLE_LIST = int(pb.REPDEF_EMPTYABLE_LIST)
NULL_AND_EMPTY_LIST = int(pb.REPDEF_NULL_AND_EMPTY_LIST)

_LISTS = frozenset({ALL_VALID_LIST, NULLABLE_LIST, EMPTYABLE_LIST, NULL_AND_EMPTY_LIST})
_NULLABLE = frozenset({NULLABLE_ITEM, NULLABLE_LIST, NULL_AND_EMPTY_LIST})
_EMPTYABLE = frozenset({EMPTYABLE_LIST, NULL_AND_EMPTY_LIST})
_MAX_LEVEL = 255


@dataclass(frozen=True, slots=True)
class Layers:
    """Layers of a page, innermost first.

    Attributes:
        kinds: `RepDefLayer` of each layer.
        max_rep: Number of lists: the repetition level that starts a row.
        max_def: Highest definition level.
        max_visible: Highest definition level of an entry that has a value slot.
    """

    kinds: tuple[int, ...]
    max_rep: int
    max_def: int
    max_visible: int

    @property
    def is_flat(self) -> bool:
        """Whether the page has a single layer, of items."""
        return len(self.kinds) == 1 and self.max_rep == 0

    def shape(self) -> tuple[bool, ...]:
        """Return, for each layer, whether it is a list."""
        return tuple(kind in _LISTS for kind in self.kinds)

    def to_full(self) -> NDArray[np.uint8] | None:
        """Return the full level for each level of this page, uint8 (max_def + 1,). None if all levels stay the same."""
        table, full = [0], 0
        for kind in self.kinds:
            if kind in _NULLABLE:
                table.append(full + 1)
            if kind in _EMPTYABLE:
                table.append(full + 2)
            full += 2 if kind in _LISTS else 1
        return None if table == list(range(len(table))) else np.array(table, dtype=np.uint8)


def parse_layers(kinds: Sequence[int], where: str) -> Layers:
    """Return the layers of a page, checked.

    Raises:
        CorruptError: The list is empty or contains an unknown layer.
        UnsupportedError: There are more definition levels than a byte can hold.
    """
    if not kinds:
        raise CorruptError("the page does not have layers", where=where)
    unknown = [kind for kind in kinds if kind not in _LISTS and kind not in (ALL_VALID_ITEM, NULLABLE_ITEM)]
    if unknown:
        raise CorruptError("the page has an unknown layer", where=where, expected="1 to 6", found=unknown[0])
    if 2 * len(kinds) > _MAX_LEVEL:
        raise UnsupportedError(
            "the page is nested too deeply", where=where, expected=f"<= {_MAX_LEVEL // 2} layers", found=len(kinds)
        )
    lists = [kind in _LISTS for kind in kinds]
    depths = [(kind in _NULLABLE) + (kind in _EMPTYABLE) for kind in kinds]
    first_list = lists.index(True) if True in lists else len(kinds)
    return Layers(tuple(kinds), sum(lists), sum(depths), sum(depths[:first_list]))
