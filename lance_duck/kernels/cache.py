"""Compiled kernels on disk: a file for each kernel and the types that it is called with.

    offset  size  field
    0       32    SHA-256 of the rest
    32      …     pickle of a compiled function as numba keeps it: its machine code, its types

A file is named after all that determines its content: the kernel, its types, the processor, numba, Python, and the text
of all kernels. So there is no index that two processes would have to agree on: a process that compiles a kernel puts
its file there in one step, and two that compile the same kernel put the same file. A damaged file counts as missing.

Files are written to the first of these folders that takes them, and looked for in all of them:

    $NUMBA_CACHE_DIR/lance_duck          where the variable is set
    lance_duck/kernels/__pycache__            beside the code, as Python's own compiled modules
    ~/.cache/lance_duck                  (or what the system has for it) where the package cannot be written to

So kernels that root compiled while an image was built serve every user of the image.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import numba
from numba.core import compiler, serialize
from numba.misc import appdirs

from lance_duck.kernels.notice import first_use

_DIGEST: Final = 32
_compiled: Final[Any] = compiler.CompileResult
_dumps: Final[Any] = serialize.dumps
_user_folder: Final[Any] = appdirs.user_cache_dir


class KernelCache:
    """The cache of one kernel's compiled versions, as numba uses it.

    Args:
        function: The kernel's Python function.
        folders: Folders of files; those of the process by default.
    """

    def __init__(self, function: Callable[..., Any], folders: Sequence[Path] | None = None) -> None:
        self._name = f"{function.__module__.removeprefix('lance_duck.')}.{function.__qualname__}"
        self._source = Path(function.__code__.co_filename)
        self._line = function.__code__.co_firstlineno
        self._folders = folders

    @property
    def folders(self) -> Sequence[Path]:
        """Folders where files may be; the first one is written to."""
        return cache_folders() if self._folders is None else self._folders

    @property
    def cache_path(self) -> str:
        """Folder that is written to, for numba's statistics."""
        return str(next(iter(self.folders), ""))

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the kernel compiled for a signature; None if no folder has it, or its file is damaged.

        Unlike in numba's own cache the target is not refreshed: that would import all that numba can compile, which
        takes five times as long as reading the kernels of a first scan (`benchmarks/first_use.py`), and machine code
        does not need it. numba refreshes the target itself when it compiles.
        """
        name = self._file(signature, target)
        for folder in self.folders:
            data = _read(folder / name)
            if data is not None:
                return _compiled._rebuild(target, *pickle.loads(data))  # noqa: S301  checked, and ours as code is
        first_use.missed()
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write a compiled kernel to disk, if a folder takes it."""
        data = _dumps(result._reduce())
        name = self._file(signature, result.target_context)
        for folder in self.folders:
            with suppress(OSError):
                _write(folder / name, data)
                return

    def flush(self) -> None:
        """Do nothing: a file never becomes wrong."""

    def _file(self, signature: Any, target: Any) -> str:
        processor = target.codegen().magic_tuple()
        facts = (str(signature), self._line, processor, numba.__version__, sys.version, stamp_of_sources(self._source))
        return f"{self._name}.{hashlib.sha256(repr(facts).encode()).hexdigest()[:24]}.nbc"


@cache
def stamp_of_sources(source: Path, folder: Path = Path(__file__).parent) -> str:
    """Return the digest of a source file and of all sources of kernels, whose code it may have inlined.

    The time of a file is left out: an image keeps it in whole seconds.
    """
    return hashlib.sha256(f"{_sized_text(source)!r} {_stamp_of_folder(folder)}".encode()).hexdigest()


@cache
def _stamp_of_folder(folder: Path) -> str:
    """Return the digest of all sources below a folder, computed once in a process: it costs as much as some kernels."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(b"%s %d %s" % _sized_text(path))
    return digest.hexdigest()


def _sized_text(path: Path) -> tuple[bytes, int, bytes]:
    try:
        text = path.read_bytes()
    except OSError:  # inside a zip file, or typed into a shell
        text = b""
    return path.name.encode(), len(text), text


@cache
def cache_folders() -> tuple[Path, ...]:
    """Return the folders where compiled kernels may be; a folder that can be written to comes first."""
    own = Path(__file__).parent / "__pycache__"
    setting = os.environ.get("NUMBA_CACHE_DIR")
    folders = [Path(setting, "lance_duck"), own] if setting else [own, Path(_user_folder("lance_duck"))]
    return tuple(sorted(folders, key=lambda folder: not _takes_files(folder)))


def writable_folder() -> Path | None:
    """Return the folder where kernels are kept; None if no folder can be written to."""
    first = cache_folders()[0]
    return first if _takes_files(first) else None


def _takes_files(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _read(path: Path) -> bytes | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    rest = data[_DIGEST:]
    return rest if hashlib.sha256(rest).digest() == data[:_DIGEST] else None


def _write(path: Path, data: bytes) -> None:
    """Put a file in its place in one step."""
    handle, draft = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(data).digest() + data)
        os.chmod(draft, 0o644)  # other users read it, as they do the package
        os.replace(draft, path)
    except OSError:
        with suppress(OSError):
            os.unlink(draft)
        raise
