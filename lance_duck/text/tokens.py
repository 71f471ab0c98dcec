"""The terms of texts, as an analyser gives them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens that an analyser makes of some texts.

    Attributes:
        terms: Distinct terms in order of their first occurrence, large_binary (UTF-8), without nulls.
        term_ids: Index in `terms` of each token, text by text, in order; uint32.
        positions: Position of each token in its text, uint32; tokens that a filter removed leave gaps. In a text that
            is a list, positions run on over its elements.
        bounds: Where the tokens of each text begin, and where the last text's end: int64, one more than texts.
    """

    terms: pa.LargeBinaryArray
    term_ids: NDArray[np.uint32]
    positions: NDArray[np.uint32]
    bounds: NDArray[np.int64]

    @property
    def num_texts(self) -> int:
        """Texts that were analysed, null ones among them."""
        return len(self.bounds) - 1


@dataclass(frozen=True)
class FtsToken:
    """One token of a text.

    Attributes:
        text: Its term.
        position: Its number in its text, from 0; tokens that a filter removed leave gaps.
    """

    text: str
    position: int


def positions_within(bounds: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the position of each token in its document."""
    places = np.arange(int(bounds[-1]), dtype=np.uint32)
    places -= np.repeat(bounds[:-1].astype(np.uint32), np.diff(bounds))
    return places
