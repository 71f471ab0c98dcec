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
        with pytest.raises(Exception, match="query of JSON: expected path,type,value"):
            con.sql("SELECT id FROM t WHERE match(j, 'San')").fetchall()
        with pytest.raises(Exception, match="marks around the words of JSON"):
            con.sql("SELECT highlight(j, 'city,str,San') FROM t").fetchall()
