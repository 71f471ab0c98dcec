"""How fast are queries compared with DuckDB's `lance` extension, which is compiled?

    python -m benchmarks.extension PYTHON [--rows 1000000]

PYTHON is an interpreter with the package `duckdb-extension-lance`, which requires a certain version of DuckDB. Each
side therefore has its own process. They answer one question after the other, and processor time is measured.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

OURS_WORD: Final = "ours"
QUESTIONS: Final = {
    "count(*)": "SELECT count(*) FROM t",
    "count(column)": "SELECT count(a) FROM t",
    "one row by key": "SELECT * FROM t WHERE id = {key}",
    "IN of five keys": "SELECT id, s FROM t WHERE id IN ({key}, 70000, 7, 99, 12345)",
    "LIMIT 10": "SELECT * FROM t LIMIT 10",
    "sum": "SELECT sum(a) FROM t",
    "filter that keeps few rows": "SELECT count(*) FROM t WHERE a = 7",
    "filter by a range": "SELECT round(sum(b), 3) FROM t WHERE a BETWEEN 100 AND 200",
    "GROUP BY an integer": "SELECT a % 100 AS g, count(*) FROM t GROUP BY g ORDER BY g",
    "GROUP BY a string": "SELECT s, count(*) FROM t GROUP BY s ORDER BY s",
    "top 10": "SELECT id, b FROM t ORDER BY b DESC, id LIMIT 10",
    "join with a native table": "SELECT d.g, count(*) FROM t JOIN d ON t.a = d.a WHERE d.g = 3 GROUP BY ALL",
    "nearest 10": "SELECT id FROM t ORDER BY array_distance(v, {vector}::FLOAT[32]) LIMIT 10",
}
VECTOR: Final = str([0.5] * 32)
NOTE = "The extension is compiled, and has its own process with its own version of DuckDB."


def connect(side: str, table: str) -> Any:
    """Return a connection with the Lance table `t` and the native table `d`."""
    import duckdb

    if side == OURS_WORD:
        import lance_duck as ld

        connection: Any = ld.connect({"t": table})
    else:
        import duckdb_extension_lance

        (binary,) = Path(duckdb_extension_lance.__file__).parent.rglob("lance.duckdb_extension")
        connection = duckdb.connect()
        connection.execute(f"LOAD '{binary}'")
        connection.execute(f"CREATE VIEW t AS FROM '{table}'")
    connection.execute("CREATE TABLE d AS SELECT i AS a, i % 10 AS g FROM range(1000) r(i)")
    return connection


def work(side: str, table: str) -> None:
    """Read lines with a question, a first key and a repeat count, and print seconds per statement and the rows."""
    import duckdb

    connection = connect(side, table)
    print(json.dumps(duckdb.__version__), flush=True)
    for line in sys.stdin:
        name, key, times = json.loads(line)
        begin = time.process_time()
        for i in range(times):
            rows = connection.execute(QUESTIONS[name].format(key=key + i, vector=VECTOR)).fetchall()
        seconds = (time.process_time() - begin) / times
        print(json.dumps([seconds, sorted(map(str, rows)) if name != "LIMIT 10" else len(rows)]), flush=True)


class _Side:
    """A process that runs the questions of one side."""

    def __init__(self, python: str, side: str, table: str) -> None:
        command = [python, str(Path(__file__)), "--work", side, table]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.duckdb_version = self._read()

    def ask(self, name: str, key: int, times: int) -> tuple[float, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, key, times]) + "\n")
        self._process.stdin.flush()
        seconds, answer = self._read()
        return seconds, answer

    def _read(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


def main() -> None:
    """Race through the questions."""
    from benchmarks._harness import OURS, Case, chosen, options, report

    parser = options((__doc__ or "").split("\n")[0], rows=1_000_000)
    parser.add_argument("python", help="an interpreter with duckdb-extension-lance")
    parser.add_argument("--statements", type=int, default=10, help="statements of a round")
    parser.set_defaults(processor=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = f"{folder}/t.lance"
        _write(table, arguments.rows)
        its = _Side(arguments.python, "its", table)
        sides = {OURS: _Side(sys.executable, OURS_WORD, table), f"extension, DuckDB {its.duckdb_version}": its}
        cases = []
        for name in chosen(QUESTIONS, arguments.only):
            answers = [side.ask(name, 1000, 2)[1] for side in sides.values()]
            assert answers[0] == answers[1], name
            seconds: dict[str, list[float]] = {who: [] for who in sides}
            for turn in range(arguments.rounds):
                for who in list(sides)[:: 1 if turn % 2 else -1]:
                    seconds[who].append(sides[who].ask(name, 2000 + 100 * turn, arguments.statements)[0])
            cases.append(Case(name, seconds))
    report(f"Query {arguments.rows:,} rows, compared with DuckDB's lance extension", cases, arguments, NOTE)


def _write(table: str, rows: int) -> None:
    import lance
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(1)
    columns = {
        "id": np.arange(rows),
        "a": random.integers(0, 1000, rows),
        "b": random.random(rows),
        "s": pa.array([f"name {i}" for i in range(50)]).take(pa.array(random.integers(0, 50, rows))),
        "v": pa.FixedSizeListArray.from_arrays(random.random(rows * 32, dtype=np.float32), 32),
    }
    dataset = lance.write_dataset(pa.table(columns), table, max_rows_per_file=rows // 4)
    dataset.create_scalar_index("id", "BTREE")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], sys.argv[3])
    else:
        main()
