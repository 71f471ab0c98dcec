"""DuckDB's extension `lance` on a server: it takes names from the server, and reads and writes the files itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import duckdb_extension_lance
import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.gate.tokens import AccessToken, Role
from lance_duck.serve.run import Server

EXTENSION = Path(duckdb_extension_lance.__file__).parent / "extensions" / "v1.5.5" / "lance.duckdb_extension"
ROWS = pa.table(
    {
        "id": pa.array(range(20)),
        "word": pa.array([f"duck {i % 3}" for i in range(20)]),
        "vector": pa.FixedSizeListArray.from_arrays(np.arange(80, dtype="float32"), 4),
    }
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    ld.write_dataset(ROWS, tmp_path / "t.lance")
    with Server(ServeSettings(str(tmp_path), port=0, write=True)) as server:
        yield server


def attached(server: Server, options: str = "") -> duckdb.DuckDBPyConnection:
    """Return a connection of DuckDB on which the server's tables are the database `ns`."""
    con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    con.execute(f"LOAD '{EXTENSION}'")
    con.execute(f"ATTACH '$' AS ns (TYPE lance, ENDPOINT '{server.url}'{options})")
    return con


def test_queries_read_the_tables_of_a_server(server: Server) -> None:
    con = attached(server)
    assert con.execute("SELECT count(*), sum(id) FROM ns.main.t WHERE word = 'duck 1'").fetchall() == [(7, 70)]


def test_changes_reach_the_tables_of_a_server(server: Server, tmp_path: Path) -> None:
    con = attached(server)
    con.execute("INSERT INTO ns.main.t SELECT 20, 'goose', [0, 0, 0, 0]::FLOAT[4]")
    con.execute("UPDATE ns.main.t SET word = 'swan' WHERE id = 1")
    con.execute("DELETE FROM ns.main.t WHERE id < 1")
    words = ld.dataset(tmp_path / "t.lance").to_table(columns=["id", "word"], filter="id < 2 OR id = 20").to_pylist()
    assert sorted((row["id"], row["word"]) for row in words) == [(1, "swan"), (20, "goose")]


def test_tables_are_created_and_dropped_through_a_server(server: Server, tmp_path: Path) -> None:
    attached(server).execute("CREATE TABLE ns.main.u (a INTEGER)")  # AS SELECT would lose its rows in the extension
    con = attached(server)  # a connection lists the tables once
    con.execute("INSERT INTO ns.main.u VALUES (1)")
    assert con.execute("SELECT * FROM ns.main.u").fetchall() == [(1,)]
    assert ld.dataset(tmp_path / "u.lance").to_table().to_pydict() == {"a": [1]}
    attached(server).execute("DROP TABLE ns.main.u")
    assert ld.connect_namespace("dir", {"root": str(tmp_path)}).list_tables() == ["t"]


def test_vectors_are_searched_in_the_tables_of_a_server(server: Server) -> None:
    rows = attached(server).execute(
        "SELECT id FROM lance_vector_search('ns.main.t', 'vector', [8, 9, 10, 11]::FLOAT[4], k = 1)"
    )
    assert rows.fetchall() == [(2,)]


def test_a_token_is_sent_as_an_api_key(tmp_path: Path) -> None:
    ld.write_dataset(ROWS, tmp_path / "t.lance")
    tokens = (AccessToken.of("ana", Role.READ, "secret"),)
    with Server(ServeSettings(str(tmp_path), port=0, tokens=tokens)) as server:
        con = attached(server, ", API_KEY 'secret'")
        assert con.execute("SELECT count(*) FROM ns.main.t").fetchall() == [(20,)]
        with pytest.raises(duckdb.Error):
            attached(server, ", API_KEY 'wrong'").execute("SELECT count(*) FROM ns.main.t")
