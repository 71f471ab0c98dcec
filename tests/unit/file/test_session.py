from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lance_duck.errors import CorruptError, InvalidInputError, NotFoundError
from lance_duck.file import LanceFileReader, LanceFileSession, stable_version
from lance_duck.file.session import ListResult

ROWS = pa.table({"a": [1, 2], "b": ["x", "y"]})


@pytest.fixture(params=["disk", "memory"])
def session(request: pytest.FixtureRequest, tmp_path: Path) -> LanceFileSession:
    if request.param == "disk":
        return LanceFileSession(tmp_path / "base", {"fsync": "false"})
    return LanceFileSession(f"memory://{tmp_path.name}")


def write(session: LanceFileSession, *names: str) -> None:
    for name in names:
        with session.open_writer(name) as writer:
            writer.write_batch(ROWS)


def test_files_are_written_and_read_by_relative_paths(session: LanceFileSession) -> None:
    write(session, "one.lance", "deep/er/two.lance")
    assert session.open_reader("one.lance").read_all().to_table() == ROWS
    assert session.open_reader("deep/er/two.lance", ["b"]).read_all().to_table() == ROWS.select(["b"])
    with pytest.raises(NotFoundError):
        session.open_reader("two.lance")


def test_a_session_writer_accepts_file_options(session: LanceFileSession) -> None:
    session.open_writer("e", schema=ROWS.schema, version="2.1", max_page_bytes=1, data_cache_bytes=8).close()
    found = session.open_reader("e").metadata()
    assert (found.schema, found.num_rows, found.minor_version) == (ROWS.schema, 0, 1)
    assert stable_version() == "2.2"


def test_files_are_listed(session: LanceFileSession) -> None:
    assert (session.list(), session.list_with_delimiter()) == ([], ListResult([], []))
    write(session, "a", "d/b", "d/e/c")
    assert session.list() == ["a", "d/b", "d/e/c"]
    assert (session.list("d"), session.list("none")) == (["d/b", "d/e/c"], [])
    assert session.list_with_delimiter() == ListResult(["d"], ["a"])
    assert session.list_with_delimiter("d/") == ListResult(["d/e"], ["d/b"])
    assert [session.contains(path) for path in ("a", "d", "d/e/c", "x")] == [True, False, True, False]


def test_global_buffers_are_read_and_files_deleted(session: LanceFileSession) -> None:
    write(session, "a")
    size = session.open_reader("a").metadata().num_data_bytes
    assert size > 4
    assert session.read_range("a", 0, 0) == b""
    assert len(session.read_range("a", 1, 3)) == 3
    with pytest.raises(CorruptError):
        session.read_range("a", 0, 1 << 30)
    session.delete_file("a")
    for missing in (session.delete_file, lambda path: session.read_range(path, 0, 1)):
        with pytest.raises(NotFoundError):
            missing("a")


def test_files_are_uploaded_and_downloaded(session: LanceFileSession, tmp_path: Path) -> None:
    write(session, "a")
    session.download_file("a", tmp_path / "local.lance")
    assert LanceFileReader(tmp_path / "local.lance").read_all().to_table() == ROWS
    session.upload_file(tmp_path / "local.lance", "up/b")
    assert session.open_reader("up/b").read_all().to_table() == ROWS
    with pytest.raises(NotFoundError):
        session.download_file("none", tmp_path / "none")
    with pytest.raises(NotFoundError):
        session.upload_file(tmp_path / "none", "c")
    assert (session.list(), (tmp_path / "none").exists()) == (["a", "up/b"], False)


def test_session_paths_cannot_leave_the_root(session: LanceFileSession) -> None:
    for act in (session.contains, session.list, session.open_reader, session.delete_file):
        with pytest.raises(InvalidInputError):
            act("../x")
