"""Conditions of WHERE given to a call that searches as its filter; DuckDB applies WHERE to what was found, too."""

from __future__ import annotations

from lance_duck.duck.rules.prefilter_condition import PrefilterCondition
from lance_duck.duck.run.rewriting import Database, Request, Rewriting
from lance_duck.duck.settings import About
from lance_duck.duck.statement.edits import Edit
from lance_duck.duck.statement.identifiers import literal

_MEANINGS = About.SYNTAX | About.VALUES | About.TEXTS | About.MOMENTS
"""A filter is read by none of the settings that change these."""


def run(asked: PrefilterCondition, request: Request, database: Database) -> Rewriting | None:
    """Add the argument to the call; None where a setting gives the condition another meaning."""
    if not request.is_free(asked.start, asked.end):
        return None
    if not database.names.dialect((asked.function,), later=request.later).is_usual(_MEANINGS):
        return None
    argument = f'\n, "filter" := {literal(asked.condition)}'
    return Rewriting((Edit(asked.end - 1, asked.end - 1, argument, ()),))
