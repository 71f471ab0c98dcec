"""`match` of columns of JSON in SQL: a query is triplets path,type,value."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld

DOCUMENTS = ['{"city":"San Francisco","n":30}', None, '{"city":["New York","San Marino"]}', '{"town":"San Remo"}']


@pytest.mark.parametrize("has_index", [False, True])
def test_match_of_json_finds_values_at_their_paths(tmp_path: Path, has_index: bool) -> None:
    table = pa.table({"id": range(4), "j": pa.array(DOCUMENTS, pa.json_())})
    dataset = ld.write_dataset(table, tmp_path / "t.lance", storage_options={"fsync": "false"})
    with ld.connect({"t": dataset}) as con:
        if has_index:
            con.execute("CREATE INDEX words ON t USING INVERTED (j)")
        found = con.sql("SELECT id FROM t WHERE match(j, 'city,str,San') ORDER BY id").fetchall()
        assert found == [(0,), (2,)]
        either = "SELECT id FROM t WHERE match(j, 'n,number,30;city,str,york') OR id = 3 ORDER BY id"
        assert con.sql(either).fetchall() == [(0,), (2,), (3,)]
        if has_index:
            plan = con.sql("EXPLAIN SELECT id FROM t WHERE match(j, 'city,str,San')").fetchall()
            assert "InvertedIndexQuery: words" in str(plan)
        best = con.sql("SELECT id, _score FROM lance_fts('t', 'j', 'city,str,san', k := 1)").fetchall()
        assert best[0][0] == 0
        with pytest.raises(Exception, match="invalid JSON query: expected path,type,value"):
            con.sql("SELECT id FROM t WHERE match(j, 'San')").fetchall()
        with pytest.raises(Exception, match="highlight does not support JSON columns"):
            con.sql("SELECT highlight(j, 'city,str,San') FROM t").fetchall()


TITLES = ['{"title":"Ducks on the lake","tags":["duck","lake"]}', None, '{"title":"A lake"}']


def test_highlight_of_json_uses_the_analyser_of_the_column(tmp_path: Path) -> None:
    table = pa.table({"id": range(3), "j": pa.array(TITLES, pa.json_()), "s": pa.array(TITLES)})
    dataset = ld.write_dataset(table, tmp_path / "t.lance", storage_options={"fsync": "false"})
    stemmed = [("<b>Ducks</b> on the lake",), (None,), ("A lake",)]
    exact = [("Ducks on the lake",), (None,), ("A lake",)]
    values = ("j->>'$.title'", "t.j ->> 'title'", "json_extract_string(j, '$.title')", "s ->> '$.title'")
    with ld.connect({"t": dataset}) as con:
        for value in values:
            assert con.sql(f"SELECT highlight({value}, 'duck') FROM t ORDER BY id").fetchall() == stemmed
        con.execute("CREATE INDEX words ON t USING INVERTED (j) WITH (stem = false)")
        con.execute("CREATE INDEX texts ON t USING INVERTED (s) WITH (stem = false)")
        for value in values:
            assert con.sql(f"SELECT highlight({value}, 'duck') FROM t ORDER BY id").fetchall() == exact
        best = "SELECT snippet(j->>'title', 'lake', 2) FROM t WHERE match(j, 'title,str,ducks')"
        assert con.sql(best).fetchall() == [("…the <b>lake</b>",)]
        each = "SELECT list_transform(j->>'$.tags[*]', lambda x: highlight(x, 'duck')) FROM t WHERE id = 0"
        assert con.sql(each).fetchall() == [(["<b>duck</b>", "lake"],)]
        key = "SELECT highlight(j->'tags'->>0, 'duck'), highlight(id::VARCHAR || '-> duck', 'duck') FROM t WHERE id = 0"
        assert con.sql(key).fetchall() == [("<b>duck</b>", "0-> <b>duck</b>")]
        with pytest.raises(Exception, match=r"highlight\(column ->> '\$.path', 'words'\)"):
            con.sql("SELECT highlight(j, 'title,str,duck') FROM t").fetchall()
