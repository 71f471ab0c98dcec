"""Names of tables and namespaces."""

from __future__ import annotations

import pytest

from lance_duck.errors import InvalidInputError
from lance_duck.namespaces.names import check_new, name_parts, object_id


@pytest.mark.parametrize(
    ("name", "parts"),
    [("", ()), ("$", ()), ((), ()), ("t", ("t",)), ("a$b$t", ("a", "b", "t")), (["a", "t"], ("a", "t"))],
)
def test_a_name_is_a_string_or_a_list_of_parts(name: object, parts: tuple[str, ...]) -> None:
    assert name_parts(name) == parts  # type: ignore[arg-type]
    assert name_parts(object_id(parts)) == parts


@pytest.mark.parametrize("name", ["a$$b", "$a", "a$", ["a", ""], [1]])
def test_empty_parts_and_other_types_are_rejected(name: object) -> None:
    with pytest.raises(InvalidInputError, match="name"):
        name_parts(name)  # type: ignore[arg-type]


@pytest.mark.parametrize("part", ["a/b", "..", ".", "ü", "a b", "a\0", "a$b", "%2e", "a\\b", "\n"])
def test_new_names_are_limited_to_portable_characters(part: str) -> None:
    with pytest.raises(InvalidInputError, match="ASCII letters"):
        check_new(("a", part), "table")
    check_new(("a", "b-1_2.x"), "table")


def test_the_root_cannot_be_created() -> None:
    with pytest.raises(InvalidInputError, match="the root is not a namespace"):
        check_new((), "namespace")
