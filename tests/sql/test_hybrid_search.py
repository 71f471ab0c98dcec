"""`lance_hybrid_search`: vectors and words in one order."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_duck as ld

CALL = "lance_hybrid_search('pets', 'vec', [0.0, 0.0, 0.0, 0.0]::FLOAT[4], 'text', 'puppy'{})"
TEXTS = ["a puppy", "a kitten", "puppy", "the dog", "one bird"]


@pytest.fixture(scope="module", params=["flat", "indexes"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `pets.lance`: five rows at distances 0, 4, 16, 36, 64; the first and third have the word."""
    folder = tmp_path_factory.mktemp("pets")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([float(i // 4) for i in range(20)], pa.float32()), 4)
    prices = pa.array([Decimal(i) for i in range(5)], pa.decimal128(12, 2))
    table = pa.table({"id": [1, 2, 3, 4, 5], "vec": vectors, "text": TEXTS, "price": prices})
    dataset = ld.write_dataset(table, folder / "pets.lance", enable_stable_row_ids=request.param == "flat")
    if request.param == "indexes":
        dataset.create_index("vec", "IVF_FLAT", num_partitions=1)
        dataset.create_scalar_index("text", "INVERTED")
    return folder


@pytest.fixture
def con(folder: Path, connect: Callable[..., ld.Connection]) -> ld.Connection:
    return connect(folder)


def test_rows_are_ordered_by_score_with_all_three_measures(con: ld.Connection) -> None:
    found = con.execute(f"FROM {CALL.format(', k = 4')}")
    names = ["id", "vec", "text", "price", "_distance", "_score", "_hybrid_score"]
    assert [name for name, *_ in found.description] == names
    rows = found.fetchall()
    assert [(row[0], row[2], row[3]) for row in rows] == [(i, TEXTS[i - 1], Decimal(i - 1)) for i in (1, 3, 2, 4)]
    assert [row[4] for row in rows] == [0.0, 16.0, 4.0, 36.0]
    assert [row[5] is None for row in rows] == [False, False, True, True]
    words = con.execute("SELECT id, _score FROM lance_fts('pets', 'text', 'puppy') ORDER BY id").fetchall()
    assert words == [(1, rows[0][5]), (3, rows[1][5])]
    assert [row[6] for row in rows] == [0.75, 0.625, 0.46875, 0.21875]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (", k = 3, prefilter = false, alpha = 0.5, oversample_factor = 4", [1, 3, 2]),
        (", k = 3, nprobs = 2, refine_factor = 2, use_index = false", [1, 3, 2]),
        (", k := 2, alpha := 1.0", [1, 2]),
        (", k := 2, alpha := 0.0", [1, 3]),
        (", k := 2, \"method\" := 'rrf'", [1, 3]),
        (", method = 'rrf', filter = 'id > 2'", [3, 4, 5]),
        (", filter := 'id > 2', prefilter := false, k := 1, oversample_factor := 2", [3]),
    ],
)
@pytest.mark.parametrize("run", ["execute", "sql"])
def test_arguments_equal_those_of_the_lance_extension(
    con: ld.Connection, run: str, options: str, expected: list[int]
) -> None:
    rows = getattr(con, run)(f"SELECT id, _hybrid_score FROM {CALL.format(options)}").fetchall()
    assert [row[0] for row in rows] == expected
    assert [row[1] for row in rows] == sorted((row[1] for row in rows), reverse=True)


def test_where_filters_after_the_search_unless_prefilter_is_set(con: ld.Connection) -> None:
    sql = f"SELECT id FROM {CALL} WHERE id > 3 AND _hybrid_score >= 0"
    assert con.execute(sql.format(", k := 2")).fetchall() == []
    assert con.execute(sql.format(", k := 2, prefilter := true")).fetchall() == [(4,), (5,)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"k": 2, "method": "rrf"},
        {"k": 3, "alpha": 0.25, "oversample_factor": 1},
        {"k": 2, "filter": "id <> 1"},
        {"k": 3, "filter": "id < 4", "prefilter": False},
    ],
)
def test_rows_equal_those_of_a_python_search(con: ld.Connection, folder: Path, options: dict[str, Any]) -> None:
    said = "".join(f', "{name}" := {value!r}' for name, value in options.items())
    rows = con.execute(f"SELECT id, _distance, _score, _hybrid_score FROM {CALL.format(said)}").fetchall()
    query = {"query": "puppy", "columns": ["text"]}
    found = ld.dataset(folder / "pets.lance").search([0.0] * 4, column="vec", full_text_query=query, **options)
    assert rows == list(
        zip(*found.select(["id", "_distance", "_score", "_hybrid_score"]).to_pydict().values(), strict=True)
    )


def test_explain_names_both_searches(con: ld.Connection, folder: Path) -> None:
    sql = f"SELECT id FROM {CALL.format(', k := 2, nprobes := 1, refine_factor := 2')}"
    plan = con.execute(f"EXPLAIN {sql}").fetchall()[-1][1]
    is_indexed = bool(ld.dataset(folder / "pets.lance").list_indices())
    assert "method linear, alpha 0.5, k 2" in plan
    assert ("VectorIndexQuery: vec_idx" in plan) == ("InvertedIndexQuery: text_idx" in plan) == is_indexed
    document = con.execute(f"EXPLAIN (FORMAT JSON) {sql}").fetchall()[-1][1]
    for fact in ('"Lance Search Mode": "hybrid"', '"Lance Nprobes": "1"', '"Lance Refine Factor": "2"'):
        assert fact in document
    assert '"Lance Use Index": "true"' in document


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'pets', 'vec', [0, 0, 0, 0], 'text', 'puppy', k := 0", "k: expected 1 or more"),
        ("'pets', 'vec', [0, 0, 0, 0], 'text', 'puppy', oversample_factor := 0", "oversample_factor: expected 1"),
        ("'pets', 'vec', [0, 0, 0, 0], 'text', 'puppy', method := 'sum'", "'linear' or 'rrf'"),
        ("'pets', 'vec', [0, 0, 0, 0], 'text', 'puppy', nprobs := 0", "Nprobes must be > 0"),
        ("'pets', 'vec', [0, 0, 0, 0], 'text', 'puppy', alpha := NULL", "needs an alpha"),
        ("'pets', 'vec', [[0, 0, 0, 0]], 'text', 'puppy'", "query vector: expected one"),
        ("'pets', 'vec', [0, 0], 'text', 'puppy'", "does not match"),
        ("'pets', 'vec', [0, 0, 0, 0], 'id', 'puppy'", "must contain strings"),
        ("'pets', 'vec', [0, 0, 0, 0], 'text', NULL", "needs a query"),
    ],
)
def test_invalid_arguments_raise_clear_errors(con: ld.Connection, arguments: str, message: str) -> None:
    with pytest.raises(ld.LanceDuckError, match=message):
        con.execute(f"FROM lance_hybrid_search({arguments})").fetchall()


def test_an_empty_table_returns_no_rows(tmp_path: Path, connect: Callable[..., ld.Connection]) -> None:
    schema = pa.schema([("vec", pa.list_(pa.float32(), 4)), ("text", pa.string())])
    ld.write_dataset(schema.empty_table(), tmp_path / "pets.lance")
    assert connect(tmp_path).execute(f"FROM {CALL.format('')}").fetchall() == []
