"""Packs: compiled kernels that ship with an installation.

    offset  size  field
    0       8     magic, "LDKPACK1"
    8       4     size of the index, N
    12      32    SHA-256 of the index
    44      N     index, JSON: python, numba, level, source digest; entries: key → offset, size, SHA-256
    44+N    …     entries, each a pickle: machine code, symbols, numba's function descriptor

Numbers are little-endian. Offsets count from the end of the index. A key combines the kernel's name, signature and
fingerprint. Entries of older sources are therefore never found. A pack fits one minor version of Python, one minor
version of numba, and one processor level. Packs are stored in `lance_duck/kernels/packs`, as
`{system}-{machine}-{level}-{python}.pack`.

Entries do not contain bitcode. A packed kernel that another kernel calls is therefore compiled again with its caller.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import platform
import struct
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import llvmlite.binding
import numba
from numba.core import compiler, serialize

MAGIC: Final = b"LDKPACK1"
FOLDER: Final = Path(__file__).parent / "packs"
SETTING: Final = "LANCE_DUCK_KERNELS"
"""Environment variable: `compile` disables packs."""
_HEAD: Final = struct.Struct("<8sI32s")
_config: Final[Any] = numba.config
_compile_result: Final[Any] = compiler.compile_result
_dumps: Final[Any] = serialize.dumps

_V2: Final = frozenset({"cx16", "popcnt", "sse4.1", "sse4.2", "ssse3"})
_V3: Final = _V2 | {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"}
LEVELS: Final[Mapping[str, frozenset[str]]] = {"x86-64-v3": _V3, "x86-64-v2": _V2}
"""LLVM features required for each processor level, best level first."""
GENERIC: Final = "generic"
"""Level of all processors other than x86-64."""


class KernelPack:
    """The compiled kernels of one file.

    The file is read whole, because truncating a mapped file would crash the process.

    Args:
        path: The file.

    Raises:
        ValueError: The file is not a pack, or its index is damaged.
        OSError: The file cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._data = path.read_bytes()
        magic, size, digest = _HEAD.unpack_from(self._data)
        index = self._data[_HEAD.size : _HEAD.size + size]
        if magic != MAGIC or hashlib.sha256(index).digest() != digest:
            raise ValueError(f"{path} is not a pack of kernels, or is damaged")
        facts = json.loads(index)
        self.level: str = facts["level"]
        self.sources: str = facts["sources"]
        self.fits: bool = facts["python"] == _python() and facts["numba"] == _minor(numba.__version__)
        self._start = _HEAD.size + size
        self._entries: dict[str, tuple[int, int, str]] = facts["entries"]

    def __len__(self) -> int:
        return len(self._entries)

    def load(self, key: str, target: Any) -> Any:
        """Return the compiled kernel of a key as numba's `CompileResult`, or None if it is missing or damaged."""
        if key not in self._entries:
            return None
        offset, size, digest = self._entries[key]
        data = self._data[self._start + offset : self._start + offset + size]
        return _rebuilt(data, target) if hashlib.sha256(data).hexdigest() == digest else None


@cache
def installed_pack() -> KernelPack | None:
    """Return the pack of the highest usable level, or None if no pack fits or packs are disabled."""
    if os.environ.get(SETTING) == "compile" or _config.CPU_NAME:
        return None
    for level in machine_levels():
        pack = open_pack(FOLDER / pack_name(level))
        if pack is not None and pack.level == level:
            return pack
    return None


def open_pack(path: Path) -> KernelPack | None:
    """Open a pack. Returns None if it is missing, damaged, or made for other versions of Python or numba."""
    try:
        pack = KernelPack(path)
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return None
    return pack if pack.fits else None


def machine_levels() -> list[str]:
    """Return the processor's levels, best first.

    Features that NUMBA_CPU_FEATURES disables (for example `-avx2`) count as missing.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return [GENERIC]
    own = {name for name, has in llvmlite.binding.get_host_cpu_features().items() if has}
    own -= {name[1:] for name in (_config.CPU_FEATURES or "").split(",") if name.startswith("-")}
    return [level for level, needed in LEVELS.items() if needed <= own]


def pack_name(level: str) -> str:
    """Return the pack file name of a level for the current system, machine and Python version."""
    machine = level if level.startswith("x86-64") else f"{platform.machine().lower()}-{level}"
    return f"{sys.platform}-{machine}-cp{_python().replace('.', '')}.pack"


def write_pack(path: Path, level: str, sources: str, entries: Mapping[str, bytes]) -> None:
    """Write the entries of a pack atomically."""
    placed: dict[str, tuple[int, int, str]] = {}
    offset = 0
    for key, data in sorted(entries.items()):
        placed[key] = offset, len(data), hashlib.sha256(data).hexdigest()
        offset += len(data)
    facts = {"python": _python(), "numba": _minor(numba.__version__), "level": level, "sources": sources}
    index = json.dumps({**facts, "entries": placed}).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    head = _HEAD.pack(MAGIC, len(index), hashlib.sha256(index).digest())
    draft.write_bytes(b"".join([head, index, *(entries[key] for key in sorted(entries))]))
    os.replace(draft, path)


def pack_entry(reduced: Iterable[Any]) -> bytes:
    """Return the pack entry of a kernel.

    Args:
        reduced: Output of numba's `CompileResult._reduce`.
    """
    library, descriptor, environment, signature, _objectmode, _lifted, _annotation, reload, environments = reduced
    name, _kind, (code, bitcode) = library
    module = llvmlite.binding.parse_bitcode(bitcode)
    values = (*module.functions, *module.global_variables)
    symbols = {value.name for value in values if not value.is_declaration}
    return bytes(_dumps((name, code, sorted(symbols), descriptor, environment, signature, reload, environments)))


def is_packed(result: Any) -> bool:
    """Return whether a compiled kernel comes from a pack and cannot be linked into another kernel."""
    return bool(result.type_annotation == _FROM_PACK)


_FROM_PACK: Final = "from a pack"


def _rebuilt(data: bytes, target: Any) -> Any:
    """Rebuild a `CompileResult` from an entry. numba's `_rebuild` does the same from bitcode."""
    name, code, symbols, descriptor, environment, signature, reload, environments = pickle.loads(data)  # noqa: S301
    for step in reload:
        step()
    library = target.codegen().create_library(name)
    library.enable_object_caching()
    library._set_compiled_object(code)
    library._finalize_final_module()
    library.codegen._engine._defined_symbols |= set(symbols)
    result = _compile_result(
        target_context=target,
        typing_context=target.typing_context,
        library=library,
        environment=environment,
        entry_point=target.get_executable(library, descriptor, environment),
        fndesc=descriptor,
        type_annotation=_FROM_PACK,
        signature=signature,
        objectmode=False,
        lifted=(),
        reload_init=reload,
        referenced_envs=environments,
    )
    for each in environments:
        library.codegen.set_env(each.env_name, each)
    return result


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
