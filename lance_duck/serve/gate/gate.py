"""The gate of a server: callers, roles, slots, deadlines."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import duckdb

from lance_duck.arguments import byte_count
from lance_duck.duck.connection import connect
from lance_duck.serve.gate import process_memory
from lance_duck.serve.gate.admission import Admission
from lance_duck.serve.gate.call import ServerCall
from lance_duck.serve.gate.log_fields import caller_in_logs
from lance_duck.serve.gate.refusals import ForbiddenError, StoppingError, UnauthorizedError, refusal_of
from lance_duck.serve.gate.remembered import RememberedAnswers
from lance_duck.serve.gate.scratch import ScratchFolder
from lance_duck.serve.gate.served_names import ServedNamespace
from lance_duck.serve.gate.settings import ServeSettings
from lance_duck.serve.gate.tokens import Caller, Role, caller_of


class Gate:
    """Admits requests to the tables of one folder.

    Attributes:
        settings: The server's settings.
        namespace: The names of the served tables.
        admission: Slots for running requests.
        uploads: Slots for running uploads, which may wait for their clients.
        repeats: Answers of recent changes.
    """

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        options = dict(settings.storage_options or {}) or None
        self.namespace = ServedNamespace(settings.place, storage_options=options)
        self._scratch = ScratchFolder()
        config = {
            "allocator_background_threads": "true",  # returns unused memory to the system
            "temp_directory": self._scratch.path,
        }
        if settings.memory is not None:
            config["memory_limit"] = settings.memory
        self.connection = connect(
            settings.place, read_only=not settings.write, confined=True, config=config, storage_options=options
        )
        self.admission = Admission(settings.max_statements, settings.max_waiting, settings.max_wait)
        self.uploads = Admission(settings.max_statements, settings.max_waiting, settings.max_wait)
        self.repeats = RememberedAnswers()
        self._calls: set[ServerCall] = set()
        self._is_stopped = False

    def caller(self, token: str | None) -> Caller:
        """Return the caller with a token.

        Raises:
            UnauthorizedError: The token is missing or unknown.
        """
        settings = self.settings
        if not settings.tokens:
            return Caller("anyone", Role.WRITE if settings.write else Role.READ)
        caller = caller_of(token, settings.tokens)
        if caller is None:
            raise UnauthorizedError("the token is missing or unknown")
        return caller

    def check_may_change(self, caller: Caller) -> None:
        """Check that a caller may change tables.

        Raises:
            ForbiddenError: The server or the caller may only read.
        """
        if not self.settings.write:
            raise ForbiddenError("the server only reads", remedy="start it with --write")
        if caller.role is not Role.WRITE:
            raise ForbiddenError("the token only reads", where=caller.name)

    @contextmanager
    def call(
        self,
        caller: Caller,
        *,
        timeout: float | None = None,
        is_upload: bool = False,
        is_gone: Callable[[], bool] = lambda: False,
    ) -> Iterator[ServerCall]:
        """Wait for a slot, and run a request in it.

        Args:
            caller: Who sends the request.
            timeout: Maximum duration that the client accepts, in seconds. The server's limit may be shorter. The time
                in which the request waits counts.
            is_upload: Whether the request sends rows. It then has other slots and a longer time limit.
            is_gone: Returns whether the client has left while the request waits: see `wake`.

        Raises:
            AbandonedError: The client has left.
            BusyError: All slots are taken.
        """
        settings = self.settings
        longest = settings.upload_timeout if is_upload else settings.timeout
        limit = longest if timeout is None else min(timeout, longest)
        began = time.monotonic()
        with ExitStack() as stack:
            stack.enter_context(caller_in_logs(caller.name))
            stack.enter_context((self.uploads if is_upload else self.admission).slot(is_gone, seconds=limit))
            process_memory.wait_for_room()
            call = ServerCall(caller, settings, self.namespace, self.connection, limit, began)
            self._calls.add(call)
            if self._is_stopped:
                call.cancel(_stopping())
            stack.callback(self._calls.discard, call)
            stack.callback(call.close)
            try:
                with call.interrupt:
                    yield call
            except Exception as error:
                refusal = refusal_of(error)
                reason = call.stopped(refusal)
                if refusal is not error:
                    traceback.clear_frames(error.__traceback__)
                    self.namespace.close_tables()
                    process_memory.release()
                if reason is error:
                    raise
                raise reason from (None if reason is error.__cause__ else error)

    def wake(self) -> None:
        """Let waiting requests whose clients have left leave the queue."""
        for each in (self.admission, self.uploads):
            each.wake()

    def stop(self, timeout: float) -> None:
        """Refuse new requests, wait for running ones, and interrupt them after `timeout` seconds."""
        slots = (self.admission, self.uploads)
        for each in slots:
            each.close()
        end = time.monotonic() + timeout
        if not all(each.drained(max(0.0, end - time.monotonic())) for each in slots):
            self._is_stopped = True  # also for requests that have a slot, and no call yet
            for call in [*self._calls]:
                call.cancel(_stopping())

    def close(self) -> None:
        """Close the connection to DuckDB. No request runs any more."""
        self.connection.close()
        self._scratch.close()


def _stopping() -> StoppingError:
    return StoppingError("the server stops", remedy="try again later")


def half_of_memory() -> str:
    """Return half of the memory that this process may use, as a memory limit. DuckDB's default is 80 % of it."""
    with duckdb.connect() as connection:
        (default,) = connection.execute("SELECT current_setting('memory_limit')").fetchone() or ("1 GiB",)
    return f"{byte_count(default, 'memory_limit') * 5 // 8 >> 20} MiB"
