"""The names of lance_duck, and the modules that each use loads."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.index.registry import scalar_kinds

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
            "polars",
        ),
        *("pyarrow", "numpy", "pandas", "google.protobuf", "pyspark", "matplotlib", "typer", "rich", "sqlite3"),
    }
)


def loaded(script: str) -> tuple[set[str], set[str]]:
    """Heavy libraries, and modules of the package below its own, that a process has loaded after a script."""
    modules = all_loaded(script)
    return HEAVY & modules, {name for name in modules if name.startswith("lance_duck.")}


def all_loaded(script: str) -> set[str]:
    """Names of all modules that a process has loaded after a script."""
    tail = "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script + tail], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("tables") / "t.lance"
    vectors = pa.FixedSizeListArray.from_arrays(pa.array([0.5] * 12, pa.float32()), 4)
    ld.write_dataset(pa.table({"id": [1, 2, 3], "word": ["a", "b", "c"], "v": vectors}), path)
    return str(path)


def test_importing_the_package_loads_only_the_lazy_module() -> None:
    heavy, modules = loaded("import lance_duck")
    assert not heavy
    assert {name.split(".")[1] for name in modules} == {"lazy"}


READ = frozenset(
    {
        *("dataset", "arguments", "arrow", "cache", "checksums", "encoding", "errors", "file", "forks"),
        *("interrupts", "kernels", "lazy", "markup", "optimize", "redact", "rows", "scan", "snapshot", "store"),
        *("telemetry", "verbs", "wire", "write"),
    }
)
"""Rooms that a first read loads."""
FILTER = READ | {"index", "text"}
SQL = FILTER | {"commit", "duck", "groups", "maintenance", "namespaces", "retry", "version", "write_dataset"}
NEVER = frozenset(
    {"tenacity", "polars", "pyspark", "matplotlib", "typer", "rich", "torch", "jax", "asyncio", "urllib3"}
)
CHANGES = (
    *("optimize.compaction", "optimize.optimizer", "maintenance", "verbs.rows", "verbs.merge", "verbs.public"),
    *("verbs.columns.new_columns", "verbs.columns.files", "verbs.indexes.create", "verbs.indexes.optimize"),
    *("verbs.versions.clone", "verbs.versions.refs", "verbs.versions.repair", "verbs.writing.write_table"),
    *("file.write.writer", "write.files", "index.build", "encoding.write.codecs", "kernels.keys", "kernels.json"),
    *("kernels.numbers.bitpacking_encode", "kernels.numbers.rle_encode", "kernels.texts.fsst_encode"),
)
"""What only changes of a table need."""


@pytest.mark.parametrize(
    ("use", "rooms", "most", "libraries"),
    [
        ("ds.to_table(limit=1)", READ, 270, {"duckdb", "faiss", "sqlglot", "Stemmer", "sqlite3"}),
        ("ds.take([1])", READ, 270, {"duckdb", "faiss", "sqlglot", "Stemmer", "sqlite3"}),
        ("ds.to_table(filter=\"id < 3 AND word = 'b'\")", FILTER, 335, {"faiss", "sqlglot", "Stemmer", "sqlite3"}),
        ("ds.search([0.5] * 4, column='v', k=1)", FILTER, 385, {"faiss", "sqlglot", "Stemmer", "sqlite3"}),
        ("ld.connect(folder).sql('SELECT * FROM t WHERE id < 3').fetchall()", SQL, 860, set()),
    ],
)
def test_each_step_loads_only_the_modules_it_needs(
    table: str, use: str, rooms: set[str], most: int, libraries: set[str]
) -> None:
    folder, _, _ = table.rpartition("/")
    script = f"import lance_duck as ld\nds, folder = ld.dataset({table!r}), {folder!r}\nassert len({use})"
    modules = all_loaded(script)
    assert not modules & (NEVER | libraries)
    own = {name.removeprefix("lance_duck.") for name in modules if name.startswith("lance_duck.")}
    assert {name.split(".")[0] for name in own} == rooms
    if "connect" not in use:
        assert not [name for name in own if f"{name}.".startswith(tuple(f"{each}." for each in CHANGES))]
    assert len(own) <= most  # raise it for a module that the step needs; one that it does not need waits, see ld.lazy


def test_the_version_is_looked_up_on_access() -> None:
    assert "importlib.metadata" not in all_loaded("import lance_duck")
    assert "importlib.metadata" in all_loaded("import lance_duck\nassert lance_duck.__version__")


@pytest.mark.parametrize(
    ("use", "besides"),
    [
        ("to_table()", {"index", "text"}),
        ("take([1])", {"index", "text"}),
        ("to_table(filter=\"id < 3 AND word = 'b'\")", set()),
        ("search([0.5] * 4, column='v', k=1)", set()),
    ],
)
def test_reading_does_not_load_writers_indexes_or_sql(table: str, use: str, besides: set[str]) -> None:
    heavy, modules = loaded(f"import lance_duck as ld\nassert len(ld.dataset({table!r}).{use})")
    assert not heavy & {"faiss", "sqlglot", "Stemmer", "tenacity", "pyspark", "matplotlib", "typer", "rich", "sqlite3"}
    rooms = {name.split(".")[1] for name in modules}
    assert not rooms & {"commit", "duck", "spark", "cli", "recall", "precompile", *besides}
    kinds = {entry.load().__module__.split(".")[2] for entry in scalar_kinds()}
    assert not [name for name in modules if name.startswith(tuple(f"lance_duck.index.{kind}" for kind in kinds))]
    assert "lance_duck.file.write.writer" not in modules
    assert "lance_duck.write.files" not in modules


def test_a_spark_read_does_not_load_writers_or_streams(table: str) -> None:
    pytest.importorskip("pyspark")
    script = f"""
from lance_duck.spark.io.datasource import LanceDataSource
source = LanceDataSource({{"path": {table!r}}})
reader = source.reader(source.schema())
assert sum(batch.num_rows for part in reader.partitions() for batch in reader.read(part)) == 3
"""
    heavy, modules = loaded(script)
    assert not heavy & {"faiss", "sqlglot", "Stemmer", "tenacity", "matplotlib", "typer", "rich", "sqlite3"}
    assert not {name for name in modules if name.startswith(("lance_duck.commit", "lance_duck.spark.verbs"))}
    assert {name for name in modules if name.startswith("lance_duck.spark.io.")} == {
        f"lance_duck.spark.io.{name}"
        for name in ("arrow_cast", "datasource", "options", "source", "stream_options", "types")
    }
    assert "lance_duck.file.write.writer" not in modules
    assert "lance_duck.write.files" not in modules


def test_an_index_search_loads_only_its_kind(tmp_path: Path) -> None:
    ds = ld.write_dataset(pa.table({"id": [1, 2, 3]}), tmp_path / "t.lance")
    ds.create_scalar_index("id", "BTREE")
    heavy, modules = loaded(f"import lance_duck as ld\nassert ld.dataset({ds.uri!r}).count_rows('id = 2') == 1")
    assert not heavy & {"faiss", "Stemmer"}
    kinds = {name.removeprefix("lance_duck.index.") for name in modules if name.endswith(("kind", "list"))}
    assert kinds == {"kind", "btree.kind", "lance_duck.encoding.codecs.fixed_size_list"}


def test_a_delete_does_not_load_vector_or_full_text_modules(tmp_path: Path) -> None:
    ld.write_dataset(pa.table({"id": [1, 2, 3]}), tmp_path / "t.lance")
    script = f"import lance_duck as ld\nds = ld.dataset({str(tmp_path / 't.lance')!r})\nds.delete('id = 2')"
    heavy, _ = loaded(script)
    assert not heavy & {"faiss", "Stemmer", "sqlglot"}


def test_opening_a_table_registers_the_blob_type(table: str) -> None:
    registered = "import pyarrow as pa\npa.unregister_extension_type('lance.blob.v2')"
    loaded(f"import lance_duck as ld\nld.dataset({table!r})\n{registered}")


def test_help_loads_no_data_libraries() -> None:
    script = """
import sys
from lance_duck_command import main
sys.argv = ["lance-duck", "--help"]
try:
    main()
except SystemExit:
    pass
"""
    heavy, modules = loaded(script)
    assert heavy <= {"typer", "rich"}
    assert not modules


def test_package_functions_are_not_hidden_by_modules_of_the_same_name() -> None:
    run = "import lance_duck.dataset, lance_duck.write_dataset, lance_duck as ld; print(ld.dataset, ld.write_dataset)"
    shown = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True).stdout
    assert shown.count("<function") == 2


def test_all_public_names_exist_and_are_listed() -> None:
    assert set(ld.__all__) <= set(dir(ld))
    assert all(getattr(ld, name) is not None for name in ld.__all__)


def test_modules_of_the_package_are_attributes() -> None:
    run = "import lance_duck as ld; print(ld.optimize.Compaction.__name__, ld.indices.IndexConfig.__name__)"
    shown = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["Compaction", "IndexConfig"]


def test_a_star_import_provides_every_name() -> None:
    names: dict[str, object] = {}
    exec("from lance_duck import *", names)
    assert set(ld.__all__) <= set(names)


@pytest.mark.parametrize("name", ["datset", "_dataset", "__path_of__"])
def test_an_unknown_name_raises_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'lance_duck' has no attribute '{name}'"):
        getattr(ld, name)


def test_dataset_sql_works_without_a_connection(table: str) -> None:
    query = "ds.sql('SELECT sum(id) AS n FROM dataset').build().to_batch_records()[0].to_pydict()"
    loaded(f"import lance_duck as ld\nds = ld.dataset({table!r})\nassert {query} == {{'n': [6]}}")


def test_an_index_search_loads_no_build_modules(tmp_path: Path) -> None:
    vectors = np.random.default_rng(0).standard_normal(300 * 8).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(vectors), 8)
    dataset = ld.write_dataset(pa.table({"v": column}), tmp_path / "t.lance")
    dataset.create_index("v", "IVF_FLAT", num_partitions=2)
    heavy, modules = loaded(f"import lance_duck as ld\nld.dataset({dataset.uri!r}).search([0.5] * 8, column='v', k=1)")
    assert "faiss" in heavy
    builders = ("encoding.write.codecs", "file.write.writer", "index.vector.build", "index.vector.training")
    assert not [name for name in modules if name.startswith(tuple(f"lance_duck.{each}" for each in builders))]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("open", r"no attribute 'open'; here it is dataset\(uri\)$"),
        ("read_table", r"here it is dataset\(uri\).to_table\(\)$"),
        ("create_table", r"here it is write_dataset\(data, uri\)$"),
        ("odd", r"module 'lance_duck' has no attribute 'odd'$"),
    ],
)
def test_names_of_other_libraries_suggest_the_lance_duck_name(name: str, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        getattr(ld, name)


def test_calling_a_package_suggests_the_intended_function() -> None:
    with pytest.raises(TypeError, match=r"'lance_duck.write' is not callable; here it is write_dataset\(data, uri\)$"):
        ld.write({"id": [1]}, "t.lance")


def test_packages_and_lazy_modules_are_pickled_by_name() -> None:
    import lance_duck
    from lance_duck import lazy

    waiting = lazy.modules({}, "lance_duck.scan", "scanner")
    copied = pickle.loads(pickle.dumps([lance_duck, waiting]))
    assert copied[0] is lance_duck
    assert copied[1].LanceScanner is lance_duck.LanceScanner
    assert not callable(lance_duck)


def test_the_modules_of_torch_are_attributes_that_load_torch_on_use() -> None:
    assert "torch" not in all_loaded("import lance_duck as ld\nld.torch")
    assert "torch" in all_loaded("import lance_duck as ld\nld.torch.data.LanceDataset")
