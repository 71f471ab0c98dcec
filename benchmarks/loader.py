"""How many rows a second does a loader for PyTorch return, in order, shuffled, and after a resume?"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import torch
from lance.torch.data import LanceDataset as PylanceDataset

import lance_duck as ld
from benchmarks._harness import OURS, Case, add_clock, chosen, clock_of, mixed_rows, options, race, report
from lance_duck.torch.data import LanceDataset

COLUMNS = {"vectors and numbers": ["v", "n"], "numbers": ["id", "x"]}
RESUMED = "vectors and numbers, resumed after half of the rows"
SHUFFLED = "vectors and numbers, shuffled"


def main() -> None:
    """Read one table as tensors, with each library."""
    parser = options(__doc__ or "", rows=200_000)
    parser.add_argument("--batch-size", type=int, default=1024, help="rows of a batch")
    parser.add_argument("--dim", type=int, default=128, help="dimensions of a vector")
    add_clock(parser)
    arguments = parser.parse_args()
    names = chosen([*COLUMNS, SHUFFLED, RESUMED], arguments.only)
    with tempfile.TemporaryDirectory() as folder:
        rows = mixed_rows(arguments.rows, arguments.dim)
        lance.write_dataset(rows, f"{folder}/t.lance")
        pq.write_table(rows, f"{folder}/t.parquet")
        cases = [measured(name, Path(folder), arguments, clock_of(arguments)) for name in names]
    report(f"Load {arguments.rows:,} rows as tensors, in batches of {arguments.batch_size:,}", cases, arguments)
    for case in cases:
        count = arguments.rows // 2 if case.name == RESUMED else arguments.rows
        speeds = {name: count / statistics.median(seconds) for name, seconds in case.seconds.items()}
        print(f"{case.name}: " + ", ".join(f"{name} {speed:,.0f} rows/s" for name, speed in speeds.items()))


def measured(name: str, folder: Path, arguments: Any, clock: Callable[[], float]) -> Case:
    """Compare the rows of all loaders, then race over them."""
    columns = COLUMNS.get(name, COLUMNS["vectors and numbers"])
    table, size = ld.dataset(folder / "t.lance"), arguments.batch_size
    ours = LanceDataset(table, size, columns=columns, shuffle=0 if name == SHUFFLED else None)
    loaders: dict[str, Callable[[], Iterator[Any]]] = {OURS: lambda: iter(ours)}
    if name == RESUMED:
        state = ours.state_dict(batches=arguments.rows // 2 // size)

        def resumed() -> Iterator[Any]:
            ours.load_state_dict(state)
            return iter(ours)

        loaders = {OURS: resumed}
    elif name != SHUFFLED:
        theirs = lance.dataset(f"{folder}/t.lance")
        loaders["pylance"] = lambda: iter(PylanceDataset(theirs, size, columns=columns))
        loaders["Parquet"] = lambda: parquet(folder / "t.parquet", columns, size)
        assert len({checksum(load()) for load in loaders.values()}) == 1
    return race(
        name, {each: lambda load=load: drained(load()) for each, load in loaders.items()}, arguments.rounds, clock
    )


def parquet(path: Path, columns: list[str], size: int) -> Iterator[Any]:
    """Read batches of a Parquet file as tensors, with pyarrow."""
    for batch in pads.dataset(path).to_batches(columns=columns, batch_size=size):
        yield {name: tensor(batch.column(name)) for name in columns}


def tensor(array: pa.Array) -> torch.Tensor:
    """Return numbers or vectors as a tensor."""
    if pa.types.is_fixed_size_list(array.type):
        return torch.tensor(array.flatten().to_numpy()).reshape(len(array), -1)
    return torch.tensor(array.to_numpy())


def drained(batches: Iterator[Any]) -> int:
    """Return the number of rows."""
    return sum(len(next(iter(batch.values()))) for batch in batches)


def checksum(batches: Iterator[Any]) -> float:
    """Return the sum of all numbers."""
    return round(sum(float(each.double().sum()) for batch in batches for each in batch.values()), 3)


if __name__ == "__main__":
    main()
