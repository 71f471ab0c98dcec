"""Run random trials: `python -m trust --profile short`, or `make trust`. `--help` lists the options."""

from __future__ import annotations

import argparse
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Timer

from trust.campaign import TrialCounts, run_kind
from trust.kinds import KINDS, TrialKind, named
from trust.page import next_seed, record, runs, versions, write_page

PAGE = Path(__file__).parents[2] / "docs" / "background" / "trust.md"
RUNS = Path(__file__).with_name("runs.jsonl")


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="trust", description="Run random trials with repeatable seeds.")
    parser.add_argument("--profile", choices=("short", "long"), default="short", help="run for minutes or for hours")
    parser.add_argument(
        "--seed", type=int, help="first seed of each kind (default: 0, or the next new seed in the long profile)"
    )
    parser.add_argument("--minutes", type=float, help="time limit (default in the long profile: 240)")
    parser.add_argument("--limit", type=float, metavar="MINUTES", help="begin no trial after this time")
    names = [kind.name for kind in KINDS]
    only = f"run only this kind; may be repeated: {', '.join(map(repr, names))}"
    parser.add_argument("--only", action="append", choices=names, metavar="KIND", help=only)
    parser.add_argument("--trials", type=int, help="number of trials of each kind")
    parser.add_argument("--processes", type=int, default=2, help="number of concurrent trials (default: 2)")
    parser.add_argument("--runs", type=Path, default=RUNS, help="file to which the long profile adds its results")
    parser.add_argument("--page", type=Path, default=PAGE, help="page that the long profile updates")
    return parser.parse_args()


def main() -> int:
    """Run the trials. Returns the number of failures, at most 100."""
    given = arguments()
    is_long = given.profile == "long"
    kinds = [named(name) for name in given.only] if given.only else [k for k in KINDS if k.short or is_long]
    seconds = 60 * (given.minutes or 240) * given.processes if is_long or given.minutes else None
    print(f"{given.profile} profile, {versions()}", flush=True)
    shares = sum(kind.share for kind in kinds)
    is_over = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: is_over.set())
    if given.limit is not None:
        timer = Timer(max(60 * given.limit, 0), is_over.set)
        timer.daemon = True
        timer.start()

    def run(kind: TrialKind) -> TrialCounts:
        trials = given.trials or (None if seconds else max(kind.short, 1))
        limit = None if seconds is None else seconds * kind.share / shares
        seed = given.seed if given.seed is not None else next_seed(given.runs, kind.name) if is_long else 0
        found = run_kind(kind, seed, trials, limit, lambda text: print(text, flush=True), is_over)
        if is_long and not record(given.runs, found):
            print(f"{kind.name}: not recorded, because these seeds were recorded before", flush=True)
        return found

    with ThreadPoolExecutor(given.processes) as pool:
        counts = list(pool.map(run, kinds))
    if is_long:
        write_page(given.page, runs(given.runs))
    failures = sum(len(found.failures) for found in counts)
    print(f"{sum(found.trials for found in counts):,} trials, {failures} failed")
    return min(failures, 100)


if __name__ == "__main__":
    sys.exit(main())
