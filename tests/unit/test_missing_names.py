"""A misspelled attribute of the package or of a public class is an error that suggests the right name."""

from __future__ import annotations

import copy
import inspect
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_duck as ld
from lance_duck.errors import InvalidInputError, WrongTypeError

NOT_TAUGHT = {"BlobArray", "BlobType", "ExternalManifestStore"}
"""Classes of pyarrow types, and a protocol."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ld.LanceDataset:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(8), pa.float32()), 4)
    rows = pa.table({"id": [1, 2], "v": vectors, "s": ["red fox", "blue whale"]})
    table = ld.write_dataset(rows, tmp_path_factory.mktemp("tables") / "t.lance", max_rows_per_file=1)
    table.create_scalar_index("s", "INVERTED")
    return table


def test_every_public_class_suggests_names() -> None:
    classes = {name: each for name in ld.__all__ if inspect.isclass(each := getattr(ld, name))}
    silent = {
        name for name, each in classes.items() if not (hasattr(each, "__getattr__") or issubclass(each, Exception))
    }
    assert silent == NOT_TAUGHT


@pytest.mark.parametrize(
    ("name", "meant"),
    [("datset", "dataset"), ("writ_dataset", "write_dataset"), ("Lancedataset", "LanceDataset"), ("conect", "connect")],
)
def test_the_module_suggests_names(name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'lance_duck' has no attribute '{name}'; did you mean '{meant}'?"):
        getattr(ld, name)


def test_private_names_get_no_suggestion(table: ld.LanceDataset) -> None:
    for owner in (ld, table, table.tags, table.search("fox"), ld.connect()):
        with pytest.raises(AttributeError) as missing:
            owner._datset  # noqa: B018
        assert "did you mean" not in str(missing.value)


@pytest.mark.parametrize(
    ("owner", "name", "meant"),
    [
        ("table", "cout_rows", "count_rows"),
        ("table.scanner()", "to_tabel", "to_table"),
        ("table.get_fragments()[0]", "count_row", "count_rows"),
        ("table.get_fragments()[0].metadata", "file", "files"),
        ("table.merge_insert('id')", "when_machted_update_all", "when_matched_update_all"),
        ("table.tags", "creat", "create"),
        ("table.branches", "lst", "list"),
        ("table.optimize", "compact_file", "compact_files"),
        ("table.stats", "dataset_stat", "dataset_stats"),
        ("table.search([1.0, 2, 3, 4])", "limt", "limit"),
        ("table.sql('SELECT 1')", "biuld", "build"),
        ("ld.connect()", "exceute", "execute"),
        ("ld.connect_namespace('dir', {'root': '.'})", "list_table", "list_tables"),
        ("ld.DatasetBasePath('x')", "pat", "path"),
    ],
)
def test_objects_suggest_names(table: ld.LanceDataset, owner: str, name: str, meant: str) -> None:
    made: Any = eval(owner, {"table": table, "ld": ld})
    with pytest.raises(AttributeError, match=f"object has no attribute '{name}'; did you mean '{meant}'?"):
        getattr(made, name)
    assert not hasattr(made, name)


def test_names_of_other_libraries_are_translated(table: ld.LanceDataset) -> None:
    con = ld.connect()
    for owner, name, here in [
        (table, "list_versions", r"versions\(\)"),
        (table, "rerank", r'search\(vector\)\.text\("…"\)\.rerank\(\)'),
        (con, "table_names", "SHOW TABLES"),
        (con, "open_table", r"lance_duck\.dataset\(uri\)"),
        (con, "list_versions", "FROM lance_versions"),
    ]:
        with pytest.raises(AttributeError, match=f"'{name}'; here it is .*{here}"):
            getattr(owner, name)


def test_objects_with_suggestions_are_copied_and_pickled(table: ld.LanceDataset) -> None:
    for each in (table, table.get_fragments()[0].metadata, ld.DatasetBasePath("x"), ld.ColumnOrdering("id")):
        assert type(copy.copy(each)) is type(pickle.loads(pickle.dumps(each))) is type(each)


def test_optimize_can_be_called(table: ld.LanceDataset) -> None:
    metrics = table.optimize()
    assert (metrics.fragments_removed, metrics.fragments_added) == (2, 1)
    assert len(table.get_fragments()) == 1


@pytest.mark.parametrize(("words", "found"), [("fox", "only a text search"), ([1.0, 2, 3, 4], "only a vector search")])
def test_rerank_needs_two_searches(table: ld.LanceDataset, words: Any, found: str) -> None:
    with pytest.raises(InvalidInputError, match=rf"rerank combines .*: found {found}; .*\.text\("):
        table.search(words).rerank("rrf").to_arrow()
    both = table.search([1.0, 2, 3, 4], column="v").text("fox").rerank("rrf")
    assert both.to_arrow().num_rows == 2


@pytest.mark.parametrize(
    ("file", "reader"),
    [("x.csv", "read_csv"), ("a/x.parquet", "read_parquet"), (Path("x.json"), "read_json"), ("x.txt", "read_csv")],
)
def test_a_file_is_not_data(tmp_path: Path, file: Any, reader: str) -> None:
    with pytest.raises(WrongTypeError, match=rf"write_dataset\(duckdb\.{reader}\('{file}'\), uri\)"):
        ld.write_dataset(file, tmp_path / "x.lance")


NUL = ["file:///tmp/x%00y", "file:///tmp/x%00y.lance", "/tmp/x\0y.lance", "memory://x%00y"]


@pytest.mark.parametrize("uri", NUL)
@pytest.mark.parametrize(
    "use",
    [
        ld.dataset,
        lambda uri: ld.write_dataset({"a": [1]}, uri),
        ld.connect,
        ld.LanceDataset.drop,
        lambda uri: ld.connect({"t": uri}),
        lambda uri: ld.connect_namespace("dir", {"root": uri}).list_tables(),
        lambda uri: ld.connect().execute(f"ATTACH '{uri}' AS x (TYPE lance)"),
        lambda uri: ld.connect().execute(f"COPY (SELECT 1 AS a) TO '{uri}' (FORMAT lance)"),
        lambda uri: ld.connect().execute(f"FROM lance_scan('{uri}')"),
    ],
)
def test_a_uri_with_an_encoded_nul_is_invalid(use: Any, uri: str) -> None:
    with pytest.raises(ld.LanceDuckError) as refused:
        use(uri)
    if "\0" not in uri:
        assert isinstance(refused.value, InvalidInputError)


@pytest.mark.parametrize("option", ["index_segments", "memory_pool", "fragment_scan_options"])
@pytest.mark.parametrize("value", [0, False, [], {}, ""])
def test_refused_scan_options_have_no_values(table: ld.LanceDataset, option: str, value: Any) -> None:
    with pytest.raises(ld.UnsupportedError, match=f"{option} is not supported"):
        table.to_table(**{option: value})
    assert table.to_table(**{option: None}).num_rows == 2


def test_a_time_selects_a_version_without_a_number(table: ld.LanceDataset) -> None:
    for version in (table.checkout_version(asof="2099-01-01"), table.checkout_version(None, asof="2099-01-01")):
        assert version.version == table.version


def test_a_version_or_a_time_is_required(table: ld.LanceDataset) -> None:
    for call in (table.checkout_version, lambda: table.checkout_version(None)):
        with pytest.raises(ld.WrongTypeError, match="checkout_version: missing 1 required positional argument: 'vers"):
            call()
    with pytest.raises(InvalidInputError, match="checkout_version: version and asof exclude each other"):
        table.checkout_version(1, "2099-01-01")
