"""Partition contents from random documents, and segments written from them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.index.inverted.contents import Documents, PartitionContents
from lance_duck.index.inverted.layout import WORDS, InvertedParameters
from lance_duck.index.inverted.open import InvertedSegment, open_segment
from lance_duck.index.inverted.write import write_metadata, write_partition
from lance_duck.store import open_store

FORMS: list[dict[str, Any]] = [
    {"format_version": 1, "posting_tail_codec": WORDS},
    {},
    {"format_version": 3, "block_size": 256},
]


def contents_of(texts: Sequence[Sequence[str]], row_ids: Sequence[int] | None = None) -> PartitionContents:
    """Return the contents of a partition of texts with at least one word each, by a plain loop."""
    words = list(dict.fromkeys(word for text in texts for word in text))
    places: dict[str, dict[int, list[int]]] = {word: {} for word in words}
    for i, text in enumerate(texts):
        for position, word in enumerate(text):
            places[word].setdefault(i, []).append(position)
    lists = [places[word] for word in words]
    return PartitionContents(
        Documents(
            np.array(range(len(texts)) if row_ids is None else row_ids, np.uint64),
            np.array([len(text) for text in texts], np.uint32),
        ),
        pa.array([word.encode() for word in words], pa.large_binary()),
        np.cumsum([0, *map(len, lists)]).astype(np.int64),
        np.array([i for each in lists for i in each], np.uint32),
        np.array([len(found) for each in lists for found in each.values()], np.uint32),
        np.array([at for each in lists for found in each.values() for at in found], np.uint32),
    )


def random_texts(documents: int, words: int = 50, most: int = 30, seed: int = 1) -> list[list[str]]:
    """Return word lists in which the first words are far more frequent."""
    random = np.random.default_rng(seed)
    shares = 1 / np.arange(1, words + 1)
    shares /= shares.sum()
    lengths = random.integers(1, most + 1, documents)
    names = np.array([f"w{i}" for i in range(words)])
    return [names[random.choice(words, length, p=shares)].tolist() for length in lengths]


def written(root: Path, parts: Sequence[PartitionContents], parameters: InvertedParameters) -> SegmentReader:
    """Write a segment of partitions, and return its files."""
    store = open_store(str(root))
    with SegmentWriter(store) as writer:
        for number, contents in enumerate(parts):
            write_partition(writer, number, contents, parameters)
        write_metadata(writer, range(len(parts)), parameters)
    return SegmentReader(store, writer.directory, dict(writer.files))


def segment_of(root: Path, parts: Sequence[PartitionContents], **form: Any) -> InvertedSegment:
    """Write a segment, and open it."""
    return open_segment(written(root, parts, InvertedParameters(params={"base_tokenizer": "simple"}, **form)))


def assert_equal(one: PartitionContents, other: PartitionContents) -> None:
    """Compare contents of partitions."""
    assert one.terms.equals(other.terms)
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("bounds", "document_ids", "frequencies")]
    pairs += [(getattr(one.documents, name), getattr(other.documents, name)) for name in ("row_ids", "num_tokens")]
    pairs += zip(one.documents.elements, other.documents.elements, strict=True)
    for left, right in pairs:
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
    assert (one.positions is None) == (other.positions is None)
    if one.positions is not None:
        np.testing.assert_array_equal(one.positions, other.positions)
