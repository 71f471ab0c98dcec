"""Lists the columns and functions of an expression, from DuckDB's syntax tree."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

import duckdb

from lance_duck.scan.evaluator.expressions import query
from lance_duck.scan.sql.vet import lambda_names, nodes_of

SUBQUERY: Final = "a subquery"
_REFUSED: Final = {
    "SUBQUERY": SUBQUERY,
    "STAR": "*",
    "WINDOW": "a window function",
    "POSITIONAL_REFERENCE": "a column by its number",
}
_OF_THE_SESSION: Final = [
    "current_setting",
    "getvariable",
    "getenv",
    "current_schemas",
    "in_search_path",
    "txid_current",
]
_NOW: Final = frozenset({"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"})
_MOMENTS: Final = re.compile(
    r"timestamp_?tz|timetz|time\s+zone|now|today|tomorrow|yesterday|current_|local|transaction_timestamp|to_timestamp"
    r"|get_current|epoch|uuid_extract",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Expression:
    """What an expression reads and calls.

    Attributes:
        columns: The parts of each column name, as written. Includes parameters of lambdas.
        parameters: Names of the parameters of lambdas, in lower case. In `j -> 'a'`, j may also be a column.
        functions: Names of the functions and operators, in lower case.
        refused: A construct that is not an expression of one row, in words, or empty.
    """

    columns: frozenset[tuple[str, ...]]
    parameters: frozenset[str]
    functions: frozenset[str]
    refused: str

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, text: str) -> Expression | None:
        """Describe an expression. Returns None if DuckDB cannot parse the text."""
        try:
            answer = json.loads(query("SELECT json_serialize_sql(?)", [f"SELECT ({text}\n)"])[0][0])
        except duckdb.Error:
            return None
        nodes = [] if answer.get("error") else [statement["node"] for statement in answer["statements"]]
        if len(nodes) != 1:
            return None
        parts = list(nodes_of(nodes[0].get("select_list")))
        columns = (tuple(part["column_names"]) for part in parts if part["class"] == "COLUMN_REF")
        return cls(
            frozenset(names for names in columns if names[0].lower() not in _NOW),
            frozenset(name for part in parts if part["class"] == "LAMBDA" for name in lambda_names(part)),
            frozenset(part["function_name"].lower() for part in parts if part["class"] == "FUNCTION"),
            next((_REFUSED[part["class"]] for part in parts if part["class"] in _REFUSED), ""),
        )

    @property
    def volatile(self) -> str:
        """Name of a function whose result differs between calls, or empty."""
        return min(self.functions & _volatile_functions(), default="")

    @property
    def is_independent(self) -> bool:
        """Whether all functions are built in, and independent of the connection except for its settings."""
        return self.functions <= _plain_functions()


def may_read_clock(text: str) -> bool:
    """Return whether a text may contain a value with a time zone, or the current time."""
    return _MOMENTS.search(text) is not None


@cache
def _volatile_functions() -> frozenset[str]:
    rows = query("SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE stability = 'VOLATILE'")
    return frozenset(name for (name,) in rows)


@cache
def _plain_functions() -> frozenset[str]:
    """Return the names of functions of one row whose result depends only on arguments, settings and the clock."""
    rows = query(
        "SELECT lower(function_name) FROM duckdb_functions() GROUP BY 1 HAVING bool_and(CASE function_type"
        " WHEN 'scalar' THEN stability <> 'VOLATILE' WHEN 'macro' THEN NOT regexp_matches("
        " macro_definition, 'current|session|user|getvariable|select|pg_|random', 'i') ELSE false END)"
    )
    return frozenset(name for (name,) in rows).difference(_OF_THE_SESSION, _volatile_functions())
