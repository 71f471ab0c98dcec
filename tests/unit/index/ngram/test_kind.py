from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit.index.segments import Segments, stay

from lance_duck.errors import CorruptError, NotFoundError
from lance_duck.index.files import SegmentWriter
from lance_duck.index.kind import MergeInput
from lance_duck.index.ngram import merge, write
from lance_duck.index.ngram.kind import NGRAM
from lance_duck.index.ngram.layout import FILE, SCHEMA
from lance_duck.index.ngram.search import NGramIndex
from lance_duck.index.query import Among, ContainsTrigrams, HasPrefix, Null, Query
from lance_duck.rows.row_set_bytes import treemap
from lance_duck.text.needles import certain_words, trigrams_of_words
from lance_duck.text.trigrams import trigrams_of

TEXTS = ["hello world", "Hellø", None, "", "he", "yellow HELLO", "x\u0301yz", "ﬁve", None]


def segments(tmp_path: Path, version: str = "2.2") -> Segments:
    return Segments(NGRAM, tmp_path, version)


def maybe(index: Any, *words: str) -> list[int]:
    answer = index.search(ContainsTrigrams(words))
    assert not answer.sure
    assert index.estimate(ContainsTrigrams(words)) == len(answer.maybe)
    return list(answer.maybe)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view()])
def test_rows_with_all_trigrams(tmp_path: Path, type_: pa.DataType, version: str) -> None:
    index = segments(tmp_path, version).build(pa.array(TEXTS, type_))
    assert maybe(index, "hello") == [0, 1, 5]
    assert maybe(index, "hello", "yellow") == [5]
    assert maybe(index, "hell") == [0, 1, 5]
    assert maybe(index, "five") == [7]
    assert maybe(index, "xyz") == []
    assert maybe(index, "nothing") == []


def test_null_rows_have_token_0(tmp_path: Path) -> None:
    index = segments(tmp_path).build(pa.array(TEXTS))
    assert isinstance(index, NGramIndex)
    tokens = dict(index.file.entries())
    assert list(tokens[0]) == [2, 8]
    assert set(tokens) == {0}.union(*(trigrams_of(text) for text in TEXTS if text))
    assert index.statistics() == {"num_ngrams": len(tokens)}


def test_supported_predicates_are_answered() -> None:
    def answers(query: Query) -> bool:
        return NGRAM.answers(query, pa.string())

    assert answers(ContainsTrigrams(("abc",)))
    assert not answers(ContainsTrigrams(()))
    assert answers(HasPrefix(pa.scalar("abc d")))
    assert not answers(HasPrefix(pa.scalar("ab")))
    assert not answers(HasPrefix(pa.scalar(b"abc")))
    assert answers(Among(pa.array(["abc", "xyz"])))
    assert not answers(Among(pa.array(["abc", "x"])))
    assert not answers(Among(pa.array([], pa.string())))
    assert not answers(Among(pa.array(["abc"] * 9)))
    assert not answers(Null())
    assert not NGRAM.answers(ContainsTrigrams(("abc",)), pa.int64())


def test_prefix_and_equality_predicates_are_answered(tmp_path: Path) -> None:
    index = segments(tmp_path).build(pa.array(TEXTS))
    assert list(index.search(HasPrefix(pa.scalar("hello"))).maybe) == [0, 1, 5]
    assert list(index.search(Among(pa.array(["Hellø", "five"]))).maybe) == [0, 1, 5, 7]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(
    texts=st.lists(st.none() | st.text("abcÀ é", max_size=8), max_size=30),
    needle=st.text("abcé", min_size=3, max_size=5),
)
def test_a_search_equals_checking_the_trigrams_of_each_string(
    tmp_path: Path, texts: list[str | None], needle: str
) -> None:
    index = segments(tmp_path).build(pa.array(texts, pa.string()), batch=7)
    words = certain_words(needle)
    wanted = set(trigrams_of_words(words).tolist())
    expected = [row for row, text in enumerate(texts) if text is not None and wanted <= trigrams_of(text)]
    assert maybe(index, *words) == expected


def test_a_small_memory_limit_writes_the_same_index(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    texts = pa.array(["".join(rng.choice(list("abcdef "), 30)) for _ in range(2000)])
    rows = rng.permutation(2000).astype(np.uint64) | np.uint64(7 << 32)
    plenty = segments(tmp_path).build(texts, rows)
    little = segments(tmp_path).build(texts, rows, batch=100, memory_limit=20_000)
    assert isinstance(plenty, NGramIndex)
    assert isinstance(little, NGramIndex)
    assert list(plenty.file.entries()) == list(little.file.entries())
    assert not list(Path(tmp_path).glob("lance_duck-ngrams-*"))


def test_progress_is_reported(tmp_path: Path) -> None:
    told: list[int] = []
    segments(tmp_path).build(pa.array(["abc"] * 10), batch=4, progress=told.append)
    assert told == [4, 8, 10]


def test_empty_and_short_strings_have_no_trigrams(tmp_path: Path) -> None:
    for texts in ([], ["", "ab"]):
        index = segments(tmp_path).build(pa.array(texts, pa.string()))
        assert maybe(index, "abc") == []
        assert index.statistics() == {"num_ngrams": 0}
        index.prewarm()


def test_segments_and_rows_are_merged(tmp_path: Path) -> None:
    made = segments(tmp_path)
    first = made.build(pa.array(["hello", None, "world"]), [0, 1, 2])
    second = made.build(pa.array(["hello", "gone"]), [1 << 32, 1 << 32 | 1])

    def moved(names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return names + np.uint64(5), names != np.uint64(1 << 32 | 1)

    parts = [MergeInput(first, stay), MergeInput(second, moved)]
    index = made.merge(parts, pa.array(["hello again", None]), [9, 10])
    assert maybe(index, "hello") == [0, 9, (1 << 32) + 5]
    assert maybe(index, "gone") == []
    assert isinstance(index, NGramIndex)
    assert list(dict(index.file.entries())[0]) == [1, 10]


def test_many_rows_are_remapped_in_several_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge, "INDEX_BLOCK_ROWS", 3)
    monkeypatch.setattr(write, "LISTS_AT_ONCE", 2)
    made = segments(tmp_path)
    index = made.build(pa.array(["hello", "hello", "help", "yell"]))
    merged = made.merge([MergeInput(index, lambda names: (names[::1] * np.uint64(2), names != np.uint64(1)))])
    assert maybe(merged, "hel") == [0, 4]
    assert maybe(merged, "yell") == [6]


def test_prewarm_caches_lists_up_to_a_limit(tmp_path: Path) -> None:
    index = segments(tmp_path).build(pa.array(["hello", "world"]))
    cold = index.nbytes
    index.prewarm()
    assert index.nbytes > cold


def write_file(made: Segments, tokens: list[int | None], lists: list[bytes]) -> Segments:
    """Replace the file of the last segment."""
    with SegmentWriter(made.store) as writer:
        file = writer.create(FILE, SCHEMA)
        arrays = [pa.array(tokens, pa.uint32()), pa.array(lists, pa.binary())]
        file.write(pa.RecordBatch.from_arrays(arrays, schema=SCHEMA))
        writer.add(FILE, file)
    made.directory = writer.directory
    return made


@pytest.mark.parametrize("tokens", [[5, 3], [3, 3], [3, None]])
def test_descending_tokens_are_corrupt(tmp_path: Path, tokens: list[int | None]) -> None:
    made = write_file(segments(tmp_path), tokens, [b"", b""])
    with pytest.raises(CorruptError, match="invalid tokens of the n-gram index"):
        made.open(made.directory, pa.string())


@pytest.mark.parametrize("data", [b"", b"\xff" * 8, b"\x01" + b"\0" * 7, b"\x01" + b"\0" * 11 + b"\xff" * 8])
def test_damaged_lists_are_rejected_at_search_time(tmp_path: Path, data: bytes) -> None:
    (trigram,) = trigrams_of("abc")
    made = write_file(segments(tmp_path), [trigram], [data])
    index = made.open(made.directory, pa.string())
    with pytest.raises(CorruptError, match="is corrupt"):
        index.search(ContainsTrigrams(("abc",)))


def test_other_files_are_rejected(tmp_path: Path) -> None:
    made = segments(tmp_path)
    made.build(pa.array(["hello"]))
    made.path(FILE).write_bytes(b"no data file" * 10)
    with pytest.raises(CorruptError):
        made.open(made.directory, pa.string())
    made.path(FILE).unlink()
    with pytest.raises(NotFoundError):
        made.open(made.directory, pa.string())


def test_a_search_does_not_change_cached_lists(tmp_path: Path) -> None:
    index = segments(tmp_path).build(pa.array(["hello", "hell", "yellow"]))
    assert isinstance(index, NGramIndex)
    before = {token: treemap(rows) for token, rows in index.file.entries()}
    maybe(index, "hello")
    assert {token: treemap(rows) for token, rows in index.file.entries()} == before
