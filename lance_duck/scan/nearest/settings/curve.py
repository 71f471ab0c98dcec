"""Curves of the measured recall of settings, and the choice of a setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """Settings for the search of a segment.

    Attributes:
        nprobes: Number of partitions to search first.
        ef: Number of candidates in a graph walk. None without graphs, or to derive the number from k.
        candidates: Number of rows to rerank with their original vectors, or None.
    """

    nprobes: int
    ef: int | None = None
    candidates: int | None = None

    def words(self, k: int) -> str:
        """Describe the settings as arguments of `nearest` for k neighbours."""
        parts = [f"nprobes {self.nprobes}"]
        if self.ef is not None:
            parts.append(f"ef {self.ef}")
        if self.candidates is not None:
            parts.append(f"refine_factor {-(-self.candidates // k)}")
        return ", ".join(parts)


@dataclass(frozen=True)
class MeasuredSetting:
    """The measured recall of a setting.

    Attributes:
        setting: The setting.
        recall: Share of the true neighbours that searches found, averaged over the queries.
        error: Standard error of the recall.
        cost: Estimated time of a query, in nanoseconds.
    """

    setting: Setting
    recall: float
    error: float
    cost: float


@dataclass(frozen=True)
class Curve:
    """Measured settings for one k and one share of rows that may be found.

    Attributes:
        k: Number of neighbours per query.
        share: Share of the rows that may be found. A random sample simulates a filter.
        queries: Number of queries. It is 0 if every row is compared, which does not need a measurement.
        measured: Pareto-optimal settings, cheapest first.
        is_stored: Whether the curve was measured when the index was built, and is stored with it.
    """

    k: int
    share: float
    queries: int
    measured: tuple[MeasuredSetting, ...]
    is_stored: bool = False

    @classmethod
    def of(
        cls, k: int, share: float, queries: int, measured: list[MeasuredSetting], *, is_stored: bool = False
    ) -> Curve:
        """Build a curve from the Pareto-optimal measured settings."""
        frontier: list[MeasuredSetting] = []
        for each in sorted(measured, key=lambda each: (each.cost, -each.recall)):
            if not frontier or each.recall - each.error > frontier[-1].recall - frontier[-1].error:
                frontier.append(each)
        return cls(k, share, queries, tuple(frontier), is_stored)

    def choose(self, recall: float) -> MeasuredSetting | None:
        """Return the cheapest setting whose recall, minus its standard error, reaches `recall`, or None.

        No setting reaches a recall of 1, because a sample cannot prove that all neighbours are always found.
        """
        if recall >= 1 and self.queries:
            return None
        return next((each for each in self.measured if each.recall - each.error >= recall), None)

    @property
    def best(self) -> float:
        """The highest measured recall."""
        return max((each.recall for each in self.measured), default=0.0)


def choose(curves: Sequence[Curve], recall: float, least: int = 0) -> Setting | None:
    """Return settings that reach a recall on all curves, or None if a curve does not reach it.

    With fewer allowed rows, more partitions must be searched. With more allowed rows, more candidates must be reranked.
    For a share between two measured shares, the larger of both values of a setting is enough.

    Args:
        curves: Curves for the same k.
        recall: Recall to reach.
        least: Minimum number of candidates to rerank, or 0.
    """
    choices = [curve.choose(recall) for curve in curves]
    settings = [each.setting for each in choices if each is not None]
    if len(settings) < len(curves):
        return None
    return Setting(
        max(each.nprobes for each in settings),
        max((each.ef for each in settings if each.ef is not None), default=None),
        max([least, *(each.candidates for each in settings if each.candidates is not None)]) or None,
    )


def words(curves: Sequence[Curve], recall: float, k: int, least: int = 0) -> str:
    """Describe the settings that reach a recall for k neighbours, and the measured recall: see `choose`."""
    request, setting = f"target recall {recall:g}", choose(curves, recall, least)
    if not any(curve.queries for curve in curves):
        return f"{request}: every row is compared"
    texts = []
    for curve in curves:
        measured = curve.choose(recall)
        reached = f"at most {curve.best:.3f}" if measured is None else f"{measured.recall:.3f}"
        share = "" if curve.share == 1 else f", {curve.share:.1%} of the rows"
        when = "stored with the index" if curve.is_stored else "in this process"
        texts.append(f"{reached} measured on {curve.queries} queries, k {curve.k}{share}, {when}")
    what = "rows are compared one by one" if setting is None else setting.words(k)
    return f"{request}: {what}; {'; '.join(texts)}"
