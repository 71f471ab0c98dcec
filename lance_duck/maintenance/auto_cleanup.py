"""Automatic cleanup, configured in the table config.

lance.auto_cleanup.interval           number of versions between two cleanups; without it, cleanup is off
lance.auto_cleanup.older_than         minimum age of removed versions, such as "2days 1h"
lance.auto_cleanup.retain_versions    number of newest versions to keep
"""

from __future__ import annotations

import re
import warnings
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from lance_duck import lazy
from lance_duck.errors import InvalidInputError, LanceDuckError
from lance_duck.snapshot import Snapshot

if TYPE_CHECKING:
    from lance_duck.maintenance import cleanup, cleanup_plan
else:
    cleanup, cleanup_plan = lazy.modules(globals(), "lance_duck.maintenance", "cleanup", "cleanup_plan")

INTERVAL: Final = "lance.auto_cleanup.interval"
OLDER_THAN: Final = "lance.auto_cleanup.older_than"
RETAIN: Final = "lance.auto_cleanup.retain_versions"

_PART: Final = re.compile(r"\s*(\d+)\s*([a-zA-Z]+)\s*")
_UNITS: Final = {
    **dict.fromkeys(("us", "usec", "micros"), timedelta(microseconds=1)),
    **dict.fromkeys(("ms", "msec", "millis"), timedelta(milliseconds=1)),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), timedelta(seconds=1)),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), timedelta(minutes=1)),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), timedelta(hours=1)),
    **dict.fromkeys(("d", "day", "days"), timedelta(days=1)),
    **dict.fromkeys(("w", "week", "weeks"), timedelta(weeks=1)),
    **dict.fromkeys(("M", "month", "months"), timedelta(days=30.44)),
    **dict.fromkeys(("y", "year", "years"), timedelta(days=365.25)),
}


def auto_cleanup(snapshot: Snapshot) -> None:
    """Clean up after a commit if the config enables it. The previous version is kept for its readers.

    Since the commit has succeeded, errors of the cleanup are only warnings.
    """
    try:
        policy = due_policy(snapshot)
        if policy is not None:
            cleanup.cleanup(snapshot, policy, current=snapshot.version - 1)
    except LanceDuckError as error:
        warnings.warn(f"automatic cleanup: {error}", RuntimeWarning, stacklevel=2)


def due_policy(snapshot: Snapshot) -> cleanup_plan.CleanupPolicy | None:
    """Return the cleanup policy of the config, or None if this version does not trigger a cleanup.

    Raises:
        InvalidInputError: A setting is invalid.
    """
    config = snapshot.config
    if INTERVAL not in config:
        return None
    interval = _number(INTERVAL, config[INTERVAL])
    if interval and snapshot.version % interval:
        return None
    return cleanup_plan.CleanupPolicy(
        older_than=parse_duration(config[OLDER_THAN]) if OLDER_THAN in config else None,
        retain_versions=_number(RETAIN, config[RETAIN]) if RETAIN in config else None,
        error_if_tagged_old_versions=False,
    )


def parse_duration(text: str) -> timedelta:
    """Parse a time span such as "2days 1h".

    Raises:
        InvalidInputError: The string is not a time span, or the span is too long.
    """
    total, at = timedelta(0), 0
    try:
        while at < len(text):
            part = _PART.match(text, at)
            if part is None:
                raise KeyError(text)
            total += int(part[1]) * _UNITS[part[2]]
            at = part.end()
    except (KeyError, OverflowError):
        raise InvalidInputError("not a time span", where=OLDER_THAN, expected="as in '2days 1h'", found=text) from None
    return total


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInputError("not a number", where=f"config {name}", found=repr(text)) from None
