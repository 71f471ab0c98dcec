"""Are the thresholds in `lance_duck/encoding/write/costs.py` well chosen?

Each question writes one column with the value from the code and with others, then reads it. The results are ratios of
the file size and of the processor time. A ratio below 1 means that the other value is better.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from benchmarks._harness import chosen, machine, options
from benchmarks._texts import texts
from lance_duck.encoding.write import costs
from lance_duck.file import LanceFileReader, LanceFileWriter

Make = Callable[[int, np.random.Generator], pa.Array]
_HOME: Final = "lance_duck.encoding.write"
_ZSTD: Final = {"lance-encoding:compression": "zstd"}
_RATIOS: Final = {"bytes": 0, "write": 1, "read": 2}


@dataclass(frozen=True)
class Question:
    """A threshold, and a column that depends on it.

    Attributes:
        threshold: Name of the constant.
        values: Other values.
        column: Description of the column.
        make: Function that returns the column for a number of rows.
        metadata: Metadata of the field.
        rows: Rows of the column; None: as many as are asked for.
    """

    threshold: str
    values: tuple[float, float]
    column: str
    make: Make
    metadata: dict[str, str] | None = None
    rows: int | None = None


def _few_texts(distinct: int) -> Make:
    def make(n: int, rng: np.random.Generator) -> pa.Array:
        return texts(distinct).take(pa.array(rng.integers(0, distinct, n)))

    return make


def _digits(width: int) -> Make:
    return lambda n, rng: pa.array([f"{i:0{width}d}" for i in rng.integers(0, 10**width, n)])


def _distinct_texts(n: int, _: np.random.Generator) -> pa.Array:
    return texts(n)


def _repeated_texts(times: float) -> Make:
    return lambda n, rng: _few_texts(int(n / times))(n, rng)


def _few_digits(distinct: int) -> Make:
    return lambda n, rng: _digits(12)(distinct, rng).take(pa.array(rng.integers(0, distinct, n)))


def _letters(width: int) -> Make:
    def make(n: int, rng: np.random.Generator) -> pa.Array:
        letters = rng.integers(33, 127, n * width).astype(np.uint8).tobytes()
        return pa.array([letters[i : i + width].decode() for i in range(0, n * width, width)])

    return make


def _sparse_lists(lists: int) -> Make:
    """Return a function that creates mostly empty lists: one in `lists` holds a number."""

    def make(n: int, rng: np.random.Generator) -> pa.Array:
        offsets = np.append(0, np.cumsum(rng.random(n) < 1 / lists)).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), pa.array(rng.integers(0, 1 << 40, int(offsets[-1]))))

    return make


def _nulls_in_runs(length: int) -> Make:
    """Return a function that makes numbers with runs of nulls."""

    def make(n: int, rng: np.random.Generator) -> pa.Array:
        is_null = np.repeat(rng.random(n // length + 1) < 0.5, length)[:n]
        return pa.array(rng.integers(0, 1 << 40, n), mask=is_null)

    return make


def _walk(n: int, rng: np.random.Generator) -> pa.Array:
    return pa.array(1_000 + np.cumsum(rng.standard_normal(n)))


def _cents(n: int, rng: np.random.Generator) -> pa.Array:
    return pa.array(np.round(rng.random(n) * 1000, 2))


def _large_texts(n: int, rng: np.random.Generator) -> pa.Array:
    """Return strings of 40,000 bytes; every second one has incompressible random bytes."""
    words = " ".join(texts(4_000).to_pylist()).encode()[:40_000]
    return pa.array([words if i % 2 else rng.bytes(40_000) for i in range(max(4, n // 2_000))], pa.large_binary())


QUESTIONS: Final = (
    Question("WORTH", (0.8, 1.0), "numbers of 60 bits", lambda n, rng: pa.array(rng.integers(0, 1 << 60, n))),
    Question("WORTH", (0.8, 1.0), "numbers of 62 bits", lambda n, rng: pa.array(rng.integers(0, 1 << 62, n))),
    Question("WORTH", (0.8, 1.0), "texts of random letters", _letters(20)),
    Question("WORTH", (0.8, 1.0), "numbers, nulls in runs of 10", _nulls_in_runs(10)),
    Question("COMPRESSED_BYTES", (2048, 8192), "60 texts", _distinct_texts, _ZSTD, 60),
    Question("COMPRESSED_BYTES", (2048, 8192), "30 texts", _distinct_texts, _ZSTD, 30),
    Question("SAMPLE", (1024, 16384), "a walk of floats, compressed", _walk, _ZSTD),
    Question("SAMPLE", (1024, 16384), "cents, compressed", _cents, _ZSTD),
    Question("SAMPLE", (1024, 16384), "texts of 40,000 bytes", _large_texts),
    Question("SAMPLE_PIECES", (16, 256), "texts of 40,000 bytes", _large_texts),
    Question("DICTIONARY_VALUES", (50, 200), "150 texts of 20", _few_texts(20), None, 150),
    Question("DICTIONARY_VALUES", (50, 200), "75 texts of 10", _few_texts(10), None, 75),
    Question("DICTIONARY_VALUES", (25, 200), "40 texts of 5", _few_texts(5), None, 40),
    Question(
        "DICTIONARY_ITEMS", (1 << 15, 1 << 17), "texts of digits, 40,000 distinct", _few_digits(40_000), None, 400_000
    ),
    Question(
        "DICTIONARY_ITEMS", (1 << 15, 1 << 17), "texts of digits, 90,000 distinct", _few_digits(90_000), None, 400_000
    ),
    Question("DICTIONARY_DIVISOR", (1, 4), "texts, each three times", _repeated_texts(3), None, 60_000),
    Question("DICTIONARY_DIVISOR", (1, 4), "texts, each one and a half times", _repeated_texts(1.5), None, 60_000),
    Question("SYMBOL_LENGTH", (3, 9), "texts of 4 digits", _digits(4)),
    Question("SYMBOL_LENGTH", (3, 9), "texts of 8 digits", _digits(8)),
    Question("MINIBLOCK_VALUES", (16, 256), "numbers, 100 lists for each", _sparse_lists(100)),
    Question("MINIBLOCK_VALUES", (16, 256), "numbers, 400 lists for each", _sparse_lists(400)),
)


@contextmanager
def threshold_set(name: str, value: float) -> Iterator[None]:
    """Set a threshold in every module that imports it."""
    known = [m for key, m in sys.modules.items() if key.startswith(_HOME) and hasattr(m, name)]
    before = getattr(costs, name)
    for module in known:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module in known:
            setattr(module, name, before)


def measure(question: Question, rows: int, rounds: int, folder: Path) -> dict[float, list[float]]:
    """Return the file size, the write time and the read time for each value of the threshold."""
    array = question.make(question.rows or rows, np.random.default_rng(0))
    schema = pa.schema([pa.field("x", array.type, metadata=question.metadata)])
    batch = pa.record_batch([array], schema=schema)
    repeats = max(1, rows // (question.rows or rows) // 20)
    values = (getattr(costs, question.threshold), *question.values)
    figures: dict[float, list[list[float]]] = {value: [] for value in values}
    for _ in range(rounds + 1):
        for value in values:
            path = folder / f"{value}.lance"
            with threshold_set(question.threshold, value):
                written = _seconds(lambda path=path: _write(path, batch), repeats)
            read = _seconds(lambda path=path: _read(path), repeats)
            figures[value].append([path.stat().st_size, written, read])
    if not _read(path).column(0).combine_chunks().equals(array):
        raise SystemExit(f"{question.threshold}: other values were read")
    return {
        value: [statistics.median(each) for each in zip(*rounds_[1:], strict=True)]
        for value, rounds_ in figures.items()
    }


def _write(path: Path, batch: pa.RecordBatch) -> None:
    with LanceFileWriter(path, batch.schema, version="2.2", storage_options={"fsync": "false"}) as writer:
        writer.write_batch(batch)


def _read(path: Path) -> pa.Table:
    return LanceFileReader(path).read_all().to_table()


def _seconds(work: Callable[[], object], repeats: int) -> float:
    begin = time.process_time()
    for _ in range(repeats):
        work()
    return time.process_time() - begin


def main() -> None:
    """Print the ratios of each value."""
    parser = options(__doc__ or "", rows=200_000, rounds=9)
    arguments: argparse.Namespace = parser.parse_args()
    labels = {f"{q.threshold}, {q.column}": q for q in QUESTIONS}
    table = Table(title=f"Thresholds of writers, as other values are against them\n{machine()}", title_justify="left")
    for heading in ("threshold", "column", "value", *_RATIOS):
        table.add_column(heading, justify="left" if heading == "column" else "right")
    with tempfile.TemporaryDirectory() as folder:
        for label in chosen(labels, arguments.only):
            question = labels[label]
            figures = measure(question, arguments.rows, arguments.rounds, Path(folder))
            base, *others = figures
            for value in others:
                ratios = [figures[value][i] / figures[base][i] for i in _RATIOS.values()]
                table.add_row(
                    f"{question.threshold} {base:g}", question.column, f"{value:g}", *(f"{r:.2f}" for r in ratios)
                )
                print(
                    f"{question.threshold} {base:g}",
                    question.column,
                    f"{value:g}",
                    *(f"{r:.2f}" for r in ratios),
                    flush=True,
                )
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
