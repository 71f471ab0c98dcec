"""The error tree: every error that leaves the package is a `LanceDuckError`.

    LanceDuckError
    ├── NotFoundError           also FileNotFoundError and ValueError
    │   └── IndexNotFoundError  also KeyError and RuntimeError
    ├── AlreadyExistsError      also FileExistsError and ValueError
    │   └── IndexExistsError    also RuntimeError
    ├── InvalidInputError       also ValueError
    │   ├── DataMismatchError   also OSError
    │   ├── UnknownColumnError  also KeyError
    │   └── WrongTypeError      also TypeError
    ├── FormatError
    │   ├── UnsupportedError    also ValueError: sound, but of a kind this version does not read
    │   │   ├── ArrayLimitError    one Arrow array cannot hold all the rows
    │   │   └── NotIndexableError  also TypeError and NotImplementedError
    │   └── CorruptError        also OSError: the bytes contradict themselves
    ├── CommitConflictError     also OSError
    │   ├── RetryableError      run the whole operation again on the newest version
    │   └── IncompatibleError   the other change took away what this one needs
    ├── ReferencedError         also OSError: a tag or branch still needs the object
    ├── StoreError              also OSError: the disk or the object store failed
    ├── ForkedError             also RuntimeError: work begun before a fork, by threads that the child does not have
    ├── JobError                also RuntimeError: work in another process failed with an error outside this tree
    └── InternalError           also RuntimeError: a bug in this package

Every message has the same form. Missing parts are left out, and secrets are masked:
"where: what: expected …, found …; remedy".
"""

from __future__ import annotations

import inspect
import warnings
from types import FrameType
from typing import Any, Final

from lance_duck.redact import shown

_BETWEEN: Final = ("lance_duck", "tenacity", "concurrent", "threading")


class LanceDuckError(Exception):
    """Base of all errors of this package.

    Args:
        what: What went wrong, in a few words.
        where: The file, column, page or argument concerned.
        expected: The expected value or condition.
        found: The actual value.
        remedy: A suggestion for the caller.
    """

    def __init__(
        self,
        what: str,
        *,
        where: object = None,
        expected: object = None,
        found: object = None,
        remedy: str | None = None,
    ) -> None:
        self.what = shown(what)
        self.where = _shown(where)
        self.expected = _shown(expected)
        self.found = _shown(found)
        self.remedy = remedy if remedy is None else shown(remedy)
        super().__init__(self._message())

    def _message(self) -> str:
        text = self.what if self.where is None else f"{self.where}: {self.what}"
        pairs = {"expected": self.expected, "found": self.found}
        facts = [f"{name} {fact}" for name, fact in pairs.items() if fact is not None]
        if facts:
            text += ": " + ", ".join(facts)
        return shown(f"{text}; {self.remedy}" if self.remedy else text)

    def __str__(self) -> str:
        return self._message()

    def __reduce__(self) -> tuple[Any, ...]:
        parts = {"where": self.where, "expected": self.expected, "found": self.found, "remedy": self.remedy}
        return _rebuild, (type(self), self.what, {k: v if v is None else str(v) for k, v in parts.items()})


def _shown(part: object) -> object:
    return shown(part) if isinstance(part, str) else part


def _rebuild(kind: type[LanceDuckError], what: str, parts: dict[str, Any]) -> LanceDuckError:
    return kind(what, **parts)


class NotFoundError(LanceDuckError, FileNotFoundError, ValueError):
    """A table, version, tag, branch or file that does not exist."""


class IndexNotFoundError(NotFoundError, KeyError, RuntimeError):
    """The table does not have an index of this name."""


class AlreadyExistsError(LanceDuckError, FileExistsError, ValueError):
    """A table, version, tag, branch or file exists already, and may not be replaced."""


class IndexExistsError(AlreadyExistsError, RuntimeError):
    """An index of this name exists already, or covers another column."""


class InvalidInputError(LanceDuckError, ValueError):
    """An argument, filter or column name is invalid for this table."""


class DataMismatchError(InvalidInputError, OSError):
    """The data does not fit the table: other columns, types or lengths, or nulls in non-nullable columns."""


class UnknownColumnError(InvalidInputError, KeyError):
    """The column does not exist in the table."""


class WrongTypeError(InvalidInputError, TypeError):
    """An argument, or a column that it names, has the wrong type."""


class FormatError(LanceDuckError):
    """Bytes on disk that cannot be read."""


class UnsupportedError(FormatError, ValueError):
    """A valid file, flag, encoding or type that this version does not read."""


class ArrayLimitError(UnsupportedError):
    """The rows do not fit in one Arrow array: too many bytes, items or dictionary entries."""


class NotIndexableError(UnsupportedError, TypeError, NotImplementedError):
    """A column that cannot have an index of this kind, or a kind that is not supported."""


class CorruptError(FormatError, OSError):
    """A file that is cut short or contradicts itself."""


class CommitConflictError(LanceDuckError, OSError):
    """Another writer committed first."""

    def __init__(self, what: str = "another writer was first", **parts: Any) -> None:
        super().__init__(what, **parts)


class RetryableError(CommitConflictError):
    """The operation may succeed when it runs again on the newest version."""


class IncompatibleError(CommitConflictError):
    """The operation cannot succeed after the other writer's change."""


class ReferencedError(LanceDuckError, OSError):
    """A tag, branch or index still needs the object to be removed or changed."""


class StoreError(LanceDuckError, OSError):
    """The file system or object store failed."""


class JobError(LanceDuckError, RuntimeError):
    """Work in another process failed: a worker died, or raised an error outside this tree."""


class ForkedError(LanceDuckError, RuntimeError):
    """Work that was begun before this process was forked off, and that the child cannot continue."""


class InternalError(LanceDuckError, RuntimeError):
    """A violated invariant in this package. Please report it."""


class IndexWarning(UserWarning):
    """An index segment is unusable. Its rows are scanned instead."""


class TableWarning(UserWarning):
    """A listed table was not found at its listed location, and is skipped."""


class MemWalWarning(UserWarning):
    """A change does not affect rows in the table's write-ahead log (MemWAL). If warnings are errors, it is rejected."""


class DerivedDataWarning(UserWarning):
    """A refresh undoes a change to a LanceDB computed column or materialized view. Rejected if warnings are errors."""


def warn_of_index(text: str) -> None:
    """Issue an IndexWarning that points at the line outside this package that led to it."""
    _warn(text, IndexWarning)


def warn_of_table(text: str) -> None:
    """Issue a TableWarning that points at the line outside this package that led to it."""
    _warn(text, TableWarning)


def warn_of_derived(text: str) -> None:
    """Issue a DerivedDataWarning that points at the line outside this package that led to it."""
    _warn(text, DerivedDataWarning)


def warn_of_log(text: str) -> None:
    """Issue a MemWalWarning that points at the line outside this package that led to it."""
    _warn(text, MemWalWarning)


def _warn(text: str, kind: type[Warning]) -> None:
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_back is not None and _is_between(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(shown(text), kind, stacklevel=level)


def _is_between(frame: FrameType) -> bool:
    """Return whether a frame belongs to this package, or to a library that calls back into it."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN
