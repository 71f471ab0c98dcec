"""The kinds of trials, by topic.

A trial is a function of a seed and an empty folder. It returns its checks by name, and raises an error on failure.
The seed fixes all random choices. The timing of threads and processes can still differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

Trial = Callable[[int, Path], Mapping[str, int]]


@dataclass(frozen=True)
class TrialKind:
    """A kind of trial.

    Attributes:
        name: Name for `--only`.
        function: Its function as "module:name", with a module of this folder.
        what: Description for the documentation.
        short: Number of trials in the short profile. 0 restricts it to the long one.
        share: Relative share of the time in the long profile.
        seconds: Time limit of one trial on a busy machine.
    """

    name: str
    function: str
    what: str
    short: int
    share: float = 1.0
    seconds: float = 900.0


def load(function: str) -> Trial:
    """Import the function of a kind."""
    module, _, name = function.partition(":")
    trial: Trial = getattr(import_module(f"trust.{module}"), name)
    return trial


TOPICS: Mapping[str, tuple[TrialKind, ...]] = {
    "SQL": (
        TrialKind(
            "sql queries",
            "statements:queries",
            "Random statements, mostly queries, return the same rows, types and errors as on a native table.",
            1,
            share=2,
        ),
        TrialKind(
            "sql changes",
            "statements:changes",
            "Random changes, transactions, upserts and COPY have the same effect as on a native table.",
            1,
            share=2,
        ),
        TrialKind(
            "sql conditions",
            "statements:conditions",
            "150 SELECTs compare columns with literals of many forms, with and without indexes.",
            2,
        ),
        TrialKind(
            "sql errors",
            "statements:errors",
            "150 statements fail for various reasons. The next SELECT after each one works.",
            1,
        ),
        TrialKind(
            "sql open files",
            "statements:open_files",
            "2,000 mixed statements run on one connection. They leave no file open and few files mapped.",
            0,
            share=0.5,
        ),
    ),
    "Searches and filters": (
        TrialKind(
            "predicates",
            "lives:predicates",
            "Random filters return the same rows through scalar indexes, by scan and in pylance.",
            1,
            share=2,
        ),
        TrialKind(
            "predicates, 0.1",
            "lives:predicates_of_old_files",
            "The same for a table of file version 0.1, until a compaction converts it to 2.2.",
            1,
        ),
        TrialKind(
            "predicates, overlays",
            "lives:predicates_under_overlays",
            "The same for a table with data overlays from both libraries.",
            1,
        ),
        TrialKind(
            "vectors",
            "lives:vectors",
            "Vector searches, with and without filters, are compared with all exact distances.",
            2,
            share=2,
        ),
        TrialKind(
            "texts",
            "lives:texts",
            "Words, phrases and substrings are searched in 4 tables and compared with the rows.",
            1,
            share=1,
        ),
    ),
    "Interruptions": (
        TrialKind("kill -9", "crashes:killed", "A process is killed during an operation.", 8, share=3),
        TrialKind(
            "kill -9, other files",
            "crashes:killed_variants",
            "The same on a table of file version 0.1, or with data overlays.",
            2,
        ),
        TrialKind(
            "store faults",
            "crashes:faulty",
            "A disk or an object store is full, fails, loses a response or runs a request twice.",
            8,
            share=2,
        ),
        TrialKind("power cuts", "crashes:unplugged", "A disk loses all unflushed data.", 6, share=2),
    ),
    "Simulated object store": (
        TrialKind(
            "simulated commits",
            "simulation.commits:commits",
            "2 to 7 writers commit to each of 4 tables. Every acknowledged commit exists exactly once.",
            60,
            share=4,
        ),
        TrialKind(
            "simulated verbs",
            "simulation.verbs:verbs",
            "Writers, compactions, a cleanup and a reader share a table. No row is lost or duplicated.",
            20,
            share=2,
        ),
        TrialKind(
            "simulated overlays",
            "simulation.verbs:overlays",
            "The same with additions by data overlays. No addition is lost or applied twice.",
            10,
        ),
    ),
    "Hostile input": (
        TrialKind(
            "hostile files",
            "fuzz:hostile_files",
            "60 data files, data overlays or checksum blocks, of file versions 0.1 to 2.3.",
            1,
            share=2,
        ),
        TrialKind(
            "hostile tables",
            "fuzz:hostile_tables",
            "60 manifests, deletion files or logs. Manifests list transactions, row ids, indexes, overlays and logs.",
            2,
        ),
        TrialKind(
            "hostile indexes",
            "fuzz:hostile_indexes",
            "60 files of a scalar, vector or text index. The index is then searched.",
            2,
            share=2,
        ),
        TrialKind(
            "hostile folders",
            "catalogs:hostile_folders",
            "40 folders whose `__manifest` table has invalid rows or objects, or rows that point outside.",
            1,
            share=0.5,
        ),
        TrialKind(
            "hostile services",
            "catalogs:hostile_answers",
            "40 REST namespaces that return wrong responses to every request.",
            1,
            share=0.5,
        ),
    ),
    "Processes and threads": (
        TrialKind(
            "processes",
            "races:hammered",
            "3 processes append, delete, count, upsert and compact. No change is lost or applied twice.",
            1,
        ),
        TrialKind(
            "groups",
            "groups:transferred",
            "3 processes move amounts, add columns and swap names. "
            "Some are killed, pylance appends. Readers see one sum.",
            1,
            share=2,
        ),
        TrialKind("upserts", "races:upserted", "3 threads upsert the same keys. Each key exists once.", 2, share=0.5),
        TrialKind(
            "cleanup",
            "races:cleaned_under_readers",
            "Old versions are read during 2 compactions and a cleanup. Reads return the right rows, "
            "or report a removed version.",
            2,
            share=0.5,
        ),
        TrialKind(
            "requests",
            "served:requested",
            "A server gets damaged and random requests. No answer has a status above 499, and its tables stay valid.",
            2,
            share=0.5,
        ),
        TrialKind(
            "flight messages",
            "flights:sent",
            "A Flight SQL server gets damaged and random messages. It goes on, and other clients get the right rows.",
            2,
            share=0.5,
        ),
        TrialKind("forks", "races:forked", "Child processes use tables after a fork.", 1, share=0.5),
        TrialKind("pickles", "races:pickled", "Another process uses pickled datasets and fragments.", 1, share=0.2),
    ),
    "Sizes": (
        TrialKind(
            "shapes",
            "sizes:shapes",
            "A table has 1,000 columns, 5,000 fragments, a value of 100 MB or 30 levels of nesting.",
            2,
            share=0.5,
        ),
        TrialKind(
            "handles",
            "sizes:handles",
            "2,000 handles are opened and used. Memory and open files do not grow.",
            0,
            share=0.5,
        ),
        TrialKind(
            "searches",
            "sizes:searches",
            "10,000 vector and text searches run. Memory and open files do not grow.",
            0,
            share=0.5,
        ),
    ),
    "S3": (
        TrialKind(
            "s3 requests",
            "services:hammered",
            "3 writers use a server that throttles requests and loses responses. No change is lost or applied twice.",
            1,
            share=0.5,
        ),
        TrialKind(
            "s3 credentials",
            "services:renewed",
            "Credentials expire and are renewed. No error shows them, and new objects are listed immediately.",
            1,
            share=0.3,
        ),
    ),
}
KINDS: tuple[TrialKind, ...] = tuple(kind for kinds in TOPICS.values() for kind in kinds)


def named(name: str) -> TrialKind:
    """Return the kind with a name. Raises KeyError."""
    return {kind.name: kind for kind in KINDS}[name]
