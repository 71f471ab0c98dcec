"""Generate tables for the documentation from the code: the format, the commands and the errors."""

from __future__ import annotations

import ast
import inspect
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import typer
from typer.cli import get_docs_for_click

import lance_duck as ld
import lance_duck_command
from benchmarks import figures
from lance_duck import errors as error_tree
from lance_duck.encoding.codecs.registry import READERS
from lance_duck.encoding.v20.registry import READERS as READERS_20
from lance_duck.errors import LanceDuckError
from lance_duck.file.reader import LEGACY_VERSIONS, VERSIONS
from lance_duck.file.write.writer import VERSIONS as WRITTEN_2
from lance_duck.index.registry import KINDS
from lance_duck.wire.flags import KEPT_FIELD_IDS, READABLE, WRITABLE, flag_names
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
    "dictionary of strings": (pa.dictionary(pa.int8(), pa.string()), "a"),
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
    "fixed_size_list of strings": (pa.list_(pa.string(), 2), ["a", "b"]),
    "fixed_size_list of list": (pa.list_(pa.list_(pa.int32()), 2), [[1], [2]]),
    "struct": (pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))]), {"x": 1, "y": ["a"]}),
    "struct without fields": (pa.struct([]), {}),
    "map": (pa.map_(pa.string(), pa.int32()), [("a", 1)]),
    "run_end_encoded": (pa.run_end_encoded(pa.int32(), pa.string()), "a"),
    "arrow.uuid": (pa.uuid(), bytes(16)),
    "arrow.bool8": (pa.bool8(), 1),
    "arrow.json": (pa.json_(), "[1]"),
}
"""Types by name, each with a value. They are the rows of the type table."""

PACKAGE: Final = Path(ld.__file__).parent
ROOMS: Final = ("duck", "write", "verbs", "scan", "store", "snapshot", "commit", "index", "spark", "namespaces", "wire")
"""Rooms whose messages come first in the tables of errors, since users meet them first."""
MOST_MESSAGES: Final = 15
"""Maximum number of messages in the table of one error class."""
MOST_OF_A_ROOM: Final = 5
"""Maximum number of messages from one room in the table of one error class."""
MOST_WORDS: Final = 40
"""Maximum number of words in a cell of these tables. Longer messages are left out."""


def write(folder: Path) -> None:
    """Write each table, and the notebooks, into a folder. Creates the folder."""
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
        "errors": errors(),
    }.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    figures.write(folder)


def file_versions() -> str:
    """Return a table of file formats."""
    read = {f"{major}.{minor}" for major, minor in VERSIONS.values()} | set(LEGACY_VERSIONS.values())
    names = sorted(read | set(WRITTEN))
    selectors = {LEGACY: '"legacy"', NEWEST: '"stable"', UNSTABLE: '"next", unstable'}
    rows = ((name, name in read, name in WRITTEN, selectors.get(name, "")) for name in names)
    return _table(("file format", "read", "written", "also called"), rows)


def encodings() -> str:
    """Return a table of supported encodings, by the names of their protobuf messages."""
    rows = [("2.1 to 2.3", ", ".join(f"`{name}`" for name in READERS))]
    rows.append(("2.0", ", ".join(f"`{name}`" for name in (*READERS_20, "list"))))
    return _table(("file format", "encodings"), rows)


def types() -> str:
    """Return a table of column types, after a round trip through each file format."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [
            (name, *(stored_as(type_, value, version, f"{folder}/{place}-{version}") for version in WRITTEN))
            for place, (name, (type_, value)) in enumerate(TYPES.items())
        ]
    return _table(("type", *WRITTEN), rows)


def stored_as(type_: pa.DataType, value: object, version: str, uri: str) -> str:
    """Return "yes" if a column keeps its type, "as …" if it comes back as another type, or "no" if it is refused."""
    try:
        ld.write_dataset(pa.table({"c": column_of(type_, value)}), uri, data_storage_version=version)
    except LanceDuckError:
        return "no"
    found = ld.dataset(uri).schema.field("c").type
    return "yes" if found == type_ else f"as {found}"


def column_of(type_: pa.DataType, value: object) -> pa.Array:
    """Return an array of the type with one value."""
    if pa.types.is_dictionary(type_):
        return pa.DictionaryArray.from_arrays(pa.array([0], type_.index_type), pa.array([value], type_.value_type))
    if pa.types.is_run_end_encoded(type_):
        return pa.RunEndEncodedArray.from_arrays(pa.array([1], type_.run_end_type), pa.array([value]))
    return pa.array([value], type_)


def flags() -> str:
    """Return a table of feature flags. Only writers have `KEPT_FIELD_IDS`, so tables with it can be read."""
    bits = [1 << bit for bit in range(17)]
    return _table(
        ("flag", "read", "changed"),
        ((flag_names(bit)[0], bool(bit & (READABLE | KEPT_FIELD_IDS)), bool(bit & WRITABLE)) for bit in bits),
    )


def indexes() -> str:
    """Return a table of index kinds."""
    return _table(
        ("index kind", "message in the manifest"),
        ((kind.name, f"`{kind.type_url.rpartition('/')[2]}`") for kind in KINDS),
    )


def command_line() -> str:
    """Return the help of every command."""
    command = typer.main.get_command(lance_duck_command.app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name="lance-duck")
    return text.partition("\n")[2]  # the page has a title of its own


def errors() -> str:
    """Return a section for each public class of `lance_duck.errors`, with its commonest messages."""
    classes = error_classes()
    found = messages([kind.__name__ for kind in classes])
    return "\n".join(_error_section(kind, classes, found.get(kind.__name__, {})) for kind in classes)


def error_classes() -> list[type[BaseException]]:
    """Return the public classes of `lance_duck.errors`, in the order of the module."""
    names = vars(error_tree).items()
    mine = [value for name, value in names if inspect.isclass(value) and not name.startswith("_")]
    return [kind for kind in mine if kind.__module__ == error_tree.__name__]


def meaning(kind: type[BaseException]) -> tuple[str, str, str]:
    """Return the summary of an error class, and the sections Cause and Remedy of its docstring."""
    text = inspect.getdoc(kind) or ""
    sections = dict(re.findall(r"^(Cause|Remedy):\n((?: {4}.+\n?)+)", text, re.MULTILINE))
    summary = text.partition("\n\n")[0]
    return summary, *(" ".join(sections.get(name, "").split()) for name in ("Cause", "Remedy"))


def messages(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the messages with a remedy that the package's source has, by class: message and remedy."""
    paths = sorted(PACKAGE.rglob("*.py"), key=lambda path: (_rank(path), path))
    found: dict[str, dict[str, str]] = {}
    taken: dict[tuple[str, int], int] = {}
    for path in paths:
        for name, what, remedy in _raised(ast.parse(path.read_text(encoding="utf-8"))):
            place, rows = (name, _rank(path)), found.setdefault(name, {})
            has_room = len(rows) < MOST_MESSAGES and taken.get(place, 0) < MOST_OF_A_ROOM
            if name in names and what not in rows and has_room:
                taken[place] = taken.get(place, 0) + 1
                rows[what] = remedy
    return found


def _rank(path: Path) -> int:
    room = path.relative_to(PACKAGE).parts[0]
    return ROOMS.index(room) if room in ROOMS else len(ROOMS)


def _raised(tree: ast.AST) -> Iterator[tuple[str, str, str]]:
    """Yield the class, message and remedy of each error that a module creates from constant strings."""
    named = _named_constants(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            remedy = next((each.value for each in node.keywords if each.arg == "remedy"), None)
            what, advice = _constant(node.args[0], named), _constant(remedy, named)
            words = max(len((what or "").split()), len((advice or "").split()))
            if what and advice and words <= MOST_WORDS and not advice.startswith("…"):
                yield node.func.id, what, advice


def _named_constants(tree: ast.AST) -> dict[str, ast.expr]:
    """Return the values of names that a module assigns exactly once."""
    pairs = [(node.targets[0], node.value) for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    pairs += [(node.target, node.value) for node in ast.walk(tree) if isinstance(node, ast.AnnAssign) and node.value]
    names = [target.id for target, _ in pairs if isinstance(target, ast.Name)]
    return {t.id: value for t, value in pairs if isinstance(t, ast.Name) and names.count(t.id) == 1}


def _constant(node: ast.AST | None, named: Mapping[str, ast.expr]) -> str | None:
    """Return the text of a string, with "…" for its expressions, or None for other nodes."""
    if isinstance(node, ast.Name):
        node = named.get(node.id)
    if isinstance(node, ast.BoolOp):
        node = node.values[-1]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        return text if len(re.findall(r"\w{2,}", text)) > 2 else None
    return None


def _error_section(kind: type[BaseException], classes: Sequence[type[BaseException]], rows: Mapping[str, str]) -> str:
    summary, cause, remedy = meaning(kind)
    above = [f"[{each.__name__}](#{each.__name__.lower()})" for each in kind.__bases__ if each in classes]
    python = [f"`{each.__name__}`" for each in kind.__mro__[1:] if each.__module__ == "builtins"]
    also = [*above, *(name for name in python if name not in ("`object`", "`BaseException`", "`Exception`"))]
    lines = [f"## {kind.__name__}", "", summary, ""]
    lines += [f"- **Also caught as:** {', '.join(also)}"] if also else []
    lines += [f"- **Cause:** {cause}", f"- **Remedy:** {remedy}", ""]
    table = _table(("message", "what to do"), [(_plain(what), _plain(advice)) for what, advice in rows.items()])
    return "\n".join(lines) + (f"\n{table}" if rows else "")


def _plain(text: str) -> str:
    """Return text whose characters have no meaning in Markdown's tables."""
    return re.sub(r"([\\|*_<>`\[\]{}$])", r"\\\1", " ".join(text.split()))


def _table(head: Sequence[str], rows: Iterable[Sequence[str | bool]]) -> str:
    lines = [head, ["---"] * len(head), *([_cell(value) for value in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(value: str | bool) -> str:
    return value if isinstance(value, str) else "yes" if value else "no"
