"""The disk cache of compiled kernels: one file for each kernel and signature.

    offset  size  field
    0       32    SHA-256 of the rest
    32      …     pickle of a compiled function in numba's form: machine code and types

The file name is a digest of everything that determines the content: kernel, types, fingerprint, processor, numba and
Python. Processes do not share an index. A process that compiles a kernel writes the file atomically. Two processes that
compile the same kernel write the same file. A damaged file counts as missing.

Kernels are loaded from the installed pack (`pack`) if it has them, otherwise from these folders. New files go to the
first folder that is writable:

    $NUMBA_CACHE_DIR/lance_duck          if the variable is set
    lance_duck/kernels/__pycache__       next to the code, like Python's bytecode
    ~/.cache/lance_duck                  or the system's cache folder, if the package folder is read-only

If root compiles kernels while building a container image, every user of the image can load them.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

import numba
from numba.core import entrypoints, serialize
from numba.misc import appdirs

from lance_duck.kernels.fingerprint import fingerprint
from lance_duck.kernels.lean import FORM, rebuilt
from lance_duck.kernels.notice import first_use
from lance_duck.kernels.pack import installed_pack, is_packed

_DIGEST: Final = 32
_dumps: Final[Any] = serialize.dumps
_load_extensions: Final[Any] = entrypoints.init_all
_user_folder: Final[Any] = appdirs.user_cache_dir


class KernelCache:
    """The on-disk cache of one kernel, in the form that numba expects.

    Args:
        function: The kernel's Python function.
        folders: Cache folders. Defaults to the folders of the process.
    """

    def __init__(self, function: Callable[..., Any], folders: Sequence[Path] | None = None) -> None:
        self._name = f"{function.__module__.removeprefix('lance_duck.')}.{function.__qualname__}"
        self._function = function
        self._folders = folders
        self._is_linked = False
        self._kept: list[Any] = []

    @property
    def folders(self) -> Sequence[Path]:
        """Folders to read from. Files are written to the first folder."""
        return cache_folders() if self._folders is None else self._folders

    @property
    def cache_path(self) -> str:
        """Folder to write to, for numba's statistics."""
        return str(next(iter(self.folders), ""))

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Return the cached kernel for a signature, or None if it is missing or damaged.

        Unlike numba's own cache, this does not refresh the target. A refresh imports everything that numba can compile,
        which takes five times as long as loading the kernels of a first scan (`benchmarks/first_use.py`). Machine code
        does not need a refresh, and numba refreshes the target itself before it compiles.
        """
        pack = None if self._is_linked else installed_pack()
        found = None if pack is None else pack.load(self.key(signature), target)
        if found is not None:
            return found
        data = self.stored(signature, target)
        found = None if data is None else rebuilt(target, pickle.loads(data))  # noqa: S301  checked, trusted as code is
        if found is not None:
            return found
        _load_extensions()  # numba does this at the first call of a kernel, but `Kernel` skips it
        first_use.missed(self._name)
        return None

    def stored(self, signature: Any, target: Any) -> bytes | None:
        """Return the pickled function for a signature, or None if all folders lack an intact file."""
        name = self.file_name(signature, target)
        return next((data for folder in self.folders if (data := _read(folder / name)) is not None), None)

    def link(self, overloads: Mapping[Any, Any]) -> bool:
        """Prepare for a call from another kernel. Such calls need bitcode, and packs do not contain it.

        Args:
            overloads: The kernel's compiled versions. They stay in memory, because a thread may be running one.

        Returns:
            Whether any version came from a pack. The caller must then drop all versions.
        """
        self._is_linked = True
        packed = any(map(is_packed, overloads.values()))
        if packed:
            self._kept += overloads.values()
        return packed

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write a compiled kernel to disk, if a folder is writable."""
        data = _dumps(result._reduce())
        name = self.file_name(signature, result.target_context)
        for folder in self.folders:
            with suppress(OSError):
                _write(folder / name, data)
                return

    def flush(self) -> None:
        """Do nothing, because file names change with their content."""

    def file_name(self, signature: Any, target: Any) -> str:
        """Return the file name for a signature."""
        facts = (self.key(signature), target.codegen().magic_tuple(), numba.__version__, sys.version, FORM)
        return f"{self._name}.{hashlib.sha256(repr(facts).encode()).hexdigest()[:24]}.nbc"

    def key(self, signature: Any) -> str:
        """Return the pack key for a signature."""
        return f"{self._name} {signature} {fingerprint(self._function)}"


@cache
def cache_folders() -> tuple[Path, ...]:
    """Return the cache folders, with a writable folder first."""
    own = Path(__file__).parent / "__pycache__"
    setting = os.environ.get("NUMBA_CACHE_DIR")
    folders = [Path(setting, "lance_duck"), own] if setting else [own, Path(_user_folder("lance_duck"))]
    return tuple(sorted(folders, key=lambda folder: not _takes_files(folder)))


def writable_folder() -> Path | None:
    """Return the folder for new kernels, or None if no folder is writable."""
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
    """Write a file atomically."""
    handle, draft = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(data).digest() + data)
        os.chmod(draft, 0o644)  # readable by other users, like the package
        os.replace(draft, path)
    except OSError:
        with suppress(OSError):
            os.unlink(draft)
        raise
