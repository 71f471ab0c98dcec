"""New files on local disks.

A file is written with a temporary name in the same directory ({name}#{number}) and flushed. Then it gets its final
name: by a rename, which replaces an existing file, or by a hard link, which fails if the name is taken. Readers
therefore only see complete files, and a killed writer leaves at most a temporary file. If a commit will name a small
file, that commit flushes the file.

Windows does not replace or delete a file that is open or mapped. Replacements are retried briefly, because readers
close replaced files quickly. Deletions fail with an explanation.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, BinaryIO

from lance_duck import lazy
from lance_duck.errors import AlreadyExistsError, LanceDuckError, StoreError
from lance_duck.store.base import temporary_name
from lance_duck.store.costs import BUFFER_BYTES, LATE_BYTES
from lance_duck.store.flush import fsync, unflushed
from lance_duck.store.sink import Buffer, Sink

if TYPE_CHECKING:
    from lance_duck import retry
else:
    retry = lazy.modules(globals(), "lance_duck", "retry")

_IS_WINDOWS = os.name == "nt"
_TRIES = 1000
_BUSY_SECONDS = 2.0  # maximum time that a reader keeps a small file open, in seconds
_BUSY_WAIT = 0.05  # maximum time between two attempts, in seconds
_IN_PLACE = 64  # maximum size of an overwritten file, in bytes: writes within one page are atomic for readers
_FLAGS = ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")  # O_BINARY is for Windows
_NO_FOLLOW = reduce(or_, (getattr(os, flag, 0) for flag in _FLAGS))
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_REMEDIES = {
    errno.ENOENT: "another process removed the folder: it dropped the table, or ran a cleanup",
    errno.ENOSPC: "the disk is full: free some space and run the operation again",
    errno.EDQUOT: "the disk quota is used up: free some space and run the operation again",
    errno.EFBIG: "the file exceeds the system's size limit: write smaller files with max_bytes_per_file",
    errno.EROFS: "the disk is mounted read-only",
    errno.EACCES: "check the permissions of the directory",
    errno.EPERM: "check the permissions of the directory",
    errno.EIO: "check the disk",
    errno.EMFILE: "too many files are open: raise the limit (ulimit -n)",
}
_IN_USE = "close what reads the file, for Windows keeps one that is open; or check the permissions of the directory"


class LocalSink(Sink):
    """See `Sink`.

    Args:
        place: Absolute path of the file.
        fsync: Whether the file is flushed before it appears.
        late: Whether a small file may instead be flushed by the commit that names it, with `unflushed`.
    """

    def __init__(self, place: str, *, fsync: bool = True, late: bool = False) -> None:
        super().__init__(place)
        self._fsync = fsync
        self._late = late
        with translated(place):
            self._temporary, self._file = _begin(place)

    def publish(self, name: Callable[[str, str], None]) -> None:
        """Close the file, name it with `name(temporary, place)`, and remove the temporary name."""
        self._open = False
        try:
            with translated(self.path):
                self._finish()
                name(self._temporary, self.path)
        except BaseException:
            self._abort()
            raise

    def _write(self, data: memoryview) -> None:
        try:
            self._file.write(data)
        except (OSError, ValueError) as error:
            raise _translation(error, self.path) from error

    def _close(self) -> None:
        self._late = self._late and self.position <= LATE_BYTES
        self.publish(_replace)
        if self._fsync and self._late:
            unflushed.note_file(self.path)
        elif self._fsync:
            unflushed.note(os.path.dirname(self.path))

    def _finish(self) -> None:
        self._file.flush()
        if self._fsync and not self._late:
            fsync(self._file.fileno())
        self._file.close()

    def _abort(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            os.unlink(self._temporary)


def put(place: str, data: Buffer, *, fsync: bool = True) -> None:
    """Write a file, replacing any existing file. Raises StoreError."""
    with LocalSink(place, fsync=fsync) as sink:
        sink.write(data)


def put_in_place(place: str, data: Buffer) -> bool:
    """Overwrite a small file in place if its size equals that of `data`. Returns whether the file was overwritten.

    Returns False for symbolic links and for files with several hard links.
    """
    view = memoryview(data)
    try:
        handle = os.open(place, os.O_WRONLY | _NO_FOLLOW)
    except OSError:
        return False
    try:
        status = os.fstat(handle)
        fits = stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_size == view.nbytes <= _IN_PLACE
        return fits and os.write(handle, view) == view.nbytes
    except OSError:
        return False
    finally:
        os.close(handle)


def put_if_absent(
    place: str,
    data: Buffer,
    beside: Mapping[str, Buffer],
    roots: Sequence[str],
    *,
    fsync: bool = True,
    late: bool = False,
) -> None:
    """Write the files in `beside`, then a file at `place` if it does not exist.

    Args:
        place: Absolute path of the file.
        data: Content of the file.
        beside: Contents of other files, by absolute path.
        roots: Directories. All recorded changes below them are flushed before the file gets its name.
        fsync: Whether to flush files and directories.
        late: Whether to flush the name later, with `unflushed`.

    Raises:
        AlreadyExistsError: The name is taken.
        StoreError: The disk failed.
    """
    for other, content in beside.items():
        put(other, content, fsync=False)
        if fsync:
            unflushed.note(os.path.dirname(other))
    sink = LocalSink(place, fsync=False)

    def name(temporary: str, place: str) -> None:
        if fsync:
            unflushed.flush(roots, [*beside, temporary])
        _name_if_absent(temporary, place)
        if fsync:
            unflushed.note(os.path.dirname(place))
        if fsync and not late:
            unflushed.flush(roots)

    try:
        sink.write(data)
        sink.publish(name)
    finally:
        sink.abort()


def copy(source: BinaryIO, place: str, *, fsync: bool = True) -> None:
    """Copy the remainder of an open file to a path. Raises StoreError."""
    with LocalSink(place, fsync=fsync) as sink:
        shutil.copyfileobj(source, _Writer(sink), BUFFER_BYTES)


def delete(place: str, root: str, *, fsync: bool = True) -> None:
    """Delete a file, and the directories below `root` that become empty. Raises StoreError."""
    was_there = True
    with translated(place):
        try:
            os.unlink(place)
        except (FileNotFoundError, NotADirectoryError):  # an abandoned write may leave only its directory
            was_there = False
    parent = os.path.dirname(place)
    with contextlib.suppress(OSError):  # raised if the directory is not empty
        while parent.startswith(root.rstrip(os.sep) + os.sep):
            os.rmdir(parent)
            parent = os.path.dirname(parent)
    if fsync and was_there:
        unflushed.note(parent)


def delete_temporary(path: str) -> None:
    """Delete a temporary file. If the system does not delete a mapped file, it is deleted when the process ends."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except PermissionError:
        atexit.register(_delete_if_possible, path)


def _delete_if_possible(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def move_folder(start: str, end: str, *, fsync: bool = True) -> None:
    """Rename a folder on the same disk atomically. Raises AlreadyExistsError and StoreError."""
    with translated(end):
        os.rename(start, end)
        if fsync:
            parents = [os.path.dirname(os.path.abspath(place)) for place in (start, end)]
            for parent in parents:
                unflushed.note(parent)
            unflushed.flush(parents)


@contextmanager
def new_folder(path: str | None) -> Iterator[None]:
    """Remove a folder if the block fails and the folder is new and empty.

    Args:
        path: Path of the folder, or None if it is not on a local disk. New parents are also removed.
    """
    missing: list[str] = []
    folder = "" if path is None else os.path.abspath(path)
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    try:
        yield
    except BaseException:
        if missing:
            remove_empty_folders(missing[0])
        for each in missing[1:]:
            with contextlib.suppress(OSError):  # raised if the folder is not empty
                os.rmdir(each)
        raise


def remove_empty_folders(path: str) -> None:
    """Remove a folder and its subfolders, except folders that contain files. Never raises."""
    for each, _, _ in os.walk(path, topdown=False):
        with contextlib.suppress(OSError):  # raised if the folder is not empty
            os.rmdir(each)


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Translate operating system errors while writing."""
    try:
        yield
    except LanceDuckError:
        raise
    except (OSError, ValueError) as error:
        raise _translation(error, place) from error


def _translation(error: OSError | ValueError, place: str) -> LanceDuckError:
    if isinstance(error, FileExistsError):
        return AlreadyExistsError("a file with this name already exists", where=place)
    code = getattr(error, "errno", None)
    what = getattr(error, "strerror", None) or str(error)
    remedy = _IN_USE if _IS_WINDOWS and isinstance(error, PermissionError) else _REMEDIES.get(code or 0)
    return StoreError(f"cannot write: {what}", where=place, remedy=remedy)


class _Writer:
    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, data: bytes) -> int:
        self._sink.write(data)
        return len(data)


def _begin(place: str) -> tuple[str, BinaryIO]:
    """Open a temporary file in the target's directory. Creates the directory if it is missing."""
    for _ in range(_TRIES):
        temporary = temporary_name(place)
        try:
            return temporary, open(temporary, "xb", buffering=BUFFER_BYTES)
        except FileNotFoundError:  # the directory does not exist yet, or it was empty and has just been deleted
            _make_directories(os.path.dirname(place))
        except FileExistsError:
            continue
    raise StoreError("cannot create a file, because its directory keeps disappearing", where=place)


def _make_directories(directory: str) -> None:
    missing = []
    while directory and not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for folder in reversed(missing):
        try:
            os.mkdir(folder)
        except FileExistsError:
            if os.path.isfile(folder):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder) from None
        except FileNotFoundError:
            return  # deleted in the meantime; the caller retries
        unflushed.note(os.path.dirname(folder))


def _replace(temporary: str, place: str) -> None:
    """Rename a temporary file, replacing any existing file."""
    if _IS_WINDOWS:
        policy = retry.RetryPolicy(retries=1000, timeout=_BUSY_SECONDS, longest_wait=_BUSY_WAIT)
        policy.run(lambda _: os.replace(temporary, place), PermissionError)
    else:
        os.replace(temporary, place)


def _name_if_absent(temporary: str, place: str) -> None:
    if _IS_WINDOWS:
        os.rename(temporary, place)  # on Windows, rename never replaces a file
        return
    try:
        os.link(temporary, place)
    except FileExistsError:
        if not _same(temporary, place):  # a network disk may execute a request twice and report the second result
            raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        raise StoreError(
            "this file system does not support hard links, which safe commits need",
            where=place,
            remedy='set a manifest_store in storage_options, for example {"manifest_store": "sqlite:///path.db"}',
        ) from error
    with contextlib.suppress(OSError):
        os.unlink(temporary)


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False
