"""Indexes of SQL and of pylance, and their parameters; `statements/lance/indexes.sql` has the statements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import (
    WrongTypeError,
)

Connect = Callable[..., ld.Connection]


@pytest.fixture
def photos(folder: Path) -> Path:
    """`photos.lance`: 600 rows in three fragments, with vectors of 8 numbers, labels and a struct."""
    rng = np.random.default_rng(7)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rng.random(600 * 8), pa.float32()), 8)
    rows = pa.table(
        {
            "id": range(600),
            "label": [i % 5 for i in range(600)],
            "tags": [[f"t{i % 3}"] for i in range(600)],
            "at": [{"x": i // 2} for i in range(600)],
            "vec": vectors,
        }
    )
    ld.write_dataset(rows, folder / "photos.lance", max_rows_per_file=200)
    return folder / "photos.lance"


def shown(con: ld.Connection, table: str = "photos") -> list[tuple[Any, ...]]:
    return [row[:4] for row in con.execute(f"SHOW INDEXES ON {table}").fetchall()]


def test_an_index_created_in_sql_is_used_by_sql_and_pylance(con: ld.Connection, photos: Path) -> None:
    con.execute("CREATE INDEX by_id ON photos (id)")
    con.execute("CREATE INDEX by_vec ON photos (vec) USING IVF_FLAT WITH (num_partitions = 2)")
    assert "by_id" in str(con.execute("EXPLAIN SELECT * FROM photos WHERE id = 7").fetchall())
    theirs = lance.dataset(photos)
    assert "ScalarIndexQuery" in theirs.scanner(filter="id = 7").explain_plan()
    assert theirs.to_table(filter="id = 7", columns=["label"]).to_pydict() == {"label": [2]}
    q = theirs.take([42], columns=["vec"])["vec"][0].as_py()
    nearest = {"column": "vec", "q": q, "k": 1, "nprobes": 2}
    assert "ANN" in theirs.scanner(nearest=nearest).explain_plan()
    assert theirs.to_table(nearest=nearest, columns=["id"])["id"].to_pylist() == [42]
    sql = f"SELECT id FROM lance_vector_search('photos', 'vec', {q}::FLOAT[], k := 1, nprobes := 2)"
    assert con.execute(sql).fetchall() == [(42,)]


def test_indexes_of_pylance_are_shown_and_dropped(con: ld.Connection, photos: Path) -> None:
    theirs = lance.dataset(photos)
    theirs.create_scalar_index("label", "BITMAP", name="theirs")
    assert shown(con) == [("theirs", "Bitmap", "label", 600)]
    con.execute("DROP INDEX IF EXISTS theirs ON photos")
    assert lance.dataset(photos).describe_indices() == []


def test_index_options_accept_parameters(con: ld.Connection, photos: Path) -> None:
    con.execute("CREATE INDEX i ON photos (vec) USING IVF_FLAT WITH (num_partitions = ?, metric = ?)", [2, "dot"])
    (index,) = ld.dataset(photos).describe_indices()
    assert index.details["metric_type"] == "DOT"


def test_show_indexes_has_the_documented_columns(con: ld.Connection) -> None:
    relation = con.sql("SHOW INDEXES FROM trips")
    assert relation.columns == ["index_name", "index_type", "fields", "rows_indexed", "details"]
    assert list(map(str, relation.types)) == ["VARCHAR", "VARCHAR", "VARCHAR", "UBIGINT", "VARCHAR"]
    assert relation.fetchall() == []


def test_full_text_index_options_are_accepted_in_sql(connect: Connect, photos: Path) -> None:
    con = connect(photos.parent)
    con.execute(
        "CREATE INDEX i ON photos (tags) USING INVERTED WITH "
        "(language = 'German', max_token_length = NULL, custom_stop_words = ['t1'], format_version = 1, "
        """params = '{"with_position": true}')"""
    )
    (index,) = ld.dataset(photos).describe_indices()
    assert (index.details["language"], index.details["max_token_length"]) == ("German", None)
    assert index.details["with_position"] is True
    (figures,) = ld.dataset(photos).index_statistics("i")["segments"]
    assert (figures["params"]["custom_stop_words"], figures["num_docs"]) == (["t1"], 400)
    assert [segment.index_version for segment in index.segments] == [1]
    con.execute("ALTER INDEX i ON photos OPTIMIZE WITH (mode = 'retrain')")
    assert ld.dataset(photos).index_statistics("i")["segments"] == [figures]
    with pytest.raises(WrongTypeError, match="did you mean 'with_position'"):
        con.execute("CREATE INDEX j ON photos (tags) USING INVERTED WITH (with_positions = true)")
