"""A process that runs trials of one kind: `python -m trust.worker {module}:{function} {folder}`.

It reads one seed per line from standard input. For each seed, it writes one line of JSON: {"counts": {…}} or
{"error": "…"}. Other output of the trials goes to standard error.
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


def main(function: str, folder: Path) -> None:
    """Run trials until standard input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    trial = load(function)
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
