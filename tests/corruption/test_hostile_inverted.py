"""Valid Lance files of inverted segments with impossible values, and tables with such segments."""

from __future__ import annotations

import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from corruption.test_damaged_indexes import forget, segment_of
from corruption.test_damaged_inverted import asked
from unit.index.inverted.partitions import FORMS, contents_of, random_texts, written

import lance_duck as ld
from lance_duck.errors import IndexWarning, LanceDuckError
from lance_duck.index.inverted import write
from lance_duck.index.inverted.layout import InvertedParameters

DOCUMENTS = 500
MOST_BYTES = 32 << 20
"""Memory limit for a segment of 60 KB: far above its need and far below the demand of a hostile number."""
OPTIONS = {"fsync": "false", "checksums": "false"}  # damaged bytes must reach the readers
Change = Callable[[pa.Array], list[Any]]


def all_of(value: Any) -> Change:
    return lambda column: [value] * len(column)


def blocks(change: Callable[[bytes], bytes]) -> Change:
    return lambda column: [[change(block) for block in blocks] for blocks in column.to_pylist()]


def bits_of(place: int) -> Callable[[bytes], bytes]:
    """Let packed numbers have 255 bits each."""
    return lambda block: block[:place] + b"\xff" + block[place + 1 :]


def overlapping(column: pa.Array) -> list[Any]:
    """Let the documents of each full block of 128 begin at 0 and keep their end."""
    lists = column.to_pylist()
    for blocks in lists:
        for i, block in enumerate(blocks[1:-1], 1):
            blocks[i] = block[:4] + bytes(4) + block[8:]
    return lists


CHANGES: list[tuple[str, str, Change]] = [
    *(("part_0_invert.lance", "_length", all_of(n)) for n in (0, 1, DOCUMENTS + 1, 1 << 31, (1 << 32) - 1)),
    ("part_0_invert.lance", "_posting", all_of([])),
    ("part_0_invert.lance", "_posting", blocks(lambda block: b"")),
    ("part_0_invert.lance", "_posting", blocks(lambda block: block[:6])),
    ("part_0_invert.lance", "_posting", blocks(lambda block: b"\xff" * len(block))),
    ("part_0_invert.lance", "_posting", blocks(bits_of(8))),
    ("part_0_invert.lance", "_posting", blocks(bits_of(4))),
    ("part_0_invert.lance", "_posting", lambda column: [each * 9 for each in column.to_pylist()]),
    ("part_0_invert.lance", "_posting", overlapping),
    ("part_0_invert.lance", "_impacts", blocks(lambda entry: b"\xff" * 12)),
    ("part_0_invert.lance", "_impacts", all_of([])),
    ("part_0_invert.lance", "_position", lambda column: [[] for _ in column]),
    ("part_0_invert.lance", "_compressed_position", all_of(b"")),
    ("part_0_invert.lance", "_compressed_position", all_of(b"\xff" * 64)),
    ("part_0_invert.lance", "_position_block_offset", all_of([(1 << 32) - 1])),
    ("part_0_docs.lance", "_num_tokens", all_of((1 << 32) - 1)),
    ("part_0_docs.lance", "_num_tokens", all_of(0)),
    ("part_0_tokens.lance", "_token_next_id", all_of((1 << 32) - 1)),
    ("part_0_tokens.lance", "_token_total_length", all_of((1 << 64) - 1)),
    ("part_0_tokens.lance", "_token_fst_bytes", all_of(b"")),
    ("part_0_tokens.lance", "_token_fst_bytes", lambda column: [column[0].as_py()[:-20] + b"\xff" * 20]),
]


@pytest.mark.parametrize(("name", "column", "change"), CHANGES, ids=[f"{c}-{i}" for i, (_, c, _) in enumerate(CHANGES)])
@pytest.mark.parametrize("form", FORMS, ids=["format 1", "format 2", "blocks of 256"])
def test_impossible_values_give_an_error_or_a_result_in_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: dict[str, Any], name: str, column: str, change: Change
) -> None:
    changed = []

    def hostile(writer: Any, file: str, schema: pa.Schema, columns: list[pa.Array]) -> None:
        if file == name and column in schema.names:
            place = schema.get_field_index(column)
            columns = list(columns)
            columns[place] = pa.array(change(columns[place]), columns[place].type)
            changed.append(file)
        sound(writer, file, schema, columns)

    def hostile_postings(*arguments: Any) -> dict[str, pa.Array]:
        columns = sound_postings(*arguments)
        if name == "part_0_invert.lance" and column in columns:
            columns[column] = pa.array(change(columns[column]), columns[column].type)
            changed.append(name)
        return columns

    sound, sound_postings = write._write, write._postings
    monkeypatch.setattr(write, "_write", hostile)
    monkeypatch.setattr(write, "_postings", hostile_postings)
    parameters = InvertedParameters(with_position=True, **form)
    files = written(tmp_path, [contents_of(random_texts(DOCUMENTS))], parameters)
    if not changed:
        pytest.skip("a column of other formats")
    tracemalloc.start()
    try:
        assert asked(tmp_path, files.directory) <= 2 * DOCUMENTS
    except LanceDuckError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < MOST_BYTES


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("texts") / "t.lance")
    texts = [" ".join(words) for words in random_texts(200)]
    dataset = ld.write_dataset(pa.table({"n": range(200), "s": texts}), uri, storage_options=OPTIONS)
    dataset.create_scalar_index("s", "INVERTED", with_position=True, stem=False)
    dataset.insert(pa.table({"n": range(200, 220), "s": texts[:20]}))
    return uri


DAMAGES: dict[str, Callable[[bytes], bytes | None]] = {
    "missing": lambda data: None,
    "empty": lambda data: b"",
    "half": lambda data: data[: len(data) // 2],
    "a byte less": lambda data: data[:-1],
    "zeros": lambda data: bytes(len(data)),
    "zeros at the end": lambda data: data[:-64] + bytes(64),
}
QUERIES = ("w0 w3", '"w0 w1"', "w17", {"match": {"column": "s", "terms": "w1x", "fuzziness": 1}})


@pytest.mark.parametrize("damage", list(DAMAGES))
@pytest.mark.parametrize("name", ["metadata.lance", "part_0_tokens.lance", "part_0_docs.lance", "part_0_invert.lance"])
def test_a_broken_segment_warns_once_and_its_rows_are_scanned(
    tmp_path: Path, table: str, name: str, damage: str
) -> None:
    copy = tmp_path / "t.lance"
    shutil.copytree(table, copy)
    truth = answers(ld.dataset(table))
    (target,) = copy.glob(f"_indices/*/{name}")
    data = DAMAGES[damage](target.read_bytes())
    target.unlink()
    if data is not None:
        target.write_bytes(data)
    forget(segment_of(copy, "s"))
    dataset = ld.dataset(copy)
    with pytest.warns(IndexWarning) as record:
        found = answers(dataset)
    assert len(record) == 1
    assert found == truth


def answers(dataset: ld.LanceDataset) -> list[list[tuple[int, float]]]:
    """Return the rows and scores of some queries, the best first."""
    tables = [dataset.to_table(columns=["n", "_score"], full_text_query=query) for query in QUERIES]
    return [list(zip(t["n"].to_pylist(), t["_score"].to_pylist(), strict=True)) for t in tables]
