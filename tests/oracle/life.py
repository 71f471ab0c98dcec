"""Changes that pylance makes to a table, and the comparison of one version of it with what we read."""

from __future__ import annotations

from collections.abc import Callable

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from oracle.cases import Cases
from oracle.columns import random_words
from oracle.compare import assert_fields_same, assert_same, assert_schemas_same

import lance_duck as ld

Version = int | str | tuple[str | None, int | None]
Change = Callable[[lance.LanceDataset, np.random.Generator], None]


def rows(rng: np.random.Generator, n: int, first: int = 0) -> pa.Table:
    """Return n rows with keys from `first`, some of their values null."""
    item = pa.array(rng.integers(0, 1000, n))
    return pa.table(
        {
            "key": pa.array(np.arange(first, first + n)),
            "number": pc.if_else(pa.array(rng.random(n) < 0.2), None, item),
            "text": pa.array(random_words(rng, n, 0, 12), mask=rng.random(n) < 0.1),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(rng.standard_normal(n * 4).astype("float32")), 4),
            "tags": pa.array([random_words(rng, int(k), 1, 3) for k in rng.integers(0, 3, n)], pa.list_(pa.string())),
            "pair": pa.StructArray.from_arrays([item, pa.array(random_words(rng, n, 1, 4))], ["x", "y"]),
        }
    )


def create(uri: str, rng: np.random.Generator, **options: object) -> lance.LanceDataset:
    """Write 300 rows in three fragments."""
    return lance.write_dataset(rows(rng, 300), uri, max_rows_per_file=100, **options)


def next_key(dataset: lance.LanceDataset) -> int:
    """Return a key that no row has."""
    keys = dataset.to_table(columns=["key"])["key"]
    return (pc.max(keys).as_py() or 0) + 1


def append(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    dataset.insert(_as_table(dataset, rows(rng, int(rng.integers(1, 80)), next_key(dataset))))


def _as_table(dataset: lance.LanceDataset, table: pa.Table) -> pa.Table:
    """Return the columns of the dataset; missing ones are null."""
    columns = [
        table[f.name].cast(f.type) if f.name in table.column_names else _nulls(table.num_rows, f.type)
        for f in dataset.schema
    ]
    return pa.table(columns, schema=dataset.schema)


def _nulls(n: int, type_: pa.DataType) -> pa.Array:
    """Return nulls, or structs of nulls, because files of 2.0 cannot store null structs."""
    if not pa.types.is_struct(type_):
        return pa.nulls(n, type_)
    return pa.StructArray.from_arrays([pa.nulls(n, f.type) for f in type_], fields=list(type_))


def delete_few(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    dataset.delete(f"key % 11 = {rng.integers(0, 11)}")


def delete_many(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    dataset.delete(f"key % 3 = {rng.integers(0, 3)}")


def delete_fragment(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    fragments = dataset.get_fragments()
    if len(fragments) > 1:
        keys = fragments[int(rng.integers(0, len(fragments)))].to_table(columns=["key"])["key"].to_pylist()
        dataset.delete(f"key IN ({', '.join(map(str, keys))})" if keys else "false")


def update(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    dataset.update({"text": f"'new {rng.integers(0, 9)}'"}, where=f"key % 7 = {rng.integers(0, 7)}")


def merge_insert(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    source = rows(rng, 40, int(rng.integers(0, next_key(dataset))))
    (
        dataset.merge_insert("key")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute(_as_table(dataset, source))
    )


def merge_insert_some_columns(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    keys = dataset.to_table(columns=["key"])["key"][::5]
    number = pa.array(rng.integers(0, 9, len(keys))).cast(dataset.schema.field("number").type)
    source = pa.table({"key": keys, "number": number})
    dataset.merge_insert("key").when_matched_update_all().execute(source)


def add_column(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    dataset.add_columns({f"added_{dataset.version}": f"key * {rng.integers(2, 9)}"})


def add_null_column(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    field = [
        pa.field(f"empty_{dataset.version}", pa.list_(pa.int32())),
        pa.field(f"later_{dataset.version}", pa.string()),
    ]
    dataset.add_columns(field[int(rng.integers(0, 2))])


def drop_column(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    names = [n for n in dataset.schema.names if n not in ("key", "number", "text")]
    if names:
        dataset.drop_columns([names[int(rng.integers(0, len(names)))]])


def rename_column(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    names = [n for n in dataset.schema.names if n not in ("key", "number", "text")]
    if names:
        name = names[int(rng.integers(0, len(names)))]
        dataset.alter_columns({"path": name, "name": f"{name}_{dataset.version}"})


def cast_column(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    kinds = [pa.int16(), pa.int32(), pa.uint32(), pa.int64()]
    dataset.alter_columns({"path": "number", "data_type": kinds[int(rng.integers(0, 4))]})


def compact(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    dataset.optimize.compact_files(
        target_rows_per_fragment=int(rng.integers(50, 400)), materialize_deletions_threshold=0.0
    )


def overwrite(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    dataset.insert(rows(rng, 70), mode="overwrite")


def restore(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    dataset.checkout_version(int(rng.integers(1, dataset.version + 1))).restore()
    dataset.checkout_latest()


def configure(dataset: lance.LanceDataset, rng: np.random.Generator) -> None:
    dataset.update_config({"our.key": str(rng.integers(0, 9))})
    dataset.update_metadata({"about": "a table"})
    dataset.update_schema_metadata({"note": str(rng.integers(0, 9))})


CHANGES: tuple[Change, ...] = (
    append,
    delete_few,
    delete_many,
    delete_fragment,
    update,
    merge_insert,
    merge_insert_some_columns,
    add_column,
    add_null_column,
    drop_column,
    rename_column,
    cast_column,
    compact,
    overwrite,
    restore,
    configure,
)


def compare(cases: Cases, uri: str, version: Version | None = None, *, stable: bool = False) -> None:
    """Compare all that one version holds: schema, rows, row ids, fragments, takes."""
    theirs, ours = lance.dataset(uri), ld.dataset(uri, version)
    if version is not None:
        theirs = theirs.checkout_version(version)
    label = f"{uri.rsplit('/', 1)[-1]}@{version}"
    with cases.case(f"{label} handle"):
        assert ours.version == theirs.version
        assert ours.count_rows() == theirs.count_rows()
        assert_schemas_same(theirs.schema, ours.schema)
    truth = theirs.to_table(with_row_id=True, with_row_address=True)
    with cases.case(f"{label} rows"):
        found = ours.to_table(with_row_id=True, with_row_address=True)
        assert found.column_names == truth.column_names
        for name in truth.column_names:
            assert_fields_same(truth.schema.field(name), found.schema.field(name))
            assert_same(truth[name], found[name])
    if stable:
        with cases.case(f"{label} row versions"):
            columns = ["_row_last_updated_at_version", "key", "_row_created_at_version"]
            expected = theirs.to_table(columns=columns)
            assert expected.equals(ours.to_table(columns=columns))
    if truth.num_rows:
        picked = np.random.default_rng(0).integers(0, truth.num_rows, 12).tolist()
        with cases.case(f"{label} take"):
            assert theirs.take(picked).equals(ours.take(picked))
        with cases.case(f"{label} filter"):
            condition = f"key % 5 = {picked[0] % 5} AND text IS NOT NULL"
            assert theirs.to_table(filter=condition, with_row_id=True).equals(
                ours.to_table(filter=condition, with_row_id=True)
            )
    with cases.case(f"{label} fragments"):
        _compare_fragments(theirs, ours)


def _compare_fragments(theirs: lance.LanceDataset, ours: ld.LanceDataset) -> None:
    left, right = theirs.get_fragments(), list(ours.get_fragments())
    assert [f.fragment_id for f in left] == [f.fragment_id for f in right]
    for a, b in zip(left, right, strict=True):
        assert (a.count_rows(), a.physical_rows, a.num_deletions) == (b.count_rows(), b.physical_rows, b.num_deletions)
        assert [f.path for f in a.data_files()] == [f.path for f in b.data_files()]
        assert a.to_table().equals(b.to_table())
