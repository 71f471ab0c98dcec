"""The command `lance-duck`: its subcommands and their arguments. Each command imports its implementation when it runs.

Importing lance_duck takes a second, because of Arrow and numba. This module is outside the package: `--help` and
shell completion start without this import.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr
from datetime import datetime
from enum import StrEnum
from errno import EINVAL
from functools import wraps
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from io import TextIOWrapper
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, NoReturn, ParamSpec, TextIO, cast

_P = ParamSpec("_P")
_IS_WINDOWS: Final = os.name == "nt"
_LIBRARIES: Final = ("typer", "rich", "prompt_toolkit", "pygments", "platformdirs")
_NEEDS: Final = f"the command line needs {', '.join(_LIBRARIES)}; install the extra `cli`"

try:
    import typer
    import typer.core
except ModuleNotFoundError as missing:
    if missing.name != "typer":
        raise
    sys.exit(f"lance-duck: {_NEEDS}")

_RETURNED_MEMORY: Final = MappingProxyType(
    {"DUCKDB_JE_MALLOC_CONF": "retain:false", "MIMALLOC_ARENA_EAGER_COMMIT": "0"}
)
"""Settings of the allocators of DuckDB and Arrow, so that a memory limit of the process counts memory in use only."""

OTHER_WORDS: Final = {
    "head": "cat peek preview sample show view",
    "info": "count describe-table stat stats",
    "import": "create insert ingest load",
    "schema": "columns describe fields",
    "search": "find fts knn match",
    "sql": "alter connect delete drop exec execute query run select shell update",
    "tables": "list ls",
    "cleanup": "expire gc prune vacuum",
    "export": "convert dump save",
    "index": "add-index create-index",
    "indices": "indexes list-indexes",
    "optimize": "reindex",
    "serve": "host http listen server start",
    "validate": "check fsck verify",
    "versions": "history log",
}
"""Command names from other tools, grouped by the command to suggest: for `lance-duck ls`, it is `tables`."""


class _Commands(typer.core.TyperGroup):
    """The command group. For an unknown command, it suggests the most likely command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command at the start of the arguments. Raises a usage error if it is missing or unknown."""
        word = args[0]
        meant = next((command for command, words in OTHER_WORDS.items() if word.lower() in words.split()), None)
        if meant is not None:
            ctx.fail(f"No such command '{word}'. Did you mean 'lance-duck {meant}'?")
        if " " in word.strip():
            ctx.fail('A command and a folder or table come before SQL: lance-duck sql data "SELECT …"')
        if word not in self.commands and os.path.isfile(word):
            ctx.fail(f"A command comes first: lance-duck import TABLE {word}")
        if word not in self.commands and os.path.exists(word):
            ctx.fail(f"A command comes first: lance-duck info {word}, or lance-duck sql {word}")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="lance-duck",
    cls=_Commands,
    help="Lance tables on the command line, and SQL over them in DuckDB.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help="Path or URI of a Lance table.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the index.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
VersionOption = Annotated[int | None, typer.Option("--version", help="Read this version.")]
TagOption = Annotated[str | None, typer.Option("--tag", help="Read the version with this tag.")]
AsofOption = Annotated[datetime | None, typer.Option("--asof", help="Read the newest version at this local time.")]
ColumnsOption = Annotated[
    str | None, typer.Option("--columns", metavar="A,B", help="Columns to return, separated by commas.")
]
WhereOption = Annotated[
    str | None, typer.Option("--where", "--filter", metavar="SQL", help="Return only rows that match this condition.")
]
MaxRowsOption = Annotated[
    int, typer.Option("--max-rows", min=1, help="Maximum rows on a terminal. A pipe gets all rows.")
]


class Mode(StrEnum):
    """How to treat existing rows."""

    create = "create"
    append = "append"
    overwrite = "overwrite"


SourceArgument = Annotated[str, typer.Argument(metavar="SOURCE", help="Parquet, CSV or JSON file, or SQL.")]
ModeOption = Annotated[Mode, typer.Option(help="create fails if the table exists; append creates a missing table.")]
FormatOption = Annotated[str | None, typer.Option("--format", help="File format: 2.0, 2.1 or 2.2.")]
VectorColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--vector-columns", metavar="V,W:8", help="List columns to store as vectors, with an optional dimension: v:128."
    ),
]
MaxRowsPerFileOption = Annotated[int, typer.Option("--max-rows-per-file", min=1, help="Maximum rows per file.")]


def done_by(
    module: str, variables: Mapping[str, str] = MappingProxyType({})
) -> Callable[[Callable[_P, None]], Callable[_P, None]]:
    """Delegate a command with an empty body to the function with the same name in a `lance_duck.cli` module.

    Args:
        module: Name of the module.
        variables: Environment variables that libraries read when they are loaded, unless they are set already.
    """

    def decorate(command: Callable[_P, None]) -> Callable[_P, None]:
        @wraps(command)
        def run(*args: _P.args, **options: _P.kwargs) -> None:
            for name, value in variables.items():
                os.environ.setdefault(name, value)
            getattr(import_module(f"lance_duck.cli.{module}"), command.__name__)(*args, **options)

        return run

    return decorate


def main() -> None:
    """Run the command line. The exit code is 0, 1 for errors (on stderr), 2 for wrong usage, or 130 if interrupted."""
    if _IS_WINDOWS:
        _use_utf8()
    with redirect_stderr(cast("TextIO", _PrintableStream(sys.stderr))), warnings.catch_warnings():
        warnings.showwarning = _warn
        _main()


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning in the form of other messages, without the Python line that caused it."""
    sys.stdout.flush()
    print(f"lance-duck: warning: {message}", file=sys.stderr)


def _main() -> None:
    try:
        app()
        sys.stdout.flush()
    except OSError as error:
        if not _is_broken_pipe(error):
            _fail(import_module("lance_duck.cli.message").message_of(error))
        # The reader closed the pipe. Without this, the interpreter would report an error when it flushes the pipe at
        # exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as missing:
        _fail(_NEEDS if missing.name in _LIBRARIES else str(missing))
    except Exception as error:  # including DuckDB errors, whose hints span several lines
        _fail(import_module("lance_duck.cli.message").message_of(error))


class _PrintableStream:
    """A stream that escapes control characters, which may come from a table or a path.

    The consoles of `lance_duck.cli.terminal` escape their text and write their own control characters to the inner
    stream.

    Attributes:
        rich_proxied_file: The inner stream, with the attribute name that rich expects.
    """

    def __init__(self, stream: TextIO) -> None:
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write text."""
        if not text.replace("\n", "").isprintable():  # only this case needs to import the package
            text = import_module("lance_duck.cli.terminal").printable(text)
        return self.rich_proxied_file.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def _is_broken_pipe(error: OSError) -> bool:
    """Return whether the output's reader is gone. Windows reports this as an invalid argument."""
    return isinstance(error, BrokenPipeError) or (_IS_WINDOWS and type(error) is OSError and error.errno == EINVAL)


def _use_utf8() -> None:
    """Write UTF-8 to pipes and files on Windows, too: its default encodings lack most letters."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and not stream.isatty():
            stream.reconfigure(encoding="utf-8")


def _fail(message: str) -> NoReturn:
    print(f"lance-duck: {message}", file=sys.stderr)
    sys.exit(1)


def _version() -> str:
    try:
        return version("lance-duck")
    except PackageNotFoundError:
        return "0+unknown"


@app.callback(invoke_without_command=True)
def about(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Lance tables on the command line, and SQL over them in DuckDB."""
    if version:
        print(f"lance-duck {_version()}")
        raise typer.Exit


@app.command()
@done_by("look")
def info(
    table: TableArgument,
    version: VersionOption = None,
    tag: TagOption = None,
    asof: AsofOption = None,
    as_json: JsonOption = False,
) -> None:
    """Describe a table: version, rows, size, columns, tags."""


@app.command()
@done_by("look")
def tables(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Path or URI of a folder of Lance tables.")],
    as_json: JsonOption = False,
) -> None:
    """List the tables of a folder and its namespaces. A table that cannot be opened is listed with the reason."""


@app.command()
@done_by("look")
def schema(
    table: TableArgument,
    version: VersionOption = None,
    tag: TagOption = None,
    asof: AsofOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the columns with their types."""


@app.command()
@done_by("look")
def head(
    table: TableArgument,
    count: Annotated[int, typer.Option("--limit", "--rows", "-n", min=0, help="Number of rows.")] = 10,
    columns: ColumnsOption = None,
    where: WhereOption = None,
    version: VersionOption = None,
    tag: TagOption = None,
    asof: AsofOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the first rows."""


@app.command()
@done_by("sql.command")
def sql(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FOLDER|TABLE]... [SQL]",
            help="A folder of Lance tables, or tables, and statements; '-' reads these from standard input, "
            "as nothing does in a pipe. On a terminal nothing opens a shell.",
            show_default=False,
        ),
    ] = (None),
    files: Annotated[
        list[Path] | None,
        typer.Option("--file", "-f", metavar="FILE", help="Run the statements in this file; repeat for more files."),
    ] = (None),
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse to change Lance tables.")] = False,
    keep_going: Annotated[bool, typer.Option("--keep-going", help="Continue after an error.")] = False,
    version: VersionOption = None,
    tag: TagOption = None,
    asof: AsofOption = None,
    as_json: JsonOption = False,
    max_rows: MaxRowsOption = 100,
    cache: CacheOption = None,
    cache_size: CacheSizeOption = None,
) -> None:
    """Run SQL, or open a SQL shell. A folder is the database, and new tables and views are stored in it."""


@app.command()
@done_by("search")
def search(
    table: TableArgument,
    query: Annotated[
        str | None, typer.Argument(metavar="WORDS", help="Words, or '\"a phrase\"'. With --column also a JSON query.")
    ] = None,
    column: Annotated[
        str | None, typer.Option("--column", "-c", help="Text column. Default: all columns with a full-text index.")
    ] = (None),
    count: Annotated[int, typer.Option("--limit", "--rows", "--k", "-k", "-n", min=1, help="Number of rows.")] = 10,
    condition: Annotated[
        str | None,
        typer.Option("--filter", "--where", metavar="SQL", help="Search only rows that match this condition."),
    ] = None,
    vector: Annotated[
        str | None, typer.Option(metavar="JSON", help="Return rows near this vector, such as [0.5, 1].")
    ] = None,
    like: Annotated[
        int | None, typer.Option(min=0, metavar="ROWID", help="Return rows near the vector of this _rowid.")
    ] = None,
    vector_column: Annotated[str | None, typer.Option(help="Vector column, if the table has several.")] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column to show. Repeatable."),
    ] = None,
    version: VersionOption = None,
    tag: TagOption = None,
    asof: AsofOption = None,
    as_json: JsonOption = False,
) -> None:
    """Find rows by words, by a vector, or by both. The best rows come first."""


@app.command()
@done_by("look")
def versions(table: TableArgument, as_json: JsonOption = False) -> None:
    """List the readable versions and their tags."""


@app.command()
@done_by("diff")
def diff(
    table: TableArgument,
    older: Annotated[
        str | None,
        typer.Option("--from", metavar="VERSION", help="Version number or tag. Default: the version before --to."),
    ] = None,
    newer: Annotated[
        str | None, typer.Option("--to", metavar="VERSION", help="Version number or tag. Default: the newest version.")
    ] = None,
    with_rows: Annotated[bool, typer.Option("--rows", help="Show the rows instead of counting them.")] = False,
    columns: ColumnsOption = None,
    as_json: JsonOption = False,
    max_rows: MaxRowsOption = 100,
) -> None:
    """Show what changed between two versions. Prints counts and columns, or the rows."""


@app.command()
@done_by("look")
def files(
    table: TableArgument,
    version: VersionOption = None,
    tag: TagOption = None,
    asof: AsofOption = None,
    as_json: JsonOption = False,
) -> None:
    """List data files by fragment, and deletion files."""


@app.command()
@done_by("change")
def write(
    table: TableArgument,
    source: SourceArgument,
    mode: ModeOption = Mode.create,
    data_storage_version: FormatOption = None,
    max_rows_per_file: MaxRowsPerFileOption = 1 << 20,
    vector_columns: VectorColumnsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write rows to a table."""


@app.command("import")
@done_by("transfer")
def import_(
    table: TableArgument,
    source: SourceArgument,
    mode: ModeOption = Mode.create,
    columns: ColumnsOption = None,
    where: WhereOption = None,
    data_storage_version: FormatOption = None,
    max_rows_per_file: MaxRowsPerFileOption = 1 << 20,
    vector_columns: VectorColumnsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a table from a file, or append its rows to a table. Reads all rows and columns, or some."""


@app.command()
@done_by("transfer")
def export(
    table: TableArgument,
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET", help="A .parquet, .csv, .tsv, .json or .jsonl file; text files may end with .gz."
        ),
    ],
    columns: ColumnsOption = None,
    where: WhereOption = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    version: VersionOption = None,
    tag: TagOption = None,
    asof: AsofOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write rows of a table to a file. The file extension selects the format."""


@app.command()
@done_by("change")
def compact(
    table: TableArgument,
    target_rows: Annotated[
        int | None,
        typer.Option("--target-rows", "--target-rows-per-fragment", min=1, help="Combine fragments with fewer rows."),
    ] = None,
    max_overlays: Annotated[
        int | None,
        typer.Option(
            "--max-overlays",
            "--max-overlays-per-fragment",
            min=0,
            help="Combine overlay files above this number per fragment; 0 combines all.",
        ),
    ] = None,
    order_by: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help='Sort all rows by this column, such as "day DESC". Repeatable.'),
    ] = (None),
    as_json: JsonOption = False,
) -> None:
    """Merge small fragments and drop deleted rows. Also merges overlays, and sorts rows."""


@app.command()
@done_by("change")
def cleanup(
    table: TableArgument,
    older_than: Annotated[
        float | None, typer.Option("--older-than", min=0, metavar="DAYS", help="Keep versions newer than this.")
    ] = None,
    retain: Annotated[int | None, typer.Option("--retain", min=1, help="Number of newest versions to keep.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the files to remove, without removing them.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove old versions and the files that only they use. Old means 14 days by default."""


@app.command()
@done_by("change")
def validate(
    table: TableArgument, version: VersionOption = None, tag: TagOption = None, as_json: JsonOption = False
) -> None:
    """Read the whole table and list its problems. The exit code is 1 if there is damage.

    For a folder with `__manifest` or commits of several tables, checks these, but not the tables.
    """


@app.command()
@done_by("change")
def repair(
    table: TableArgument,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the losses, without committing.")] = False,
    restore_deleted: Annotated[
        bool, typer.Option("--restore-deleted", help="Restore deleted rows if their deletion file is lost.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Commit a version without unreadable data. It omits unreadable rows and index segments, and renames list items."""


@app.command()
@done_by("indexes")
def indices(
    table: TableArgument,
    version: VersionOption = None,
    tag: TagOption = None,
    asof: AsofOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the indexes and how many rows each covers."""


@app.command()
@done_by("indexes")
def index(
    table: TableArgument,
    column: Annotated[str, typer.Argument(metavar="COLUMN", help="Column, or a.b for a struct field.")],
    kind: Annotated[
        str,
        typer.Option(
            help="btree, bitmap, label_list, zonemap, bloomfilter, ngram, rtree or fts; for vectors ivf_pq and others."
        ),
    ] = ("btree"),
    name: Annotated[str | None, typer.Option(help="Index name. Default: derived from the column.")] = None,
    replace: Annotated[bool, typer.Option(help="Replace an index with this name.")] = True,
    metric: Annotated[str, typer.Option(help="Vector metric: l2, cosine, dot or hamming.")] = "l2",
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            "--num-partitions",
            min=1,
            help="Number of vector partitions. Default: chosen by row count.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Index a column."""


@app.command("drop-index")
@done_by("indexes")
def drop_index(table: TableArgument, name: NameArgument, as_json: JsonOption = False) -> None:
    """Remove an index."""


@app.command()
@done_by("indexes")
def optimize(
    table: TableArgument,
    names: Annotated[
        list[str] | None, typer.Option("--index", metavar="NAME", help="Index to optimize. Repeatable.")
    ] = (None),
    merge: Annotated[
        int | None, typer.Option(min=0, metavar="COUNT", help="Number of newest segments to merge.")
    ] = None,
    retrain: Annotated[bool, typer.Option("--retrain", help="Rebuild the index from all rows.")] = False,
    memory_limit: Annotated[
        str | None, typer.Option(metavar="BYTES", help='Memory per index, such as "256MB". Default: 1 GiB.')
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Bring indexes up to date with new rows."""


class LogForm(StrEnum):
    """Format of log lines."""

    text = "text"
    json = "json"


class LogLevel(StrEnum):
    """Least important log lines to write."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


CacheOption = Annotated[
    str | None,
    typer.Option(metavar="FOLDER", help="Local folder that caches files of object stores."),
]
CacheSizeOption = Annotated[
    str | None, typer.Option(metavar="BYTES", help='Maximum size of the cache, such as "5GB". Default: 20GB.')
]
PlaceArgument = Annotated[str, typer.Argument(metavar="PLACE", help="Path or URI of a folder of Lance tables.")]
SqlOption = Annotated[bool, typer.Option("--sql/--no-sql", help="Accept SQL.")]
TimeoutOption = Annotated[float, typer.Option(metavar="SECONDS", help="Maximum duration of a request.")]
MemoryOption = Annotated[
    str | None, typer.Option(metavar="BYTES", help='Memory limit of SQL, such as "4GB". Default: half of the machine.')
]
LogLevelOption = Annotated[LogLevel, typer.Option("--log-level", help="Least important log lines, on stderr.")]


@app.command()
@done_by("serve", _RETURNED_MEMORY)
def serve(
    place: PlaceArgument,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 chooses a free one.")] = 2333,
    write: Annotated[bool, typer.Option("--write", help="Allow changes.")] = False,
    sql: SqlOption = True,
    mcp: Annotated[bool, typer.Option("--mcp", help="Answer the Model Context Protocol at /mcp.")] = False,
    flight: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, metavar="PORT", help="Speak Arrow Flight SQL on this port; 0 chooses a free one."
        ),
    ] = None,
    web: Annotated[bool, typer.Option("--web/--no-web", help="Serve pages for people.")] = True,
    token_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File with lines name:role:sha256. Default: LANCE_DUCK_TOKEN, if it is set."),
    ] = None,
    tls_cert: Annotated[str | None, typer.Option(metavar="FILE", help="PEM file with the certificate.")] = None,
    tls_key: Annotated[str | None, typer.Option(metavar="FILE", help="PEM file with its key.")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Accept this name in the Host header. Repeatable.")
    ] = (None),
    insecure: Annotated[bool, typer.Option("--insecure", help="Serve other machines without TLS.")] = False,
    timeout: TimeoutOption = 60.0,
    max_rows: Annotated[int, typer.Option(min=1, help="Maximum rows of an Arrow answer.")] = 1_000_000,
    max_bytes: Annotated[str, typer.Option(metavar="BYTES", help="Maximum size of an answer.")] = "256MiB",
    max_body: Annotated[str, typer.Option(metavar="BYTES", help="Maximum size of an upload.")] = "1GiB",
    max_statements: Annotated[
        int | None, typer.Option(min=1, help="Maximum requests that run at the same time. Default: one per core.")
    ] = None,
    max_waiting: Annotated[int, typer.Option(min=0, help="Maximum requests that wait.")] = 32,
    memory: MemoryOption = None,
    locations: Annotated[
        bool | None,
        typer.Option(
            "--locations/--no-locations",
            help="Tell clients where tables are. Default: yes, except for a folder that other machines reach.",
        ),
    ] = None,
    metrics: Annotated[bool, typer.Option("--metrics", help="Show metrics at /metrics.")] = False,
    cache: CacheOption = None,
    cache_size: CacheSizeOption = None,
    log: Annotated[LogForm, typer.Option(help="Format of log lines.")] = LogForm.text,
    log_level: LogLevelOption = LogLevel.info,
) -> None:
    """Serve tables over HTTP, to programs and to people. Runs until SIGTERM or Ctrl-C."""


@app.command()
@done_by("serve", _RETURNED_MEMORY)
def mcp(
    place: PlaceArgument,
    sql: SqlOption = True,
    timeout: TimeoutOption = 60.0,
    memory: MemoryOption = None,
    cache: CacheOption = None,
    cache_size: CacheSizeOption = None,
    log_level: LogLevelOption = LogLevel.warning,
) -> None:
    """Give a model tools that read tables. Answers the Model Context Protocol on stdin and stdout."""


@app.command()
@done_by("cache")
def cache(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Folder of a cache: see `--cache`.")],
    clear: Annotated[bool, typer.Option("--clear", help="Delete all blocks.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what a cache of object stores contains, or empty it."""


@app.command()
@done_by("doctor")
def doctor(
    places: Annotated[
        list[str] | None, typer.Argument(metavar="[TABLE]...", help="Further tables to open.", show_default=False)
    ] = (None),
    as_json: JsonOption = False,
) -> None:
    """Report versions and what works, for bug reports."""


@app.command()
@done_by("bench")
def bench(
    table: TableArgument,
    condition: Annotated[
        str | None, typer.Option("--where", "--filter", metavar="SQL", help="Also time a scan with this filter.")
    ] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Number of runs.")] = 3,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Time a scan, a filtered scan, a take and a search. Prints medians of several runs, after a warm-up run."""


@app.command("warm-up")
@done_by("doctor")
def warm_up(as_json: JsonOption = False) -> None:
    """Compile kernels before their first use."""


@app.command("build-kernels")
@done_by("doctor")
def build_kernels(
    level: Annotated[
        str | None, typer.Option(help="x86-64-v3 or x86-64-v2. Default: the best level of this machine.")
    ] = None,
    folder: Annotated[str | None, typer.Option(help="Folder of the pack. Default: the installation's folder.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compile the usual kernels into a pack. Installations load kernels from it."""


if __name__ == "__main__":
    main()
