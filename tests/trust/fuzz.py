"""Read files with wrong contents: only errors of this package, bounded memory and bounded time."""

from __future__ import annotations

import json
import random
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

import pyarrow as pa
from corruption import sound
from corruption.containers import forget_index_sizes, forget_sizes, manifest_path
from corruption.harness import assert_survives
from corruption.structures import (
    WORDS,
    changed_bytes,
    changed_container,
    changed_json,
    changed_legacy,
    changed_manifest,
)
from support.overlays import add_overlay
from trust.jobs import KINDS, build, vectors

import lance_duck as ld
from lance_duck.checksums.container import MAGIC, TRAILER
from lance_duck.checksums.digests import digest

FILES = 60
UNSEALED = {"fsync": "false", "checksums": "false"}  # a checksum would reject the changed bytes first
VERSIONS = ("legacy", "2.0", "2.1", "2.2", "2.3", "overlay", "checksums")
MEM_WAL = Path(__file__).parents[1] / "golden" / "tables" / "lancedb_log.lance"

Change = Callable[[random.Random, bytes], bytes]


@cache
def _folder() -> Path:
    """Create the folder for the valid tables of this process."""
    return Path(tempfile.mkdtemp(prefix="sound-"))


@cache
def columns(version: str) -> Path:
    """Return a table with a column of every kind."""
    return sound.write_columns(_folder(), version)


@cache
def history() -> Path:
    """Return a table with every manifest feature."""
    return sound.write_history(_folder())


@cache
def deletions(many: bool) -> Path:
    """Return a table with a deletion file."""
    return sound.write_deletions(_folder(), many=many)


@cache
def indexed() -> Path:
    """Return a table with a scalar index of every kind."""
    return sound.write_indexed(_folder())


@cache
def later_indexes() -> Path:
    """Return a table with a JSON path index, an R-tree and a MinHash index."""
    return sound.write_later_indexes(_folder())


@cache
def near(kind: str) -> Path:
    """Return a table with a vector index."""
    path = _folder() / f"{kind}.lance"
    dataset = ld.write_dataset(vectors(0, 320), path, storage_options=UNSEALED)
    build(kind, "near", dataset)
    forget_index_sizes(path)
    return path


@cache
def measured() -> Path:
    """Return a table with a vector index and its recall measurements."""
    path = _folder() / "measured.lance"
    dataset = ld.write_dataset(vectors(0, 4000), path, storage_options=UNSEALED)
    dataset.create_index("v", "IVF_FLAT", num_partitions=4)
    forget_index_sizes(path)
    return path


@cache
def overlaid() -> Path:
    """Return a table with two kinds of data overlays: one shared bitmap, and one bitmap per field."""
    path = _folder() / "overlaid.lance"
    rows = pa.table({"i": range(40), "s": [f"text {i}" for i in range(40)]})
    ld.write_dataset(rows, path, max_rows_per_file=20, storage_options=UNSEALED, data_storage_version="2.1")
    add_overlay(str(path), 0, pa.table({"i": [100, None], "s": ["a", None]}), [1, 4])
    add_overlay(str(path), 0, pa.table({"i": [7, 8, 9], "s": ["a", "b", "c"]}), [[0, 9, 19], [1, 2, 3]])
    forget_sizes(path)
    return path


@cache
def sealed() -> Path:
    """Return a table with checksums."""
    path = _folder() / "sealed.lance"
    rows = pa.table({"i": range(40_000), "s": [f"text {i % 99}" for i in range(40_000)]})
    ld.write_dataset(rows, path, storage_options={"fsync": "false"})
    return path


@cache
def walled() -> Path:
    """Return a table with a write-ahead log."""
    return Path(shutil.copytree(MEM_WAL, _folder() / "walled.lance"))


@cache
def worded() -> Path:
    """Return a table with a full-text index."""
    path = _folder() / "texts.lance"
    data = vectors(0, 320).append_column("s", [[f"the lake {i % 7} duck" for i in range(320)]])
    ld.write_dataset(data, path, storage_options=UNSEALED).create_scalar_index("s", "INVERTED", with_position=True)
    forget_index_sizes(path)
    return path


def hostile_files(seed: int, folder: Path) -> Mapping[str, int]:
    """Read changed data files of one file version."""
    version = VERSIONS[seed % len(VERSIONS)]
    if version == "checksums":
        return _survived(seed, folder, sealed(), next((sealed() / "data").iterdir()), changed_checksums)
    if version == "overlay":
        overlays = ld.dataset(overlaid()).handle.snapshot.fragments[0].overlays
        target = overlaid() / "data" / overlays[seed % len(overlays)].file.path
        return _survived(seed, folder, overlaid(), target, changed_container)
    table = columns(version)
    change = changed_legacy if version == "legacy" else changed_container
    return _survived(seed, folder, table, next((table / "data").glob("*.lance")), change)


def hostile_tables(seed: int, folder: Path) -> Mapping[str, int]:
    """Read changed manifests, deletion files or files of a write-ahead log."""
    if seed % 6 == 0:
        table = deletions(seed % 12 == 0)
        return _survived(seed, folder, table, next((table / "_deletions").iterdir()), changed_bytes)
    if seed % 12 == 4:
        files = sorted(walled().glob("_mem_wal/*/*/*[01].*"))  # entries and manifests of the shard
        return _survived(seed, folder, walled(), files[seed // 12 % len(files)], changed_bytes)
    table = (history, indexed, overlaid, walled, partial(near, "IVF_PQ"))[seed % 6 - 1]()
    return _survived(seed, folder, table, manifest_path(table), changed_manifest)


def hostile_indexes(seed: int, folder: Path) -> Mapping[str, int]:
    """Query indexes with changed files."""
    rng = random.Random(seed)
    if seed % 8 == 4:
        table, check = later_indexes(), partial(assert_survives, indexed=([], sound.LATER_FILTERS))
    elif seed % 4 == 0:
        table, check = indexed(), partial(assert_survives, indexed=(list(sound.INDEXES), sound.FILTERS))
    else:
        table = (near(rng.choice(KINDS)), worded(), measured())[seed % 4 - 1]
        check = partial(assert_survives, searched=True)
    if seed % 4 == 3:
        return _survived(seed, folder, table, next(table.glob("_indices/*/recall.json")), changed_recall, check)
    files = table.glob("_indices/*/*")
    target = rng.choice(sorted(files, key=lambda file: (file.name, file.read_bytes())))  # the folder names are random
    return _survived(seed, folder, table, target, changed_container, check)


def changed_recall(rng: random.Random, data: bytes) -> bytes:
    """Return recall measurements with one changed value and a matching digest."""
    head, body = data.splitlines()
    content = json.loads(body)
    if rng.random() < 0.7 and content.get("curves"):
        curve = rng.choice(content["curves"])
        curve["measured"] = [json.loads(changed_json(rng, json.dumps(each).encode())) for each in curve["measured"]]
        body = json.dumps(content).encode()
    else:
        body = changed_json(rng, body)
    about = {**json.loads(head), "digest": f"{digest(body):016x}"}
    return json.dumps(about).encode() + b"\n" + body + b"\n"


def changed_checksums(rng: random.Random, data: bytes) -> bytes:
    """Change numbers in the checksum block of a data file. In most cases, the digest matches again."""
    end = data.rindex(MAGIC) + len(MAGIC)
    trailer = list(TRAILER.unpack(data[end - TRAILER.size : end]))
    start, numbers = end - trailer[2], rng.choice((1, 1, 2, 5))
    body = bytearray(data[start : end - TRAILER.size])
    for _ in range(numbers):
        at, width = rng.randrange(0, min(len(body), 200), 4), rng.choice((4, 8))
        word = rng.choice((*WORDS, rng.randrange(len(data)))) % (1 << 8 * width)
        body[at : at + width] = word.to_bytes(width, "little")[: len(body) - at]
    if rng.random() < 0.8:
        trailer[3] = digest(body)
    if rng.random() < 0.3:
        position = rng.randrange(3)
        trailer[position] = rng.choice((*WORDS, trailer[position] + 64))
    return data[:start] + bytes(body) + TRAILER.pack(*trailer) + data[end:]


def _survived(
    seed: int,
    folder: Path,
    table: Path,
    target: Path,
    change: Change,
    check: Callable[..., int] = assert_survives,
) -> Mapping[str, int]:
    rng, data = random.Random(seed), target.read_bytes()
    damaged = [(f"{target.name} {number}", change(rng, data)) for number in range(FILES)]
    return {"hostile files": check(table, target, damaged, folder)}
