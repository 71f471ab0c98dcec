"""The kinds of trials and their frequency.

A trial is a function with a seed and an empty folder. Apart from threads, processes and clocks, its behaviour follows
from the seed. It returns its checks by name and raises an error on a failure.
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
        name: Name for `--only`.
        place: Its function: "module:name", with a module in this folder.
        what: Description for the page of counts.
        short: Trials in the short profile; 0 limits it to the long one.
        share: Share of the time in the long profile.
        seconds: Time limit of a trial on a busy machine.
    """

    name: str
    place: str
    what: str
    short: int
    share: float = 1.0
    seconds: float = 900.0


def load(place: str) -> Trial:
    """Import the function of a trial."""
    module, _, name = place.partition(":")
    trial: Trial = getattr(import_module(f"trust.{module}"), name)
    return trial


KINDS: tuple[TrialKind, ...] = (
    TrialKind(
        "sql queries",
        "statements:queries",
        "Random statements, mostly queries, on Lance tables and on native tables. Rows, types and "
        "errors must be equal.",
        1,
        share=2,
    ),
    TrialKind(
        "sql changes",
        "statements:changes",
        "Random changes, transactions, upserts and COPY on Lance tables and on native tables.",
        1,
        share=2,
    ),
    TrialKind(
        "sql conditions",
        "statements:conditions",
        "150 queries compare columns with literals in every notation. Indexes, scans and native tables must agree.",
        2,
    ),
    TrialKind(
        "sql errors",
        "statements:errors",
        "150 statements fail because of text, values, sources, schemas or a disk. The next query must work.",
        1,
    ),
    TrialKind(
        "sql open files",
        "statements:open_files",
        "2,000 mixed statements on one connection. Open files and memory maps must not accumulate.",
        0,
        share=0.5,
    ),
    TrialKind(
        "predicates",
        "lives:predicates",
        "lance-duck and pylance alternately change a table with scalar indexes. Filters by index, by "
        "scan and by pylance must agree.",
        1,
        share=2,
    ),
    TrialKind(
        "predicates, 0.1",
        "lives:predicates_of_old_files",
        "The same with a table in format 0.1, until a compaction converts it to 2.2.",
        1,
    ),
    TrialKind(
        "predicates, overlays",
        "lives:predicates_under_overlays",
        "The same with data overlays from both libraries among the changes.",
        1,
    ),
    TrialKind(
        "vectors",
        "lives:vectors",
        "lance-duck and pylance alternately change a table of vectors. Searches, also with filters, "
        "must match all distances.",
        2,
        share=2,
    ),
    TrialKind(
        "texts",
        "lives:texts",
        "Both libraries alternately change four tables of texts. Words, phrases and substrings must match the rows.",
        1,
        share=1,
    ),
    TrialKind(
        "kill -9",
        "crashes:killed",
        "Processes are killed at random steps of a change or an index build.",
        8,
        share=3,
    ),
    TrialKind(
        "kill -9, other files",
        "crashes:killed_variants",
        "The same with tables in format 0.1 and tables with data overlays.",
        2,
    ),
    TrialKind(
        "store faults",
        "crashes:faulty",
        "Full disks, I/O errors, and lost or repeated responses at random steps, on a disk or an object store.",
        8,
        share=2,
    ),
    TrialKind(
        "power cuts",
        "crashes:unplugged",
        "Everything that is not flushed is lost, at random steps of a change or job.",
        6,
        share=2,
    ),
    TrialKind(
        "simulated commits",
        "simulation.commits:commits",
        "Two to seven writers share four tables on a simulated store. Every effect must appear once, as "
        "in some sequential order.",
        60,
        share=4,
    ),
    TrialKind(
        "simulated verbs",
        "simulation.verbs:verbs",
        "Writers, compactions, a cleanup and a reader share a simulated store. Rows must not be lost or duplicated.",
        20,
        share=2,
    ),
    TrialKind(
        "simulated overlays",
        "simulation.verbs:overlays",
        "The same, and writers also add to rows by data overlays. Every addition must count once.",
        10,
    ),
    TrialKind(
        "hostile files",
        "fuzz:hostile_files",
        "60 data files, overlays or checksums with false contents. Errors, memory and time must stay within limits.",
        1,
        share=2,
    ),
    TrialKind(
        "hostile tables",
        "fuzz:hostile_tables",
        "60 manifests or deletion files with false transactions, row ids, index sections, overlays or logs.",
        2,
    ),
    TrialKind(
        "hostile indexes",
        "fuzz:hostile_indexes",
        "60 index files with false contents: scalar, vector or full text. Searches run on each.",
        2,
        share=2,
    ),
    TrialKind(
        "hostile folders",
        "catalogs:hostile_folders",
        "40 folders whose `__manifest` table has false rows or points elsewhere. All operations run on each.",
        1,
        share=0.5,
    ),
    TrialKind(
        "hostile services",
        "catalogs:hostile_answers",
        "40 REST catalogs with false responses. All operations run on each.",
        1,
        share=0.5,
    ),
    TrialKind(
        "processes",
        "races:hammered",
        "Three processes append, delete, count, upsert and compact. Rows must not be lost or duplicated.",
        1,
    ),
    TrialKind(
        "upserts", "races:upserted", "Three threads upsert the same keys. Each key must exist once.", 2, share=0.5
    ),
    TrialKind(
        "cleanup",
        "races:cleaned_under_readers",
        "Two compactions and a cleanup run while old versions are read. Reads must return the rows, or "
        "report a removed version.",
        2,
        share=0.5,
    ),
    TrialKind("forks", "races:forked", "A process uses tables and then forks. The children must work.", 1, share=0.5),
    TrialKind(
        "pickles", "races:pickled", "Another process continues with pickled datasets and fragments.", 1, share=0.2
    ),
    TrialKind(
        "shapes",
        "sizes:shapes",
        "A table with 1,000 columns, 5,000 fragments, a cell of 100 MB, or 30 levels of nesting.",
        2,
        share=0.5,
    ),
    TrialKind(
        "handles",
        "sizes:handles",
        "2,000 handles are opened and used. Memory and open files must not grow.",
        0,
        share=0.5,
    ),
    TrialKind(
        "searches",
        "sizes:searches",
        "10,000 searches by vectors and words. Memory and open files must not grow.",
        0,
        share=0.5,
    ),
    TrialKind(
        "s3 requests",
        "services:hammered",
        "Three writers use an S3 service that throttles and loses responses. Rows must not be lost or duplicated.",
        1,
        share=0.5,
    ),
    TrialKind(
        "s3 credentials",
        "services:renewed",
        "Credentials expire during work and are renewed. They must not appear in errors, and new files "
        "must be listed at once.",
        1,
        share=0.3,
    ),
)


def named(name: str) -> TrialKind:
    """Return the kind with a name. Raises KeyError."""
    return {kind.name: kind for kind in KINDS}[name]
