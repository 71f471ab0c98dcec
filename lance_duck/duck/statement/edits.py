"""Text edits, and the mapping from edited to original offsets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any


@dataclass(frozen=True)
class Edit:
    """A replacement of one range of a text.

    Attributes:
        start, end: Replaced range, in characters. `end` is exclusive.
        text: The replacement.
        values: Values of the placeholders in `text`, in order or by name. None if `text` keeps the placeholders of the
            replaced range.
    """

    start: int
    end: int
    text: str
    values: Sequence[Any] | Mapping[str, Any] | None = None

    def overlaps(self, start: int, end: int) -> bool:
        """Return whether the replaced range overlaps a given range."""
        return self.start < end and start < self.end


@dataclass(frozen=True)
class EditedText:
    """An edited text with a mapping back to the offsets of its source.

    Attributes:
        source: The text before the edits.
        edits: The edits in text order, without overlaps.
    """

    source: str
    edits: tuple[Edit, ...]

    @classmethod
    def of(cls, source: str, edits: Iterable[Edit]) -> EditedText:
        """Return a text after edits in any order.

        Raises:
            ValueError: Two edits overlap.
        """
        ordered = tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))
        for before, after in pairwise(ordered):
            if after.start < before.end:
                raise ValueError(f"edits overlap at character {after.start}")
        return cls(source, ordered)

    @cached_property
    def text(self) -> str:
        """The text with all edits."""
        pieces, at = [], 0
        for edit in self.edits:
            pieces += [self.source[at : edit.start], edit.text]
            at = edit.end
        return "".join(pieces) + self.source[at:]

    def origin(self, place: int) -> int:
        """Return the source offset of a character outside all edits."""
        passed = bisect_right(self._ends, place)
        return place - (self._growth[passed - 1] if passed else 0)

    @cached_property
    def _growth(self) -> list[int]:
        """Cumulative growth of the text after each edit, in characters."""
        return list(accumulate(len(edit.text) - (edit.end - edit.start) for edit in self.edits))

    @cached_property
    def _ends(self) -> list[int]:
        """End of each edit in the edited text."""
        return [edit.end + growth for edit, growth in zip(self.edits, self._growth, strict=True)]


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Return a text after edits in any order.

    Raises:
        ValueError: Two edits overlap.
    """
    return EditedText.of(text, edits).text
