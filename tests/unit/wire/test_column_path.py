from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_duck.errors import InvalidInputError
from lance_duck.wire.column_path import join_path, quoted_name, split_path


def test_backticks_quote_names_with_dots() -> None:
    assert split_path("`a.b`.c.`d``e`") == ["a.b", "c", "d`e"]
    for path in ("", "a..b", "`a", "`a`b", "a."):
        with pytest.raises(InvalidInputError):
            split_path(path)


@pytest.mark.parametrize(("name", "text"), [("a", "a"), ("a.b", "`a.b`"), ("a`b", "`a``b`"), ("ä b", "ä b")])
def test_names_are_quoted_if_needed(name: str, text: str) -> None:
    assert quoted_name(name) == text


@given(st.lists(st.text("a.` ", min_size=1), min_size=1))
def test_joined_paths_are_split_into_their_names(names: list[str]) -> None:
    assert split_path(join_path(names)) == names
