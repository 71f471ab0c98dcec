"""The `tables` command and shell completion."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import objects, run

import lance_duck as ld
from lance_duck.errors import NotFoundError


def test_tables_of_a_folder_and_its_namespaces_are_listed(tmp_path: Path) -> None:
    namespace = ld.connect_namespace("dir", {"root": str(tmp_path)})
    namespace.create_namespace(["shop"])
    namespace.create_table(["shop", "orders"], {"id": [1, 2]})
    ld.write_dataset({"id": [1], "word": ["a"]}, tmp_path / "words.lance")
    (tmp_path / "broken.lance" / "_versions").mkdir(parents=True)
    (tmp_path / "broken.lance" / "_versions" / "1.manifest").write_bytes(b"no manifest")
    found = {row["table"]: row for row in objects("tables", str(tmp_path))}
    assert found["words"] == {"table": "words", "version": 1, "rows": 1, "columns": 2, "problem": None}
    assert found["shop$orders"] == {"table": "shop$orders", "version": 1, "rows": 2, "columns": 1, "problem": None}
    assert "1.manifest" in str(found["broken"]["problem"])
    assert found["broken"]["version"] is None
    assert len(found) == 3


def test_listing_a_missing_folder_raises_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no such folder"):
        run("tables", str(tmp_path / "nowhere"))


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    place = tmp_path / "file.txt"
    place.touch()
    for words in (["tables", str(place)], ["sql", str(place), "SELECT 1"], ["sql", str(place), "FROM t"]):
        with pytest.raises(NotFoundError, match="txt: not a folder"):
            run(*words)
    with pytest.raises(NotFoundError, match=r"txt: not a folder: expected a folder of .*, found a file"):
        ld.connect(place)


def test_a_shell_completes_commands_without_waiting_for_heavy_libraries() -> None:
    code = (
        "import sys; sys.argv[0] = 'lance-duck'; from lance_duck_command import main\n"
        "try: main()\n"
        "finally: print([m for m in ('lance_duck', 'pyarrow', 'duckdb', 'numpy') if m in sys.modules])"
    )
    asked = {"_LANCE_DUCK_COMPLETE": "complete_bash", "COMP_WORDS": "lance-duck in", "COMP_CWORD": "1"}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=asked, check=False)
    assert found.stdout.split("\n")[:-1] == ["info", "indices", "index", "[]"]
