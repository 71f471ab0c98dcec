"""Files whose structure says what is not so: readers raise errors of the package, in bounded memory and time."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path

from corruption import sound
from corruption.containers import forget_index_sizes, manifest_path
from corruption.harness import assert_survives
from corruption.structures import changed_bytes, changed_container, changed_legacy, changed_manifest
from trust.jobs import KINDS, build, vectors

import lance_duck as ld

FILES = 60
UNSEALED = {"fsync": "false", "checksums": "false"}  # what is changed has to reach the readers
VERSIONS = ("legacy", "2.0", "2.1", "2.2", "2.3")

Change = Callable[[random.Random, bytes], bytes]


@cache
def _folder() -> Path:
    """Where the sound tables of this process lie."""
    return Path(tempfile.mkdtemp(prefix="sound-"))


@cache
def columns(version: str) -> Path:
    """A table with a column of every kind."""
    return sound.write_columns(_folder(), version)


@cache
def history() -> Path:
    """A table with what a manifest can hold."""
    return sound.write_history(_folder())


@cache
def deletions(many: bool) -> Path:
    """A table with a deletion file."""
    return sound.write_deletions(_folder(), many=many)


@cache
def indexed() -> Path:
    """A table with a scalar index of every kind."""
    return sound.write_indexed(_folder())


@cache
def near(kind: str) -> Path:
    """A table with an index of vectors."""
    path = _folder() / f"{kind}.lance"
    dataset = ld.write_dataset(vectors(0, 320), path, storage_options=UNSEALED)
    build(kind, "near", dataset)
    forget_index_sizes(path)
    return path


@cache
def worded() -> Path:
    """A table with a full-text index."""
    path = _folder() / "texts.lance"
    data = vectors(0, 320).append_column("s", [[f"the lake {i % 7} duck" for i in range(320)]])
    ld.write_dataset(data, path, storage_options=UNSEALED).create_scalar_index("s", "INVERTED", with_position=True)
    forget_index_sizes(path)
    return path


def hostile_files(seed: int, folder: Path) -> Mapping[str, int]:
    """Read data files of one version."""
    version = VERSIONS[seed % len(VERSIONS)]
    table = columns(version)
    change = changed_legacy if version == "legacy" else changed_container
    return _survived(seed, folder, table, next((table / "data").glob("*.lance")), change)


def hostile_tables(seed: int, folder: Path) -> Mapping[str, int]:
    """Read manifests, with their transactions, row ids and index sections, or deletion files."""
    if seed % 4 == 0:
        table = deletions(seed % 8 == 0)
        return _survived(seed, folder, table, next((table / "_deletions").iterdir()), changed_bytes)
    table = (history(), indexed(), near("IVF_PQ"))[seed % 4 - 1]
    return _survived(seed, folder, table, manifest_path(table), changed_manifest)


def hostile_indexes(seed: int, folder: Path) -> Mapping[str, int]:
    """Ask indexes whose files are changed."""
    rng = random.Random(seed)
    if seed % 3 == 0:
        table, check = indexed(), partial(assert_survives, indexed=(list(sound.INDEXES), sound.FILTERS))
    else:
        table = near(rng.choice(KINDS)) if seed % 3 == 1 else worded()
        check = partial(assert_survives, searched=True)
    target = rng.choice(sorted(path for path in table.glob("_indices/*/*") if path.suffix != ".json"))
    return _survived(seed, folder, table, target, changed_container, check)


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
