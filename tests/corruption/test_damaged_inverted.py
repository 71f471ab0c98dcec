"""Damaged files of inverted segments give a LanceDuckError or an answer, never a crash."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit.index.inverted.old_files import old_files
from unit.index.inverted.partitions import FORMS, contents_of, random_texts, written

from lance_duck.errors import LanceDuckError
from lance_duck.index.files import SegmentReader
from lance_duck.index.inverted.layout import InvertedParameters
from lance_duck.index.inverted.open import open_segment
from lance_duck.index.inverted.partition import InvertedPartition
from lance_duck.index.inverted.search import (
    PhraseOrder,
    WeightedTerms,
    best_documents,
    best_phrases,
    matching_documents,
)
from lance_duck.store import open_store

FILES = ("part_0_tokens.lance", "part_0_docs.lance", "part_0_invert.lance", "metadata.lance")
few_or_many = pytest.mark.parametrize("amount", [25, pytest.param(1000, marks=pytest.mark.slow, id="many")])


def asked(root: Path, directory: str) -> int:
    """Read and search everything; returns how many documents were found."""
    segment = open_segment(SegmentReader(open_store(str(root), {"checksums": "false"}), directory))
    found = 0
    for partition in segment.partitions:
        _phrases(partition)
        partition.contents()
        ids = partition.term_ids([b"w0", b"w3"])
        terms = WeightedTerms.plain(ids, np.ones(2, np.float32))
        found += len(matching_documents(partition, terms, 10.0)[0])
        best_documents(partition, terms, 10.0, partition.documents.row_ids, 10)
    return found


def _phrases(partition: InvertedPartition) -> None:
    """Search phrases first and continue after a rejected one, because `contents` rejects it as well."""
    for words in ([b"w0", b"w1"], [b"w1", b"w0", b"w1"]):
        for k in (None, 3):
            try:
                ids = partition.term_ids(words)
                terms = WeightedTerms.plain(ids, np.ones(len(ids), np.float32), every=True)
                keys = partition.documents.row_ids
                best_phrases(partition, terms, PhraseOrder(np.arange(len(ids)), 1), 10.0, keys, k)
            except LanceDuckError:
                continue


@few_or_many
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("form", FORMS[1:])
def test_damaged_bytes_give_an_error_or_a_result(tmp_path, form: dict[str, Any], name: str, amount: int) -> None:
    parameters = InvertedParameters(with_position=True, **form)
    files = written(tmp_path, [contents_of(random_texts(500))], parameters)
    path = tmp_path / files.directory / name
    sound, whole = path.read_bytes(), asked(tmp_path, files.directory)
    assert whole > 100
    random = np.random.default_rng(len(sound))
    refused = 0
    for number in range(amount):
        data = np.frombuffer(sound, np.uint8).copy()
        if number % 5 == 0:
            data = data[: random.integers(0, len(data))]
        else:
            data[random.integers(0, len(data), 1 + number % 3)] ^= random.integers(1, 256, dtype=np.uint8)
        path.unlink()
        path.write_bytes(data.tobytes())
        try:
            asked(tmp_path, files.directory)
        except LanceDuckError:
            refused += 1
    assert refused >= amount // 5
    shutil.rmtree(tmp_path / files.directory)


@few_or_many
@pytest.mark.parametrize("name", ["tokens.lance", "docs.lance", "invert.lance"])
def test_damaged_bytes_of_old_writers_give_an_error_or_a_result(tmp_path, name: str, amount: int) -> None:
    files = old_files(tmp_path, dict(enumerate(random_texts(200))))
    path = tmp_path / files.directory / name
    sound = path.read_bytes()
    assert asked(tmp_path, files.directory) > 100
    random = np.random.default_rng(len(sound))
    refused = 0
    for number in range(amount):
        data = np.frombuffer(sound, np.uint8).copy()
        data[random.integers(0, len(data), 1 + number % 3)] ^= random.integers(1, 256, dtype=np.uint8)
        path.unlink()
        path.write_bytes(data[: random.integers(0, len(data))].tobytes() if number % 5 == 0 else data.tobytes())
        try:
            asked(tmp_path, files.directory)
        except LanceDuckError:
            refused += 1
    assert refused >= amount // 5
