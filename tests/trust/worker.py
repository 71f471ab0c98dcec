"""A process that runs trials of one kind: `python -m trust.worker {module}:{function} {folder}`.

It reads a seed from each line of standard input, and responds with one line of JSON: {"counts": {…}} or {"error": "…"}.
All other output of trials goes to standard error.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from trust.kinds import load


def main(place: str, folder: Path) -> None:
    """Make trials until there are no more seeds."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    trial = load(place)
    for line in sys.stdin:
        own = folder / f"seed {int(line)}"
        own.mkdir(parents=True)
        try:
            answer: dict[str, Any] = {"counts": dict(trial(int(line), own))}
        except BaseException as error:
            answer = {"error": "".join(traceback.format_exception(error, limit=-12))}
        shutil.rmtree(own, ignore_errors=True)
        gc.collect()
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
