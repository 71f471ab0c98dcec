"""The program behind `make demo`: it queries the tables in this repository with DuckDB."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table

import lance_duck as ld

GOLDEN = Path(__file__).parents[1] / "tests" / "golden"
SHOP, TABLES = GOLDEN / "tpch" / "tables", GOLDEN / "tables"

console = Console()


def main() -> None:
    """Show the main features in a few queries."""
    begin = time.perf_counter()
    tables()
    connection = ld.connect(str(SHOP))
    queries(connection)
    time_travel(connection)
    vectors(connection)
    python()
    with tempfile.TemporaryDirectory(prefix="lance-duck-demo-") as folder:
        changes(connection, Path(folder) / "priority.lance")
    seconds = time.perf_counter() - begin
    console.print(f"\nAll of this took {seconds:.1f} s. Next: README.md, and [bold]lance-duck --help[/] in .venv/bin.")


def tables() -> None:
    """Print the tables of a folder from their manifests."""
    heading("A folder of Lance tables: the eight of TPC-H, tiny, written by pylance", f"ld.dataset('{short(SHOP)}/…')")
    drawing = grid("table", "rows", "columns", "data files", "version", "bytes")
    for path in sorted(SHOP.glob("*.lance")):
        dataset = ld.dataset(str(path))
        files = [file for fragment in dataset.get_fragments() for file in fragment.data_files()]
        size = sum(file.file_size_bytes or 0 for file in files)
        cells = (dataset.count_rows(), len(dataset.schema.names), len(files), dataset.version, size)
        drawing.add_row(path.stem, *(f"{cell:,}" for cell in cells))
    console.print(drawing)


def queries(connection: ld.Connection) -> None:
    """SQL over them: each table is a name."""
    heading("Each table is a name in DuckDB", f"con = ld.connect('{short(SHOP)}')")
    console.print("The first query compiles the kernels that it needs, once on a machine.", style="dim")
    sql(connection, (GOLDEN / "tpch" / "queries" / "q01.sql").read_text(encoding="utf-8").strip().rstrip(";"))
    sql(
        connection,
        """SELECT n_name, count(*) AS orders, sum(o_totalprice) AS total
FROM orders
JOIN customer ON o_custkey = c_custkey
JOIN nation ON c_nationkey = n_nationkey
WHERE o_orderdate >= DATE '1995-01-01'
GROUP BY n_name ORDER BY total DESC LIMIT 3""",
    )
    sql(connection, "SELECT count(*) AS lines FROM lineitem", "from the manifest: no data file is opened")
    sql(
        connection,
        "SELECT l_orderkey, l_quantity, l_comment FROM lineitem LIMIT 3",
        "stops after the first small batch",
    )


def time_travel(connection: ld.Connection) -> None:
    """Old versions, by number and by tag."""
    path = TABLES / "history.lance"
    heading("Time travel", f"ld.dataset('{short(path)}').versions()")
    dataset = ld.dataset(str(path))
    tags = {entry["version"]: name for name, entry in dataset.tags.list().items()}
    drawing = grid("version", "timestamp", "rows", "columns", "tag")
    for entry in dataset.versions():
        version = entry["version"]
        at = ld.dataset(str(path), version=version)
        cells = (str(version), f"{entry['timestamp']:%Y-%m-%d %H:%M:%S}", f"{at.count_rows():,}")
        drawing.add_row(*cells, ", ".join(at.schema.names), tags.get(version, ""))
    console.print(drawing)
    sql(connection, f"SELECT * FROM lance_scan('{path}', version := 3) ORDER BY id LIMIT 4")
    sql(connection, f"SELECT count(*) AS rows FROM lance_scan('{path}', tag := 'first')")


def vectors(connection: ld.Connection) -> None:
    """Fixed-size lists are DuckDB arrays."""
    heading("Vectors are DuckDB arrays", "")
    path = TABLES / "vectors.lance"
    sql(
        connection,
        f"""SELECT id, round(array_distance(v128, (SELECT v128 FROM '{path}' WHERE id = 7)), 3) AS distance
FROM '{path}' ORDER BY distance LIMIT 3""",
    )


def python() -> None:
    """The same table as a pyarrow dataset."""
    path = SHOP / "orders.lance"
    code = "ds.to_table(columns=['o_orderkey', 'o_orderdate'], filter=\"o_orderpriority = '1-URGENT'\", limit=3)"
    heading("A table is a pyarrow.dataset.Dataset", f"ds = ld.dataset('{short(path)}'); {code}")
    begin = time.perf_counter()
    found = ld.dataset(str(path)).to_table(
        columns=["o_orderkey", "o_orderdate"], filter="o_orderpriority = '1-URGENT'", limit=3
    )
    show(found, time.perf_counter() - begin)


def changes(connection: ld.Connection, path: Path) -> None:
    """A table is written and changed; each change is a version."""
    heading("Writing: each change is a version", "ds = ld.write_dataset(con.sql('…'), 'priority.lance')")
    orders = "SELECT o_orderkey AS id, o_orderpriority AS priority, o_totalprice::DOUBLE AS total FROM orders"
    dataset = ld.write_dataset(connection.sql(orders), path)
    news = pa.table({"id": pa.array([1, -1]), "priority": ["0-NOW", "0-NOW"], "total": [1.5, 2.5]})
    steps: list[tuple[str, Callable[[], Any]]] = [
        (
            "ds.update({'total': 'total * 1.1'}, where=\"priority = '1-URGENT'\")",
            lambda: dataset.update({"total": "total * 1.1"}, where="priority = '1-URGENT'"),
        ),
        ("ds.delete('total < 2000')", lambda: dataset.delete("total < 2000")),
        (
            "ds.merge_insert('id').when_matched_update_all().when_not_matched_insert_all().execute(news)",
            lambda: dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(news),
        ),
        (
            "ds.add_columns({'cents': 'round(total * 100)::BIGINT'})",
            lambda: dataset.add_columns({"cents": "round(total * 100)::BIGINT"}),
        ),
        ("ds.optimize.compact_files()", lambda: dataset.optimize.compact_files()),
        ("ds.restore()  # of version 1", lambda: dataset.checkout_version(1).restore()),
    ]
    for code, do in steps:
        begin = time.perf_counter()
        result = do()
        seconds = time.perf_counter() - begin
        dataset.checkout_latest()
        console.print(Syntax(code, "python", background_color="default", word_wrap=True))
        said = "" if result is None else f", {result}"
        facts = f"version {dataset.version}, {dataset.count_rows():,} rows, {seconds * 1e3:,.0f} ms{said}"
        console.print(facts, style="dim", markup=False, highlight=False)
    dataset.validate()
    console.print(f"{len(dataset.versions())} versions, each still there; validate() found nothing wrong.", style="dim")


def sql(connection: ld.Connection, query: str, note: str = "") -> None:
    """Run a query, and print it with its result."""
    shown = query.replace(str(GOLDEN.parents[1]) + "/", "")
    console.print()
    console.print(Syntax(shown, "sql", background_color="default", word_wrap=True))
    begin = time.perf_counter()
    answer = connection.sql(query).to_arrow_table()
    show(answer, time.perf_counter() - begin, note)


def show(answer: pa.Table, seconds: float, note: str = "") -> None:
    """Print an answer with the time it took."""
    wide = answer.num_columns > 6
    drawing = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1, 0, 0))
    columns = [[cell(value) for value in column.to_pylist()] for column in answer.columns]
    for name, cells in zip(answer.schema.names, columns, strict=True):
        # In a wide answer only the names may break.
        header = name.replace("_", "_\n") if wide else name
        drawing.add_column(header, overflow="fold", min_width=max(map(len, cells), default=0) if wide else None)
    for row in zip(*columns, strict=True):
        drawing.add_row(*row)
    console.print(drawing)
    rows = "1 row" if answer.num_rows == 1 else f"{answer.num_rows} rows"
    facts = [rows, f"{seconds * 1e3:,.1f} ms", *([note] if note else [])]
    console.print(", ".join(facts), style="dim", markup=False)


def cell(value: object) -> str:
    if isinstance(value, float | Decimal):
        return f"{value / 1_000_000:.2f}M" if abs(value) >= 1_000_000 else f"{value:.2f}"
    return str(value)


def heading(title: str, code: str) -> None:
    """Print the title of a part, and the Python that it takes."""
    console.print()
    console.print(Panel(f"[bold]{title}[/]" + (f"\n[cyan]{code}[/]" if code else ""), expand=False))


def grid(*columns: str) -> Table:
    drawing = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        drawing.add_column(name, overflow="fold")
    return drawing


def short(path: Path) -> Path:
    """Return the path from the root of the repository."""
    return path.relative_to(GOLDEN.parents[1])


if __name__ == "__main__":
    main()
