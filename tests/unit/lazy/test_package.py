"""The names of lance_duck, and what a process loads for what it does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lance_duck as ld

HEAVY = frozenset(
    {
        *(
            "numba",
            "llvmlite",
            "duckdb",
            "faiss",
            "sqlglot",
            "obstore",
            "pyroaring",
            "Stemmer",
            "tenacity",
            "zstandard",
        ),
        *("pyarrow", "numpy", "pandas", "google.protobuf", "pyspark", "matplotlib", "typer", "rich", "sqlite3"),
    }
)


def loaded(script: str) -> tuple[set[str], set[str]]:
    """Heavy libraries, and rooms of the package, that a process has loaded after a script."""
    tail = "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script + tail], capture_output=True, text=True, check=True)
    modules = json.loads(run.stdout.splitlines()[-1])
    rooms = {name.split(".")[1] for name in modules if name.startswith("lance_duck.")}
    return HEAVY & set(modules), rooms


@pytest.fixture
def table(tmp_path: Path) -> str:
    ld.write_dataset(pa.table({"id": [1, 2, 3], "word": ["a", "b", "c"]}), tmp_path / "t.lance")
    return str(tmp_path / "t.lance")


def test_the_package_itself_loads_nothing() -> None:
    assert loaded("import lance_duck") == (set(), {"lazy"})


def test_a_scan_loads_neither_indexes_nor_sql_nor_changes(table: str) -> None:
    heavy, rooms = loaded(f"import lance_duck as ld\nassert ld.dataset({table!r}).to_table().num_rows == 3")
    assert not heavy & {"faiss", "sqlglot", "Stemmer", "tenacity", "pyspark", "matplotlib", "typer", "rich"}
    assert not rooms & {"index", "text", "commit", "duck", "spark", "cli", "recall", "precompile"}


def test_who_opens_a_table_knows_the_type_of_blobs(table: str) -> None:
    registered = "import pyarrow as pa\npa.unregister_extension_type('lance.blob.v2')"
    loaded(f"import lance_duck as ld\nld.dataset({table!r})\n{registered}")


def test_help_loads_no_library_of_tables() -> None:
    script = """
import sys
from lance_duck_command import main
sys.argv = ["lance-duck", "--help"]
try:
    main()
except SystemExit:
    pass
"""
    heavy, rooms = loaded(script)
    assert heavy <= {"typer", "rich"}
    assert not rooms


def test_a_function_of_the_package_is_not_hidden_by_the_module_of_its_name() -> None:
    run = "import lance_duck.dataset, lance_duck.write_dataset, lance_duck as ld; print(ld.dataset, ld.write_dataset)"
    shown = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True).stdout
    assert shown.count("<function") == 2


def test_all_names_are_there_and_listed() -> None:
    assert set(ld.__all__) <= set(dir(ld))
    assert all(getattr(ld, name) is not None for name in ld.__all__)


def test_modules_of_the_package_are_attributes() -> None:
    run = "import lance_duck as ld; print(ld.optimize.Compaction.__name__, ld.indices.IndexConfig.__name__)"
    shown = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["Compaction", "IndexConfig"]


def test_star_import_brings_every_name() -> None:
    names: dict[str, object] = {}
    exec("from lance_duck import *", names)
    assert set(ld.__all__) <= set(names)


@pytest.mark.parametrize("name", ["datset", "_dataset", "__path_of__"])
def test_a_name_that_is_not_there_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'lance_duck' has no attribute '{name}'"):
        getattr(ld, name)
