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
    """Import the function of a kind."""
    module, _, name = place.partition(":")
    trial: Trial = getattr(import_module(f"trust.{module}"), name)
    return trial


KINDS: tuple[TrialKind, ...] = (
    TrialKind(
        "sql queries",
        "statements:queries",
        "random statements, most of them queries, on Lance tables and on DuckDB's own: rows, types, refusals",
        1,
        share=2,
    ),
    TrialKind(
        "sql changes",
        "statements:changes",
        "random changes, transactions, upserts and COPY on Lance tables and on DuckDB's own",
        1,
        share=2,
    ),
    TrialKind(
        "sql conditions",
        "statements:conditions",
        "150 SELECTs that compare columns with literals of every spelling, by indexes and without, and on DuckDB's own",
        2,
    ),
    TrialKind(
        "sql errors",
        "statements:errors",
        "150 statements that fail, by their text, values, sources, schemas or a disk: after each the next SELECT works",
        1,
    ),
    TrialKind(
        "sql open files",
        "statements:open_files",
        "2,000 mixed statements on one connection: no descriptor of a data file, and few maps",
        0,
        share=0.5,
    ),
    TrialKind(
        "predicates",
        "lives:predicates",
        "a table with scalar indexes that we and pylance change in turns; random filters by index, by scan, by pylance",
        1,
        share=2,
    ),
    TrialKind(
        "predicates, 0.1",
        "lives:predicates_of_old_files",
        "a table of version 0.1 that we and pylance change in turns, until it is compacted into 2.2; filters as above",
        1,
    ),
    TrialKind(
        "predicates, overlays",
        "lives:predicates_under_overlays",
        "a table to which we and pylance give data overlays, beside all other changes; filters as above",
        1,
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
        "processes are killed at random steps of a verb or job, vector and text builds as often as others",
        8,
        share=3,
    ),
    TrialKind(
        "kill -9, other files",
        "crashes:killed_variants",
        "processes are killed at random steps of a verb or job on a table of version 0.1, or under data overlays",
        2,
    ),
    TrialKind(
        "store faults",
        "crashes:faulty",
        "full disks, EIO, lost or doubled answers at random steps of a verb or job, on a disk or an object store",
        8,
        share=2,
    ),
    TrialKind(
        "power cuts",
        "crashes:unplugged",
        "all that was not flushed is lost at random steps of a verb or job",
        6,
        share=2,
    ),
    TrialKind(
        "simulated commits",
        "simulation.commits:commits",
        "4 tables with 2 to 7 writers on a simulated store that delays, reorders, loses and repeats; clocks jump: "
        "each effect is there once, as if they had come in turns",
        60,
        share=4,
    ),
    TrialKind(
        "simulated verbs",
        "simulation.verbs:verbs",
        "writers, compactions, a cleanup and a reader on such a store: rows are neither lost nor doubled",
        20,
        share=2,
    ),
    TrialKind(
        "simulated overlays",
        "simulation.verbs:overlays",
        "such writers, which also add to a row by data overlays: no addition is lost or doubled",
        10,
    ),
    TrialKind(
        "hostile files",
        "fuzz:hostile_files",
        "60 data files of a version, 0.1 to 2.3, overlays, or checksums that say what is not so: own errors, "
        "bounded memory and time",
        1,
        share=2,
    ),
    TrialKind(
        "hostile tables",
        "fuzz:hostile_tables",
        "60 manifests, with transactions, row ids, index sections, overlays and logs, or deletion files, "
        "that say what is not so",
        2,
    ),
    TrialKind(
        "hostile indexes",
        "fuzz:hostile_indexes",
        "60 files of an index, scalar, of vectors or of texts, that say what is not so; the index is asked",
        2,
        share=2,
    ),
    TrialKind(
        "hostile folders",
        "catalogs:hostile_folders",
        "40 folders of tables whose `__manifest` has rows that make no sense or lead elsewhere, used in all ways",
        1,
        share=0.5,
    ),
    TrialKind(
        "hostile services",
        "catalogs:hostile_answers",
        "40 REST services of namespaces that answer what is not so, asked in all ways",
        1,
        share=0.5,
    ),
    TrialKind(
        "processes",
        "races:hammered",
        "3 processes append, delete, count, upsert and compact, by handles old or new: nothing is lost or double",
        1,
    ),
    TrialKind("upserts", "races:upserted", "3 threads upsert the same keys: each is there once", 2, share=0.5),
    TrialKind(
        "cleanup",
        "races:cleaned_under_readers",
        "2 compactions and a cleanup while old versions are read: their rows, or an error that says they are gone",
        2,
        share=0.5,
    ),
    TrialKind("forks", "races:forked", "children of a process that has used tables in all ways", 1, share=0.5),
    TrialKind("pickles", "races:pickled", "another process goes on with pickled datasets and fragments", 1, share=0.2),
    TrialKind(
        "shapes",
        "sizes:shapes",
        "a table of 1,000 columns, of 5,000 fragments, of a cell of 100 MB, or of 30 levels of nesting",
        2,
        share=0.5,
    ),
    TrialKind(
        "handles",
        "sizes:handles",
        "2,000 handles are opened and used: memory and open files stay",
        0,
        share=0.5,
    ),
    TrialKind(
        "searches",
        "sizes:searches",
        "10,000 searches by vectors and words: memory and open files stay",
        0,
        share=0.5,
    ),
    TrialKind(
        "s3 requests",
        "services:hammered",
        "3 writers on a service that speaks S3, throttles and loses answers: nothing is lost or double",
        1,
        share=0.5,
    ),
    TrialKind(
        "s3 credentials",
        "services:renewed",
        "credentials expire in the middle, are renewed, and are in no error; what was put is listed at once",
        1,
        share=0.3,
    ),
)


def named(name: str) -> TrialKind:
    """Return the kind of a name. Raises KeyError."""
    return {kind.name: kind for kind in KINDS}[name]
