"""Problems of a table, as validation reports them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lance_duck.errors import LanceDuckError


@dataclass(frozen=True)
class Problem:
    """Something that is wrong with a table.

    Attributes:
        where: Fragment, file, index, tag or branch.
        what: What is wrong with it.
    """

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def problems_of(where: str, do: Callable[[], object]) -> Iterator[Problem]:
    """Do something, and yield what is wrong with it."""
    try:
        do()
    except (LanceDuckError, ValueError) as error:  # Arrow's own validation raises ValueError
        yield Problem(where, str(error))
