"""Each rule finds something in its own example, and says where."""

from __future__ import annotations

import pytest

from lance_duck.duck.planner import RULES, Rule
from lance_duck.duck.statement.lifted import LiftedText
from lance_duck.duck.statement.text import Statement


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.find.__module__.rpartition(".")[2])
def test_a_rule_finds_something_in_its_example(rule: Rule) -> None:
    assert rule.find(Statement.of(LiftedText.of(rule.example).text))
    assert not rule.find(Statement.of("SELECT 1"))
