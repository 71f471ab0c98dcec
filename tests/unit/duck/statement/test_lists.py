from __future__ import annotations

from lance_duck.duck.statement.lists import LiftedText


def test_lists_of_numbers_stand_beside_the_text() -> None:
    lifted = LiftedText.of("SELECT '[1, 2]', [1,-2.5e3], 'x', [ 3 , 4 ]")
    assert lifted.text == "SELECT '[1, 2]', $__lance_v0, 'x', $__lance_v1"
    assert lifted.lists == ("[1,-2.5e3]", "[ 3 , 4 ]")
    assert lifted.restored(lifted.text) == "SELECT '[1, 2]', [1,-2.5e3], 'x', [ 3 , 4 ]"
