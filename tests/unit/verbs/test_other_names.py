"""Names of other libraries suggest the equivalent of this package."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import lance_duck as ld


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    return ld.write_dataset({"id": [1, 2]}, tmp_path / "t.lance")


@pytest.mark.parametrize(
    ("name", "hint"),
    [("append", "here it is insert"), ("num_rows", "count_rows"), ("where", "filter="), ("odd", "'odd'$")],
)
def test_a_name_of_another_library_suggests_the_lance_duck_name(table: ld.LanceDataset, name: str, hint: str) -> None:
    assert not hasattr(table, name)
    with pytest.raises(AttributeError, match=f"'LanceDataset' object has no attribute.*{hint}"):
        getattr(table, name)


def test_a_misspelled_name_suggests_the_nearest(table: ld.LanceDataset) -> None:
    assert not hasattr(table, "to_polarz")
    with pytest.raises(AttributeError, match=r"no attribute 'to_polarz'; did you mean 'to_polars'\?$"):
        _ = table.to_polarz  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"no attribute '_versions'$"):
        _ = table._versions  # type: ignore[attr-defined]


def test_numpy_treats_a_dataset_as_one_object(table: ld.LanceDataset) -> None:
    assert np.array([table, table], dtype=object).shape == (2,)
    assert np.ndim(table) == 0  # type: ignore[call-overload]


def test_creating_another_index_kind_suggests_the_right_method(table: ld.LanceDataset) -> None:
    with pytest.raises(ld.NotIndexableError, match=r"; create_scalar_index\('id', 'BTREE'\) makes"):
        table.create_index("id", "BTREE")
    with pytest.raises(ld.NotIndexableError, match=r"IVF_RQ$"):
        table.create_index("id", "HNSW")


def test_merge_insert_with_rows_suggests_the_argument_order(table: ld.LanceDataset) -> None:
    with pytest.raises(ld.WrongTypeError, match="on: expected names, found Table; rows are given last"):
        table.merge_insert(table.to_table())  # type: ignore[arg-type]


def test_an_attribute_error_inside_a_property_is_not_replaced(
    table: ld.LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ld.LanceDataset, "tags", property(lambda _: {}.missing))  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match=r"'dict' object has no attribute 'missing'$"):
        _ = table.tags


def test_datasets_can_be_copied_and_pickled(table: ld.LanceDataset) -> None:
    assert copy.copy(table).count_rows() == pickle.loads(pickle.dumps(table)).count_rows() == 2


def test_lancedb_connection_names_suggest_the_equivalent() -> None:
    with ld.connect() as con:
        for name, hint in (("open_table", "relation"), ("create_table", "CREATE TABLE name"), ("odd", "'odd'$")):
            with pytest.raises(AttributeError, match=f"'Connection' object has no attribute.*{hint}"):
                getattr(con, name)


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda t: t.to_table(where="id = 1"), "filter"),
        (lambda t: t.delete(where="id = 1"), "predicate"),
        (lambda t: t.update(values={"id": "1"}), "updates"),
        (lambda t: ld.write_dataset(t, t.uri, mode="replace"), "overwrite"),
        (lambda t: ld.write_dataset(t, t.uri, overwrite=True), "mode"),
    ],
)
def test_arguments_of_other_libraries_suggest_the_equivalent(table: ld.LanceDataset, call: object, meant: str) -> None:
    with pytest.raises(ld.LanceDuckError, match=f"did you mean '{meant}'"):
        call(table)
