"""What settings reach, and the choice among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """How a segment is searched.

    Attributes:
        nprobes: Partitions to look into first.
        ef: Candidates of a walk over a graph; None: there are no graphs, or as suits k.
        candidates: Rows that are ranked again by their own vectors; None: none is.
    """

    nprobes: int
    ef: int | None = None
    candidates: int | None = None

    def words(self, k: int) -> str:
        """Return the settings in words, as arguments of `nearest` would give them for k neighbours."""
        parts = [f"nprobes {self.nprobes}"]
        if self.ef is not None:
            parts.append(f"ef {self.ef}")
        if self.candidates is not None:
            parts.append(f"refine_factor {-(-self.candidates // k)}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Measured:
    """What a setting reached.

    Attributes:
        setting: The setting.
        recall: Share of the true neighbours that it found, on average over the queries.
        error: Standard error of the recall: how far another sample of queries would be from it, typically.
        cost: Nanoseconds of a query, estimated.
    """

    setting: Setting
    recall: float
    error: float
    cost: float


@dataclass(frozen=True)
class Curve:
    """What settings reached for one k, with one share of the rows to be found.

    Attributes:
        k: Neighbours of a query.
        share: Part of the rows that a filter left, by chance.
        queries: Rows that were queries; 0: there is nothing to measure, as every row is compared.
        measured: Settings, cheapest first; none that costs more and reaches less than another one.
        is_stored: It was measured when the index was built, and is stored with it.
    """

    k: int
    share: float
    queries: int
    measured: tuple[Measured, ...]
    is_stored: bool = False

    @classmethod
    def of(cls, k: int, share: float, queries: int, measured: list[Measured], *, is_stored: bool = False) -> Curve:
        """Return the curve of all that was measured, without what nobody would choose."""
        frontier: list[Measured] = []
        for each in sorted(measured, key=lambda each: (each.cost, -each.recall)):
            if not frontier or each.recall - each.error > frontier[-1].recall - frontier[-1].error:
                frontier.append(each)
        return cls(k, share, queries, tuple(frontier), is_stored)

    def choose(self, recall: float) -> Measured | None:
        """Return the cheapest setting that reaches a recall, also less the standard error; None if none does.

        That all neighbours are found always, no sample shows.
        """
        if recall >= 1 and self.queries:
            return None
        return next((each for each in self.measured if each.recall - each.error >= recall), None)

    @property
    def best(self) -> float:
        """The highest recall that was measured."""
        return max((each.recall for each in self.measured), default=0.0)


def choose(curves: Sequence[Curve], recall: float) -> Setting | None:
    """Return the settings that reach a recall on all curves; None if on one of them no setting does.

    With fewer rows that may be found, more partitions have to be looked into; with more rows, more candidates have to
    be ranked again. Between two shares of the rows a search needs no more of either than one of both does.
    """
    choices = [curve.choose(recall) for curve in curves]
    settings = [each.setting for each in choices if each is not None]
    if len(settings) < len(curves):
        return None
    return Setting(
        max(each.nprobes for each in settings),
        max((each.ef for each in settings if each.ef is not None), default=None),
        max((each.candidates for each in settings if each.candidates is not None), default=None),
    )


def words(curves: Sequence[Curve], recall: float, k: int) -> str:
    """Say what a recall takes for k neighbours, and on what that rests."""
    request, setting = f"recall {recall:g} asked for", choose(curves, recall)
    if not any(curve.queries for curve in curves):
        return f"{request}; every row is looked at"
    texts = []
    for curve in curves:
        measured = curve.choose(recall)
        reached = f"at most {curve.best:.3f}" if measured is None else f"{measured.recall:.3f}"
        share = "" if curve.share == 1 else f", {curve.share:.1%} of the rows"
        when = "stored with the index" if curve.is_stored else "in this process"
        texts.append(f"{reached} measured on {curve.queries} queries, k {curve.k}{share}, {when}")
    what = "rows are compared one by one" if setting is None else setting.words(k)
    return f"{request}: {what}; {'; '.join(texts)}"
