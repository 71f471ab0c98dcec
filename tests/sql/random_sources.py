"""Random queries and views that pass a string column to a SELECT, and SELECTs with `match` over them."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Final

from lance_duck.duck.statement.identifiers import quoted

WORDS: Final = ["duck", "Ducks", "lake", "goose", "the", "sail", "stone", "stones", "a"]
TABLES: Final = ("t", "lance.t", "other.t", "T", "lance.main.t", "pairs", '"odd name"')
"""Tables with the columns id, k and body."""
_ALIASES: Final = ("s", "t", "x", "y", "a b", "Row x", "S2", 'q"q', "v0", "body", "Select")
_NAMES: Final = ("body", "b", "B c", "text", "words", "score")


@dataclass(frozen=True)
class Source:
    """The source of a SELECT.

    Attributes:
        sql: The FROM item, without an alias.
        id, k, text: Names of its columns.
    """

    sql: str
    id: str
    k: str
    text: str


class RandomSources:
    """Maker of random sources and SELECTs.

    Args:
        seed: Seed of the random numbers.
        places: Where views may be made, as they begin a name.
        path: Path of a table.
        has_limits: Whether queries within others may have LIMIT.
    """

    def __init__(self, seed: int, places: tuple[str, ...], path: str, *, has_limits: bool = True) -> None:
        self.random = random.Random(seed)
        self.views: list[tuple[str, Source]] = []
        self._places = places
        self._limit = " LIMIT 25" if has_limits else ""
        self._tables = (*TABLES, f"'{path}'", f"lance_scan('{path}')")
        self._ctes: list[str] = []
        self._known: list[Source] = []

    def view(self) -> str:
        """Return a statement that makes a view over a random source."""
        source = self._source(self.random.choice([0, 1, 1, 2]), in_view=True)
        place = self.random.choice(self._places)
        name = f"v{len(self.views)}"
        items = self._items(source, "z")
        end = self._end(source, "z")
        if self._ctes:
            query = f"WITH {', '.join(self._ctes)} {items[0]} FROM {source.sql} AS z {end}"
        else:
            query = f"{items[0]} FROM {source.sql} AS z {end}"
        self._ctes, self._known = [], []
        if not place and any(re.search(rf"\b{re.escape(view)}\b", query) for view, _ in self.views):
            place = "memory.main."  # a view of the folder cannot read views of other databases
        temporary = "TEMP " if place == "temp." else ""
        self.views.append((f"{'' if temporary else place}{name}", items[1]))
        return f"CREATE OR REPLACE {temporary}VIEW {'' if temporary else place}{name} AS {query}"

    def select(self) -> str:
        """Return a SELECT with `match` over random sources."""
        self._ctes, self._known = [], []
        kind = self.random.choice(_SELECTS)
        source, alias = self._source(self.random.choice([1, 1, 2, 3])), self.random.choice(_ALIASES)
        other = self._source(self.random.choice([0, 1, 2]))
        s = quoted(alias) if self.random.random() < 0.7 or not alias.isidentifier() or alias == "Select" else alias
        text = f"{s}.{quoted(source.text)}" if self.random.random() < 0.7 or "o." in kind else quoted(source.text)
        calls = [self._call(text) for _ in range(3)]
        sql = kind.format(
            s=s,
            source=source.sql,
            other=other.sql,
            id=f"{s}.{quoted(source.id)}",
            k=f"{s}.{quoted(source.k)}",
            text=text,
            oid=quoted(other.id),
            otext=f"o.{quoted(other.text)}",
            m=self._condition(calls, f"{s}.{quoted(source.id)}"),
            m1=calls[1],
            m2=calls[2],
            om=self._call(f"o.{quoted(other.text)}"),
        )
        return f"WITH {', '.join(self._ctes)} {sql}" if self._ctes else sql

    def _call(self, text: str) -> str:
        words = " ".join(self.random.choices(WORDS, k=self.random.randrange(1, 3)))
        return self.random.choice(
            [
                f"match({text}, '{words}')",
                f"match({text}, '{words}', operator := 'AND')",
                f"match({text}, $q)",
                f"match_phrase({text}, '{words}')",
                f"match({text}, '{words}', fuzziness := 1)",
            ]
        )

    def _condition(self, calls: list[str], id_: str) -> str:
        return self.random.choice(
            ["{0}", "{0}", "{0} AND {1}", "{0} OR {1}", "NOT {0}", "{0} AND {i} > 7", "({0} OR {i} < 5) AND {1}"]
        ).format(*calls, i=id_)

    def _source(self, depth: int, *, in_view: bool = False) -> Source:
        if depth == 0:
            kinds = [Source(self.random.choice(self._tables), "id", "k", "body")]
            kinds += [Source(name, view.id, view.k, view.text) for name, view in self.views[-6:]] * 2
            if not in_view:
                kinds.append(Source("t AT (VERSION => 3)", "id", "k", "body"))
            return self.random.choice(kinds + self._known * 2)
        below = self._source(depth - 1, in_view=in_view)
        alias = self.random.choice(_ALIASES)
        items, source = self._items(below, alias)
        query = f"FROM {below.sql} AS {quoted(alias)} {self._join(below, alias)}{self._end(below, alias)}"
        starts = "SELECT *" in items and items == "SELECT *" and self.random.random() < 0.3
        sql = query if starts else f"{items} {query}"
        if self.random.random() < 0.35:
            name = self.random.choice([f"c{len(self._ctes)}", f"c{len(self._ctes)}", f"t{len(self._ctes)}"])
            word = self.random.choice(["", "", "MATERIALIZED ", "NOT MATERIALIZED "])
            self._ctes.append(f"{name} AS {word}({sql})")
            cte = Source(name, source.id, source.k, source.text)
            self._known.append(cte)
            return cte
        return Source(f"({sql})", source.id, source.k, source.text)

    def _items(self, below: Source, alias: str) -> tuple[str, Source]:
        a = quoted(alias)
        plain = Source("", below.id, below.k, below.text)
        name, number = self.random.choice([n for n in _NAMES if n != below.text]), self.random.choice(["i", "ID x"])
        columns = f"{a}.{quoted(below.id)} AS {quoted(number)}, {a}.{quoted(below.k)}, {a}.{quoted(below.text)}"
        renamed = Source("", number, below.k, name)
        return self.random.choice(
            [
                *[("SELECT *", plain), (f"SELECT {a}.*", plain)] * 3,
                (f"SELECT {columns} AS {quoted(name)}", renamed),
                (f"SELECT {columns} {quoted(name)}", renamed),
                (
                    f"SELECT *, {quoted(below.text)} || '!' AS more, "
                    f"row_number() OVER (ORDER BY {quoted(below.id)}) AS r",
                    plain,
                ),
                (f"SELECT {a}.* EXCLUDE ({quoted(below.k)}), {a}.{quoted(below.k)} AS {quoted(below.k)}", plain),
                (f"SELECT DISTINCT {a}.{quoted(below.id)}, {a}.{quoted(below.k)}, {a}.{quoted(below.text)}", plain),
            ]
        )

    def _join(self, below: Source, alias: str) -> str:
        k = f"{quoted(alias)}.{quoted(below.k)}"
        number = f"n{self.random.randrange(10**9)}"
        return self.random.choice(
            ["", "", "", f"LEFT JOIN (SELECT n AS {number} FROM u) AS u ON {k} = {number} ", f"SEMI JOIN u ON {k} = n "]
        )

    def _end(self, below: Source, alias: str) -> str:
        id_ = f"{quoted(alias)}.{quoted(below.id)}"
        call = self._call(f"{quoted(alias)}.{quoted(below.text)}").replace("$q", "'lake'")
        return self.random.choice(
            [
                *("", "", f"WHERE {id_} > 3", f"WHERE {call}", f"ORDER BY {id_}, {quoted(alias)}.{quoted(below.text)}"),
                f"WHERE {id_} % 3 <> 1 ORDER BY {id_} DESC, {quoted(alias)}.{quoted(below.text)}{self._limit}",
                f"QUALIFY row_number() OVER (PARTITION BY {id_} ORDER BY {quoted(alias)}.{quoted(below.text)}) = 1",
            ]
        )


_SELECTS: Final = (
    "SELECT * FROM {source} AS {s} WHERE {m}",
    "SELECT {s}.*, score({s}) FROM {source} AS {s} WHERE {m1} AND {m2}",
    "SELECT {id}, score({s}) AS p FROM {source} AS {s} WHERE {m1} OR {m2} ORDER BY p DESC, {id} LIMIT 7",
    "SELECT {id} FROM {source} AS {s} WHERE {m1} ORDER BY score({s}) DESC, {id} LIMIT 5",
    "FROM {source} AS {s} WHERE {m}",
    "SELECT {id}, {m1}, CASE WHEN {m2} THEN 1 END FROM {source} AS {s}",
    "SELECT * FROM {source} AS {s} JOIN {other} AS o ON {id} = o.{oid} WHERE {m1} AND {om}",
    "SELECT * FROM u LEFT JOIN {source} AS {s} ON {k} = n AND {m}",
    "SELECT n, {id}, score({s}), {m1} FROM u LEFT JOIN {source} AS {s} ON {k} = n AND {m1}",
    "SELECT {k}, count(*) FILTER (WHERE {m1}), max(score({s})) FROM {source} AS {s} WHERE {m2} GROUP BY {k}",
    "SELECT {m1} AS m, count(*) FROM {source} AS {s} GROUP BY m",
    "SELECT DISTINCT {k} FROM {source} AS {s} WHERE {m}",
    "SELECT n, EXISTS (SELECT 1 FROM {source} AS {s} WHERE {k} = n AND {m1}) FROM u",
    "SELECT {id} FROM {source} AS {s} WHERE {m} UNION ALL SELECT o.{oid} FROM {other} AS o WHERE {om}",
    "SELECT {s} FROM {source} AS {s} WHERE {m}",
    "SELECT n, y.* FROM u, LATERAL (SELECT * FROM {source} AS {s} WHERE {k} = n AND {m1}) AS y",
    "SELECT highlight({text}, 'duck') AS h, {id} FROM {source} AS {s} WHERE {m1}",
    "SELECT {text}, {m1} FROM {source} AS {s} GROUP BY {text}",
    "SELECT count(*) FROM {source} AS {s} WHERE {m}",
    "SELECT {id}, row_number() OVER (ORDER BY score({s}) DESC, {id}) FROM {source} AS {s} WHERE {m1} QUALIFY {m2}",
    "SELECT * FROM (SELECT * FROM {source} AS {s} WHERE {m1}) AS w",
    "SELECT COLUMNS(c -> c <> 'k') FROM {source} AS {s} WHERE {m}",
    "SELECT * REPLACE ({id} + 1 AS {oid}) FROM {other} AS o JOIN {source} AS {s} ON false WHERE {om}",
)
