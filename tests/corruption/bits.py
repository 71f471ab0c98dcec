"""Flip single bits in written files: `PYTHONPATH=.:tests python -m corruption.bits 20000` counts them.

The bits come from files of every kind, in tables of every file version that has checksums. Padding is excluded: bytes
of data files and index files that belong to no extent, table or message. The version hint is excluded because it is
only a hint.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

import lance_duck as ld
from lance_duck.errors import LanceDuckError
from lance_duck.file.reader import open_file
from lance_duck.store import open_source, run
from lance_duck.store.checked import CheckedSource

VERSIONS = ("2.0", "2.1", "2.2")
KINDS = (
    "data/*.lance",
    "_deletions/*.arrow",
    "_deletions/*.bin",
    "_versions/*.manifest",
    "_indices/*/*",
    "_transactions/*.txn",
    "_refs/tags/*.json",
    "_refs/branches/*.json",
)
SIDECARS = "data/*/*.blob"
"""Files of blobs, which tables of version 2.2 have."""
ROWS = 6000
THRESHOLDS = {
    "lance-encoding:blob-inline-size-threshold": "100",
    "lance-encoding:blob-dedicated-size-threshold": "70000",
}


def rows(count: int) -> pa.Table:
    """Rows with numbers, texts, lists and vectors."""
    generator = np.random.default_rng(count)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(generator.random(count * 8).astype(np.float32)), 8)
    texts = [f"word{i % 97} lake" if i % 7 else None for i in range(count)]
    lists = [[i] * (i % 4) for i in range(count)]
    return pa.table({"a": np.arange(count), "s": texts, "f": generator.random(count), "l": lists, "v": vectors})


def write(path: Path, version: str) -> None:
    """Write a table with files of every kind; fragment 0 has a bitmap of deleted rows, fragment 1 a list."""
    dataset = ld.write_dataset(rows(2 * ROWS), path, data_storage_version=version, max_rows_per_file=ROWS)
    dataset.create_scalar_index("a", "BTREE")
    dataset.create_scalar_index("s", "BITMAP")
    dataset.create_scalar_index("s", "INVERTED", name="words", with_position=True)
    dataset.create_index("v", "IVF_PQ", num_partitions=2, num_sub_vectors=2, max_iters=2)
    dataset.delete(f"a < {ROWS - 500} OR a = {ROWS + 3}")
    dataset.tags.create("one", dataset.version)
    dataset.create_branch("side", dataset.version)
    own = dataset.handle.snapshot.manifest.transaction_name
    others = [file for file in (path / "_transactions").iterdir() if file.name != own]
    for old in [*sorted((path / "_versions").glob("*.manifest"))[1:], *others]:
        old.unlink()


def write_blobs(path: Path) -> list[bytes | None]:
    """Write a table with blobs in the data file, packed in a sidecar, and in one of their own; returns the blobs."""
    generator = np.random.default_rng(3)
    blobs = [generator.bytes(size) for size in (10, 90_000, 300, 40_000, 50_000, 71_000)] + [None]
    blob = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true", **THRESHOLDS})
    table = pa.table(
        [pa.array(range(len(blobs))), pa.array(blobs, pa.large_binary())], schema=pa.schema([("a", pa.int64()), blob])
    )
    ld.write_dataset(table, path)
    return blobs


def padding(file: Path) -> np.ndarray:
    """Return whether each byte of a file is unreferenced."""
    free = np.zeros(file.stat().st_size, np.bool_)
    source = run(open_file(open_source(str(file)))).source if file.suffix in (".lance", ".idx") else None
    if isinstance(source, CheckedSource):
        free[: source.checksums_at] = True
        for offset, size in source.checksums().extents.tolist():
            free[offset : offset + size] = False
    return free


def flips(table: Path, kind: str, count: int, generator: random.Random) -> Iterator[tuple[Path, int, bool]]:
    """Flip single bits of files of a kind; yields file, bit, and whether it was noticed."""
    files = sorted(table.glob(kind))
    places = {file: np.flatnonzero(~padding(file)) for file in files}
    for _ in range(count):
        file = generator.choice(files)
        data = file.read_bytes()
        bit = int(generator.choice(places[file])) * 8 + generator.randrange(8)
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        file.write_bytes(damaged)
        try:
            yield file, bit, is_noticed(table)
        finally:
            file.write_bytes(data)


def is_noticed(table: Path) -> bool:
    """Return whether something in a table is damaged."""
    try:
        return any(check.checksums == "damaged" for check in ld.dataset(table).check_files())
    except LanceDuckError:
        return True


def main(bits: int) -> int:
    """Flip bits, print how many were noticed of each kind, and return how many were not."""
    noticed: Counter[str] = Counter()
    flipped: Counter[str] = Counter()
    groups = [*((version, kind) for version in VERSIONS for kind in KINDS), ("blobs", SIDECARS)]
    with tempfile.TemporaryDirectory(prefix="bits-") as folder:
        for number, (version, kind) in enumerate(groups):
            table = Path(folder) / version
            if kind == SIDECARS:
                write_blobs(table)
            elif not table.exists():
                write(table, version)
            count = bits * (number + 1) // len(groups) - bits * number // len(groups)
            for file, bit, is_seen in flips(table, kind, count, random.Random(f"{version} {kind}")):
                flipped[kind] += 1
                noticed[kind] += is_seen
                if not is_seen:
                    print(f"not noticed: bit {bit} of {file}")
    for kind in (*KINDS, SIDECARS):
        print(f"{kind}: {noticed[kind]:,} of {flipped[kind]:,}")
    print(f"noticed: {noticed.total():,} of {flipped.total():,}")
    return flipped.total() - noticed.total()


if __name__ == "__main__":
    sys.exit(min(100, main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)))
