"""The kinds of trials, and how often each is made.

A trial is a function of a seed and of an empty folder. All that it does follows from the seed, but for what threads,
processes and clocks make of it. It returns what it has checked, by name, and raises when something is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

Trial = Callable[[int, Path], Mapping[str, int]]


@dataclass(frozen=True)
class TrialKind:
    """A kind of trials.

    Attributes:
        name: As `--only` takes it.
        place: Its function: "module:name", the module being one of this folder.
        what: What a trial does, for the page of counts.
        short: Trials of the short profile; 0: only in the long one.
        share: Of the time of the long profile, beside those of the others.
        seconds: After which a trial counts as one that hangs.
    """

    name: str
    place: str
    what: str
    short: int
    share: float = 1.0
    seconds: float = 300.0


def load(place: str) -> Trial:
    """Import the function of a kind."""
    module, _, name = place.partition(":")
    trial: Trial = getattr(import_module(f"trust.{module}"), name)
    return trial


KINDS: tuple[TrialKind, ...] = (
    TrialKind(
        "sql queries",
        "statements:queries",
        "40 random statements, most of them queries, on Lance tables and on DuckDB's own: rows, types, refusals",
        3,
        share=2,
    ),
    TrialKind(
        "sql changes",
        "statements:changes",
        "30 random changes, transactions, upserts and COPY on Lance tables and on DuckDB's own",
        3,
        share=2,
    ),
    TrialKind(
        "predicates",
        "lives:predicates",
        "a table with scalar indexes that we and pylance change in turns; random filters by index, by scan, by pylance",
        2,
        share=2,
    ),
    TrialKind(
        "vectors",
        "lives:vectors",
        "a table of vectors that we and pylance change in turns; searches, filtered ones too, against all distances",
        2,
        share=2,
    ),
    TrialKind(
        "texts",
        "lives:texts",
        "4 tables of texts that we and pylance change in turns; words, phrases and substrings against the rows",
        1,
        share=1,
    ),
    TrialKind(
        "kill -9",
        "crashes:killed",
        "a process is killed at a random step of a verb or job, vector and text builds as often as others",
        40,
        share=3,
    ),
    TrialKind(
        "store faults",
        "crashes:faulty",
        "a full disk, EIO, a lost or doubled answer at a random step of a verb or job, on a disk or an object store",
        40,
        share=2,
    ),
    TrialKind(
        "power cuts",
        "crashes:unplugged",
        "all that was not flushed is lost at a random step of a verb or job",
        30,
        share=2,
    ),
)


def named(name: str) -> TrialKind:
    """Return the kind of a name. Raises KeyError."""
    return {kind.name: kind for kind in KINDS}[name]
