"""Pages that other files fill: what of the format is read and written, the commands, and the notebooks."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import typer
from typer.cli import get_docs_for_click

import lance_duck as ld
import lance_duck_command
from benchmarks import figures
from lance_duck.encoding.codecs.registry import READERS
from lance_duck.encoding.v20.registry import READERS as READERS_20
from lance_duck.errors import LanceDuckError
from lance_duck.file.reader import LEGACY_VERSIONS, VERSIONS
from lance_duck.file.write.writer import VERSIONS as WRITTEN_2
from lance_duck.index.registry import KINDS
from lance_duck.wire.flags import READABLE, WRITABLE, flag_names
from lance_duck.wire.fragment import LEGACY, UNSTABLE
from lance_duck.write.options import NEWEST

WRITTEN: Final = (LEGACY, *WRITTEN_2)
TYPES: Final[Mapping[str, tuple[pa.DataType, Any]]] = {
    "integers, float32, float64": (pa.int32(), 1),
    "float16": (pa.float16(), 1.0),
    "boolean": (pa.bool_(), True),
    "string": (pa.string(), "a"),
    "large_string": (pa.large_string(), "a"),
    "string_view": (pa.string_view(), "a"),
    "binary": (pa.binary(), b"a"),
    "large_binary": (pa.large_binary(), b"a"),
    "binary_view": (pa.binary_view(), b"a"),
    "fixed_size_binary": (pa.binary(3), b"abc"),
    "fixed_size_binary(0)": (pa.binary(0), b""),
    "date32, date64": (pa.date64(), 0),
    "time32, time64": (pa.time64("ns"), 0),
    "timestamp with a zone": (pa.timestamp("us", "+02:30"), 0),
    "duration": (pa.duration("us"), 0),
    "interval": (pa.month_day_nano_interval(), (1, 2, 3)),
    "decimal32, decimal64": (pa.decimal64(12, 2), Decimal("1.25")),
    "decimal128, negative scale": (pa.decimal128(5, -2), Decimal(100)),
    "decimal256": (pa.decimal256(60, 3), Decimal("1.125")),
    "null": (pa.null(), None),
    "dictionary of text": (pa.dictionary(pa.int8(), pa.string()), "a"),
    "dictionary of numbers": (pa.dictionary(pa.uint16(), pa.int64()), 1),
    "dictionary of dates": (pa.dictionary(pa.int32(), pa.date32()), 0),
    "dictionary of decimals": (pa.dictionary(pa.int32(), pa.decimal128(5, 1)), Decimal(1)),
    "list": (pa.list_(pa.int32()), [1]),
    "large_list": (pa.large_list(pa.string()), ["a"]),
    "list_view": (pa.list_view(pa.int32()), [1]),
    "list of lists of structs": (pa.list_(pa.list_(pa.struct([("x", pa.int32())]))), [[{"x": 1}]]),
    "list of null": (pa.list_(pa.null()), [None]),
    "fixed_size_list": (pa.list_(pa.float32(), 2), [0.5, 1.5]),
    "fixed_size_list of fixed_size_list": (pa.list_(pa.list_(pa.int32(), 2), 2), [[1, 2], [3, 4]]),
    "fixed_size_list of struct": (pa.list_(pa.struct([("x", pa.int32())]), 2), [{"x": 1}, {"x": 2}]),
    "fixed_size_list of text": (pa.list_(pa.string(), 2), ["a", "b"]),
    "fixed_size_list of list": (pa.list_(pa.list_(pa.int32()), 2), [[1], [2]]),
    "struct": (pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))]), {"x": 1, "y": ["a"]}),
    "struct without fields": (pa.struct([]), {}),
    "map": (pa.map_(pa.string(), pa.int32()), [("a", 1)]),
    "run_end_encoded": (pa.run_end_encoded(pa.int32(), pa.string()), "a"),
    "arrow.uuid": (pa.uuid(), bytes(16)),
    "arrow.bool8": (pa.bool8(), 1),
    "arrow.json": (pa.json_(), "[1]"),
}
"""A type for each row of the table of types, and a value."""


def write(folder: Path) -> None:
    """Write each page into a folder, which is made."""
    folder.mkdir(exist_ok=True)
    shutil.copytree(
        folder.parents[1] / "notebooks", folder / "notebooks", dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.md")
    )
    for name, text in {
        "file_versions": file_versions(),
        "encodings": encodings(),
        "types": types(),
        "flags": flags(),
        "indexes": indexes(),
        "command_line": command_line(),
    }.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    figures.write(folder)


def file_versions() -> str:
    """Return a table of the versions of data files."""
    read = {f"{major}.{minor}" for major, minor in VERSIONS.values()} | set(LEGACY_VERSIONS.values())
    names = sorted(read | set(WRITTEN))
    selectors = {LEGACY: '"legacy"', NEWEST: '"stable"', UNSTABLE: '"next": pylance calls it unstable'}
    rows = ((name, name in read, name in WRITTEN, selectors.get(name, "")) for name in names)
    return _table(("version of data files", "read", "written", "named"), rows)


def encodings() -> str:
    """Return a table of the encodings that are read, by the names that the messages of the format give them."""
    rows = [("2.1 to 2.3", ", ".join(f"`{name}`" for name in READERS))]
    rows.append(("2.0", ", ".join(f"`{name}`" for name in (*READERS_20, "list"))))
    return _table(("files of", "encodings"), rows)


def types() -> str:
    """Return a table of the types of columns, each written and read in each version of data files."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            (name, *(stored_as(type_, value, version, f"{folder}/{place}-{version}") for version in WRITTEN))
            for place, (name, (type_, value)) in enumerate(TYPES.items())
        ]
    return _table(("type", *WRITTEN), rows)


def stored_as(type_: pa.DataType, value: object, version: str, uri: str) -> str:
    """Return "yes" where a column of a type comes back as it was written, the type that it comes back as, or "no"."""
    try:
        ld.write_dataset(pa.table({"c": column_of(type_, value)}), uri, data_storage_version=version)
    except LanceDuckError:
        return "no"
    found = ld.dataset(uri).schema.field("c").type
    return "yes" if found == type_ else f"as {found}"


def column_of(type_: pa.DataType, value: object) -> pa.Array:
    """Return one row of a type."""
    if pa.types.is_dictionary(type_):
        return pa.DictionaryArray.from_arrays(pa.array([0], type_.index_type), pa.array([value], type_.value_type))
    if pa.types.is_run_end_encoded(type_):
        return pa.RunEndEncodedArray.from_arrays(pa.array([1], type_.run_end_type), pa.array([value]))
    return pa.array([value], type_)


def flags() -> str:
    """Return a table of the feature flags of manifests."""
    bits = [1 << bit for bit in range(17)]
    return _table(
        ("flag", "tables that have it are read", "and changed"),
        ((flag_names(bit)[0], bool(bit & READABLE), bool(bit & WRITABLE)) for bit in bits),
    )


def indexes() -> str:
    """Return a table of the kinds of indexes that are built and used."""
    return _table(
        ("kind", "message in the manifest"),
        ((kind.name, f"`{kind.type_url.rpartition('/')[2]}`") for kind in KINDS),
    )


def command_line() -> str:
    """Return the help of every command."""
    command = typer.main.get_command(lance_duck_command.app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="lance-duck")
    return text.partition("\n")[2]  # the page has a title of its own


def _table(head: Sequence[str], rows: Iterable[Sequence[str | bool]]) -> str:
    lines = [head, ["---"] * len(head), *([_cell(value) for value in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(value: str | bool) -> str:
    return value if isinstance(value, str) else "yes" if value else "no"
