"""Long and deeply nested SQL texts are refused before anything parses them."""

from __future__ import annotations

import re

import pytest

from lance_duck.duck import confinement, failures
from lance_duck.serve.gate import statements
from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.gate.statements import check_sql_size

BEGINS = ("Table with name ", "Table with name a/", 'Permission Error: Cannot access file "', "No function matches ")


@pytest.mark.parametrize("opening", ["(", "[", "{", "([{"])
def test_deep_brackets_are_refused(opening: str) -> None:
    with pytest.raises(RequestError, match="nested too deeply: expected at most 200 levels"):
        check_sql_size("SELECT " + opening * 201)


def test_brackets_in_texts_and_comments_do_not_count() -> None:
    brackets = "(" * 10_000
    check_sql_size(f"SELECT '{brackets}' AS x /* {brackets} */ FROM \"{brackets}\" -- {brackets}")
    check_sql_size("SELECT " + "(1) + " * 5000 + "1")


def test_a_long_text_is_refused_and_names_parameters() -> None:
    check_sql_size("x" * statements._LONGEST)
    with pytest.raises(RequestError, match=r"at most 65536 characters.*as parameters"):
        check_sql_size("x" * (statements._LONGEST + 1))


@pytest.mark.parametrize("pattern", [failures._MISSING, confinement._MISSING, failures._REFUSED])
def test_patterns_of_errors_stop_at_the_next_begin(pattern: re.Pattern[str]) -> None:
    begin = pattern.pattern.partition("(")[0].replace("\\", "")
    end = {failures._REFUSED: '" - file system operations are disabled by configuration'}
    found = pattern.search(f"{begin}far/away {begin}near/by{end.get(pattern, ' does not exist!')}")
    assert found is not None
    assert "near/by" in found[0]
    assert "far/away" not in found[0]


@pytest.mark.parametrize("begin", BEGINS)
def test_no_pattern_finds_an_error_in_a_text_of_begins(begin: str) -> None:
    patterns = (failures._MISSING, confinement._MISSING, failures._REFUSED, failures._LISTS_TO_ARRAYS)
    text = begin * ((1 << 20) // len(begin))
    assert not [pattern for pattern in patterns if pattern.search(text)]
