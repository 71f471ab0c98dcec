"""The error tree: every error that leaves the package is a `LanceDuckError`.

    LanceDuckError
    ├── NotFoundError           also FileNotFoundError and ValueError
    │   └── IndexNotFoundError  also KeyError and RuntimeError
    ├── AlreadyExistsError      also FileExistsError and ValueError
    │   └── IndexExistsError    also RuntimeError
    ├── InvalidInputError       also ValueError
    │   ├── DataMismatchError   also OSError
    │   │   └── DuplicateKeyError  two rows would have the same primary key
    │   ├── UnknownColumnError  also KeyError
    │   └── WrongTypeError      also TypeError
    ├── FormatError
    │   ├── UnsupportedError    also ValueError: valid, but not supported by this version
    │   │   ├── ArrayLimitError    one Arrow array cannot hold all the rows
    │   │   └── NotIndexableError  also TypeError and NotImplementedError
    │   └── CorruptError        also OSError: the bytes are inconsistent
    ├── CommitConflictError     also OSError
    │   ├── RetryableError      repeat the whole operation on the newest version
    │   └── IncompatibleError   the other change removed an object that this change needs
    ├── PartlyCommittedError    also OSError: some tables of a transaction have its changes, others do not
    ├── ConfinedError           also PermissionError: a statement reaches beyond the tables of its connection
    ├── ReferencedError         also OSError: a tag or branch still needs the object
    ├── StoreError              also OSError: the disk or the object store failed
    ├── ForkedError             also RuntimeError: work begun before a fork needs threads that the child does not have
    ├── JobError                also RuntimeError: work in another process failed with an error outside this tree
    └── InternalError           also RuntimeError: a bug in this package

Every message consists of the parts that its error has, in this order, without secrets:
"where: what: expected …, found …; remedy".
"""

from __future__ import annotations

import inspect
import warnings
from types import FrameType
from typing import Any, Final

from lance_duck.redact import shown

_BETWEEN: Final = ("lance_duck", "tenacity", "concurrent", "threading")


def install_extra(name: str) -> str:
    """Return the remedy for a missing package that an extra of lance-duck installs."""
    return f"install the extra `{name}`"


class LanceDuckError(Exception):
    """Base of all errors of this package.

    Args:
        what: What went wrong, in a few words.
        where: The file, column, page or argument concerned.
        expected: The expected value or condition.
        found: The actual value.
        remedy: A suggestion for the caller.

    Cause:
        Any error that this package detects.

    Remedy:
        Catch this class to handle all errors of the package, or a subclass to handle one kind.
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
    """The table, version, tag, branch or file does not exist.

    Cause:
        The name or path is misspelled, or a cleanup or another process removed the object.

    Remedy:
        Follow the suggestion in the message, or list the existing tables, versions or tags.
    """


class IndexNotFoundError(NotFoundError, KeyError, RuntimeError):
    """The table does not have an index with this name.

    Cause:
        The name is misspelled, or the index was dropped.

    Remedy:
        List the indexes with `describe_indices()` or `SHOW INDEXES ON t`.
    """


class AlreadyExistsError(LanceDuckError, FileExistsError, ValueError):
    """The table, version, tag, branch or file already exists.

    Cause:
        Another table has the same name, or another process created the object first.

    Remedy:
        Choose another name, or request a replacement, for example with `mode="overwrite"`.
    """


class IndexExistsError(AlreadyExistsError, RuntimeError):
    """An index with this name already exists, possibly on a different column.

    Cause:
        `create_index` or `CREATE INDEX` ran twice, or a name is used for two columns.

    Remedy:
        Pass `replace=True`, write `CREATE OR REPLACE INDEX`, or choose another name.
    """


class InvalidInputError(LanceDuckError, ValueError):
    """An argument, filter or column name is invalid for this table.

    Cause:
        A value is outside the allowed range, or an expression cannot be evaluated.

    Remedy:
        Compare the expected and found values in the message, and correct the argument.
    """


class DataMismatchError(InvalidInputError, OSError):
    """The data does not match the table.

    Cause:
        Columns, types or vector lengths differ, or a non-nullable column contains nulls.

    Remedy:
        Cast or rename the columns of the data, or change the table with `add_columns` or `alter_columns`.
    """


class DuplicateKeyError(DataMismatchError):
    """Two rows of a table would have the same primary key. SQL statements check the key.

    Cause:
        A new or updated row has the key of a different row of the table, of the statement or of the transaction.

    Remedy:
        Remove the duplicates. `INSERT OR REPLACE`, `INSERT OR IGNORE` and `ON CONFLICT` accept keys of other rows. To
        load rows without the check, run `SET lance_check_primary_key = false`.
    """


class UnknownColumnError(InvalidInputError, KeyError):
    """The column does not exist in the table.

    Cause:
        The name is misspelled, or differs in case. Names are case-sensitive in Python, but not in SQL.

    Remedy:
        Use the suggested name, or look at the columns with `dataset.schema` or `DESCRIBE t`.
    """


class WrongTypeError(InvalidInputError, TypeError):
    """An argument, or a column that it names, has the wrong type.

    Cause:
        A call passes a different Python type, or a search uses a column that does not contain vectors or strings.

    Remedy:
        Pass the expected type. Cast lists to vectors with `alter_columns`.
    """


class FormatError(LanceDuckError):
    """Bytes on disk cannot be read. Only its subclasses are raised.

    Cause:
        The file is damaged, or uses a feature that this version does not support.

    Remedy:
        See `CorruptError` and `UnsupportedError`.
    """


class UnsupportedError(FormatError, ValueError):
    """A valid request, file or type that this version does not support.

    Cause:
        A statement, option or type is not implemented, or a newer writer created the table.

    Remedy:
        Use the alternative in the message, or upgrade lance_duck.
    """


class ArrayLimitError(UnsupportedError):
    """The rows do not fit into one Arrow array.

    Cause:
        A column of the result has more bytes, items or dictionary entries than Arrow allows.

    Remedy:
        Read batches with `to_batches` or a smaller `batch_size`.
    """


class NotIndexableError(UnsupportedError, TypeError, NotImplementedError):
    """The column cannot have an index of this kind, or the kind is not supported.

    Cause:
        The column type does not fit the index kind, or the kind is misspelled.

    Remedy:
        Choose a kind that supports the column's type, or cast the column.
    """


class CorruptError(FormatError, OSError):
    """A file is truncated, or its content is inconsistent.

    Cause:
        A disk error, an incomplete copy or a bug changed the bytes.

    Remedy:
        Run `lance-duck validate`. Then restore the file from a copy, or run `lance-duck repair`.
    """


class CommitConflictError(LanceDuckError, OSError):
    """Another writer committed a conflicting change first.

    Cause:
        Two writers changed the same rows, columns or settings of one version.

    Remedy:
        Open the newest version, and repeat the change.
    """

    def __init__(self, what: str = "another writer was first", **parts: Any) -> None:
        super().__init__(what, **parts)


class RetryableError(CommitConflictError):
    """The change conflicts with a concurrent commit, and may succeed on the newest version.

    Cause:
        Another writer changed rows or fragments that this change also needs.

    Remedy:
        Call `checkout_latest()`, and run the whole operation again.
    """


class IncompatibleError(CommitConflictError):
    """The change cannot succeed after a concurrent commit.

    Cause:
        Another writer replaced, restored or dropped an object that this change needs.

    Remedy:
        Open the table again, and decide if the change still makes sense.
    """


class PartlyCommittedError(LanceDuckError, OSError):
    """A transaction of several tables is committed in some of them only.

    Cause:
        While the tables were published, another program changed the same rows of one table, and others built on the
        new version of another table.

    Remedy:
        Repeat the changes of the tables that the message calls "not in", or undo the others with new changes.
    """


class ConfinedError(LanceDuckError, PermissionError):
    """A statement of a confined connection reaches beyond the connected tables, or changes a locked setting.

    Cause:
        The connection was opened with `confined=True`. The statement names a path outside the connected folder, a file
        that is not a Lance table, an extension or a setting of DuckDB.

    Remedy:
        Use connected tables. The program that opens the connection can connect more tables or pass more settings.
    """


class ReferencedError(LanceDuckError, OSError):
    """A tag, branch or index still needs the object.

    Cause:
        A cleanup, a drop or a cast would break the reference.

    Remedy:
        Delete the tag, branch or index first, or keep the object.
    """


class StoreError(LanceDuckError, OSError):
    """The file system or object store failed.

    Cause:
        The disk is full, credentials are wrong or expired, or the network fails.

    Remedy:
        Check free space, permissions and `storage_options`. Repeat a read. Before you repeat a change, find out whether
        it was committed.
    """


class JobError(LanceDuckError, RuntimeError):
    """Work in another process failed.

    Cause:
        A worker process died, or raised an error of another library.

    Remedy:
        Read the worker's traceback in the message. Install the same packages on all workers.
    """


class ForkedError(LanceDuckError, RuntimeError):
    """A forked process cannot continue work that its parent started.

    Cause:
        `os.fork` or a fork-based pool copied open connections without their threads.

    Remedy:
        Open tables and connections in the child, or start processes with `spawn` or `forkserver`.
    """


class InternalError(LanceDuckError, RuntimeError):
    """A bug in this package. Please report it.

    Cause:
        An assumption of the code does not hold.

    Remedy:
        Report the message and the call that led to it.
    """


class IndexWarning(UserWarning):
    """An index segment cannot be used, so its rows are scanned.

    Cause:
        Files of the segment are missing, damaged or of an unknown version.

    Remedy:
        Create the index again.
    """


class TableWarning(UserWarning):
    """A listed table is missing, or an object of a copied database is not a table. It is left out.

    Cause:
        The listing of a namespace names a folder that does not exist, or COPY FROM DATABASE meets views, sequences or
        other objects that a folder cannot hold.

    Remedy:
        Remove the entry from the namespace, or restore the folder. Keep the other objects in a native database.
    """


class MemWalWarning(UserWarning):
    """A change does not affect rows in the write-ahead log (MemWAL) of the table.

    Cause:
        Another writer has rows in the log that are not merged yet.

    Remedy:
        Merge the log first. To reject these changes, turn the warning into an error.
    """


class DerivedDataWarning(UserWarning):
    """A change to a computed column or materialized view of LanceDB.

    Cause:
        LanceDB computes these values, and its next refresh overwrites them.

    Remedy:
        Change the inputs instead. To reject these changes, turn the warning into an error.
    """


def warn_of_index(text: str) -> None:
    """Issue an IndexWarning at the line outside this package that led to it."""
    _warn(text, IndexWarning)


def warn_of_table(text: str) -> None:
    """Issue a TableWarning at the line outside this package that led to it."""
    _warn(text, TableWarning)


def warn_of_derived(text: str) -> None:
    """Issue a DerivedDataWarning at the line outside this package that led to it."""
    _warn(text, DerivedDataWarning)


def warn_of_log(text: str) -> None:
    """Issue a MemWalWarning at the line outside this package that led to it."""
    _warn(text, MemWalWarning)


def _warn(text: str, kind: type[Warning]) -> None:
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_back is not None and _is_between(frame):
        frame, level = frame.f_back, level + 1
    warnings.warn(shown(text), kind, stacklevel=level)


def _is_between(frame: FrameType) -> bool:
    """Return whether a frame is in this package, or in a library between two frames of this package."""
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _BETWEEN
