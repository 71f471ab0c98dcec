"""Stores that stop, fail or lose responses at a chosen step, below all code of the package.

A step is one call that changes files: a system call on a local disk, or a request to an object store, usually the
in-memory store. Calls are intercepted in the store modules, so it does not matter who opened the store.

    with Faults() as seen: change()                    # how many steps there are
    with Faults(stop_at(3)): change()                  # raises Crash in place of the fourth step, and of all after it
    with Faults(lose_answer(3)): change()              # the fourth step is done, but reported as failed
    with Faults(answer_twice(3)): change()             # the fourth step is done two times, the second is reported
    with Faults(fail_at(3, errno.EIO)): change()       # the fourth step fails
    with Faults(fail_from(3, errno.ENOSPC)): change()  # it and all that need room
"""

from __future__ import annotations

import errno
import os
import random
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

import obstore
from obstore.exceptions import GenericError

from lance_duck.store import flush, local_write
from lance_duck.store import object as object_store

Do = Callable[[], Any]
Plan = Callable[["Faults", int, str, Do], Any]

SYSTEM_CALLS = ("replace", "link", "rename", "unlink", "rmdir", "mkdir", "fsync")
NEED_ROOM = ("open", "flush", "link", "mkdir", "put", "copy", "close")
LOCAL = (*SYSTEM_CALLS, "open", "flush")


class Crash(BaseException):
    """The simulated end of the process."""


class Faults:
    """Counts the steps of a block of code and applies a plan to them.

    Attributes:
        steps: Name of each step so far: "call path".
        dead: Whether the process counts as dead, so that steps have no effect.
    """

    def __init__(self, plan: Plan | None = None) -> None:
        self.steps: list[str] = []
        self.dead = False
        self._plan = plan
        self._lock = threading.Lock()
        self._undo: list[tuple[Any, str, Any]] = []

    def step(self, name: str, path: object, do: Do) -> Any:
        """Run one step, or its planned fault."""
        with self._lock:
            at = len(self.steps)
            self.steps.append(f"{name} {path}")
            if self.dead:
                raise Crash
        return do() if self._plan is None else self._plan(self, at, name, do)

    def __enter__(self) -> Faults:
        self._patch(local_write, "os", Proxy(os, {name: self._call(name) for name in SYSTEM_CALLS}))
        self._patch(flush, "os", Proxy(os, {"fsync": self._call("fsync")}))
        self._patch(local_write, "open", self._open)
        requests = {name: self._request(name) for name in ("put", "delete", "copy")}
        self._patch(object_store, "obstore", Proxy(obstore, {**requests, "open_writer": self._open_writer}))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for module, name, before in reversed(self._undo):
            if before is None:
                delattr(module, name)
            else:
                setattr(module, name, before)
        self._undo.clear()

    def _patch(self, module: Any, name: str, value: Any) -> None:
        self._undo.append((module, name, vars(module).get(name)))
        setattr(module, name, value)

    def _call(self, name: str) -> Callable[..., Any]:
        real = getattr(os, name)
        return lambda *a, **k: self.step(name, a[-1], lambda: real(*a, **k))

    def _request(self, name: str) -> Callable[..., Any]:
        real = getattr(obstore, name)
        return lambda *a, **k: self.step(name, a[1], lambda: real(*a, **k))

    def _open(self, path: str, *arguments: Any, **more: Any) -> Any:
        file = self.step("open", path, lambda: open(path, *arguments, **more))  # noqa: SIM115
        return _File(self, path, file, ("flush",))

    def _open_writer(self, client: Any, key: str, **more: Any) -> Any:
        return _File(self, key, obstore.open_writer(client, key, **more), ("close",))


def stop_at(at: int) -> Plan:
    """The process dies before step `at`."""

    def plan(faults: Faults, now: int, name: str, do: Do) -> Any:
        if now < at:
            return do()
        faults.dead = True
        raise Crash

    return plan


def fail_at(at: int, code: int) -> Plan:
    """Let step `at` fail without an effect."""

    def plan(faults: Faults, now: int, name: str, do: Do) -> Any:
        if now == at:
            raise _error(name, code)
        return do()

    return plan


def fail_from(at: int, code: int) -> Plan:
    """Let all steps that need disk space fail from step `at` on."""

    def plan(faults: Faults, now: int, name: str, do: Do) -> Any:
        if now >= at and name in NEED_ROOM:
            raise _error(name, code)
        return do()

    return plan


def lose_answer(at: int) -> Plan:
    """Step `at` is done, and reported as failed."""

    def plan(faults: Faults, now: int, name: str, do: Do) -> Any:
        found = do()
        if now == at:
            if name == "open":
                found.close()
            raise _error(name, errno.EIO)
        return found

    return plan


def answer_twice(at: int) -> Plan:
    """Run step `at` twice if it can be repeated; the second response counts."""

    def plan(faults: Faults, now: int, name: str, do: Do) -> Any:
        found = do()
        return do() if now == at and name in ("put", "delete", "copy", "link") else found

    return plan


def now_and_then(seed: int, *, fails: float, loses: float, repeats: float) -> Plan:
    """Let each step fail, lose its response or run twice with some probability."""
    rng = random.Random(seed)

    def plan(faults: Faults, now: int, name: str, do: Do) -> Any:
        lot = rng.random()
        for chance, what in ((fails, fail_at(now, errno.EIO)), (loses, lose_answer(now)), (repeats, answer_twice(now))):
            if lot < chance:
                return what(faults, now, name, do)
            lot -= chance
        return do()

    return plan


def _error(name: str, code: int) -> Exception:
    text = os.strerror(code)
    return OSError(code, text) if name in LOCAL else GenericError(text)


class Proxy:
    """A module, with some functions replaced."""

    def __init__(self, module: Any, replaced: dict[str, Any]) -> None:
        self._module = module
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class _File:
    """A file with some calls counted as steps. A dead process closes it without writing its buffer."""

    def __init__(self, faults: Faults, path: str, file: Any, steps: tuple[str, ...]) -> None:
        self._faults = faults
        self._path = path
        self._file = file
        self._steps = steps

    def close(self) -> Any:
        if "close" in self._steps:
            return self._faults.step("close", self._path, self._file.close)
        if self._faults.dead and not self._file.closed:
            self._file = self._file.detach()
        return self._file.close()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._file, name)
        if name not in self._steps:
            return found
        return lambda *a: self._faults.step(name, self._path, lambda: found(*a))
