"""Arguments of public functions: unknown names, wrong types, and parameters without effect."""

from __future__ import annotations

import ast
import inspect
import os
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict, Unpack, get_type_hints

import pyarrow as pa
import pytest

import lance_duck as ld
import lance_duck.file
import lance_duck.fragment
import lance_duck.optimize
import lance_duck.spark
from lance_duck.arguments import checked_call, did_you_mean, nearest_name
from lance_duck.errors import (
    InvalidInputError,
    LanceDuckError,
    NotFoundError,
    NotIndexableError,
    UnknownColumnError,
    UnsupportedError,
    WrongTypeError,
)
from lance_duck.fragment import write_fragments
from lance_duck.index.vector import kind as vector_kind
from lance_duck.maintenance.options import CompactionArguments, CompactionOptions
from lance_duck.scan.arguments import CountArguments, HeadArguments, ScanArguments, SearchArguments, TakeArguments
from lance_duck.scan.hybrid.options import ARGUMENTS as HYBRID_ARGUMENTS
from lance_duck.scan.nearest.options import ARGUMENTS as NEAREST_ARGUMENTS
from lance_duck.scan.options import ScanOptions
from lance_duck.verbs.indexes.vector import VectorParameters, vector_spec
from lance_duck.verbs.writing.settings import WriteArguments, WriteSettings

HASTY = {"fsync": "false"}
MODULES = (ld, lance_duck.spark, lance_duck.file, lance_duck.fragment, lance_duck.optimize)
NOT_OURS = {"LanceOperation", "Transaction", "ExternalManifestStore"}
"""Data and protocols: no functions that users call with options."""
WITHOUT_EFFECT = {
    "LanceDataset.create_index": {
        *("index_cache_size", "shuffle_partition_batches", "shuffle_partition_concurrency"),
        *("storage_options", "filter_nan"),
    },
    "LanceDataset.explain_cleanup_old_versions": {"delete_rate_limit"},
    "LanceDataset.read_blobs": {"io_buffer_size", "preserve_order"},
    "LanceDataset.read_blob_ranges": {"io_buffer_size", "preserve_order"},
    "LanceDataset.merge_index_metadata": {"batch_readhead"},
    "LanceFileReader.read_range": {"batch_readahead"},
    "LanceFileReader.take_rows": {"batch_readahead"},
    "RestNamespace.discard": {"place"},
    "dataset": {
        *("block_size", "index_cache_size", "metadata_cache_size_bytes", "index_cache_size_bytes", "read_params"),
    },
}
"""Unused parameters, whose documentation states the reason."""
REFUSED = {"SparkMerge.analyze_plan", "SparkMerge.execute_uncommitted"}
"""Methods of pylance that are always rejected."""
CHECKED_ONLY = {
    ScanOptions: {
        *("batch_readahead", "fragment_readahead", "io_buffer_size", "scan_in_order", "use_stats"),
        *("late_materialization", "cache_metadata"),
    },
    CompactionOptions: {"io_buffer_size", "binary_copy_read_batch_bytes"},
}
"""Options that are part of a dataclass, and without effect likewise."""


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Functions and methods that users call, each once, by name."""
    seen: set[object] = set()
    for module in MODULES:
        for name in getattr(module, "__all__", None) or _defined(module):
            for label, function in _functions(name, getattr(module, name)):
                plain = inspect.unwrap(function)
                if plain not in seen and "lance_duck" in plain.__module__:
                    seen.add(plain)
                    yield label, function


def _defined(module: ModuleType) -> list[str]:
    found = vars(module).items()
    return [n for n, each in found if n[0] != "_" and getattr(each, "__module__", "") == module.__name__]


def _functions(name: str, found: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    if inspect.isfunction(found):
        yield name, found
    if not inspect.isclass(found) or name in NOT_OURS or issubclass(found, BaseException):
        return
    for method in dir(found):
        member = inspect.getattr_static(found, method)
        member = member.__func__ if isinstance(member, staticmethod | classmethod) else member
        is_abstract = getattr(member, "__isabstractmethod__", False)
        is_awaited = inspect.iscoroutinefunction(member) and hasattr(member, "__wrapped__")  # its method is checked
        if inspect.isfunction(member) and not method.startswith("_") and not is_abstract and not is_awaited:
            yield f"{name}.{method}", member


FUNCTIONS = dict(public_functions())


@pytest.fixture
def table(tmp_path: Path) -> ld.LanceDataset:
    rows = pa.table({"id": [1, 2, 3], "fare": [1.0, 2.0, 3.0], "v": pa.array([[0.0, i] for i in range(3)], VECTOR)})
    return ld.write_dataset(rows, tmp_path / "t.lance", storage_options=HASTY)


VECTOR = pa.list_(pa.float32(), 2)


def test_every_public_function_is_checked() -> None:
    assert {"dataset", "write_dataset", "connect", "knn_join", "LanceDataset.update", "LanceFragment.scanner"} <= set(
        FUNCTIONS
    )
    assert len(FUNCTIONS) > 150


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ignored_parameters_are_documented_as_without_effect(name: str) -> None:
    function = inspect.unwrap(FUNCTIONS[name])
    body = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0].body  # type: ignore[attr-defined]
    read = {node.id for statement in body for node in ast.walk(statement) if isinstance(node, ast.Name)}
    parameters = {p for p in inspect.signature(function).parameters if p not in ("self", "cls") and p[0] != "_"}
    idle = set() if name in REFUSED else parameters - read
    assert idle == WITHOUT_EFFECT.get(name, set())
    for parameter in idle:
        assert re.search(rf"^ +{parameter}: Without effect", function.__doc__ or "", re.MULTILINE)


@pytest.mark.parametrize("options", CHECKED_ONLY)
def test_options_without_effect_are_documented(options: type) -> None:
    documented = re.findall(r"^ +(\w+): (?:Checked, and w|W)ithout effect", options.__doc__ or "", re.MULTILINE)
    assert set(documented) == CHECKED_ONLY[options]


CALLED_WITH = [
    name
    for name, function in FUNCTIONS.items()
    if not any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())
    and "." not in name
    and inspect.signature(function).parameters
]


@pytest.mark.parametrize("name", [name for name in CALLED_WITH if name not in ("ensure_java", "stable_version")])
def test_an_unknown_keyword_raises_a_lance_duck_type_error(name: str) -> None:
    first = next(iter(inspect.signature(FUNCTIONS[name]).parameters))
    with pytest.raises(WrongTypeError, match=f"unknown argument '{first}s'; did you mean '{first}'") as raised:
        FUNCTIONS[name](**{f"{first}s": 1})
    assert isinstance(raised.value, TypeError)
    assert isinstance(raised.value, LanceDuckError)


def append() -> ld.Transaction:
    return ld.Transaction(1, ld.LanceOperation.Append([]))


METHODS = sorted(name.partition(".")[2] for name in FUNCTIONS if name.startswith("LanceDataset."))
SEEN_BY_DUCKDB = {"accepts", "rows", "stream", "pushed_scanner", "duckdb_reader", "index_estimate", "indexed_columns"}
OF_PYARROW = {"join", "join_asof", "sort_by"}


@pytest.mark.parametrize("name", [name for name in METHODS if name not in SEEN_BY_DUCKDB | OF_PYARROW])
def test_every_method_rejects_an_unknown_keyword(name: str, table: ld.LanceDataset) -> None:
    given = {"column": "v", "q": [0.0, 0.0], "index_type": "BTREE", "base_uri": "x", "operation": None, "dest": "x"}
    given |= {"num_rows": 1, "indices": [0], "transactions": [append()], "data": [], "name": "i"}
    parameters = inspect.signature(getattr(table, name)).parameters
    if name == "create_index":
        given["index_type"] = "IVF_FLAT"
    chosen = {key: value for key, value in given.items() if key in parameters}
    with pytest.raises(WrongTypeError, match=r"unknown .*surely_not_known"):
        getattr(table, name)(**chosen, surely_not_known=1)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda t: t.to_table(colums=["id"]), WrongTypeError, "scan: unknown option 'colums'; did you mean 'columns'"),
        (lambda t: t.scanner(filtre="id"), WrongTypeError, "unknown option 'filtre'; did you mean 'filter'"),
        (lambda t: t.get_fragments()[0].to_table(colums=[]), WrongTypeError, "did you mean 'columns'"),
        (lambda t: t.update({"fare": "1"}, were="id = 1"), WrongTypeError, "update: .*did you mean 'where'"),
        (lambda t: t.insert(t, mod="append"), WrongTypeError, "insert: unknown argument 'mod'; did you mean 'mode'"),
        (lambda t: t.to_table(["idd"]), UnknownColumnError, "no column 'idd': expected one of id, fare, .*'id'"),
        (lambda t: t.update({"fair": "1"}), UnknownColumnError, "no column 'fair'.*did you mean 'fare'"),
        (lambda t: t.drop_columns(["fair"]), InvalidInputError, "did you mean 'fare'"),
        (lambda t: t.create_scalar_index("idd", "BTREE"), UnknownColumnError, "did you mean 'id'"),
        (lambda t: t.create_scalar_index("id", "BTRE"), NotIndexableError, "did you mean 'BTREE'"),
        (lambda t: t.create_index("v", "IVF_PG"), NotIndexableError, "did you mean 'IVF_PQ'"),
        (lambda t: t.create_index("v", "IVF_PQ", num_partition=2), WrongTypeError, "did you mean 'num_partitions'"),
        (lambda t: t.create_scalar_index("id", "ZONEMAP", rows_per_zones=2), WrongTypeError, "'rows_per_zone'"),
        (lambda t: t.create_index("v", "IVF_FLAT", metric="cosin"), InvalidInputError, "did you mean 'cosine'"),
        (lambda t: t.create_index("v", "IVF_FLAT", accelerator="cuda"), UnsupportedError, "accelerator"),
        (lambda t: t.head(pa.scalar(1)), WrongTypeError, "head"),
        (lambda t: t.create_scalar_index("id", "BTREE", name="\ud800"), InvalidInputError, "invalid index name"),
        (lambda t: t.search([0, 0], metrik="l2"), WrongTypeError, "did you mean 'metric'"),
        (lambda t: t.to_table(nearest={"column": "v", "q": [0, 0], "nprobs": 3}), WrongTypeError, "'nprobes'"),
        (lambda t: t.to_table(nearest={"column": "w", "q": [0, 0]}), UnknownColumnError, "expected one of id"),
        (lambda t: t.optimize.compact_files(target_rows=3), WrongTypeError, "target_rows_per_fragment"),
        (lambda t: t.merge_insert("id").write_mode("rewrite_row"), InvalidInputError, "did you mean 'rewrite_rows'"),
        (lambda t: ld.write_dataset(t, t, mode="appnd"), InvalidInputError, "did you mean 'append'"),
        (lambda t: ld.write_dataset(t, t, max_row_per_file=3), WrongTypeError, "did you mean 'max_rows_per_file'"),
        (lambda t: write_fragments(t, t, max_row_per_file=3), WrongTypeError, "did you mean 'max_rows_per_file'"),
        (lambda t: write_fragments(t, t, commit_message="x"), WrongTypeError, "unknown argument 'commit_message'"),
        (lambda t: t.insert(t, max_rows=3), WrongTypeError, "insert: unknown argument 'max_rows'"),
        (lambda t: ld.write_dataset(t, t, session=object()), UnsupportedError, "session is not supported"),
        (lambda t: ld.dataset(t.uri, versoin=3), WrongTypeError, "did you mean 'version'"),
        (lambda t: ld.dataset(t.uri, session=object()), UnsupportedError, "session is not supported"),
        (lambda t: t.drop_index("nope"), NotFoundError, "no index 'nope'"),
    ],
)
def test_a_misspelled_name_suggests_the_nearest(
    call: Callable[[ld.LanceDataset], object], error: type[Exception], message: str, table: ld.LanceDataset
) -> None:
    with pytest.raises(error, match=message):
        call(table)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda t: t.cleanup_old_versions(older_than=5),
            r"older_than: expected a timedelta, found 5; timedelta\(days=5\)",
        ),
        (lambda t: t.cleanup_old_versions(timedelta(1), "x"), "retain_versions: expected whole numbers"),
        (lambda t: ld.dataset(t.uri, storage_options=5), "storage_options: expected a dict of strings, found int"),
        (lambda t: ld.dataset(t.uri, storage_options={"fsync": None}), "storage option 'fsync': expected a string"),
        (lambda _: ld.dataset(None), "uri: expected a path or URI, found None of type NoneType"),
        (lambda _: ld.dataset(b"x"), "uri: expected a path or URI, found b'x' of type bytes"),
        (lambda _: ld.dataset(), "uri: expected a path or URI, found None of type NoneType"),
        (lambda t: t.slice("a", 3), "slice: start: expected int, found 'a' of type str"),
        (lambda t: t.checkout_version(), "missing 1 required positional argument: 'version'"),
        (lambda t: t.restore(3), "takes 1 positional argument but 2 were given"),
        (lambda t: t.sample("x"), "num_rows: expected int, found 'x' of type str"),
        (lambda t: t.take([1.5]), "bad row positions: expected whole numbers, found 1.5 of type float"),
        (lambda t: t.take(["a"]), "found 'a' of type str"),
        (lambda t: t.take([None]), "found None of type NoneType"),
        (lambda t: t.take([True]), "found True of type bool"),
        (lambda t: t.take("12"), "expected a list of whole numbers, found str"),
        (lambda t: t.take(5), "expected a list of whole numbers, found int"),
    ],
)
def test_a_value_of_a_wrong_type_is_named(
    call: Callable[[ld.LanceDataset], object], message: str, table: ld.LanceDataset
) -> None:
    with pytest.raises(WrongTypeError, match=message):
        call(table)


@pytest.mark.parametrize("uri", ["a\0b", "", "a\ud800"])
def test_invalid_paths_are_rejected(uri: str) -> None:
    for call in (ld.dataset, ld.connect, lambda place: ld.write_dataset(pa.table({"a": [1]}), place)):
        with pytest.raises(InvalidInputError):
            call(uri)


@pytest.mark.parametrize("place", ["a\0b", "a\ud800"])
def test_invalid_database_paths_are_rejected(place: str) -> None:
    with pytest.raises(InvalidInputError):
        ld.connect(database=place)


@pytest.mark.parametrize("place", ["", ":memory:"])
def test_a_database_without_a_path_is_in_memory(place: str) -> None:
    with ld.connect(database=place) as con:
        assert con.execute("SELECT path FROM duckdb_databases() WHERE database_name = 'memory'").fetchall() == [(None,)]


def test_storage_options_must_be_encodable_strings(tmp_path: Path) -> None:
    for options in ({"region": "\ud800"}, {"\ud800": "x"}):
        with pytest.raises(InvalidInputError, match="expected a valid string, found a lone surrogate"):
            ld.dataset(tmp_path, storage_options=options)


def test_a_path_that_is_not_utf8_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff.lance")
    ld.write_dataset(pa.table({"a": [1]}), path, storage_options=HASTY)
    assert ld.dataset(path).count_rows() == 1
    ld.write_dataset(pa.table({"a": [2]}), tmp_path / "t.lance", storage_options=HASTY)
    with ld.connect(tmp_path) as con:
        assert con.execute("SELECT a FROM t").fetchall() == [(2,)]
    with ld.connect({"t": path}) as con:
        assert con.execute("SELECT a FROM t").fetchall() == [(1,)]
    with pytest.raises(
        InvalidInputError, match=r"table name 't\\udcff' is not valid Unicode, and SQL cannot refer to it"
    ):
        ld.connect({"t\udcff": path})


@pytest.mark.parametrize("number", [-1, 3, 2**63, 2**64 - 1, 2**64, -(2**63), 2**100])
def test_an_out_of_range_position_is_reported_as_given(number: int, table: ld.LanceDataset) -> None:
    fragment = table.get_fragments()[0]
    for take in (table.take, fragment.take, fragment.open_session().take):
        with pytest.raises(InvalidInputError, match=f"found {number}$"):
            take([0, number])


def test_negative_row_ids_and_addresses_are_rejected(table: ld.LanceDataset) -> None:
    with pytest.raises(InvalidInputError, match="bad row addresses: expected no negative number, found -1"):
        table.take_rows([-1])


def test_a_search_without_k_returns_limit_rows(tmp_path: Path) -> None:
    rows = pa.table({"id": range(30), "v": pa.array([[0.0, i] for i in range(30)], VECTOR)})
    table = ld.write_dataset(rows, tmp_path / "t.lance", storage_options=HASTY)
    nearest = {"column": "v", "q": [0.0, 0.0]}

    def ids(**options: Any) -> list[int]:
        found: list[int] = table.to_table(["id"], nearest=nearest, **options).column("id").to_pylist()
        return found

    assert ids() == list(range(10))
    assert ids(limit=12) == list(range(12))
    assert ids(limit=12, offset=3) == list(range(3, 15))
    assert ids(limit=4) == list(range(4))
    assert ids(limit=0) == []
    assert table.search([0.0, 0.0], limit=12).num_rows == 12
    assert table.search([0.0, 0.0], k=5, limit=12).num_rows == 5
    assert table.search([0.0, 0.0]).num_rows == 10


def test_unknown_storage_options_are_rejected_on_a_local_disk(tmp_path: Path) -> None:
    rows, place = pa.table({"a": [1]}), tmp_path / "t.lance"
    with pytest.raises(InvalidInputError, match="unknown storage option 'fsnyc'; did you mean 'fsync'"):
        ld.write_dataset(rows, place, storage_options={"fsnyc": "false"})
    ld.write_dataset(rows, place, storage_options=HASTY)
    for option in ("aws_region", "AWS_ENDPOINT", "account_name", "google_service_account", "timeout", "allow_http"):
        assert ld.dataset(place, storage_options={option: "1s"}).count_rows() == 1
    with pytest.raises(InvalidInputError, match="unknown storage option 'aws_regoin'; did you mean 'aws_region'"):
        ld.dataset(place, storage_options={"aws_regoin": "eu-central-1"})


def test_empty_row_groups_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="max_rows_per_group: expected a number from 1"):
        ld.write_dataset(pa.table({"a": [1]}), tmp_path / "t.lance", max_rows_per_group=0)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_stable_row_ids_cannot_be_enabled_on_an_existing_table(mode: str, table: ld.LanceDataset) -> None:
    rows = pa.table({"id": [4]})
    with pytest.raises(InvalidInputError, match="enable_stable_row_ids: the table does not have stable row ids"):
        ld.write_dataset(rows, table, mode=mode, enable_stable_row_ids=True)
    with pytest.raises(InvalidInputError, match="enable_stable_row_ids"):
        table.insert(rows, mode=mode, enable_stable_row_ids=True)
    assert table.latest_version == 1


def test_stable_row_ids_may_be_requested_again(tmp_path: Path) -> None:
    place = tmp_path / "t.lance"
    for _ in range(2):
        table = ld.write_dataset(
            pa.table({"id": [4]}), place, mode="append", enable_stable_row_ids=True, storage_options=HASTY
        )
    assert table.count_rows() == 2


def test_a_merge_can_skip_indexes(table: ld.LanceDataset) -> None:
    table.create_scalar_index("id", "BTREE")
    for use_index in (True, False):
        merge = table.merge_insert("id").when_matched_update_all().use_index(use_index)
        assert merge.execute(pa.table({"id": [2], "fare": [9.0]}))["num_updated_rows"] == 1


def test_fragment_take_accepts_scan_options(table: ld.LanceDataset) -> None:
    fragment = table.get_fragments()[0]
    assert fragment.take([2, 0], ["id"], with_row_id=True).to_pydict() == {"id": [3, 1], "_rowid": [2, 0]}
    assert fragment.take([0], ["id"], filter="id > 1").to_pydict() == {"id": [2]}


@pytest.mark.parametrize(
    ("name", "names", "nearest"),
    [
        ("colums", ["columns", "filter"], "columns"),
        ("MODE", ["mode"], "mode"),
        ("zebra", ["columns"], None),
        ("x", [], None),
        (5, ["5a"], "5a"),
    ],
)
def test_the_nearest_name_is_found(name: object, names: list[str], nearest: str | None) -> None:
    assert nearest_name(name, names) == nearest
    assert did_you_mean(name, names) == (None if nearest is None else f"did you mean {nearest!r}?")


@checked_call
def example(count: int, names: list[str] | None = None, *, options: Mapping[str, int] | None = None) -> int:
    """Fail on an argument of a wrong type, and on zero.

    Args:
        count: Number of parts,
            at least one.
        names: Names.
    """
    return len(names or []) // count + sum((options or {}).values())


@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        (("1",), {}, "example: count: expected int, found '1' of type str"),
        ((1, 5), {}, "names: expected list.str. . None, found 5 of type int"),
        ((1,), {"options": {"a": "secret"}}, "options: expected Mapping.str, int. . None, found dict$"),
        ((1,), {"name": []}, "unknown argument 'name'; did you mean 'names'"),
        ((), {}, "argument: 'count': expected count: Number of parts, at least one$"),
        ((1, [], 3), {}, "takes from 1 to 2 positional arguments but 3 were given"),
    ],
)
def test_a_failing_call_names_the_wrong_argument(args: tuple[Any, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongTypeError, match=message):
        example(*args, **options)


class Sizes(TypedDict, total=False):
    """Declares arguments."""

    width: int
    names: list[str] | None


@checked_call
def sized(count: int, **sizes: Unpack[Sizes]) -> int:
    """Fails where an argument is of a wrong type, and where the width is zero."""
    return count // sizes.get("width", 1) + len(sizes.get("names") or [])


def test_a_signature_lists_declared_arguments() -> None:
    assert str(inspect.signature(sized)) == (
        "(count: 'int', *, width: 'int' = None, names: 'list[str] | None' = None) -> 'int'"
    )
    parameters = inspect.signature(ld.write_dataset).parameters
    assert list(parameters)[:4] == ["data_obj", "uri", "schema", "mode"]
    assert parameters["max_rows_per_file"].default == WriteSettings().max_rows_per_file
    assert "prefilter" in inspect.signature(ld.LanceDataset.to_table).parameters


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": "1"}, "sized: width: expected int, found '1' of type str"),
        ({"names": 5}, "sized: names: expected list.str. . None, found 5 of type int"),
    ],
)
def test_a_failing_call_names_the_wrong_declared_argument(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(WrongTypeError, match=message):
        sized(1, **arguments)
    with pytest.raises(ZeroDivisionError):
        sized(1, width=0)


def keys(*declarations: type) -> set[str]:
    return {name for declaration in declarations for name in get_type_hints(declaration)}


POSITIONAL = {"columns", "filter", "limit", "offset", "nearest", "batch_size"}
REFUSED_OPTIONS = {"index_segments", "memory_pool", "fragment_scan_options"}


def test_declared_arguments_equal_the_supported_options() -> None:
    scan = set(ScanOptions.__dataclass_fields__) - REFUSED_OPTIONS
    assert keys(ScanArguments) == scan - POSITIONAL
    assert keys(CountArguments) == scan - {"columns", "filter"}
    assert keys(TakeArguments) == scan - {"columns"}
    assert keys(HeadArguments) == scan - {"limit"}
    searches = NEAREST_ARGUMENTS - {"column", "q", "k"} | {*HYBRID_ARGUMENTS}
    assert keys(SearchArguments) == scan - {"nearest"} | searches
    assert keys(WriteArguments) == set(WriteSettings.__dataclass_fields__) - {"fragment_id"} | {"use_legacy_format"}
    assert keys(CompactionArguments) == set(CompactionOptions.__dataclass_fields__)


@pytest.mark.parametrize("name", sorted(keys(VectorParameters)))
def test_declared_vector_index_parameters_are_supported(name: str, table: ld.LanceDataset) -> None:
    value = "V3" if name == "index_file_version" else None
    assert vector_spec(table.handle.snapshot, "v", "IVF_FLAT", {name: value}).kind is vector_kind.VECTOR


@pytest.mark.parametrize(
    ("declaration", "options"),
    [(CountArguments, ScanOptions), (HeadArguments, ScanOptions), (WriteArguments, WriteSettings)],
)
def test_declared_arguments_have_the_types_of_the_options(declaration: type, options: type) -> None:
    declared, expected = get_type_hints(declaration), get_type_hints(options)
    assert {name: kind for name, kind in declared.items() if name in expected and kind != expected[name]} == {}


def test_arguments_have_the_same_positions_as_in_pylance(table: ld.LanceDataset) -> None:
    nearest = {"column": "v", "q": [0.0, 2.0], "k": 1}
    assert table.to_table(["id"], None, None, None, nearest)["id"].to_pylist() == [3]
    assert [batch.num_rows for batch in table.to_batches(["id"], "id > 0", 3, 0, None, 2)] == [2, 1]


def test_the_deprecated_format_option_warns_at_the_caller(tmp_path: Path) -> None:
    with pytest.warns(DeprecationWarning, match="use_legacy_format is deprecated") as warned:
        table = ld.write_dataset(pa.table({"id": [1]}), tmp_path / "t", use_legacy_format=False, storage_options=HASTY)
    assert (table.data_storage_version, warned[0].filename) == ("2.2", __file__)


def test_a_failing_call_with_valid_arguments_keeps_its_error() -> None:
    assert example(2, ["a", "b"]) == 1
    with pytest.raises(ZeroDivisionError):
        example(0)

    @checked_call
    def broken(_: int) -> int:
        return len(3)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="has no len") as raised:
        broken(1)
    assert not isinstance(raised.value, LanceDuckError)
