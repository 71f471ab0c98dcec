"""How kernels are compiled: without the GIL, cached on disk, without exceptions for division by zero.

A kernel allocates nothing, so that numba need not count references to arrays either, which it would do at each call of
one kernel by another.

A kernel checks every offset and length against its buffers before it touches them, and reports what it found as a
status (`kernels/status.py`): compiled code does not check bounds and must not raise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import IndexDataCacheFile
from numpy.typing import NDArray

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound=np.generic)

OPTIONS: Final[Any] = MappingProxyType({"nogil": True, "error_model": "numpy", "_nrt": False})
"""`_nrt`: numba's run time, which allocates and counts references."""

_SUMS: Final = frozenset({"reassoc", "contract", "nsz"})
"""What may be done to sums: NaN and infinity stay what they are."""


class CacheFile(IndexDataCacheFile):
    """numba's cache on disk, safe for processes that compile one kernel at the same time.

    numba numbers its files and writes the index first, so that two processes can give two kernels one file. Here a
    file is named after what it holds and written before the index; what the index of another process leaves out is
    compiled again. Kernels take in the code of those that they call, so that one is stale as soon as any source has
    changed, not only its own.
    """

    @classmethod
    def adopt(cls, compiled: Any) -> None:
        """Make a compiled function use this kind of cache."""
        file = compiled._cache._cache_file
        file.__class__ = cls
        file._source_stamp = (file._source_stamp, stamp_of_sources())

    def save(self, key: Any, data: Any) -> None:
        """Keep a compiled kernel."""
        files: Any = super()
        identity = hashlib.sha256(files._dump((self._version, self._source_stamp, key)))
        name = f"{self._index_name.removesuffix('.nbi')}.{identity.hexdigest()[:16]}.nbc"
        files._save_data(name, data)
        overloads = files._load_index()
        overloads[key] = name
        files._save_index(overloads)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles `function` on its first call for the types that it is called with."""
    return _compiled(function, OPTIONS)


def summing_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """As `kernel`; sums of floats are added up in whatever order is fastest, the same one for each row."""
    return _compiled(function, {**OPTIONS, "fastmath": set(_SUMS)})


def _compiled(function: Callable[P, R], options: Mapping[str, Any]) -> Callable[P, R]:
    try:
        compiled: Any = numba.njit(cache=True, **options)(function)
        CacheFile.adopt(compiled)
    except RuntimeError:  # no folder can be written to: each process compiles for itself
        compiled = numba.njit(**options)(function)
    return cast("Callable[P, R]", compiled)


@cache
def stamp_of_sources(folder: Path = Path(__file__).parent) -> str:
    """Digest of all Python sources in a folder; of the kernels' by default."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        source = path.read_bytes()
        digest.update(f"{path.name} {len(source)} ".encode() + source)
    return digest.hexdigest()


def readonly(array: NDArray[S]) -> NDArray[S]:
    """A C-contiguous view that cannot be written to, so that mapped and owned memory share one compiled kernel."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
