from __future__ import annotations

import pyarrow as pa
import pytest

from lance_duck.duck.rules.join_keys import KeyJoin, find, joins_of
from lance_duck.duck.rules.known_tables import KnownTable, KnownTables
from lance_duck.duck.statement.text import Statement


def _known(**tables: tuple[int, str]) -> KnownTables:
    """Return tables of int64 columns, from the magnitude and the column names of each."""
    return {
        (name,): KnownTable(pa.schema([(column, pa.int64()) for column in columns.split()]), magnitude)
        for name, (magnitude, columns) in tables.items()
    }


KNOWN = _known(
    lines=(20, "l_part l_supp l_num"),
    parts=(12, "p_key p_size"),
    supps=(10, "s_key s_nation"),
    nations=(5, "n_key n_name n_region"),
    regions=(3, "r_key r_name"),
)


def _joins(sql: str, known: KnownTables = KNOWN) -> dict[tuple[str, str], str]:
    """Return the key queries of a statement, by table and column."""
    statement = Statement.of(sql)
    return {(join.name[0], join.column): join.keys for join in joins_of(statement, known, None)}


def _filtered(sql: str) -> set[tuple[str, str]]:
    joins: tuple[KeyJoin, ...] = joins_of(Statement.of(sql), KNOWN, None)
    return {(join.name[0], join.column) for join in joins if join.is_filtered}


def test_unqualified_columns_belong_to_the_only_table_that_has_them() -> None:
    sql = "SELECT l_num FROM lines, parts, supps WHERE l_part = p_key AND L_NUM = 1 AND l_supp = s_key AND p_size = 3"
    assert _joins(sql)["lines", "l_part"] == 'SELECT "parts"."p_key" AS key FROM "parts" WHERE ("parts"."p_size" = 3)'


def test_smaller_tables_restrict_keys_in_a_chain() -> None:
    sql = """
        SELECT l_num FROM lines, supps, nations, regions
        WHERE l_supp = s_key AND s_nation = n_key AND n_region = r_key AND r_name = 7"""
    assert _joins(sql)["lines", "l_supp"] == (
        'SELECT "supps"."s_key" AS key FROM "supps" WHERE ("supps"."s_nation" IN (SELECT "nations"."n_key" AS key '
        'FROM "nations" WHERE ("nations"."n_region" IN (SELECT "regions"."r_key" AS key FROM "regions" '
        'WHERE ("regions"."r_name" = 7)))))'
    )


def test_larger_tables_do_not_restrict_keys() -> None:
    sql = "SELECT 1 FROM lines, supps, parts WHERE l_supp = s_key AND s_nation = p_size AND p_key = 3"
    assert _joins(sql)["lines", "l_supp"] == 'SELECT "supps"."s_key" AS key FROM "supps"'
    assert ("lines", "l_supp") not in _filtered(sql)


def test_columns_of_equal_type_that_equal_the_same_column_exchange_keys() -> None:
    sql = "SELECT 1 FROM lines, supps, parts WHERE l_supp = s_key AND s_key = p_key AND p_size = 3"
    joins = joins_of(Statement.of(sql), KNOWN, None)
    keys = [join.keys for join in joins if (join.name, join.column) == (("lines",), "l_supp")]
    assert 'SELECT "parts"."p_key" AS key FROM "parts" WHERE ("parts"."p_size" = 3)' in keys

    retyped = dict(KNOWN)
    retyped[("supps",)] = KnownTable(pa.schema([("s_key", pa.float64()), ("s_nation", pa.int64())]), 10)
    joins = joins_of(Statement.of(sql), retyped, None)
    keys = [join.keys for join in joins if (join.name, join.column) == (("lines",), "l_supp")]
    assert keys == ['SELECT "supps"."s_key" AS key FROM "supps"']


def test_conditions_that_all_operands_of_or_share_restrict_keys() -> None:
    sql = """
        SELECT 1 FROM lines, parts
        WHERE (l_part = p_key AND p_size = 1 AND l_num = 3) OR (l_part = p_key AND p_size = 2)"""
    assert _joins(sql)["lines", "l_part"] == (
        'SELECT "parts"."p_key" AS key FROM "parts" WHERE ("parts"."p_size" = 1 OR "parts"."p_size" = 2)'
    )
    assert not _joins("SELECT 1 FROM lines, parts WHERE (l_part = p_key AND p_size = 1) OR p_size = 2")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("p_size = 3", True), ("p_key < 3", False), ("p_key < 3 AND p_size > 1", True), ("l_num = 3", False)],
)
def test_conditions_on_the_key_alone_do_not_count_as_filters(condition: str, expected: bool) -> None:
    joined = f"SELECT 1 FROM lines, parts WHERE l_part = p_key AND {condition}"
    assert (("lines", "l_part") in _filtered(joined)) == expected
    if "l_num" not in condition:
        among = f"SELECT 1 FROM lines WHERE l_part IN (SELECT p_key FROM parts WHERE {condition})"
        assert (("lines", "l_part") in _filtered(among)) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM lines, parts, (SELECT 1 AS z) WHERE l_part = p_key AND p_size = 3",
        "SELECT 1 FROM lines JOIN parts USING (p_key), supps WHERE l_part = p_key AND p_size = 3",
        "WITH parts AS (SELECT 1 AS p_key) SELECT 1 FROM lines, parts, supps WHERE l_part = p_key AND s_key = 3",
        "SELECT (SELECT 1 AS l_part FROM parts, supps WHERE l_part = p_key AND p_size = 3) FROM lines",
    ],
)
def test_unqualified_columns_stay_uncertain(sql: str) -> None:
    assert ("lines", "l_part") not in _joins(sql)


def test_correlated_subqueries_read_keys_of_the_enclosing_query() -> None:
    sql = "SELECT 1 FROM parts WHERE p_size = 3 AND p_key < (SELECT max(l_num) FROM lines WHERE l_part = p_key)"
    assert _joins(sql)["lines", "l_part"] == 'SELECT "parts"."p_key" AS key FROM "parts" WHERE ("parts"."p_size" = 3)'


def test_a_sample_names_the_table_and_its_own_conditions() -> None:
    (proposal,) = find(Statement.of("SELECT 1 FROM lines, parts p WHERE l_part = p_key AND p_size = 3 AND p.p_key > 1"))
    assert proposal.tables == (("lines",), ("parts",))
    joins = joins_of(Statement.of("SELECT 1 FROM lines, parts p WHERE l_part = p_key AND p_size = 3"), KNOWN, None)
    assert [join.sample for join in joins if join.name == ("lines",)] == [("parts", '("p_size" = 3)')]
