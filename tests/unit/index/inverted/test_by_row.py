"""Documents of one row are combined, compared with a plain count."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from unit.index.inverted.partitions import contents_of
from unit.index.inverted.postings import rows_of

from lance_duck.index.inverted.old_segments import by_row

WORDS = st.lists(st.sampled_from(["duck", "lake", "goose", "pond"]), min_size=1, max_size=6)


@given(st.lists(st.tuples(st.integers(0, 5), WORDS), max_size=20))
def test_a_row_has_the_terms_of_all_its_documents(documents: list[tuple[int, list[str]]]) -> None:
    expected: dict[int, Counter[str]] = {}
    for row, words in documents:
        expected.setdefault(row, Counter()).update(words)
    parts = contents_of([words for _, words in documents], [row for row, _ in documents])
    found = by_row(parts, keeps_positions=False)
    names = [term.decode() for term in found.terms.to_pylist()]
    counted: dict[int, Counter[str]] = {int(row): Counter() for row in found.documents.row_ids}
    for i, name in enumerate(names):
        of_term = found.document_ids[found.bounds[i] : found.bounds[i + 1]].tolist()
        assert of_term == sorted(set(of_term))
        for at in range(found.bounds[i], found.bounds[i + 1]):
            row = int(found.documents.row_ids[found.document_ids[at]])
            counted[row][name] += int(found.frequencies[at])
    assert counted == expected
    assert found.documents.num_tokens.tolist() == [expected[row].total() for row in sorted(expected)]
    assert found.positions is None


@given(st.dictionaries(st.integers(0, 1 << 40), WORDS, max_size=12))
def test_positions_stay_with_their_postings(texts: dict[int, list[str]]) -> None:
    contents = contents_of(list(texts.values()), list(texts))
    assert rows_of(by_row(contents, keeps_positions=True)) == rows_of(contents)
