"""Compiled kernels on disk: a file for each kernel and the types that it is called with.

    offset  size  field
    0       32    SHA-256 of the rest
    32      …     pickle of a compiled function as numba keeps it: its machine code, its types

A file's name is a digest of all that determines its content: the kernel, its types, its fingerprint, the processor,
numba and Python. Processes share no index. A process that compiles a kernel writes its file in one step; two that
compile the same kernel write the same file. A damaged file counts as missing.

A kernel is looked for in the pack of the installation (`pack`), then in all of these folders. Its file is written to
the first of them that accepts files:

    $NUMBA_CACHE_DIR/lance_duck          if the variable is set
    lance_duck/kernels/__pycache__       beside the code, like Python's bytecode
    ~/.cache/lance_duck                  or the system's folder for caches, if the package's folder is read-only

So kernels that root compiled while an image was built serve every user of the image.
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
    """The cache of one kernel's compiled versions, as numba uses it.

    Args:
        function: The kernel's Python function.
        folders: Folders of files; those of the process by default.
    """

    def __init__(self, function: Callable[..., Any], folders: Sequence[Path] | None = None) -> None:
        self._name = f"{function.__module__.removeprefix('lance_duck.')}.{function.__qualname__}"
        self._function = function
        self._folders = folders
        self._is_linked = False
        self._kept: list[Any] = []

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
        pack = None if self._is_linked else installed_pack()
        found = None if pack is None else pack.load(self.key(signature), target)
        if found is not None:
            return found
        data = self.stored(signature, target)
        found = None if data is None else rebuilt(target, pickle.loads(data))  # noqa: S301  checked, trusted as code is
        if found is not None:
            return found
        _load_extensions()  # numba does this at the first call of a kernel, `Kernel` does not
        first_use.missed(self._name)
        return None

    def stored(self, signature: Any, target: Any) -> bytes | None:
        """Return the pickle of a signature's compiled function from the folders, or None if none has a sound one."""
        name = self.file_name(signature, target)
        return next((data for folder in self.folders if (data := _read(folder / name)) is not None), None)

    def link(self, overloads: Mapping[Any, Any]) -> bool:
        """Prepare for a call of this kernel by another one, which needs bitcode: packs are no longer used.

        Args:
            overloads: The kernel's compiled versions; they stay in memory, since a thread may be running one.

        Returns:
            Whether one of them came from a pack, so that all must be dropped.
        """
        self._is_linked = True
        packed = any(map(is_packed, overloads.values()))
        if packed:
            self._kept += overloads.values()
        return packed

    def save_overload(self, signature: Any, result: Any) -> None:
        """Write a compiled kernel to disk, if a folder takes it."""
        data = _dumps(result._reduce())
        name = self.file_name(signature, result.target_context)
        for folder in self.folders:
            with suppress(OSError):
                _write(folder / name, data)
                return

    def flush(self) -> None:
        """Do nothing: a file never becomes wrong."""

    def file_name(self, signature: Any, target: Any) -> str:
        """Return the name of a signature's file."""
        facts = (self.key(signature), target.codegen().magic_tuple(), numba.__version__, sys.version, FORM)
        return f"{self._name}.{hashlib.sha256(repr(facts).encode()).hexdigest()[:24]}.nbc"

    def key(self, signature: Any) -> str:
        """Return the key of a signature in packs."""
        return f"{self._name} {signature} {fingerprint(self._function)}"


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
