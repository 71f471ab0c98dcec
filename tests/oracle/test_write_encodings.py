"""Every page encoding, requested or chosen automatically, read by pylance, with file sizes compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader as Theirs
from lance.file import LanceFileWriter as TheirWriter

from lance_duck.file import LanceFileReader, LanceFileWriter

Make = Callable[[int, np.random.Generator], pa.Array]
TEXT = "the quick brown fox jumps over a lazy dog while seventeen cats watch quietly from afar"
WORDS = np.array(list(TEXT.split(" ")))
HINTS = [
    {},
    {"compression": "none"},
    {"compression": "zstd"},
    {"compression": "zstd", "compression-level": "9", "bss": "on"},
    {"compression": "lz4", "bss": "off"},
    {"compression": "fsst"},
    {"rle-threshold": "1.0"},
    {"dict-values-compression": "zstd", "dict-size-ratio": "1.0"},
    {"structural-encoding": "fullzip"},
    {"structural-encoding": "fullzip", "compression": "lz4"},
]


def sentences(count: int, rng: np.random.Generator, words: int) -> list[str]:
    return [" ".join(row) for row in WORDS[rng.integers(0, len(WORDS), (count, words))].tolist()]


def few(values: list[str], count: int, rng: np.random.Generator) -> list[str]:
    return [values[i] for i in rng.integers(0, len(values), count).tolist()]


KINDS: dict[str, Make] = {
    "uint8 wide": lambda n, rng: pa.array(rng.integers(0, 256, n, np.uint8)),
    "int16 small": lambda n, rng: pa.array(rng.integers(0, 9, n).astype(np.int16)),
    "int32 ascending": lambda n, rng: pa.array(np.arange(n, dtype=np.int32)),
    "int32 runs": lambda n, rng: pa.array(np.repeat(rng.integers(0, 99, n), 300)[:n].astype(np.int32)),
    "int64 few": lambda n, rng: pa.array(rng.integers(0, 1 << 60, 40)[rng.integers(0, 40, n)]),
    "int64 wide": lambda n, rng: pa.array(rng.integers(-(1 << 62), 1 << 62, n)),
    "float64": lambda n, rng: pa.array(rng.standard_normal(n)),
    "decimal few": lambda n, rng: pa.array(rng.integers(0, 50, n)).cast(pa.decimal128(20, 0)),
    "bool": lambda n, rng: pa.array(rng.random(n) < 0.2),
    "string": lambda n, rng: pa.array(sentences(n, rng, 5)),
    "large_string": lambda n, rng: pa.array(sentences(n, rng, 5), pa.large_string()),
    "string few": lambda n, rng: pa.array(few(sentences(40, rng, 5), n, rng)),
    "large_string few": lambda n, rng: pa.array(few(sentences(40, rng, 5), n, rng), pa.large_string()),
    "string long": lambda n, rng: pa.array(sentences(n // 4, rng, 80)),
    "string long, few": lambda n, rng: pa.array(few(sentences(20, rng, 200), n // 4, rng)),
    "binary": lambda n, rng: pa.array([rng.bytes(int(k)) for k in rng.integers(0, 30, n)]),
    "binary large": lambda n, rng: pa.array([rng.bytes(40_000), b"", b"ab" * 30_000, b"x"] * 3),
    "dictionary": lambda n, rng: pa.array(few(sentences(9, rng, 2), n, rng)).dictionary_encode(),
    "float32[8]": lambda n, rng: pa.FixedSizeListArray.from_arrays(pa.array(rng.random(8 * n, np.float32)), 8),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_pylance_reads_each_requested_encoding(tmp_path: Path, kind: str, version: str) -> None:
    array = KINDS[kind](3000, np.random.default_rng(2))
    kept = np.random.default_rng(3).random(len(array)) > 0.2
    holes = array.take(pa.array(np.arange(len(array)), mask=~kept))
    hints = [{f"lance-encoding:{key}": value for key, value in hint.items()} for hint in HINTS]
    fields = [pa.field(f"c{i}", array.type, metadata=hint) for i, hint in enumerate(hints + hints)]
    table = pa.table([array] * len(hints) + [holes] * len(hints), schema=pa.schema(fields))
    path = str(tmp_path / "x.lance")
    with LanceFileWriter(path, table.schema, version=version) as writer:
        writer.write_batch(table)
    for found in (Theirs(path).read_all().to_table(), LanceFileReader(path).read_all().to_table()):
        for name in table.column_names:
            assert found[name].combine_chunks().cast(array.type).equals(table[name].combine_chunks()), name


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_at_most_a_tenth_larger_than_those_of_pylance(tmp_path: Path, kind: str) -> None:
    array = KINDS[kind](20_000, np.random.default_rng(4))
    table = pa.table({"x": array})
    paths = [tmp_path / "ours.lance", tmp_path / "theirs.lance"]
    without_checksums = partial(LanceFileWriter, storage_options={"checksums": "false"})
    for writer, path in zip((without_checksums, TheirWriter), paths, strict=True):
        with writer(str(path), table.schema, version="2.2") as file:
            file.write_batch(table.to_batches()[0])
    ours, theirs = (path.stat().st_size for path in paths)
    assert ours < 1.1 * theirs
