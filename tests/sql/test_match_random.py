"""Random conditions with `match`, beside a plain model: sets of terms, and AND, OR and NOT of SQL."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.duck.full_text import matched_rows

WORDS = ["duck", "Ducks", "lake", "goose", "the", "sail", "stone", "stones", "a"]
ROWS = 60
Model = Callable[[int], "bool | None"]


class Texts:
    """Random texts, and what a condition says of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.texts = [None if i % 11 == 3 else self.words(self.random.randrange(9)) for i in range(ROWS)]
        self.terms = [None if text is None else terms_of(text) for text in self.texts]

    def words(self, count: int) -> str:
        return " ".join(self.random.choices(WORDS, k=count))

    def condition(self, depth: int = 0) -> tuple[str, Model]:
        """Return a condition, and what it says of each row."""
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
    """Return the terms of a text with their places, the first of which is 0."""
    return {(token.text, token.position) for token in ld.tokenize(text)}


def both(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def either(a: bool | None, b: bool | None) -> bool | None:
    return True if a or b else None if a is None or b is None else False


@pytest.mark.parametrize("seed", range(3))
def test_rows_are_those_of_the_model(seed: int, tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
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


def test_a_search_beforehand_gives_what_duckdb_finds_alone(
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
            # A condition that is no constant, and always holds, keeps the rule from finding anything.
            alone = sql.format(*(f"({condition} OR random() > 2)" for condition in conditions))
            assert run(sql.format(*conditions)).fetchall() == run(alone).fetchall(), sql
        assert len(seen) == searches + 2
        assert all(seen)


def searched(texts: Texts) -> tuple[str, list[str]]:
    """Return a statement that a search answers beforehand, with places for its conditions with `match`."""
    pick = texts.random
    conditions = [texts.call(pick.choice(["match", "all", "phrase"]))[0] for _ in range(pick.choice([1, 1, 2]))]
    other = pick.choice(["", " AND k < 2", " AND t.id > 7 AND k <> 1"])
    where = "WHERE " + " AND ".join("{}" for _ in conditions) + other
    if pick.random() < 0.3:
        return f"SELECT count(*), min(id), sum(k) FROM t {where}", conditions
    if pick.random() < 0.3:
        return f"SELECT id, body, score(t) FROM t {where} ORDER BY id", conditions
    end = f"LIMIT {pick.randrange(12)}" + pick.choice(["", " OFFSET 3"])
    return (
        f"SELECT *, score(t) AS s FROM t {where} ORDER BY {pick.choice(['s', 'score(t)'])} DESC, id {end}",
        conditions,
    )
