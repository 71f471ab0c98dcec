from __future__ import annotations

import pytest

from lance_duck.errors import CorruptError
from lance_duck.wire.fragment import Fragments
from lance_duck.wire.pb import table_pb2


def fragments(*ids: int) -> Fragments:
    return Fragments(lambda: [table_pb2.DataFragment(id=each, physical_rows=10) for each in ids], "a manifest")


def test_fragment_id_lookups_are_cached() -> None:
    found = fragments(7, 2, 5)
    assert found.ids() == [7, 2, 5]
    assert found.id_set == {2, 5, 7}
    assert found.places == {7: 0, 2: 1, 5: 2}
    assert found.id_set is found.id_set
    assert found.places is found.places


def test_fragments_that_share_an_id_are_corrupt() -> None:
    shared = fragments(1, 1, 2)
    for ask in (lambda: shared.places, lambda: list(shared), shared.ids, shared.row_counts, shared.check_ids):
        with pytest.raises(CorruptError, match="duplicate fragment id 1"):
            ask()


@pytest.mark.parametrize("added", [(8,), (9, 8)])
def test_the_next_version_takes_the_ids_of_its_new_fragments_only(added: tuple[int, ...]) -> None:
    before, after = fragments(7, 2, 5), fragments(0, 0, 0, *added)
    after.follow(before, added)
    assert after.ids() == [7, 2, 5, *added]


@pytest.mark.parametrize("added", [(2,), (8, 8), (3, 7)])
def test_new_fragments_with_low_or_equal_ids_are_checked_with_all_others(added: tuple[int, ...]) -> None:
    after = fragments(7, 2, 5, *added)
    after.follow(fragments(7, 2, 5), added)
    with pytest.raises(CorruptError, match="duplicate fragment id"):
        after.check_ids()
