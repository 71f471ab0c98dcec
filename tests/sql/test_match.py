"""`match`, `match_phrase` and `score` in plain SQL."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import lance_duck as ld

TEXTS = [
    "a small duck by the lake",
    "the lake",
    "duck, duck, goose",
    None,
    "ducks on a lake: duck lake",
    "sail the lake of ducks",
    "stones",
    "a lake",
]
DUCKS = [0, 2, 4, 5]


def notes() -> pa.Table:
    return pa.table(
        {
            "id": range(len(TEXTS)),
            "body": TEXTS,
            "tags": [["duck"], [], None, ["lake", "duck lake"], ["x"], [None], ["y"], ["duck", "lake"]],
            "s": [{"title": text} for text in TEXTS],
        }
    )


def write(folder: Path, index: str) -> None:
    dataset = ld.write_dataset(notes()[:4], folder / "notes.lance")
    if index == "part of an index":
        dataset.create_scalar_index("body", "INVERTED", with_position=True)
    dataset.insert(notes()[4:])
    if index == "index":
        dataset.create_scalar_index("body", "INVERTED", with_position=True)
    ld.write_dataset(pa.table({"n": [1, 2, 3], "words": ["duck", "goose stones", None]}), folder / "queries.lance")


@pytest.fixture(scope="module", params=["no index", "part of an index", "index"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("notes")
    write(folder, request.param)
    return folder


@pytest.fixture
def own(tmp_path: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    """Tables that a test may change."""
    write(tmp_path, "part of an index")
    return connect(tmp_path)


@pytest.fixture
def con(folder: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    return connect(folder)


def ids(con: ld.Connection, sql: str, *parameters: object) -> list[int]:
    return sorted(row[0] for row in con.execute(sql, *parameters).fetchall())


def test_the_best_matches_come_first_with_the_scores_of_a_search(con: ld.Connection, folder: Path) -> None:
    sql = "SELECT id, score(notes) FROM notes WHERE match(body, 'duck lake') ORDER BY score(notes) DESC, id LIMIT 4"
    found = con.execute(sql)
    assert [name for name, *_ in found.description] == ["id", "score(notes)"]
    best = ld.dataset(folder / "notes.lance").search("duck lake", 4, "body", columns=["id"])
    assert found.fetchall() == [tuple(row.values()) for row in best.to_pylist()]


def test_match_options_equal_those_of_a_match_query(con: ld.Connection) -> None:
    assert ids(con, "FROM notes SELECT id WHERE match(body, 'duck lake', operator := 'and')") == [0, 4, 5]
    assert ids(con, "FROM notes SELECT id WHERE match(body, 'dock')") == []
    assert ids(con, "FROM notes SELECT id WHERE match(body, 'dock', fuzziness := 1)") == DUCKS
    assert ids(con, "FROM notes SELECT id WHERE match(body, 'dock', fuzziness => NULL, max_expansions => 3)") == DUCKS
    assert ids(con, "FROM notes SELECT id WHERE match(body, 'dock', fuzziness := 1, prefix_length := 2)") == []
    both = "SELECT max(score(a)), 0 FROM notes a WHERE match(body, 'duck'{})"
    ((plain, _),) = con.execute(both.format("")).fetchall()
    assert con.execute(both.format(", boost := 2.0")).fetchall() == [(2 * plain, 0)]
    assert ids(con, "FROM notes SELECT id WHERE match_phrase(body, 'duck lake')") == [4]
    assert ids(con, "FROM notes SELECT id WHERE match_phrase(body, 'lake ducks', 1)") == [4, 5]
    assert ids(con, "FROM notes SELECT id WHERE match_phrase(body, 'lake ducks', slop := 1)") == [4, 5]


def test_match_accepts_parameters_for_words_and_options(con: ld.Connection) -> None:
    assert ids(con, "SELECT id FROM notes WHERE id > ? AND match(body, ?)", [1, "duck"]) == [2, 4, 5]
    sql = "SELECT id, score(n) FROM notes n WHERE match(body, ?, operator := ?) AND id < ?"
    assert ids(con, sql, ["duck lake", "AND", 5]) == [0, 4]
    named = "SELECT id FROM notes WHERE match(body, $words, fuzziness := $edits)"
    assert ids(con, named, {"words": "dock", "edits": 1}) == DUCKS
    con.execute("PREPARE p AS SELECT id FROM notes WHERE match(body, ?)")
    assert [ids(con, f"EXECUTE p('{words}')") for words in ("goose", "stones", "goose")] == [[2], [6], [2]]


def test_match_combines_with_other_conditions(con: ld.Connection) -> None:
    assert ids(con, "SELECT id FROM notes WHERE NOT match(body, 'duck')") == [1, 6, 7]
    assert ids(con, "SELECT id FROM notes WHERE match(body, 'stones') OR id = 1 AND match(body, 'lake')") == [1, 6]
    listed = "SELECT id, match(body, 'duck') AS d, CASE WHEN match(body, 'stones') THEN 's' END FROM notes ORDER BY id"
    rows = con.execute(listed).fetchall()
    assert [row[1] for row in rows] == [True, False, True, None, True, True, False, False]
    assert [row[2] for row in rows] == [*[None] * 6, "s", None]
    counts = "SELECT count(*) FILTER (match(body, 'duck')), count(*) FILTER (match(body, 'lake')) FROM notes"
    assert con.execute(counts).fetchall() == [(4, 5)]
    assert con.execute("SELECT count(*) FROM notes WHERE match(body, 'duck')").fetchall() == [(4,)]
    groups = "SELECT match(body, 'lake'), count(*) FROM notes GROUP BY match(body, 'lake') ORDER BY ALL"
    assert con.execute(groups).fetchall() == [(False, 2), (True, 5), (None, 1)]


def test_match_of_null_is_null_and_words_without_terms_match_nothing(con: ld.Connection) -> None:
    assert ids(con, "SELECT id FROM notes WHERE match(body, 'duck') IS NULL") == [3]
    assert ids(con, "SELECT id FROM notes WHERE match(body, NULL) IS NULL") == list(range(8))
    assert ids(con, "SELECT id FROM notes WHERE match(body, ?) IS NULL", [None]) == list(range(8))
    assert ids(con, "SELECT id FROM notes WHERE match(body, 'the') OR match(body, '')") == []
    assert ids(con, "SELECT id FROM notes WHERE match(tags, 'duck') IS NULL") == [2, 5]


def test_match_accepts_lists_and_struct_fields(con: ld.Connection) -> None:
    assert ids(con, "SELECT id FROM notes WHERE match(tags, 'duck')") == [0, 3, 7]
    assert ids(con, "SELECT id FROM notes WHERE match_phrase(tags, 'duck lake')") == [3, 7]
    assert ids(con, "SELECT id FROM notes n WHERE match(n.S.title, 'duck')") == DUCKS


def test_scores_of_several_matches_are_added(con: ld.Connection) -> None:
    one = "SELECT id, score(notes) FROM notes WHERE match(body, '{}')"
    duck, lake = (dict(con.execute(one.format(word)).fetchall()) for word in ("duck", "lake"))
    either = "SELECT id, score(n) FROM notes n WHERE match(n.body, 'duck') OR match(body, 'lake') OR id = 6"
    expected = {i: float(pa.scalar(duck.get(i, 0) + lake.get(i, 0), pa.float32())) for i in {*duck, *lake, 6}}
    assert dict(con.execute(either).fetchall()) == pytest.approx(expected, rel=1e-6)
    kept = "SELECT id, score(notes) FROM notes WHERE match(body, 'duck') AND NOT match(body, 'goose')"
    assert dict(con.execute(kept).fetchall()) == {i: duck[i] for i in (0, 4, 5)}
    twice = "SELECT id, score(notes), match(body, 'lake') FROM notes WHERE match(body, 'duck') AND match(body, 'duck')"
    assert {row[0]: row[1] for row in con.execute(twice).fetchall()} == duck
    above = "SELECT id FROM notes WHERE match(body, 'duck') AND score(notes) > 0.6"
    assert ids(con, above) == [i for i in duck if duck[i] > 0.6]
    best = "SELECT id FROM notes WHERE match(body, 'duck') QUALIFY row_number() OVER (ORDER BY score(notes) DESC) = 1"
    assert ids(con, best) == [2]


def test_a_filter_does_not_change_scores(con: ld.Connection) -> None:
    every = dict(con.execute("SELECT id, score(notes) FROM notes WHERE match(body, 'duck')").fetchall())
    some = con.execute("SELECT id, score(notes) FROM notes WHERE id > 3 AND match(body, 'duck')").fetchall()
    assert dict(some) == {i: every[i] for i in (4, 5)}
    first = "SELECT id FROM notes WHERE match(body, 'duck') AND id <> 2 ORDER BY score(notes) DESC LIMIT 1"
    assert ids(con, first) == [4]


def test_match_accepts_tables_by_path_and_of_other_databases(con: ld.Connection, folder: Path) -> None:
    sql = "SELECT id FROM {} WHERE match(body, 'duck')"
    assert ids(con, sql.format(f"'{folder}/notes.lance'")) == DUCKS
    assert ids(con, sql.format(f"lance_scan('{folder}/notes.lance')")) == DUCKS
    assert ids(con, sql.format("notes AT (VERSION => 1)")) == [0, 2]
    assert ids(con, "SELECT id FROM notes AT (VERSION => ?) n WHERE match(n.body, ?)", [1, "duck"]) == [0, 2]
    con.execute(f"ATTACH '{folder}' AS other (TYPE lance)")
    assert ids(con, sql.format("other.notes")) == DUCKS
    assert ids(con, sql.format("lance.main.NOTES")) == DUCKS


def test_scores_of_an_older_version_use_its_statistics(con: ld.Connection, folder: Path) -> None:
    old = ld.dataset(folder / "notes.lance", version=1).search("duck", 9, "body", columns=["id"]).to_pylist()
    sql = "SELECT id, score(notes) FROM notes AT (VERSION => 1) WHERE match(body, 'duck')"
    assert dict(con.execute(sql).fetchall()) == {row["id"]: row["_score"] for row in old}


def test_an_older_version_uses_its_column_names(own: ld.Connection) -> None:
    own.execute("ALTER TABLE notes RENAME COLUMN body TO words")
    own.execute("ALTER TABLE notes DROP COLUMN tags")
    for version in ("2", "'2'"):
        old = f"FROM notes AT (VERSION => {version}) WHERE match({{}}, 'duck') ORDER BY score(notes) DESC, id LIMIT 1"
        assert own.execute("SELECT id, highlight(body, 'duck') " + old.format("body")).fetchall() == [
            (2, "<b>duck</b>, <b>duck</b>, goose")
        ]
        assert own.execute("SELECT id " + old.format("tags")).fetchall() == [(0,)]
    with pytest.raises(ld.UnknownColumnError, match="no Lance table in this SELECT has a column 'words'"):
        own.execute("SELECT id FROM notes AT (VERSION => 2) WHERE match(words, 'duck')")
    assert own.execute("SELECT id FROM notes WHERE match(words, 'goose')").fetchall() == [(2,)]


def test_match_works_in_joins_subqueries_and_unions(con: ld.Connection) -> None:
    joined = (
        "SELECT a.id FROM notes a JOIN notes b ON a.id = b.id + 1 WHERE match(a.body, 'lake') AND match(b.body, 'lake')"
    )
    assert ids(con, joined) == [1, 5]
    on = "SELECT q.n, id FROM queries q LEFT JOIN notes ON match(body, q.words) AND id > 2 ORDER BY ALL"
    assert con.execute(on).fetchall() == [(1, 4), (1, 5), (2, 6), (3, None)]
    best = (
        "SELECT n, x.id, s FROM queries, LATERAL (SELECT id, score(t) AS s FROM notes t WHERE match(t.body, words) "
        "ORDER BY score(t) DESC LIMIT 2) x ORDER BY n, s DESC"
    )
    rows = con.execute(best).fetchall()
    assert [(n, i) for n, i, _ in rows] == [(1, 2), (1, 4), (2, 6), (2, 2)]
    assert rows[0][2] == con.execute("SELECT max(score(a)) FROM notes a WHERE match(body, 'duck')").fetchall()[0][0]
    assert ids(con, "SELECT n FROM queries WHERE EXISTS (FROM notes WHERE match(body, words))") == [1, 2]
    assert ids(con, "WITH c AS (SELECT id FROM notes WHERE match(body, 'duck')) SELECT id + 1 FROM c") == [1, 3, 5, 6]
    union = "SELECT id FROM notes WHERE match(body, 'goose') UNION SELECT id FROM notes b WHERE match(b.body, 'stones')"
    assert ids(con, union) == [2, 6]
    native = "SELECT id FROM notes JOIN (VALUES (2), (6)) v(k) ON k = id WHERE match(notes.body, 'goose')"
    assert ids(con, native) == [2]


def test_a_cte_may_have_the_same_name_as_its_table(con: ld.Connection) -> None:
    sql = "WITH notes AS (SELECT * FROM notes WHERE match(body, 'duck')) SELECT id FROM notes ORDER BY id"
    assert con.execute(sql).fetchall() == [(i,) for i in DUCKS]


@pytest.mark.parametrize("call", ["match/* words */(body, 'duck')", "match -- words\n(body, 'duck')"])
def test_comments_are_allowed_before_match_arguments(con: ld.Connection, call: str) -> None:
    assert con.execute(f"SELECT id FROM notes WHERE {call} ORDER BY id").fetchall() == [(i,) for i in DUCKS]


@pytest.mark.parametrize(
    "source",
    [
        "WITH x AS (SELECT * FROM notes) SELECT id FROM x WHERE match(body, 'duck')",
        "WITH x AS (FROM notes) SELECT id FROM x AS y WHERE match(y.body, 'duck')",
        "SELECT id FROM (SELECT * FROM notes) WHERE match(body, 'duck')",
        "SELECT id FROM ((SELECT n.id, n.body FROM notes n)) WHERE match(BODY, 'duck')",
        "SELECT id FROM (SELECT id, s.title AS words FROM notes) q WHERE match(q.words, 'duck')",
        "SELECT id FROM (SELECT words: body, id FROM notes ORDER BY id LIMIT 100) q WHERE match(words, 'duck')",
        "SELECT id FROM (SELECT * EXCLUDE (tags) FROM notes) q WHERE match(q.s.title, 'duck')",
        "SELECT id FROM (SELECT n.*, q.n FROM notes n JOIN queries q ON q.n = 1) z WHERE match(z.body, 'duck')",
        "SELECT id FROM (SELECT id, body FROM notes JOIN queries q ON q.n = 1) z WHERE match(z.body, 'duck')",
        "SELECT id FROM (SELECT id, body FROM notes, (SELECT 1 AS one)) WHERE match(body, 'duck')",
        "WITH a AS (SELECT id, body b FROM notes), z AS (SELECT id, b c FROM a) FROM z SELECT id WHERE match(c,'duck')",
        "WITH notes AS (SELECT * FROM notes) SELECT id FROM notes WHERE match_phrase(notes.body, 'duck')",
        "SELECT id FROM (SELECT DISTINCT id, body FROM notes) q WHERE match(body, 'duck') AND score(q) > 0",
    ],
)
def test_match_works_on_columns_passed_through_subqueries(con: ld.Connection, source: str) -> None:
    assert ids(con, f"{source} ORDER BY id") == DUCKS


@pytest.mark.parametrize(
    "source",
    [
        "(SELECT id, lower(body) AS body FROM notes)",
        "(SELECT id, body FROM notes UNION ALL SELECT id, body FROM notes)",
        "(SELECT * REPLACE (lower(body) AS body) FROM notes)",
        "(SELECT * RENAME (body AS id, id AS body) FROM notes)",
        "(SELECT id, body FROM notes) AS x(id, body)",
        "(SELECT id, body FROM notes, (SELECT 1 AS body))",
        "(SELECT id, body FROM notes, range(1))",
        "(SELECT 1 AS id, 'duck' AS body)",
        "(VALUES (1, 'duck')) AS x(id, body)",
    ],
)
def test_match_on_a_computed_column_is_rejected_with_a_remedy(con: ld.Connection, source: str) -> None:
    sql = f"SELECT id FROM {source} WHERE match(body, 'duck') AND EXISTS (FROM notes)"
    with pytest.raises(ld.InvalidInputError, match="call the function in the SELECT that reads the table"):
        con.execute(sql)


def test_scores_through_queries_and_views_equal_those_of_the_table(con: ld.Connection) -> None:
    sql = "SELECT id, score(n) AS s FROM notes n WHERE match(body, 'lake duck') ORDER BY s DESC, id"
    expected = con.execute(sql).fetchall()
    con.execute("CREATE TEMP VIEW seen AS SELECT id AS number, body AS words FROM notes")
    con.execute("CREATE TEMP VIEW again AS FROM seen WHERE number < 100")
    con.execute("CREATE TEMP VIEW other(number, words) AS SELECT id, body FROM notes")
    for source in (
        "(SELECT id AS number, body AS words FROM notes)",
        "seen",
        "again",
        "(FROM again)",
    ):
        sql = f"SELECT number, score(q) AS s FROM {source} q WHERE match(words, 'lake duck') ORDER BY s DESC, number"
        assert con.execute(sql).fetchall() == expected
        assert con.sql(sql).fetchall() == expected
    marked = con.execute("SELECT highlight(words, 'goose') FROM seen WHERE match(words, $q)", {"q": "goose"})
    assert marked.fetchall() == [("duck, duck, <b>goose</b>",)]
    with pytest.raises(ld.InvalidInputError, match="call the function in the SELECT that reads the table"):
        con.execute("SELECT number FROM other, notes WHERE match(words, 'duck')")


def test_match_rejects_an_ambiguous_column_from_a_star(con: ld.Connection) -> None:
    sql = "SELECT id FROM (SELECT *, tags AS {} FROM notes) WHERE match({}, 'duck')"
    assert ids(con, sql.format("words", "words")) == [0, 3, 7]
    with pytest.raises(ld.InvalidInputError, match="body is not a column of a Lance table"):
        con.execute(sql.format("body", "body"))  # DuckDB reads the texts of `*`


def test_match_works_in_relations_and_views(con: ld.Connection) -> None:
    relation = con.sql("SELECT id, score(n) AS s FROM notes n WHERE match(body, 'duck')")
    assert relation.columns == ["id", "s"]
    assert relation.filter("s > 0.6").order("id").fetchall() == [
        (i, s) for i, s in relation.order("id").fetchall() if i in (2, 4)
    ]
    con.execute("CREATE TEMP VIEW ducks AS SELECT id, score(n) AS s FROM notes n WHERE match(body, 'duck')")
    assert con.execute("SELECT id FROM ducks ORDER BY s DESC LIMIT 2").fetchall() == [(2,), (4,)]
    assert con.sql("SELECT count(*) FROM ducks").fetchall() == [(4,)]


def test_match_selects_rows_for_changes(own: ld.Connection) -> None:
    assert own.execute("UPDATE notes SET id = id + 100 WHERE match(body, ?)", ["goose"]).fetchall() == [(1,)]
    assert ids(own, "SELECT id FROM notes WHERE match(body, 'duck')") == [0, 4, 5, 102]
    assert own.execute("DELETE FROM notes n WHERE match(n.body, 'stones') RETURNING id").fetchall() == [(6,)]
    own.execute("CREATE TABLE lance.ducks AS SELECT id, score(notes) AS s FROM notes WHERE match(body, 'duck')")
    assert ids(own, "SELECT id FROM ducks WHERE s > 0") == [0, 4, 5, 102]
    own.execute("INSERT INTO ducks SELECT id, 0 FROM notes WHERE match_phrase(body, 'the lake')")
    assert ids(own, "SELECT id FROM ducks WHERE s = 0") == [0, 1, 4, 5, 7]


def test_match_searches_changes_of_the_transaction(own: ld.Connection) -> None:
    own.begin()
    own.execute("UPDATE notes SET body = 'a stone duck' WHERE id = 1")
    assert ids(own, "SELECT id FROM notes WHERE match(body, 'duck')") == [0, 1, 2, 4, 5]
    scores = dict(own.execute("SELECT id, score(notes) FROM notes WHERE match(body, 'duck')").fetchall())
    own.rollback()
    assert ids(own, "SELECT id FROM notes WHERE match(body, 'duck')") == DUCKS
    own.execute("UPDATE notes SET body = 'a stone duck' WHERE id = 1")
    assert dict(own.execute("SELECT id, score(notes) FROM notes WHERE match(body, 'duck')").fetchall()) == scores


@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        ("SELECT score(notes) FROM notes", ld.InvalidInputError, "'notes' needs a match of one of its columns"),
        ("SELECT score(n) FROM notes n WHERE NOT match(body, 'x')", ld.InvalidInputError, "'n' needs a match"),
        ("SELECT 1 FROM notes WHERE match(id, 'x')", ld.WrongTypeError, "must contain strings.*found int64"),
        ("SELECT 1 FROM notes WHERE match(bodi, 'x')", ld.UnknownColumnError, "this SELECT has a column 'bodi'"),
        ("SELECT 1 FROM notes n WHERE match(n.bodi, 'x')", ld.UnknownColumnError, "no column 'bodi'"),
        ("SELECT 1 FROM notes WHERE match(body, 'x', fuzzyness := 1)", ld.WrongTypeError, "did you mean 'fuzziness'"),
        ("SELECT 1 FROM notes WHERE match(body, 'x', slop := 1)", ld.WrongTypeError, "unknown option 'slop'"),
        ("SELECT 1 FROM notes WHERE match(body, 'x', operator := 'XOR')", ld.InvalidInputError, "'AND' or 'OR'"),
        ("SELECT 1 FROM notes WHERE match(body, 'x', fuzziness := 'a')", ld.WrongTypeError, "fuzziness"),
        ("SELECT 1 FROM notes WHERE match(body, 12)", ld.WrongTypeError, "expected a string, found 12"),
        ("SELECT 1 FROM notes WHERE match(body, 'x', 1)", ld.InvalidInputError, "too many arguments"),
        ("SELECT 1 FROM notes WHERE match(lower(body), 'x')", ld.InvalidInputError, "found lower\\(body\\)"),
        ("SELECT 1 FROM notes a, notes b WHERE match(body, 'x')", ld.InvalidInputError, "several tables: a, b"),
        (
            "SELECT 1 FROM notes, (SELECT 'x' AS q) s WHERE match(s.q, 'x')",
            ld.InvalidInputError,
            "s.q is not a column of a Lance table",
        ),
        (
            "SELECT 1 FROM notes WHERE match(body, CASE WHEN match(body, 'x') THEN 'y' END)",
            ld.InvalidInputError,
            "cannot be an argument of",
        ),
    ],
)
def test_invalid_match_calls_are_rejected_with_their_position(
    con: ld.Connection, sql: str, kind: type[ld.LanceDuckError], message: str
) -> None:
    for run in (con.execute, con.sql):
        with pytest.raises(kind, match=message) as raised:
            run(sql)
        line, marks = str(raised.value).splitlines()[-2:]
        assert line == f"LINE 1: {sql}"
        assert line[marks.index("^") : marks.index("^") + marks.count("^")] in ("match", "score")


def test_invalid_match_values_are_rejected(con: ld.Connection) -> None:
    for words, edits in (("duck", "a"), ("duck", -1)):
        with pytest.raises(ld.InvalidInputError, match="fuzziness"):
            con.execute("SELECT id FROM notes WHERE match(body, ?, fuzziness := ?)", [words, edits])
    with pytest.raises(ld.InvalidInputError, match="an internal function of lance_duck"):
        con.execute("SELECT __lance_match(['a'], 'b', 'c', '')")


def test_duckdb_errors_quote_the_statement_of_the_user(con: ld.Connection) -> None:
    with pytest.raises(duckdb.BinderException) as raised:
        con.execute("SELECT nothing FROM notes WHERE match(body, 'duck')")
    assert "LINE 1: SELECT nothing FROM notes WHERE match(body, 'duck')" in str(raised.value)


def test_user_functions_and_columns_named_like_match_take_precedence(con: ld.Connection) -> None:
    assert con.execute("SELECT score FROM (SELECT 1 AS score), notes WHERE match(body, 'goose')").fetchall() == [(1,)]
    con.execute("CREATE TEMP MACRO match(a, b) AS a = b")
    con.execute("CREATE TEMP MACRO score(a) AS 7")
    assert ids(con, "SELECT id FROM notes WHERE match(body, 'stones')") == [6]
    assert ids(con, "SELECT score(id) FROM notes WHERE match(body, 'duck')") == []
    assert con.execute("SELECT max(score(id)) FROM notes").fetchall() == [(7,)]


def test_highlight_uses_the_analyser_of_the_column(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    texts = ["A Duck runs", "the lake of ducks, and more words than anyone reads", None]
    dataset = ld.write_dataset(pa.table({"id": range(3), "body": texts, "other": texts}), tmp_path / "t.lance")
    dataset.create_scalar_index("body", "INVERTED", stem=False)
    con = connect(tmp_path)
    found = con.execute("SELECT highlight(body, 'ducks lake') FROM t ORDER BY id")
    assert [name for name, *_ in found.description] == ["highlight(body, 'ducks lake')"]
    marked = [texts[0], "the <b>lake</b> of <b>ducks</b>, and more words than anyone reads", None]
    assert [row[0] for row in found.fetchall()] == marked
    stemmed = con.sql("SELECT highlight(other, ?, '[', post := ']') FROM t ORDER BY id", params=["duck"]).fetchall()
    assert [row[0] for row in stemmed][:2] == ["A [Duck] runs", "the lake of [ducks], and more words than anyone reads"]
    short = "SELECT snippet(body, ?, 4, '*', '*'), snippet(body, ?, words := 3, gap := '') FROM t WHERE match(body, ?)"
    assert con.execute(short, ["ducks", "reads", "lake"]).fetchall() == [
        ("…of *ducks*, and more…", "than anyone <b>reads</b>")
    ]
    nested = (
        "WITH x AS (SELECT id, body AS b FROM t) SELECT highlight(b, 'duck'), highlight(b, NULL) FROM x WHERE id = 0"
    )
    assert con.execute(nested).fetchall() == [("A <b>Duck</b> runs", None)]


def test_highlight_marks_quoted_phrases_as_phrases(con: ld.Connection) -> None:
    sql = "SELECT highlight(body, ?, '[', ']') FROM notes WHERE id IN (0, 4) ORDER BY id"
    assert [row[0] for row in con.execute(sql, ['"duck lake"']).fetchall()] == [
        "a small duck by the lake",
        "ducks on a lake: [duck] [lake]",
    ]
    assert con.execute(sql, ['"small duck" lake']).fetchone() == ("a [small] [duck] by the [lake]",)


def test_a_semi_join_hides_columns_of_its_table(con: ld.Connection) -> None:
    for kind, expected in (("SEMI", DUCKS), ("ANTI", [])):
        sql = f"SELECT id FROM notes {kind} JOIN notes AS n ON notes.id = n.id WHERE match(body, 'duck')"
        assert ids(con, sql) == expected


def test_an_unknown_match_column_suggests_the_nearest_name(con: ld.Connection) -> None:
    with pytest.raises(ld.UnknownColumnError, match="did you mean 'body'"):
        con.execute("SELECT id FROM notes WHERE match(boddy, 'duck')")


def test_highlight_at_an_older_version_uses_its_analyser(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    dataset = ld.write_dataset(pa.table({"body": ["ducks"]}), tmp_path / "t.lance")
    dataset.create_scalar_index("body", "INVERTED", stem=False)
    dataset.insert(pa.table({"body": ["geese"]}))
    con = connect(tmp_path)
    call, path = "highlight(body, 'duck'), snippet(body, 'duck', 5)", tmp_path / "t.lance"
    for version, stemmed in ((1, True), (2, False), (3, False)):
        marked = ("<b>ducks</b>" if stemmed else "ducks",) * 2
        for table, values in (
            (f"t AT (VERSION => {version})", []),
            ("t AT (VERSION => ?)", [version]),
            (f"lance_scan('{path}', version := {version})", []),
        ):
            assert con.execute(f"SELECT {call} FROM {table} WHERE body = 'ducks'", values).fetchall() == [marked]


def test_highlight_marks_each_string_of_a_list(con: ld.Connection) -> None:
    sql = "SELECT highlight(tags, ?), snippet(tags, ?, 1, '', '') FROM notes WHERE id < 6 ORDER BY id"
    assert con.execute(sql, ["ducks", "lakes"]).fetchall() == [
        (["<b>duck</b>"], ["duck"]),
        ([], []),
        (None, None),
        (["lake", "<b>duck</b> lake"], ["lake", "…lake"]),
        (["x"], ["x"]),
        ([None], [None]),
    ]
    assert con.execute("SELECT highlight(tags, NULL) FROM notes WHERE id = 0").fetchall() == [(None,)]
    words = "SELECT highlight(tags, w) FROM notes, (VALUES ('duck'), ('lake')) v(w) WHERE id = 7 ORDER BY w"
    assert con.execute(words).fetchall() == [(["<b>duck</b>", "lake"],), (["duck", "<b>lake</b>"],)]


@pytest.mark.parametrize("sql", ["SELECT highlight('Running Ducks', 'duck run')", "SELECT HIGHLIGHT(a, b) FROM pairs"])
def test_highlight_marks_strings_of_native_tables(connect: Callable[..., ld.Connection], sql: str) -> None:
    con = connect()
    con.execute("CREATE TABLE pairs AS SELECT 'Running Ducks' AS a, 'duck run' AS b")
    for run in (con.execute, con.sql):
        assert run(sql).fetchall() == [("<b>Running</b> <b>Ducks</b>",)]
    con.execute("CREATE MACRO highlight(a, b) AS 7")
    assert con.execute(sql).fetchall() == [(7,)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("highlight(body, 'x', bold := 'y')", "option 'bold'.*pre, post"),
        ("highlight(body, 'x', 'a', 'b', 'c')", "too many"),
        ("snippet(body, 'x', words := 0)", "1 or more"),
    ],
)
def test_invalid_highlight_arguments_are_rejected(con: ld.Connection, call: str, message: str) -> None:
    with pytest.raises(ld.InvalidInputError, match=message):
        con.execute(f"SELECT {call} FROM notes").fetchall()


def test_explain_shows_terms_documents_segments_and_unindexed_rows(own: ld.Connection) -> None:
    sql = "SELECT id FROM notes WHERE match(body, 'duck lakes', fuzziness := 1) ORDER BY score(notes) DESC LIMIT 3"
    plan = own.execute(f"EXPLAIN {sql}").fetchall()[-1][1]
    assert "terms: duck~1 in 2, lake~1 in 2, of 3 documents in the index" in plan
    assert "InvertedIndexQuery: body_idx (segments " in plan
    assert "1 through the index, 1 searched flat (4 rows)" in plan
    assert "MatchQuery 'duck lakes' in body" in plan
    assert "limit: 3" in plan


def test_explain_shows_how_a_match_is_evaluated(con: ld.Connection, folder: Path) -> None:
    has_index = bool(ld.dataset(folder / "notes.lance").list_indices())
    sql = "SELECT id FROM notes JOIN queries ON n = id WHERE match(body, 'lake')"
    for statement, words in ((sql, "rows that match alone are read"), (f"{sql} OR n = 2", "columns of the scan")):
        text = "\n".join(row[1] for row in con.execute(f"EXPLAIN {statement}").fetchall())
        assert ((f"match: {words}" in text) and "terms: lake in" in text) == has_index
    text = "\n".join(row[1] for row in con.execute("EXPLAIN DELETE FROM notes WHERE match(body, 'lake')").fetchall())
    assert ("match: rows that match alone are read" in text) == has_index


def test_views_macros_and_prepared_statements_search_current_rows(own: ld.Connection) -> None:
    own.execute("CREATE VIEW ducks AS SELECT * FROM notes WHERE match(body, 'duck') OR id = 7")
    own.execute("CREATE MACRO of_words(least) AS TABLE SELECT id FROM notes WHERE match(body, 'duck') AND id >= least")
    own.execute("PREPARE ducks_and AS SELECT id FROM notes WHERE match(body, 'duck') AND match(body, $1)")
    (text,) = own.execute("SELECT sql FROM duckdb_views() WHERE view_name = 'ducks'").fetchall()[0]
    assert "__lance_matching" in text
    own.execute("INSERT INTO notes (id, body) VALUES (8, 'a late duck on a lake')")
    assert ids(own, "SELECT * FROM ducks") == [*DUCKS, 7, 8]
    assert ids(own, "FROM of_words(3)") == [4, 5, 8]
    assert ids(own, "EXECUTE ducks_and('lake')") == [0, 4, 5, 8]
    assert own.execute("SELECT * FROM ducks LIMIT 0").description[0][0] == "id"
    assert len(own.execute("SELECT * FROM ducks LIMIT 0").description) == 4
