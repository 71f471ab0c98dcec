"""How large is a column on disk, and how long does writing it take, for each type?

Neither side flushes its file.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

import lance.file
import numpy as np
import pyarrow as pa

from benchmarks._harness import OURS, Case, add_clock, chosen, clock_of, options, race, report
from benchmarks.columns import KINDS, column
from lance_duck.file import LanceFileWriter

PEER = "pylance"
MORE: dict[str, Callable[[int, np.random.Generator], pa.Array]] = {
    "int8 small": lambda n, rng: pa.array(rng.integers(0, 7, n).astype(np.int8)),
    "int16": lambda n, rng: pa.array(rng.integers(-(1 << 15), 1 << 15, n).astype(np.int16)),
    "int32 of both signs": lambda n, rng: pa.array(rng.integers(-100, 100, n).astype(np.int32)),
    "int32 runs": lambda n, rng: pa.array(np.repeat(rng.integers(0, 1 << 30, n // 20 + 1), 20)[:n].astype(np.int32)),
    "int64 runs": lambda n, rng: pa.array(np.repeat(rng.integers(0, 1 << 60, n // 20 + 1), 20)[:n]),
    "int64 few": lambda n, rng: pa.array(rng.integers(0, 1 << 60, 500)[rng.integers(0, 500, n)]),
    "int64 constant": lambda n, rng: pa.array(np.full(n, 7)),
    "timestamp ascending": lambda n, rng: pa.array(1_700_000_000_000_000 + np.arange(n) * 977, pa.timestamp("us")),
    "float16": lambda n, rng: pa.array(rng.standard_normal(n).astype(np.float16)),
    "float32": lambda n, rng: pa.array(rng.standard_normal(n, np.float32)),
    "float64 cents": lambda n, rng: pa.array(np.round(rng.random(n) * 1000, 2)),
    "float64 few": lambda n, rng: pa.array(rng.standard_normal(100)[rng.integers(0, 100, n)]),
    "string numbers": lambda n, rng: pa.array(rng.integers(0, 10**6, n)).cast(pa.string()),
    "string addresses": lambda n, rng: _addresses(n, rng),
    "large_string": lambda n, rng: KINDS["string, three words"](n, rng).cast(pa.large_string()),
    "string constant": lambda n, rng: pa.array(["constant"] * n),
    "binary text": lambda n, rng: KINDS["string, three words"](n, rng).cast(pa.binary()),
    "binary[16]": lambda n, rng: pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), n, [None, pa.py_buffer(rng.bytes(16 * n))]
    ),
    "dictionary": lambda n, rng: KINDS["string, 25 values"](n, rng).dictionary_encode(),
    "int8[32]": lambda n, rng: pa.FixedSizeListArray.from_arrays(
        pa.array(rng.integers(-128, 128, 32 * n).astype(np.int8)), 32
    ),
}


def _addresses(n: int, rng: np.random.Generator) -> pa.Array:
    users = rng.integers(0, 10**8, n).tolist()
    hosts = rng.integers(0, 300, n).tolist()
    return pa.array([f"user{user:08d}@host{host}.example.com" for user, host in zip(users, hosts, strict=True)])


def measure(kind: str, nulls: bool, args: argparse.Namespace, folder: Path) -> tuple[Case, Case]:
    """Return the times and the sizes of one column."""
    make = MORE.get(kind)
    array = column(kind, args.rows, nulls) if make is None else make(args.rows, np.random.default_rng(0))
    batch = pa.record_batch([array], ["x"])
    paths = {OURS: folder / "ours.lance", PEER: folder / "peer.lance"}

    def ours() -> None:
        settings = {"fsync": "false"}
        with LanceFileWriter(paths[OURS], batch.schema, version=args.version, storage_options=settings) as writer:
            writer.write_batch(batch)

    def theirs() -> None:
        with lance.file.LanceFileWriter(str(paths[PEER]), batch.schema, version=args.version) as writer:
            writer.write_batch(batch)

    name = f"{kind}, with nulls" if nulls else kind
    case = race(name, {OURS: ours, PEER: theirs}, args.rounds, clock_of(args))
    found = lance.file.LanceFileReader(str(paths[OURS])).read_all().to_table().column(0).combine_chunks()
    if not found.cast(array.type).equals(array):
        raise SystemExit(f"{PEER} reads other values: {name}")
    return case, Case(f"{name}, size", {who: [path.stat().st_size / 1000] for who, path in paths.items()}, "kB")


def main() -> None:
    """Report times and sizes."""
    parser = options((__doc__ or "").split("\n")[0], rows=500_000, rounds=5)
    parser.add_argument("--version", default="2.2", help="of the files")
    add_clock(parser)
    args = parser.parse_args()
    kinds = [(kind, nulls) for kind in chosen(KINDS, args.only) for nulls in (False, True)]
    kinds += [(kind, False) for kind in chosen(MORE, args.only)]
    with tempfile.TemporaryDirectory() as folder:
        pairs = [measure(kind, nulls, args, Path(folder)) for kind, nulls in kinds]
    cases = [time for time, _ in pairs] + [size for _, size in pairs]
    report(f"Write one column of {args.rows:,} rows to a file", cases, args)


if __name__ == "__main__":
    main()
