"""The check and the repair of a commit log."""

from __future__ import annotations

from contextlib import suppress

from lance_duck.errors import FormatError
from lance_duck.groups.finish import settle
from lance_duck.groups.log import UNDO, CommitLog
from lance_duck.maintenance.validation.problems import Problem
from lance_duck.wire.paths import GROUP_COMMITS


def log_problems(log: CommitLog) -> list[Problem]:
    """Return the problems of a commit log: damaged files, and a group that is not finished."""
    problems = [
        Problem(f"{GROUP_COMMITS}: {number}", error) for number in log.numbers() if (error := _error(log, number))
    ]
    number = _unfinished(log)
    if number is not None:
        what = "a commit of several tables is not finished"
        remedy = "`repair` finishes it, and so does the next statement that reads the folder"
        problems.append(Problem(f"{GROUP_COMMITS}: {number}", what, is_damage=False, remedy=remedy))
    return problems


def repair_log(log: CommitLog, *, dry_run: bool) -> list[Problem]:
    """Finish the newest group. If its entry cannot be read, mark the group as taken back.

    Args:
        log: The log.
        dry_run: Only return the problems.

    Returns:
        The problems that the repair removes.
    """
    number = _unfinished(log)
    if number is None:
        return []
    place = f"{GROUP_COMMITS}: {number}"
    try:
        log.read(number)
        if not dry_run:
            settle(log, wait=0)
        return [Problem(place, "a commit of several tables was not finished", is_damage=False)]
    except FormatError as error:
        if not dry_run:
            log.end(number, UNDO, reason="the entry cannot be read")
            log.put_undone(number, {})
        return [Problem(place, str(error))]


def _unfinished(log: CommitLog) -> int | None:
    """Return the number of the newest entry if it is not finished, otherwise None."""
    with suppress(FormatError):
        state = log.state()
        return None if state.is_finished else state.number
    return None


def _error(log: CommitLog, number: int) -> str:
    """Return why an entry, or how it ended, cannot be read. Empty if it can."""
    try:
        log.read(number)
        log.outcome(number)
        log.undone(number)
    except (FormatError, ValueError) as error:
        return str(error)
    return ""
