"""Operations to interrupt: the table before, the operation, and the checks afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
from concurrency import crashing
from concurrency.crashing import VERBS, Files, fresh, opened, read_files, write, write_files
from concurrency.test_index_crash import ACTS, TEXT_ACTS, prepare, prepare_texts
from support.faults import Faults

import lance_duck as ld
from lance_duck.errors import NotFoundError

ROWS, DIM = 320, 8
KINDS = ("IVF_FLAT", "IVF_SQ", "IVF_PQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
HASTY = {"fsync": "false"}
EVERYTHING = {"nprobes": 100, "ef": 200, "refine_factor": 20}

View = tuple[Any, ...]
Act = Callable[[Any], Any]


@dataclass(frozen=True)
class Job:
    """An operation on a table.

    Attributes:
        name: Name for messages.
        family: Kind of table that it changes.
        act: Runs the job on the table at a URI.
    """

    name: str
    family: str
    act: Callable[[str], Any]

    def __str__(self) -> str:
        return f"{self.family}: {self.name}"


@dataclass(frozen=True)
class Course:
    """The effect of a job without faults.

    Attributes:
        files: Files of the table before the job.
        views: Content of each version from the first to the last. None if the table does not exist.
        refs: Tags and branches before and after, and the rows of a clone.
        steps: Number of calls that change files.
    """

    files: Files
    views: tuple[View | None, ...]
    refs: tuple[Any, ...]
    steps: int


def vectors(first: int, count: int) -> pa.Table:
    """Return rows with vectors."""
    values = np.random.default_rng(first).standard_normal(count * DIM).astype(np.float32)
    ids = np.arange(first, first + count)
    return pa.table({"id": ids, "g": ids % 5, "v": pa.FixedSizeListArray.from_arrays(values, DIM)})


def build(kind: str, name: str, dataset: ld.LanceDataset) -> None:
    """Build a vector index."""
    codes = {"num_sub_vectors": 4, "num_bits": 4} if kind.endswith("PQ") else {}
    graph = {"m": 8, "ef_construction": 40} if "HNSW" in kind else {}
    dataset.create_index("v", kind, name, num_partitions=3, max_iters=3, **codes, **graph)


def prepare_vectors(kind: str, uri: str) -> None:
    """Write a table of three fragments with an index over two, and some deleted rows."""
    write(uri, vectors(0, ROWS // 2), "create")
    write(uri, vectors(ROWS // 2, ROWS // 2), "append")
    build(kind, "near", opened(uri))
    write(uri, vectors(ROWS, ROWS // 4), "append")
    opened(uri).delete("id % 7 = 3")


def some_rows(first: int, count: int) -> pa.Table:
    """Return rows that version 0.1 can store without loss."""
    ids = range(first, first + count)
    return pa.table({"id": ids, "n": [i % 7 for i in ids], "s": [f"text {i}" for i in ids]})


def prepare_old(uri: str) -> None:
    """Write a 0.1 table of two fragments with an index over one, and some deleted rows."""
    ld.write_dataset(some_rows(0, 40), uri, data_storage_version="legacy", max_rows_per_group=16, storage_options=HASTY)
    opened(uri).create_scalar_index("id", "BTREE")
    write(uri, some_rows(40, 30), "append")
    opened(uri).delete("n = 3")


def prepare_overlaid(uri: str) -> None:
    """Write an indexed table of two fragments, one with overlays, and some deleted rows."""
    write(uri, some_rows(0, 40), "create")
    write(uri, some_rows(40, 30), "append")
    opened(uri).create_scalar_index("n", "BTREE")
    opened(uri).update({"n": "n + 10"}, where="id % 5 = 1 AND id < 40", update_mode="data_overlay")
    opened(uri).delete("id % 9 = 2")
    opened(uri).update({"n": "NULL", "s": "''"}, where="id = 6", update_mode="data_overlay")


ROW_ACTS: dict[str, Act] = {
    "append": lambda ds: ds.insert(some_rows(100, 20)),
    "update": lambda ds: ds.update({"s": "'new'"}, where="id % 3 = 0"),
    "delete": lambda ds: ds.delete("id % 4 = 1"),
    "upsert": lambda ds: (
        ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(some_rows(60, 30))
    ),
    "rewrite a column": lambda ds: (
        ds.merge_insert("id").when_matched_update_all().execute(some_rows(7, 40).select(["id", "n"]))
    ),
    "add a column": lambda ds: ds.add_columns({"more": "id + 1"}),
    "drop a column": lambda ds: ds.drop_columns(["s"]),
    "optimize": lambda ds: ds.optimize.optimize_indices(),
    "compact": lambda ds: ds.optimize.compact_files(),
}
OLD_ACTS: dict[str, Act] = {
    **ROW_ACTS,
    "compact, 0.1": lambda ds: ds.optimize.compact_files(data_storage_version="0.1"),
}
OVERLAY_ACTS: dict[str, Act] = {
    **ROW_ACTS,
    "overlay": lambda ds: ds.update({"n": "n * 2"}, where="id % 2 = 0", update_mode="data_overlay"),
    "overlay texts": lambda ds: ds.update({"s": "s || '!'"}, where="n > 3", update_mode="data_overlay"),
    "compact overlays": lambda ds: ds.optimize.compact_files(max_overlays_per_fragment=0),
}


VECTOR_ACTS: dict[str, Act] = {
    "append segments": lambda ds: ds.optimize.optimize_indices(num_indices_to_merge=0),
    "merge segments": lambda ds: ds.optimize.optimize_indices(num_indices_to_merge=2),
    "retrain": lambda ds: ds.optimize.optimize_indices(retrain=True),
    "compact": lambda ds: ds.optimize.compact_files(),
    "compact, remap later": TEXT_ACTS["compact, remap later"],
    "rewrite vectors": lambda ds: (
        ds.merge_insert("id").when_matched_update_all().execute(vectors(7, 60).select(["id", "v"]))
    ),
    "delete": lambda ds: ds.delete("g = 1"),
    "drop": lambda ds: ds.drop_index("near"),
}


def _on_table(act: Act, uri: str) -> None:
    act(opened(uri))


def _jobs() -> list[list[Job]]:
    """Return the jobs by family."""
    verbs = [Job(verb.name, "none" if verb.creates else "rows", verb.act) for verb in VERBS]
    scalar = [Job(name, "scalar", partial(_on_table, act)) for name, act in ACTS.items()]
    text = [Job(name, "text", partial(_on_table, act)) for name, act in TEXT_ACTS.items()]
    near = [
        Job(name, kind, partial(_on_table, act))
        for kind in KINDS
        for name, act in {"build another": partial(build, kind, "other"), **VECTOR_ACTS}.items()
    ]
    return [verbs, scalar, text, near]


FAMILIES = _jobs()
VARIANTS = [
    [Job(name, "0.1", partial(_on_table, act)) for name, act in OLD_ACTS.items()],
    [Job(name, "overlaid", partial(_on_table, act)) for name, act in OVERLAY_ACTS.items()],
]
"""Jobs on old or overlaid tables. A separate list keeps the seeds of the other jobs stable."""
PREPARE: dict[str, Callable[[str], None]] = {
    "none": lambda uri: None,
    "rows": crashing.prepare,
    "scalar": prepare,
    "text": prepare_texts,
    "0.1": prepare_old,
    "overlaid": prepare_overlaid,
    **{kind: partial(prepare_vectors, kind) for kind in KINDS},
}


def view(dataset: ld.LanceDataset) -> View:
    """Return the visible content of a version."""
    table = dataset.to_table()
    segments = sorted((i["name"], i["type"], tuple(sorted(i["fragment_ids"]))) for i in dataset.list_indices())
    rows = sorted(map(repr, table.to_pylist()))
    return str(table.schema), rows, len(dataset.get_fragments()), dict(dataset.config()), segments


def newest(uri: str) -> View | None:
    """Return the visible content of the newest version, or None if the table does not exist."""
    try:
        return view(opened(uri))
    except NotFoundError:
        return None


def refs(uri: str) -> Any:
    """Return tags, branches, and the row count of a clone below the table."""
    try:
        dataset = opened(uri)
    except NotFoundError:
        return None
    try:
        clone: int | None = opened(f"{uri}/clone").count_rows()
    except NotFoundError:
        clone = None
    tags = {name: tag["version"] for name, tag in dataset.tags.list().items()}
    return tags, sorted(dataset.branches.list()), clone


@cache
def prepared(family: str) -> Files:
    """Return the files of the table before a job of a family."""
    uri = fresh("memory://prepared")
    PREPARE[family](uri)
    return read_files(uri) if PREPARE[family] is not PREPARE["none"] else {}


def course(job: Job, folder: str) -> Course:
    """Run a job without faults in a folder, and record its effect."""
    kind = folder.partition(":")[0] if folder.startswith("memory:") else "disk"
    if (known := _COURSES.get((str(job), kind))) is None:
        uri = write_files(fresh(folder), prepared(job.family))
        first, before = newest(uri), refs(uri)
        start = opened(uri).version if first is not None else 0
        with Faults() as seen:
            job.act(uri)
        dataset = opened(uri)
        later = [v["version"] for v in dataset.versions() if v["version"] > start]
        views = (first, *(view(dataset.checkout_version(v)) for v in later))
        known = _COURSES[str(job), kind] = Course(prepared(job.family), views, (before, refs(uri)), len(seen.steps))
        crashing.forget(uri)
    return known


_COURSES: dict[tuple[str, str], Course] = {}


def check_answers(job: Job, dataset: ld.LanceDataset) -> None:
    """Check that indexes and scans return the same rows."""
    if job.family in ("0.1", "overlaid"):
        for where in ("n = 1", "n = 12", "id BETWEEN 3 AND 9"):
            assert dataset.to_table(filter=where) == dataset.to_table(filter=where, use_scalar_index=False)
    elif job.family == "scalar":
        for where in ("n = 1", "id BETWEEN 3 AND 9"):
            assert dataset.to_table(filter=where) == dataset.to_table(filter=where, use_scalar_index=False)
    elif job.family == "text":
        for query in ("lake", '"the lake"'):
            assert sorted(dataset.to_table(full_text_query=query)["n"].to_pylist()) == [1, 5, 7, 8, 10]
        assert sorted(dataset.to_table(filter="contains(s, 'e lak')")["n"].to_pylist()) == [1, 5, 7]
    elif job.family in KINDS:
        for where in (None, "g = 2"):
            nearest = {"column": "v", "q": np.ones(DIM, np.float32), "k": 10}
            found = dataset.to_table(["id"], filter=where, nearest={**nearest, **EVERYTHING})
            exact = dataset.to_table(["id"], filter=where, nearest={**nearest, "use_index": False, "k": 1000})
            distances = dict(zip(exact["id"].to_pylist(), exact["_distance"].to_pylist(), strict=True))
            assert found.num_rows == 10 == len(set(found["id"].to_pylist()))
            wanted = [distances[key] for key in found["id"].to_pylist()]
            np.testing.assert_allclose(found["_distance"], wanted, rtol=1e-4, atol=1e-4)
