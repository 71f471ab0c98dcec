"""How much longer do queries without Lance tables take on a connection that has some?

Every query runs many times. In the cases named "new text" a different comment makes each text new. On a busy machine,
`--threads 1 --processor` gives stable results.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import lance_duck as ld
from benchmarks._harness import OURS, add_clock, clock_of, options, race, report

ROWS = 100_000
QUESTIONS = {
    "constant": "SELECT 42",
    "constant with an alias": "SELECT 42 AS answer",
    "function": "SELECT current_database()",
    "filter of a small table": "SELECT * FROM small WHERE g = 3",
    "aggregate with a filter": "SELECT count(*), max(i) FROM own WHERE i < 5000 AND g > 3",
    "GROUP BY": "SELECT g, sum(i) FROM own GROUP BY g ORDER BY g",
    "join": "SELECT name, count(*) FROM own JOIN small USING (g) WHERE i < 5000 GROUP BY name ORDER BY name",
    "subquery": "SELECT i FROM own WHERE i IN (SELECT g FROM small) ORDER BY i LIMIT 3",
}


def main() -> None:
    """Race through the questions."""
    parser = options((__doc__ or "").split("\n")[0], rows=None, rounds=15)
    parser.add_argument("--repeats", type=int, default=200, help="statements of a round")
    parser.add_argument("--tables", type=int, default=20, help="Lance tables of the connection")
    parser.add_argument(
        "--native", action="store_true", help="take DuckDB's own connection before, which ends a fast path"
    )
    parser.add_argument("--threads", type=int, default=None, help="threads of DuckDB")
    add_clock(parser)
    arguments = parser.parse_args()
    config: dict[str, Any] = {} if arguments.threads is None else {"threads": arguments.threads}
    cases = []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(arguments.tables):
            ld.write_dataset(pa.table({"id": [i]}), Path(folder) / f"table_{i}.lance")
        with ld.connect(folder, config=config) as ours, duckdb.connect(config=config) as native:
            if arguments.native:
                assert ours.native is not None
            for connection in (ours, native):
                connection.execute(f"CREATE TABLE own AS SELECT range AS i, range % 7 AS g FROM range({ROWS})")
                connection.execute("CREATE TABLE small AS SELECT range AS g, 'n' || range AS name FROM range(7)")
            for name, sql in QUESTIONS.items():
                for kind in ("repeated", "new text"):
                    if arguments.only in f"{name}, {kind}":
                        contestants = {
                            who: asker(connection, sql, arguments.repeats, is_new=kind == "new text")
                            for who, connection in ((OURS, ours), ("native connection", native))
                        }
                        cases.append(race(f"{name}, {kind}", contestants, arguments.rounds, clock_of(arguments)))
    report(f"Run {arguments.repeats} queries without Lance tables", cases, arguments)


def asker(connection: Any, sql: str, repeats: int, *, is_new: bool) -> Callable[[], None]:
    """Run a statement many times at each call."""
    numbers = itertools.count()

    def ask() -> None:
        for _ in range(repeats):
            connection.execute(f"{sql} -- {next(numbers)}" if is_new else sql).fetchall()

    return ask


if __name__ == "__main__":
    main()
