"""Problems of a table that validation reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lance_duck.errors import LanceDuckError


@dataclass(frozen=True)
class Problem:
    """A problem of a table.

    Attributes:
        where: The fragment, file, index, tag or branch.
        what: Description of the problem.
        is_damage: Whether the data or the metadata are wrong. Other problems only limit other programs.
        remedy: What removes the problem, if a repair does not.
    """

    where: str
    what: str
    is_damage: bool = True
    remedy: str | None = None

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def problems_of(where: str, do: Callable[[], object]) -> Iterator[Problem]:
    """Call a function, and yield the error that it raises as a problem."""
    try:
        do()
    except (LanceDuckError, ValueError) as error:  # Arrow's own validation raises ValueError
        yield Problem(where, str(error))
