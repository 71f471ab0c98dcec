"""A disk that loses all unflushed data in a power cut.

The strictest reading of system guarantees: file contents are durable after a flush of the file. A name in a directory,
or its removal, is durable after a later flush of the directory. Everything else is lost; a file with a durable name but
without durable contents is empty.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from support.faults import Do, Faults, Plan


class PowerCut(Faults):
    """Watches the steps below a directory of a local disk.

    Args:
        disk: Directory; all that it holds now is safe.
        plan: See `Faults`.
    """

    def __init__(self, disk: Path, plan: Plan | None = None) -> None:
        super().__init__(plan)
        self._disk = disk
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, tuple[int, bool]]] = {}
        for folder, _, names in os.walk(disk):
            self._keep_names(folder)
            for name in names:
                self._keep_contents(os.path.join(folder, name))

    def step(self, name: str, path: object, do: Do) -> Any:
        """Run one step and record the durable state after it. The real disk is not flushed."""
        found = super().step(name, path, do if name != "fsync" else lambda: None)
        if name == "fsync" and isinstance(path, int):
            place = os.readlink(f"/proc/self/fd/{path}")
            if stat.S_ISDIR(os.fstat(path).st_mode):
                self._keep_names(place)
            else:
                self._keep_contents(place)
        elif name in ("open", "mkdir"):  # the inode number of a deleted file may be reused
            number = os.stat(str(path)).st_ino
            self._contents.pop(number, None)
            self._names.pop(number, None)
        return found

    def after(self, target: Path) -> Path:
        """Write the remaining files to another directory and return it."""
        self._restore(os.stat(self._disk).st_ino, target)
        return target

    def _keep_names(self, folder: str) -> None:
        with os.scandir(folder) as found:
            names = {entry.name: (entry.inode(), entry.is_dir()) for entry in found}
        self._names[os.stat(folder).st_ino] = names

    def _keep_contents(self, place: str) -> None:
        self._contents[os.stat(place).st_ino] = Path(place).read_bytes()

    def _restore(self, number: int, target: Path) -> None:
        target.mkdir()
        for name, (inner, is_folder) in self._names.get(number, {}).items():
            if is_folder:
                self._restore(inner, target / name)
            else:
                (target / name).write_bytes(self._contents.get(inner, b""))
