"""CREATE, DROP, SHOW, ALTER INDEX and REINDEX of Lance tables."""

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
    IndexExistsError,
    IndexNotFoundError,
    InvalidInputError,
    LanceDuckError,
    NotIndexableError,
    UnknownColumnError,
    UnsupportedError,
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


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("CREATE INDEX i ON {t} (id)", ("i", "BTree", "id", 600)),
        ("CREATE INDEX i ON {t} (ID) USING btree", ("i", "BTree", "id", 600)),
        ("CREATE INDEX i ON {t} USING BITMAP (label)", ("i", "Bitmap", "label", 600)),
        ("CREATE INDEX ON {t} (label) USING BITMAP", ("label_idx", "Bitmap", "label", 600)),
        ("CREATE INDEX i ON {t} (tags) USING LABEL_LIST", ("i", "LabelList", "tags", 600)),
        ("CREATE INDEX i ON {t} (at.x) USING ZONEMAP WITH (rows_per_zone = 100)", ("i", "ZoneMap", "at.x", 600)),
        (
            "CREATE INDEX i ON {t} (id) USING BLOOMFILTER WITH (probability => 0.01)",
            ("i", "BloomFilter", "id", 600),
        ),
        (
            "CREATE INDEX i ON {t} (tags) USING INVERTED WITH (with_position, stem = false, max_token_length = NULL)",
            ("i", "Inverted", "tags", 600),
        ),
        (
            "CREATE INDEX i ON {t} USING fts (tags) WITH (base_tokenizer = ngram, custom_stop_words = ['a'])",
            ("i", "Inverted", "tags", 600),
        ),
        ('CREATE INDEX IF NOT EXISTS "i ""1""" ON {t} (id)', ('i "1"', "BTree", "id", 600)),
        ("CREATE OR REPLACE INDEX i ON {t} (id) WITH (train = false)", ("i", "BTree", "id", 0)),
        (
            "CREATE INDEX i ON {t} (vec) USING IVF_FLAT WITH (num_partitions=1, metric_type='l2')",
            ("i", "IVF_FLAT", "vec", 600),
        ),
        (
            "CREATE INDEX i ON {t} USING ivf_pq (vec) WITH (num_partitions := 2, num_sub_vectors => 4, metric=cosine)",
            ("i", "IVF_PQ", "vec", 600),
        ),
        (
            "CREATE INDEX i ON {t} USING ivf_rq (vec) WITH (num_partitions = 2, num_bits = 3)",
            ("i", "IVF_RQ", "vec", 600),
        ),
        (
            "CREATE INDEX i ON {t} (vec) USING IVF_SQ WITH (num_partitions = 1 + 1, distance_type = 'dot')",
            ("i", "IVF_SQ", "vec", 600),
        ),
        (
            "CREATE INDEX i ON {t} (vec) USING IVF_HNSW_SQ WITH (num_partitions = 1, hnsw_m = 8, ef_construction = 40)",
            ("i", "IVF_HNSW_SQ", "vec", 600),
        ),
        (
            """CREATE INDEX i ON {t} (vec) USING IVF_HNSW_FLAT WITH (params = '{{"num_partitions": 1, "m": 8}}')""",
            ("i", "IVF_HNSW_FLAT", "vec", 600),
        ),
    ],
)
def test_indexes_are_made(con: ld.Connection, photos: Path, sql: str, expected: tuple[Any, ...]) -> None:
    con.execute(sql.format(t="photos"))
    assert (con.description, con.fetchall()) == ([("Count", con.description[0][1], *[None] * 5)], [])
    assert shown(con) == [expected]
    con.execute(f'DROP INDEX "{expected[0].replace(chr(34), chr(34) * 2)}" ON photos')
    assert shown(con) == []


@pytest.mark.parametrize("name", ["photos", "lance.photos", 'lance.main."PHOTOS"', "'{path}'"])
def test_all_spellings_of_a_table_name_it(con: ld.Connection, photos: Path, name: str) -> None:
    table = name.format(path=photos)
    con.execute(f"CREATE INDEX i ON {table} (id)")
    assert shown(con, table) == [("i", "BTree", "id", 600)]
    con.execute(f"ALTER INDEX i ON {table} OPTIMIZE; REINDEX i ON {table}; DROP INDEX i ON {table}")
    assert not ld.dataset(photos).has_index


def test_an_index_of_sql_is_used_by_sql_and_by_pylance(con: ld.Connection, photos: Path) -> None:
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


def test_what_an_index_covers_follows_when_it_is_optimized(con: ld.Connection, photos: Path) -> None:
    con.execute("CREATE INDEX i ON photos (id); CREATE INDEX l ON photos USING BITMAP (label)")
    con.execute("INSERT INTO photos SELECT * REPLACE (id + 1000 AS id) FROM photos LIMIT 50")
    assert [row[3] for row in shown(con)] == [600, 600]
    relation = con.sql("ALTER INDEX i ON photos OPTIMIZE WITH (mode = 'append')")
    assert relation.columns == ["Operation", "Target", "MetricsJSON"]
    (operation, target, metrics) = relation.fetchall()[0]
    assert (operation, target) == ("optimize_index", str(photos))
    assert '"i": {"rows_indexed": 650, "segments": 2}' in metrics
    assert [row[3] for row in shown(con)] == [650, 600]
    con.execute("ALTER INDEX i ON photos OPTIMIZE WITH (mode = 'merge', num_indices_to_merge = 4)")
    assert [len(index.segments) for index in ld.dataset(photos).describe_indices()] == [1, 1]
    con.execute("REINDEX photos")
    assert [row[3] for row in shown(con)] == [650, 650]


def test_an_index_that_was_not_trained_is_built_by_retrain(con: ld.Connection, photos: Path) -> None:
    con.execute("CREATE INDEX i ON photos (id) WITH (train = false)")
    assert shown(con) == [("i", "BTree", "id", 0)]
    con.execute("REINDEX i ON photos RETRAIN")
    assert shown(con) == [("i", "BTree", "id", 600)]


def test_names_of_indexes_are_taken_once(con: ld.Connection, photos: Path) -> None:
    con.execute("CREATE INDEX i ON photos (id)")
    with pytest.raises(IndexExistsError, match="'i'"):
        con.execute("CREATE INDEX i ON photos (id)")
    con.execute("CREATE INDEX IF NOT EXISTS i ON photos (label)")
    assert shown(con) == [("i", "BTree", "id", 600)]
    con.execute("CREATE OR REPLACE INDEX i ON photos (id) USING BITMAP")
    assert shown(con) == [("i", "Bitmap", "id", 600)]
    con.execute("CREATE INDEX i ON photos (id) WITH (replace = true)")
    assert shown(con) == [("i", "BTree", "id", 600)]
    with pytest.raises(IndexNotFoundError, match="no index 'j'"):
        con.execute("DROP INDEX j ON photos")
    con.execute("DROP INDEX IF EXISTS j ON photos")


@pytest.mark.parametrize(
    ("sql", "error", "message"),
    [
        ("CREATE UNIQUE INDEX i ON photos (id)", UnsupportedError, "UNIQUE"),
        ("CREATE INDEX i ON photos (id) USING INVERTED", NotIndexableError, "which kind Inverted does not support"),
        ("CREATE INDEX i ON photos (id) USING btre", UnsupportedError, "did you mean 'BTREE'"),
        ("CREATE INDEX i ON photos (vec) USING IVF_HNSW_RQ", UnsupportedError, "IVF_HNSW_RQ is not a supported kind"),
        ("CREATE INDEX i ON photos (vec)", InvalidInputError, "without its kind: expected USING one of IVF_FLAT"),
        ("CREATE INDEX i ON photos (label) USING IVF_FLAT", NotIndexableError, "label"),
        ("CREATE INDEX i ON photos (id, label)", UnsupportedError, "expected one column, found id, label"),
        ("CREATE INDEX i ON photos (id + 1)", UnsupportedError, r"expected one column, found id \+ 1"),
        ("CREATE INDEX i ON photos (nope)", UnknownColumnError, "nope"),
        ("CREATE INDEX i ON photos", InvalidInputError, "syntax of CREATE INDEX.*end of the statement"),
        ("CREATE INDEX i ON photos id", InvalidInputError, "syntax of CREATE INDEX"),
        ("CREATE INDEX i ON photos (id) WITH (num_partitions = 2)", WrongTypeError, "num_partitions"),
        (
            "CREATE INDEX i ON photos (vec) USING IVF_FLAT WITH (num_partition = 2)",
            WrongTypeError,
            "unknown option 'num_partition'; did you mean 'num_partitions'",
        ),
        (
            "CREATE INDEX i ON photos (vec) USING IVF_FLAT WITH (metric = 'l2', metric_type = 'l2')",
            InvalidInputError,
            "two options with the same meaning",
        ),
        ("CREATE INDEX i ON photos (vec) USING IVF_FLAT WITH (metric = 'l3')", InvalidInputError, "l3"),
        ("CREATE INDEX i ON photos (id) WITH (name = 'x')", WrongTypeError, "unknown option 'name'"),
        ("CREATE INDEX i ON photos (id) WITH (params = '[1]')", InvalidInputError, "a JSON object"),
        ("CREATE INDEX i ON photos (id) rubbish", InvalidInputError, "found rubbish"),
        ("ALTER INDEX i ON photos RENAME TO j", UnsupportedError, "an index keeps its name"),
        ("ALTER INDEX i ON photos OPTIMIZE WITH (mode = 'apend')", InvalidInputError, "did you mean 'append'"),
        ("ALTER INDEX i ON photos OPTIMIZE", IndexNotFoundError, "no index 'i'"),
        ("REINDEX i ON photos", IndexNotFoundError, "no index 'i'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    con: ld.Connection, photos: Path, sql: str, error: type[LanceDuckError], message: str
) -> None:
    with pytest.raises(error, match=message):
        con.execute(sql)
    assert ld.dataset(photos).version == 1


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE INDEX j ON photos (label)",
        "DROP INDEX i ON photos",
        "ALTER INDEX i ON photos OPTIMIZE WITH (mode = 'retrain')",
        "REINDEX photos RETRAIN",
    ],
)
def test_changes_of_indexes_are_explained_and_refused_in_transactions_and_on_read_only_connections(
    con: ld.Connection, photos: Path, connect: Connect, sql: str
) -> None:
    con.execute("CREATE INDEX i ON photos (id)")
    ((key, value),) = con.execute(f"EXPLAIN {sql}").fetchall()
    assert key == "lance_change"
    assert "Nothing was written" in value
    con.execute("BEGIN")
    with pytest.raises(UnsupportedError, match="in a transaction; COMMIT first"):
        con.execute(sql)
    con.execute("ROLLBACK")
    reader = connect(photos.parent, read_only=True)
    with pytest.raises(UnsupportedError, match="read-only"):
        reader.execute(sql)
    assert shown(reader) == [("i", "BTree", "id", 600)]
    assert ld.dataset(photos).version == 2


def test_indexes_are_shown_as_a_transaction_sees_the_table(con: ld.Connection, photos: Path) -> None:
    con.execute("CREATE INDEX i ON photos (id)")
    con.execute("BEGIN; DELETE FROM photos WHERE id < 100")
    assert shown(con) == [("i", "BTree", "id", 500)]
    con.execute("ROLLBACK")
    assert shown(con) == [("i", "BTree", "id", 600)]


def test_options_take_parameters(con: ld.Connection, photos: Path) -> None:
    con.execute("CREATE INDEX i ON photos (vec) USING IVF_FLAT WITH (num_partitions = ?, metric = ?)", [2, "dot"])
    (index,) = ld.dataset(photos).describe_indices()
    assert index.details["metric_type"] == "DOT"


def test_indexes_of_tables_of_duckdb_are_its_own(con: ld.Connection) -> None:
    con.execute("CREATE TEMP TABLE own (a INTEGER); CREATE UNIQUE INDEX i ON own (a)")
    assert con.execute("SELECT index_name FROM duckdb_indexes()").fetchall() == [("i",)]
    con.execute("DROP INDEX i")
    with pytest.raises(UnsupportedError, match="own: not a Lance table"):
        con.execute("SHOW INDEXES ON own")


def test_indexes_are_shown_with_names_and_types_of_columns(con: ld.Connection) -> None:
    relation = con.sql("SHOW INDEXES FROM trips")
    assert relation.columns == ["index_name", "index_type", "fields", "rows_indexed", "details"]
    assert list(map(str, relation.types)) == ["VARCHAR", "VARCHAR", "VARCHAR", "UBIGINT", "VARCHAR"]
    assert relation.fetchall() == []


def test_options_of_a_full_text_index_are_its_parameters(connect: Connect, photos: Path) -> None:
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
