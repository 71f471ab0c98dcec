"""Random `match` conditions compared with a plain model: sets of terms with SQL's AND, OR and NOT."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.full_text import matched_rows
from lance_duck.duck.full_text.match_columns import MatchColumns
from lance_duck.duck.tables.text_functions import TextFunctions

WORDS = ["duck", "Ducks", "lake", "goose", "the", "sail", "stone", "stones", "a"]
ROWS = 60
Model = Callable[[int], "bool | None"]


class Texts:
    """Random strings, and the truth of conditions on them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.texts = [None if i % 11 == 3 else self.words(self.random.randrange(9)) for i in range(ROWS)]
        self.terms = [None if text is None else terms_of(text) for text in self.texts]

    def words(self, count: int) -> str:
        return " ".join(self.random.choices(WORDS, k=count))

    def condition(self, depth: int = 0) -> tuple[str, Model]:
        """Return a condition, and its truth for each row."""
        kind = self.random.choice(["match", "all", "phrase", "id"] + (["and", "or", "not"] * 2 if depth < 3 else []))
        if kind in ("and", "or"):
            (a, of_a), (b, of_b) = self.condition(depth + 1), self.condition(depth + 1)
            return f"({a} {kind} {b})", lambda i: (both if kind == "and" else either)(of_a(i), of_b(i))
        if kind == "not":
            a, of_a = self.condition(depth + 1)
            return f"NOT {a}", lambda i: None if (value := of_a(i)) is None else not value
        if kind == "id":
            least = self.random.randrange(ROWS)
            return f"id >= {least}", lambda i: i >= least
        return self.call(kind)

    def call(self, kind: str) -> tuple[str, Model]:
        words = self.words(self.random.randrange(1, 4))
        wanted = terms_of(words)
        function, option = ("match_phrase", "") if kind == "phrase" else ("match", "")
        if kind == "all":
            option = ", operator := 'AND'"

        def holds(i: int) -> bool | None:
            terms = self.terms[i]
            if terms is None:
                return None
            if kind == "phrase":
                return bool(wanted) and any(
                    all((term, place + at) in terms for term, at in wanted) for _, place in {*terms, ("", 0)}
                )
            present = [any(term == other for other, _ in terms) for term, _ in wanted]
            return bool(wanted) and (all if kind == "all" else any)(present)

        return f"{function}(t.body, '{words}'{option})", holds


def terms_of(text: str) -> set[tuple[str, int]]:
    """Return the terms of a string with their positions, starting at 0."""
    return {(token.text, token.position) for token in ld.tokenize(text)}


def both(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def either(a: bool | None, b: bool | None) -> bool | None:
    return True if a or b else None if a is None or b is None else False


@pytest.mark.parametrize("seed", range(3))
def test_match_rows_equal_those_of_the_model(seed: int, tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    texts = Texts(seed)
    table = pa.table({"id": range(ROWS), "body": pa.array(texts.texts, pa.string())})
    dataset = ld.write_dataset(table[:40], tmp_path / "t.lance")
    con = connect(tmp_path)
    conditions = [texts.condition() for _ in range(12)]
    for step in ("no index", "an index of some rows", "an index of all"):
        if step == "an index of some rows":
            dataset.create_scalar_index("body", "INVERTED", with_position=True)
            dataset.insert(table[40:])
        elif step == "an index of all":
            dataset.optimize.optimize_indices()
        rows = dataset.count_rows()
        for sql, holds in conditions:
            found = con.execute(f"SELECT id FROM t WHERE {sql} ORDER BY id").fetchall()
            assert [row[0] for row in found] == [i for i in range(rows) if holds(i)], (step, sql)
            known = con.execute(f"SELECT list({sql} ORDER BY id) FROM t").fetchall()[0][0]
            assert known == [holds(i) for i in range(rows)], (step, sql)


def test_index_and_scan_matches_return_the_same_rows(
    tmp_path: Path, connect: Callable[..., ld.Connection], carried_out: Callable[[Callable[..., object]], list[bool]]
) -> None:
    seen = carried_out(matched_rows.run)
    texts = Texts(7)
    table = pa.table({"id": range(ROWS), "k": [i % 4 for i in range(ROWS)], "body": pa.array(texts.texts, pa.string())})
    dataset = ld.write_dataset(table[:40], tmp_path / "t.lance")
    dataset.create_scalar_index("body", "INVERTED")
    dataset.insert(table[40:])
    dataset.delete("id % 13 = 5")
    con = connect(tmp_path)
    for _ in range(25):
        sql, conditions = searched(texts)
        searches = len(seen)
        for run in (con.execute, con.sql):
            # A non-constant condition that always holds disables the rule.
            alone = sql.format(*(f"({condition} OR random() > 2)" for condition in conditions))
            assert run(sql.format(*conditions)).fetchall() == run(alone).fetchall(), sql
        assert len(seen) == searches + 2
        assert all(seen)


def test_top_scores_equal_those_of_the_search(
    tmp_path: Path, connect: Callable[..., ld.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = Texts(11)
    table = pa.table({"id": range(ROWS), "body": pa.array(texts.texts, pa.string())})
    dataset = ld.write_dataset(table, tmp_path / "t.lance")
    dataset.create_scalar_index("body", "INVERTED")
    con = connect(tmp_path)
    by_python = dataset.to_table(columns=["id", "body", "_score"], full_text_query="duck lake", limit=7)
    expected = [tuple(row.values()) for row in by_python.to_pylist()]

    def refuse(*_: object) -> None:
        raise AssertionError("a text was analysed")

    monkeypatch.setattr(TextFunctions, "_asked", refuse)
    for columns in ("id, body, score(t) AS s", "*, score(t)", "x.*, score(x)", "id, body, score(t) * 1"):
        alias = "x" if "x." in columns else "t"
        end = f"WHERE match(body, ?) ORDER BY score({alias}) DESC, id LIMIT 7"
        assert con.execute(f"SELECT {columns} FROM t AS {alias} {end}", ["duck lake"]).fetchall() == expected
    assert con.execute("SELECT id FROM t WHERE match(body, 'sail') ORDER BY score(t) DESC, id LIMIT 2").fetchall() == [
        (row["id"],) for row in dataset.to_table(columns=["id"], full_text_query="sail", limit=2).to_pylist()
    ]


def searched(texts: Texts) -> tuple[str, list[str]]:
    """Return a statement that a search answers in advance, with placeholders for its `match` conditions."""
    pick = texts.random
    conditions = [texts.call(pick.choice(["match", "all", "phrase"]))[0] for _ in range(pick.choice([1, 1, 2]))]
    other = pick.choice(["", " AND k < 2", " AND t.id > 7 AND k <> 1"])
    where = "WHERE " + " AND ".join("{}" for _ in conditions) + other
    end = f"LIMIT {pick.randrange(1, 12)}" + pick.choice(["", " OFFSET 3"])
    return (
        f"SELECT *, score(t) AS s FROM t {where} ORDER BY {pick.choice(['s', 'score(t)'])} DESC, id {end}",
        conditions,
    )


SELECTS = (
    "SELECT * FROM t WHERE {0} ORDER BY id",
    "SELECT *, score(t) FROM t WHERE {0} OR {2} ORDER BY id",
    "FROM t WHERE {0} ORDER BY id",
    "SELECT id, {0}, CASE WHEN {1} THEN 1 WHEN ({0}) IS NULL THEN 2 END FROM t ORDER BY id",
    "SELECT t.* EXCLUDE (k), n FROM t JOIN u ON k = n AND {0} WHERE {1} ORDER BY ALL",
    "SELECT * REPLACE (-k AS k) FROM t LEFT JOIN u ON k = n AND ({0}) WHERE id % 2 = 0 OR {1} ORDER BY id, n",
    "SELECT u.*, id, {0}, score(t) FROM u LEFT JOIN t ON k = n AND {2} ORDER BY ALL",
    "SELECT n FROM u WHERE EXISTS (FROM t WHERE k = n AND {0}) ORDER BY n",
    "SELECT n, (SELECT count(*) FROM t WHERE k = n AND {0}) AS c FROM u ORDER BY n",
    "SELECT n, x.* FROM u, LATERAL (SELECT id, body FROM t WHERE k = n AND {0} ORDER BY id LIMIT 3) AS x ORDER BY ALL",
    "SELECT n FROM u SEMI JOIN t ON k = n AND {0} ORDER BY n",
    "SELECT id FROM t ANTI JOIN u ON k = n AND {0} WHERE {1} ORDER BY id",
    "WITH c AS (SELECT id, {0} AS m FROM t WHERE {1}) SELECT m, count(*) FROM c GROUP BY m ORDER BY m",
    "SELECT id FROM t WHERE {0} UNION ALL SELECT -id FROM t WHERE NOT ({0}) ORDER BY ALL",
    "SELECT k, max(score(t)), count(*) FILTER (WHERE {0}) FROM t WHERE {2} GROUP BY k ORDER BY k",
    "SELECT DISTINCT ON (k) * FROM t WHERE {0} ORDER BY k, id",
    "SELECT id, row_number() OVER (PARTITION BY {0} ORDER BY id) AS r FROM t QUALIFY r < 3 OR {1} ORDER BY id",
    "SELECT i, id FROM (SELECT id AS i FROM t AS x WHERE match(x.body, 'duck')) JOIN t ON i > id AND {0} ORDER BY ALL",
    "SELECT id FROM t AT (VERSION => 2) WHERE {0} ORDER BY id",
    "SELECT id FROM lance_scan('t', version := '3') AS t WHERE {0} ORDER BY id",
    "SELECT body, {0} AS m FROM t GROUP BY body, id ORDER BY id",
    "SELECT to_json(t) FROM t WHERE {0} ORDER BY id",
)
CHANGES = (
    "UPDATE t SET k = 10 + k WHERE {0}",
    "UPDATE t SET k = CASE WHEN {0} THEN 20 ELSE k END FROM u WHERE k = n OR {1}",
    "DELETE FROM t WHERE {0} AND k = 1",
    "DELETE FROM t USING u WHERE k = n AND n = 2 AND ({0}) RETURNING id",
    "INSERT INTO t SELECT id + 100, k, body FROM t WHERE {0}",
    "CREATE OR REPLACE TABLE copied AS SELECT *, score(t) AS s FROM t WHERE {0} OR {2}",
    "CREATE OR REPLACE TEMP TABLE own AS SELECT * FROM t WHERE {0}",
    "CREATE OR REPLACE VIEW seen AS SELECT * FROM t WHERE {0}",
    "MERGE INTO t USING (SELECT id AS i FROM t WHERE {0}) AS s ON id = i WHEN MATCHED AND {1} THEN UPDATE SET k = 30",
)
ANYWHERE = (
    "MERGE INTO t USING u ON k = n AND {0} WHEN MATCHED THEN UPDATE SET k = 40 + t.id "
    "WHEN NOT MATCHED THEN INSERT VALUES (500 + n, n, 'a duck')",
    "MERGE INTO t USING u ON t.id = n WHEN MATCHED AND {0} THEN DELETE "
    "WHEN NOT MATCHED BY SOURCE AND {1} THEN UPDATE SET k = 50",
    "MERGE INTO t USING u ON t.id = n AND {0} WHEN NOT MATCHED BY SOURCE AND t.id > 50 THEN DELETE",
    "UPDATE t SET k = 10 + k WHERE {0}",
    "UPDATE t SET body = body || ' a goose', k = CASE WHEN {0} THEN 60 ELSE k END FROM u WHERE k = n OR {1}",
    "DELETE FROM t USING u WHERE k = n AND ({0}) AND t.id > 20 RETURNING id",
    "DELETE FROM t WHERE ({0}) AND k % 4 = 1",
    "INSERT INTO t SELECT id + 100, k, body FROM t WHERE {0}",
    "SELECT COLUMNS(lambda c: c <> 'body') FROM t WHERE {0} ORDER BY ALL",
    "SELECT COLUMNS('k|id'), COLUMNS(*) FROM t WHERE {0} OR {1} ORDER BY ALL",
    "PIVOT (SELECT k, {0} AS m FROM t) ON m IN (true, false) USING count(*) ORDER BY ALL",
    "SELECT * FROM (SELECT k, {0} AS m FROM t WHERE {1}) PIVOT (count(*) FOR m IN (true, false)) ORDER BY ALL",
    "UNPIVOT (SELECT id, k, ({0})::INTEGER AS m FROM t) ON k, m",
    "SELECT t FROM t WHERE {0} ORDER BY id",
)
KEPT = ("copied", "own", "seen", "t")


def write(texts: Texts, folder: Path) -> Path:
    """Write a table of strings with an index over the first 40, and a table of numbers."""
    table = pa.table({"id": range(ROWS), "k": [i % 4 for i in range(ROWS)], "body": pa.array(texts.texts, pa.string())})
    dataset = ld.write_dataset(table[:40], folder / "t.lance")
    dataset.create_scalar_index("body", "INVERTED", with_position=True)
    dataset.insert(table[40:])
    ld.write_dataset(pa.table({"n": [1, 2, 3, 7]}), folder / "u.lance")
    return folder


@pytest.mark.parametrize("seed", range(2))
def test_match_in_any_clause_equals_matching_each_string(
    seed: int, tmp_path: Path, connect: Callable[..., ld.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = Texts(100 + seed)
    searched, plain = connect(write(texts, tmp_path / "a")), connect(write(texts, tmp_path / "b"))
    columns_of, used = MatchColumns.of, []

    def of(*arguments: object) -> MatchColumns | None:
        found = columns_of(*arguments) if used is not None else None  # type: ignore[arg-type]
        if found is not None:
            used.append(found)
        return found

    def run(con: ld.Connection, sql: str, *, relation: bool) -> tuple[list[str], list[tuple[object, ...]]]:
        monkeypatch.setattr(MatchColumns, "of", of if con is searched else lambda *_: None)
        result = con.sql(sql) if relation else con.execute(sql)
        titles = [] if result is None else [column[0] for column in result.description]
        return titles, [] if result is None else result.fetchall()

    statements = [(sql, False) for sql in texts.random.sample(SELECTS, 10)]
    statements += [(sql, True) for sql in CHANGES] + [(sql, False) for sql in texts.random.sample(SELECTS, 5)]
    for template, changes in statements:
        conditions = texts.condition()[0], texts.condition()[0], texts.call(texts.random.choice(["match", "phrase"]))[0]
        sql, relation = template.format(*conditions), texts.random.random() < 0.5
        before = len(used)
        assert run(searched, sql, relation=relation) == run(plain, sql, relation=relation), sql
        is_asked = "match" in sql and "GROUP BY body" not in sql and "to_json" not in sql
        assert (len(used) > before) == is_asked, sql
        if changes:
            names = [name for name in KEPT if name == "t" or f" {name} AS" in sql]
            rows = [
                [con.execute(f"SELECT * FROM {name} ORDER BY ALL").fetchall() for name in names]
                for con in (searched, plain)
            ]
            assert rows[0] == rows[1], sql


@pytest.mark.parametrize("in_transaction", [False, True])
def test_match_conditions_in_every_clause_equal_a_case_expression(
    tmp_path: Path, connect: Callable[..., ld.Connection], *, in_transaction: bool
) -> None:
    """A CASE over row numbers reproduces the match results that a SELECT returns."""
    texts = Texts(900 + in_transaction)
    ours, other = connect(write(texts, tmp_path / "a")), connect(write(texts, tmp_path / "b"))
    for template in texts.random.sample(ANYWHERE, 5):
        for con in (ours, other):
            if in_transaction:
                con.begin()
                con.execute("UPDATE t SET body = 'the duck' WHERE id = 8")
        conditions = [texts.condition()[0] for _ in range(2)]
        known = [_known(ours, condition) for condition in conditions]
        answers = [
            con.execute(template.format(*parts)).fetchall() for con, parts in ((ours, conditions), (other, known))
        ]
        assert sorted(map(repr, answers[0])) == sorted(map(repr, answers[1])), (template, conditions)
        assert _rows(ours) == _rows(other), (template, conditions)
        for con in (ours, other):
            if in_transaction:
                con.commit()
        assert _rows(ours) == _rows(other), (template, conditions)


def _known(con: ld.Connection, condition: str) -> str:
    said = dict(con.execute(f"SELECT t.id, {condition} FROM t").fetchall())
    true, false = ([-1, *(row for row, holds in said.items() if holds is which)] for which in (True, False))
    return f"CASE WHEN t.id IN {tuple(true)} THEN true WHEN t.id IN {tuple(false)} THEN false END".replace(",)", ")")


def _rows(con: ld.Connection) -> list[tuple[object, ...]]:
    return con.execute("SELECT * FROM t ORDER BY ALL").fetchall()


def test_changes_in_a_transaction_do_not_analyse_strings(
    tmp_path: Path, connect: Callable[..., ld.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ld.write_dataset({"id": range(9), "body": ["a duck", "a lake", "duck"] * 3}, tmp_path / "t.lance")
    table.create_scalar_index("body", "INVERTED")
    con = connect(tmp_path)
    asked: list[object] = []
    monkeypatch.setattr(TextFunctions, "match", lambda *arguments: asked.append(arguments))
    con.begin()
    assert con.execute("DELETE FROM t WHERE match(body, 'lake')").fetchall() == [(3,)]
    con.execute("UPDATE t SET id = id + 100, body = 'a goose' WHERE match(body, ?) AND id < 3", ["duck"])
    assert con.execute("SELECT id FROM t WHERE match(body, 'goose') ORDER BY id").fetchall() == [(100,), (102,)]
    con.execute("DELETE FROM t WHERE match(body, 'goose') AND id > 100")
    con.commit()
    assert con.execute("SELECT id FROM t ORDER BY id").fetchall() == [(3,), (5,), (6,), (8,), (100,)]
    assert asked == []
