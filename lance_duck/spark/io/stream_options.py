"""Stream options. The names are Delta's, with or without underscores."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from lance_duck.errors import InvalidInputError
from lance_duck.redact import shown_option
from lance_duck.snapshot.versions import to_moment

_SIZE: Final = re.compile(r"(\d+)\s*([kmgt]?)i?b?", re.IGNORECASE)
_UNITS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}


@dataclass(frozen=True)
class Limits:
    """Limits of a batch. None means no limit. A batch contains at least one fragment."""

    files: int | None = None
    rows: int | None = None
    size: int | None = None

    @property
    def any(self) -> bool:
        """Whether any limit is set."""
        return (self.files, self.rows, self.size) != (None, None, None)

    def budget(self) -> Budget:
        """Return the budget for a new batch."""
        return Budget(self)


class Budget:
    """Remaining budget of a batch."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._taken = (0, 0, 0)

    def admits(self, rows: int, size: int) -> bool:
        """Subtract a fragment from the budget.

        Returns False if it exceeds the budget. The first fragment is always accepted.
        """
        files, all_rows, all_bytes = self._taken
        totals = (files + 1, all_rows + rows, all_bytes + size)
        limits = (self._limits.files, self._limits.rows, self._limits.size)
        if files and any(limit is not None and w > limit for w, limit in zip(totals, limits, strict=True)):
            return False
        self._taken = totals
        return True


@dataclass(frozen=True)
class StreamOptions:
    """Options of a stream that reads a table.

    Attributes:
        starting_version: First version whose new rows are read. "latest" begins after the newest version. By default,
            the stream begins with all existing rows.
        starting_timestamp: Begin with the first version committed at this time or later.
        limits: Maximum size of a batch.
        ignore_deletes: Skip versions that only deleted rows.
        skip_change_commits: Skip versions that changed, deleted or replaced rows. Rows that these versions inserted are
            also skipped.
        fail_on_data_loss: Fail if a version was cleaned up before it was read.
    """

    starting_version: int | str | None = None
    starting_timestamp: datetime | None = None
    limits: Limits = Limits()
    ignore_deletes: bool = False
    skip_change_commits: bool = False
    fail_on_data_loss: bool = True

    @classmethod
    def of(cls, options: Mapping[str, str]) -> StreamOptions:
        """Parse the stream options from all options of a source.

        Raises:
            InvalidInputError: A value is invalid.
        """
        values = _StreamOptionValues(options)
        stream_options = cls(
            values.get("startingversion", _version),
            values.get("startingtimestamp", to_moment),
            Limits(
                values.get("maxfilespertrigger", _count),
                values.get("maxrowspertrigger", _count),
                values.get("maxbytespertrigger", _size),
            ),
            bool(values.get("ignoredeletes", _flag)),
            bool(values.get("skipchangecommits", _flag)),
            values.get("failondataloss", _flag) is not False,
        )
        if stream_options.starting_version is not None and stream_options.starting_timestamp is not None:
            raise InvalidInputError("startingVersion and startingTimestamp exclude each other", expected="one of them")
        return stream_options


SOURCE_NAMES: Final = frozenset(
    {
        "failondataloss",
        "ignoredeletes",
        "maxbytespertrigger",
        "maxfilespertrigger",
        "maxrowspertrigger",
        "skipchangecommits",
        "startingtimestamp",
        "startingversion",
    }
)
"""Options of stream sources, in lower case and without underscores."""
SINK_NAMES: Final = frozenset({"txnappid"})
"""Options of stream sinks, in lower case and without underscores."""


def stream_name(options: Mapping[str, str]) -> str | None:
    """Return the option `txnAppId`, a stream name that replaces the query id."""
    name: str | None = _StreamOptionValues(options).get("txnappid", str.strip)
    return name or None


class _StreamOptionValues:
    def __init__(self, options: Mapping[str, str]) -> None:
        self._given = {k.lower().replace("_", ""): (k, v) for k, v in options.items()}

    def get(self, name: str, parse: Callable[[str], Any]) -> Any:
        if name not in self._given:
            return None
        key, value = self._given[name]
        try:
            return parse(value)
        except InvalidInputError as error:
            raise InvalidInputError(
                f"option {key}", expected=error.expected, found=shown_option(key, value), remedy=error.remedy
            ) from None


def _version(text: str) -> int | str:
    if text.strip().lower() == "latest":
        return "latest"
    return _count(text, 'a version, or "latest"')


def _count(text: str, expected: str = "a number above zero") -> int:
    if not text.strip().isdecimal() or not int(text):
        raise InvalidInputError("count", expected=expected)
    return int(text)


def _size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None or not int(match[1]):
        raise InvalidInputError("size", expected="bytes above zero, as in 1048576 or 512m or 10g")
    return int(match[1]) << _UNITS[match[2].lower()]


def _flag(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise InvalidInputError("flag", expected="true or false")
    return text.strip().lower() == "true"
