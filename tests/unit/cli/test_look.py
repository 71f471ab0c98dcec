"""What commands show of a table: rows, sizes, and names that do not exist."""

from __future__ import annotations

import io
import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from rich.console import Console
from support.command_line import objects, rows, run

import lance_duck as ld
from lance_duck.cli.show import ByteCount, Form
from lance_duck.errors import InvalidInputError, NotFoundError, UnknownColumnError


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> str:
    uri = str(tmp_path_factory.mktemp("data") / "words.lance")
    ld.write_dataset({"id": [1, 2, 3, 4], "word": ["a", "b", "c", "d"], "x, y": [5, 6, 7, 8]}, uri)
    return uri


@pytest.mark.parametrize("limit", ["--limit", "--rows", "-n"])
def test_head_reads_the_requested_number_of_rows(words: str, limit: str) -> None:
    assert [row["id"] for row in rows("head", words, limit, "2")] == ["1", "2"]


def test_head_reads_the_requested_columns_in_order(words: str) -> None:
    assert rows("head", words, "--columns", 'word, id,"x, y"', "--limit", "1") == [
        {"word": "a", "id": "1", "x, y": "5"}
    ]
    assert rows("head", words, "--columns", "_rowid", "--limit", "1") == [{"_rowid": "0"}]


@pytest.mark.parametrize("option", ["--where", "--filter"])
def test_head_applies_a_filter(words: str, option: str) -> None:
    assert objects("head", words, option, "id > 2", "--columns", "id", "-n", "1") == [{"id": 3}]


@pytest.mark.parametrize("columns", ["", "id,,word", ","])
def test_an_empty_column_name_is_rejected(words: str, columns: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^--columns: expected column names"):
        run("head", words, "--columns", columns)


def test_a_misspelled_column_suggests_the_nearest_name(words: str) -> None:
    with pytest.raises(UnknownColumnError, match="did you mean 'word'"):
        run("head", words, "--columns", "id,wrod")


@pytest.mark.parametrize("place", ["wrods.lance", "words", "WORDS.lance", "words.lanse"])
def test_a_misspelled_table_suggests_the_nearest_name(words: str, place: str) -> None:
    with pytest.raises(NotFoundError, match=r"; did you mean 'words\.lance'\?$"):
        run("info", str(Path(words).with_name(place)))


def test_an_unknown_table_explains_what_a_table_is(words: str) -> None:
    with pytest.raises(NotFoundError, match=r"a Lance table is a directory$"):
        run("info", str(Path(words).with_name("quite-another")))


def test_a_misspelled_folder_suggests_the_nearest_name(words: str) -> None:
    folder = Path(words).parent
    with pytest.raises(NotFoundError, match=f"did you mean '{re.escape(folder.name)}'"):
        run("sql", f"{folder}x", "SELECT 1")


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        ((1 << 20) - 1, "1.0 MiB"),
        (5 << 30, "5.0 GiB"),
        (3 << 60, "3,072.0 PiB"),
    ],
)
def test_a_person_reads_sizes_in_units(count: int, shown: str) -> None:
    assert str(ByteCount(count)) == shown


def test_sizes_have_units_on_a_terminal_and_are_exact_in_json(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (found,) = objects("files", words)
    size = found["bytes"]
    assert isinstance(size, int)
    assert size == sum(file.stat().st_size for file in (Path(words) / "data").iterdir())
    assert rows("files", words)[0]["bytes"] == str(size)
    assert objects("info", words)[0]["bytes"] == size
    console = Console(file=io.StringIO(), width=200)
    show = import_module("lance_duck.cli.show")
    monkeypatch.setattr(show, "Console", lambda: console)
    monkeypatch.setattr(show, "usual_form", lambda _=False: Form.table)
    run("files", words)
    drawn = console.file.getvalue()  # type: ignore[attr-defined]
    assert f" {ByteCount(size)} " in drawn
    assert str(size) not in drawn.split()


def test_doctor_lists_versions_and_working_features(words: str) -> None:
    done = run("doctor", words, f"{words}x", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert {"python", "duckdb", "pyarrow", "faiss-cpu", "numba", "lance-duck", "java"} <= found.keys()
    assert found["local disk"] == "writes and reads"
    assert re.fullmatch(r"on disk|\d+ had to be compiled: lance-duck warm-up", found["kernels of a first write"])
    assert found["memory"] == "opens"
    assert found[words] == "opens: version 1, 4 rows"
    assert "did you mean 'words.lance'?" in found[f"{words}x"]


def test_doctor_reports_failures_and_exits_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(ld, "write_dataset", refuse)
    monkeypatch.setattr("lance_duck.cli.doctor.find_spec", lambda _: None)
    done = run("doctor", "--json")
    assert (done.exit_code, json.loads(done.stdout)["local disk"]) == (0, "disk full")
    assert json.loads(done.stdout)["java"].startswith("not looked for")
