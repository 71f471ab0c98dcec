"""Warm-up of the kernel cache, and the packs built from it."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lance_duck.arguments import checked_call, suggest_names
from lance_duck.errors import InvalidInputError, StoreError
from lance_duck.kernels.cache import writable_folder
from lance_duck.kernels.jit import Subroutine, kernels
from lance_duck.kernels.notice import first_use
from lance_duck.kernels.pack import (
    FOLDER,
    SETTING,
    KernelPack,
    machine_levels,
    open_pack,
    pack_entry,
    pack_name,
    write_pack,
)
from lance_duck.precompile.workload import run_workload


@suggest_names
@dataclass(frozen=True)
class WarmUp:
    """The result of `warm_up`.

    Attributes:
        compiled: Number of newly compiled kernels. It is 0 if all kernels were on disk.
        seconds: Compile time in seconds.
        folder: Folder of the compiled kernels. None if no folder is writable. Only this process can then use the
            kernels.
    """

    compiled: int
    seconds: float
    folder: Path | None


@suggest_names
@dataclass(frozen=True)
class KernelBuild:
    """The result of `build_kernels`.

    Attributes:
        path: The pack.
        level: Processor level of the pack.
        kernels: Number of compiled kernels in the pack.
        seconds: Build time in seconds. It is 0.0 if the pack was already complete.
    """

    path: Path
    level: str
    kernels: int
    seconds: float


def warm_up() -> WarmUp:
    """Compile the kernels for reading, writing, changing, indexing and searching tables.

    Kernels in the installed pack are not compiled. Other kernels are stored in $NUMBA_CACHE_DIR if it is set, else next
    to the package, else in the user's cache folder. They are valid for this kind of processor and for the installed
    versions of the package, numba and Python. A kernel for an unusual type may still be compiled on first use.

    Raises:
        StoreError: The folder for temporary files is not writable.
    """
    compiled, seconds = first_use.compiled, first_use.seconds
    first_use.begin_warm_up()
    try:
        with scratch() as folder:
            run_workload(folder)
    finally:
        first_use.end_warm_up()
    return WarmUp(first_use.compiled - compiled, first_use.seconds - seconds, writable_folder())


@checked_call
def build_kernels(level: str | None = None, folder: str | os.PathLike[str] | None = None) -> KernelBuild:
    """Compile all usual kernels into a pack. Installations load machine code from it.

    Args:
        level: Processor level: "x86-64-v3" or "x86-64-v2", or "generic" on machines that are not x86-64. Defaults to
            the best level of this machine.
        folder: Folder of the pack. Defaults to the folder from which the installation loads packs.

    Raises:
        InvalidInputError: The level is unknown on this machine.
        StoreError: The compiling process failed, or a folder is not writable.
    """
    levels = machine_levels()
    if level is not None and level not in levels:
        raise InvalidInputError("the processor level is unknown", expected=" or ".join(levels), found=repr(level))
    chosen = level or levels[0]
    path = Path(FOLDER if folder is None else folder) / pack_name(chosen)
    present = open_pack(path)
    if present is not None and present.sources == digest_of_sources():
        return KernelBuild(path, chosen, len(present), 0.0)
    start = time.monotonic()
    with scratch() as empty:
        environment = {**os.environ, "NUMBA_CACHE_DIR": empty, SETTING: "compile"}
        environment |= {"NUMBA_CPU_NAME": chosen, "NUMBA_CPU_FEATURES": ""}
        command = [sys.executable, "-m", __package__, "--compile", chosen, str(path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise StoreError(f"kernels for {chosen} were not built: {done.stderr.strip().splitlines()[-1:]}")
    return KernelBuild(path, chosen, len(KernelPack(path)), time.monotonic() - start)


def scratch() -> tempfile.TemporaryDirectory[str]:
    """Return a new folder for temporary files.

    Raises:
        StoreError: The folder cannot be created.
    """
    try:
        return tempfile.TemporaryDirectory(prefix="lance_duck-", ignore_cleanup_errors=True)
    except OSError as error:
        raise StoreError("no folder for temporary files can be written to", where="TMPDIR") from error


def digest_of_sources() -> str:
    """Return the digest of all sources that determine a pack: the kernels and the workload."""
    digest = hashlib.sha256()
    for folder in (FOLDER.parent, Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{path.relative_to(folder)} {path.stat().st_size} ".encode() + path.read_bytes())
    return digest.hexdigest()


def compile_pack(level: str, path: Path) -> None:
    """Compile the kernels into this process's empty cache, and write the cache as a pack. See `build_kernels`."""
    warm_up()
    write_pack(path, level, digest_of_sources(), dict(_entries()))


def _entries() -> Iterator[tuple[str, bytes]]:
    """Yield the pack entries of all kernels compiled by this process."""
    for kernel in kernels():
        if isinstance(kernel, Subroutine):
            continue
        compiled: dict[Any, Any] = kernel.overloads
        for types, result in compiled.items():
            data = kernel.cache.stored(types, result.target_context)
            if data is not None:
                yield kernel.cache.key(types), pack_entry(pickle.loads(data))  # noqa: S301  written by this process
