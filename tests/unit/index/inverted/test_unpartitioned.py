"""Segments of writers before 0.28 are read like current ones; unsupported features are rejected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from unit.index.inverted.old_files import Columns, Metadata, old_files
from unit.index.inverted.partitions import random_texts
from unit.index.inverted.postings import rows_of

from lance_duck.errors import CorruptError, NotFoundError
from lance_duck.index.inverted.open import open_segment

TEXTS = {i * 7 % 1000: words for i, words in enumerate(random_texts(300, words=20, most=9))}


def words_of(segment: Any) -> dict[int, list[str]]:
    (partition,) = segment.partitions
    return {row: [word for word, _ in words] for row, words in rows_of(partition.contents()).items()}


def test_rows_have_their_terms_in_order(tmp_path: Path) -> None:
    segment = open_segment(old_files(tmp_path, TEXTS))
    assert words_of(segment) == {row: list(words) for row, words in TEXTS.items()}
    assert segment.num_documents == len(TEXTS)
    assert segment.total_tokens == sum(map(len, TEXTS.values()))
    assert segment.partitions[0].has_positions
    assert segment.is_converted
    assert segment.nbytes > 1000


def test_stored_analyser_settings_are_read(tmp_path: Path) -> None:
    segment = open_segment(old_files(tmp_path, TEXTS, language="German", lower_case=False))
    said = segment.statistics()["params"]
    assert (said["language"], said["lower_case"], said["stem"]) == ("German", False, False)
    assert (said["with_position"], said["ascii_folding"]) == (True, True)


def test_strings_without_terms_are_not_documents(tmp_path: Path) -> None:
    def add_empty(columns: Columns, _: Metadata) -> None:
        rows, lengths = columns["docs"].values()
        columns["docs"]["_rowid"] = pa.concat_arrays([rows, pa.array([5000], pa.uint64())])
        columns["docs"]["_num_tokens"] = pa.concat_arrays([lengths, pa.array([0], pa.uint32())])

    assert open_segment(old_files(tmp_path, TEXTS, add_empty)).num_documents == len(TEXTS)


def test_positions_are_optional(tmp_path: Path) -> None:
    def leave_out(columns: Columns, _: Metadata) -> None:
        del columns["invert"]["_position"]

    segment = open_segment(old_files(tmp_path, TEXTS, leave_out))
    assert not segment.partitions[0].has_positions
    assert segment.statistics()["params"]["with_position"] is False
    assert segment.total_tokens == sum(map(len, TEXTS.values()))


def test_postings_of_list_elements_are_merged_per_row(tmp_path: Path) -> None:
    def elements(columns: Columns, metadata: Metadata) -> None:
        columns["invert"] = {
            "_rowid": pa.array([7, 3, 7, 7], pa.uint64()),
            "_frequency": pa.array([1, 2, 3, 1], pa.float32()),
            "_position": pa.array([[0], [0, 1], [0, 1, 2], [4]], pa.list_(pa.int32())),
        }
        columns["docs"] = {
            "_rowid": pa.array([7, 3], pa.uint64()),
            "_num_tokens": pa.array([4, 2], pa.uint32()),
        }
        metadata["invert"]["offsets"] = "[0,3]"

    (partition,) = open_segment(old_files(tmp_path, {7: ["duck"], 3: ["lake"]}, elements), is_list=True).partitions
    found = partition.contents()
    assert found.documents.row_ids.tolist() == [3, 7]
    assert found.documents.num_tokens.tolist() == [2, 5]
    assert [found.bounds.tolist(), found.document_ids.tolist(), found.frequencies.tolist()] == [
        [0, 2, 3],
        [0, 1, 1],
        [2, 4, 1],
    ]
    assert found.positions is None  # each element had its own


def test_an_empty_index_has_no_documents(tmp_path: Path) -> None:
    segment = open_segment(old_files(tmp_path, {}))
    assert segment.num_documents == segment.total_tokens == 0
    assert segment.partitions[0].term_ids([b"w1"]).tolist() == [-1]


def test_an_unknown_directory_layout_names_the_missing_file(tmp_path: Path) -> None:
    files = old_files(tmp_path, TEXTS)
    (tmp_path / files.directory / "docs.lance").unlink()
    with pytest.raises(NotFoundError, match=r"metadata\.lance"):
        open_segment(files)


def offsets(change: Any) -> Any:
    def apply(_: Columns, metadata: Metadata) -> None:
        metadata["invert"]["offsets"] = change(json.loads(metadata["invert"]["offsets"]))

    return apply


def column(file: str, name: str, change: Any) -> Any:
    def apply(columns: Columns, _: Metadata) -> None:
        old = columns[file][name]
        columns[file][name] = pa.array(change(old.to_pylist()), old.type)

    return apply


IMPOSSIBLE = {
    "no offsets": offsets(lambda _: ""),
    "offsets that are no list": offsets(lambda _: '{"a": 1}'),
    "offsets that are null": offsets(lambda _: "null"),
    "offsets beyond any number": offsets(lambda _: f"[0, {1 << 70}]"),
    "offsets that fall": offsets(lambda old: json.dumps(old[::-1])),
    "offsets beyond the postings": offsets(lambda old: json.dumps([*old[:-1], 1 << 40])),
    "offsets not from 0": offsets(lambda old: json.dumps([1, *old[1:]])),
    "fewer offsets than terms": offsets(lambda old: json.dumps(old[:-1])),
    "rows of no document": column("invert", "_rowid", lambda old: [1 << 50, *old[1:]]),
    "no documents": column("docs", "_rowid", lambda old: [1 << 50] * len(old)),
    "a frequency of 0": column("invert", "_frequency", lambda old: [0.0, *old[1:]]),
    "half a frequency": column("invert", "_frequency", lambda old: [1.5, *old[1:]]),
    "an endless frequency": column("invert", "_frequency", lambda old: [float("inf"), *old[1:]]),
    "a frequency that is no number": column("invert", "_frequency", lambda old: [float("nan"), *old[1:]]),
    "a position too many": column("invert", "_position", lambda old: [[*old[0], 99], *old[1:]]),
    "positions below 0": column("invert", "_position", lambda old: [[-1] * len(old[0]), *old[1:]]),
    "positions that fall": column("invert", "_position", lambda old: [each[::-1] for each in old]),
    "terms out of order": column("tokens", "_token", lambda old: old[::-1]),
    "ids of no term": column("tokens", "_token_id", lambda old: [len(old), *old[1:]]),
}


@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_impossible_files_are_rejected(tmp_path: Path, what: str) -> None:
    with pytest.raises(CorruptError):
        open_segment(old_files(tmp_path, TEXTS, IMPOSSIBLE[what]))
