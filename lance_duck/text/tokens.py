"""The output of analysers: the terms of texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.arguments import suggest_names


@dataclass(frozen=True, eq=False)
class Tokens:
    """The tokens that an analyser found in some texts.

    Attributes:
        terms: Distinct terms in order of their first occurrence, large_binary (UTF-8), without nulls.
        term_ids: uint32 (tokens,), index of each token's term in `terms`, text by text, in order.
        positions: Position of each token in its text, uint32. Removed tokens leave gaps. If a text is a list,
            positions continue from one element to the next.
        bounds: int64 (texts + 1,), first token of each text, and the total token count.
    """

    terms: pa.LargeBinaryArray
    term_ids: NDArray[np.uint32]
    positions: NDArray[np.uint32]
    bounds: NDArray[np.int64]

    @property
    def num_texts(self) -> int:
        """Number of analysed texts, including nulls."""
        return len(self.bounds) - 1


@suggest_names
@dataclass(frozen=True)
class FtsToken:
    """One token of a text.

    Attributes:
        text: Term of the token.
        position: Position of the token in the text, counted from 0. Removed tokens leave gaps.
    """

    text: str
    position: int


def positions_within(bounds: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the position of each token in its text, given the `bounds` of `Tokens`."""
    places = np.arange(int(bounds[-1]), dtype=np.uint32)
    places -= np.repeat(bounds[:-1].astype(np.uint32), np.diff(bounds))
    return places
