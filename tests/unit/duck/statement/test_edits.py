from __future__ import annotations

import pytest

from lance_duck.duck.statement.edits import Edit, EditedText, apply


def test_edits_apply_in_any_order() -> None:
    assert apply("FROM a, b", [Edit(8, 9, "beta"), Edit(5, 6, ""), Edit(0, 0, "-- ")]) == "-- FROM , beta"
    assert apply("FROM a", []) == "FROM a"


def test_overlapping_edits_are_rejected() -> None:
    with pytest.raises(ValueError, match="character 3"):
        apply("abcdef", [Edit(3, 5, "x"), Edit(1, 4, "y")])
    assert apply("abcdef", [Edit(1, 3, "x"), Edit(3, 5, "y")]) == "axyf"


def test_characters_of_an_edited_text_map_to_their_origin() -> None:
    edited = EditedText.of("a ? b ? c", [Edit(2, 3, "$10"), Edit(6, 7, "")])
    assert edited.text == "a $10 b  c"
    assert [edited.origin(edited.text.index(letter)) for letter in "abc"] == [0, 4, 8]


@pytest.mark.parametrize(
    ("place", "overlaps"), [((0, 2), False), ((0, 3), True), ((3, 4), True), ((5, 9), False), ((0, 9), True)]
)
def test_edits_overlap_if_they_share_a_character(place: tuple[int, int], overlaps: bool) -> None:
    assert Edit(2, 5, "").overlaps(*place) is overlaps
