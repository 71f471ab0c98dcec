"""Partitions are built from strings in limited batches."""

import numpy as np
import pyarrow as pa
import pytest
from unit.index.inverted.postings import rows_of, words_of

from lance_duck.index.inverted import build
from lance_duck.index.inverted.settings import InvertedSettings
from lance_duck.index.kind import ROW, VALUE, BuildOptions
from lance_duck.text.analyser import Analyser
from lance_duck.text.vocabulary import TermVocabulary

PLAIN = {"stem": False, "remove_stop_words": False, "with_position": True}


def reader_of(texts: list[str], rows_of_batch: int) -> pa.RecordBatchReader:
    ids = np.arange(len(texts), dtype=np.uint64)
    table = pa.table({VALUE: pa.array(texts, pa.string()), ROW: ids})
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(rows_of_batch))


@pytest.mark.parametrize("rows_of_batch", [1, 7, 19, 100])
def test_the_analysed_text_per_batch_is_limited(monkeypatch: pytest.MonkeyPatch, rows_of_batch: int) -> None:
    texts = [f"word{i:04} duck" for i in range(100)]
    sizes: list[int] = []
    analyse = Analyser.analyse

    def spied(self: Analyser, values: pa.Array, vocabulary: TermVocabulary) -> object:
        sizes.append(values.nbytes)
        return analyse(self, values, vocabulary)

    monkeypatch.setattr(Analyser, "analyse", spied)
    monkeypatch.setattr(build, "TEXT_BYTES", 200)
    settings = InvertedSettings.of(PLAIN)
    inversions = build.build_partitions(reader_of(texts, rows_of_batch), settings, BuildOptions())
    (contents,) = [inversion.whole() for inversion in inversions]
    assert rows_of(contents) == {row: words_of(text) for row, text in enumerate(texts)}
    assert max(sizes) <= 200 + 17 + 8  # a row more, and an offset more, at most


@pytest.mark.parametrize(("most", "expected"), [(0, 10), (build.SORTER_BYTES, 1)])
def test_a_vocabulary_is_reused_until_it_is_large(monkeypatch: pytest.MonkeyPatch, most: int, expected: int) -> None:
    made: list[TermVocabulary] = []
    vocabulary = Analyser.vocabulary
    monkeypatch.setattr(Analyser, "vocabulary", lambda self: made.append(vocabulary(self)) or made[-1])
    monkeypatch.setattr(build, "SORTER_BYTES", most)
    texts = [f"word{i} duck" for i in range(100)]
    settings = InvertedSettings.of({**PLAIN, "num_workers": 1})
    (inversion,) = build.build_partitions(reader_of(texts, 10), settings, BuildOptions())
    assert rows_of(inversion.whole()) == {row: words_of(text) for row, text in enumerate(texts)}
    assert len(made) == expected
