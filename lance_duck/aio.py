"""Datasets and connections whose methods are awaited, so that an event loop goes on while they work.

    ds = await ld.dataset_async(uri)                      a LanceDataset in threads
    async with ld.connect_async(folder) as con: ...       a Connection in threads

You hold: the methods of `LanceDataset` and `Connection`, with the same arguments. You get: coroutines. Each call runs
in a thread of one bounded pool. If the waiting task is cancelled, the call is interrupted, and the object stays usable.
Never here: what the methods do.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import aclosing, suppress
from contextvars import copy_context
from functools import partial, wraps
from types import TracebackType
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar, Unpack

import pyarrow as pa

from lance_duck import forks
from lance_duck.dataset import LanceDataset, dataset
from lance_duck.duck.connection import Connection, connect
from lance_duck.interrupts import Interrupt
from lance_duck.scan.arguments import CountArguments, SearchArguments
from lance_duck.scan.filters import FilterLike
from lance_duck.scan.projection import ColumnsLike

_P = ParamSpec("_P")
_R = TypeVar("_R")
_S = TypeVar("_S")
_A = TypeVar("_A", bound="_Threaded[Any]")

_THREADS: Final = min(32, (os.cpu_count() or 1) + 4)
"""Maximum number of calls that run at the same time, as in `asyncio.to_thread`."""
_AGAIN: Final = 0.02
"""Seconds after which a cancelled call is interrupted again, in case that its statement had not begun."""


class _Pool:
    """The threads of all calls. A forked child has its own."""

    def __init__(self) -> None:
        self._lock = forks.Lock()
        self._born = -1
        self._threads: ThreadPoolExecutor | None = None

    def submit(self, work: Callable[[], _R]) -> Future[_R]:
        with self._lock:
            if self._threads is None or self._born != forks.count():
                self._threads = ThreadPoolExecutor(_THREADS, "lance_duck_aio")
                self._born = forks.count()
            return self._threads.submit(work)


_POOL: Final = _Pool()


async def _in_thread(work: Callable[[], _R], stop: Callable[[], None], turns: asyncio.Lock | None = None) -> _R:
    """Run a function in a thread, and interrupt it if this task is cancelled.

    Args:
        work: The function.
        stop: Asks the function to stop. Called until it ends.
        turns: Lock of an object that runs one function at a time. It is held until the function ends.
    """
    if turns is not None:
        await turns.acquire()
    loop = asyncio.get_running_loop()
    call = _POOL.submit(partial(copy_context().run, work))
    if turns is not None:
        call.add_done_callback(lambda _: _soon(loop, turns.release))
    done = asyncio.wrap_future(call)
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        if not call.cancel():  # it has begun
            while not done.done():
                stop()
                await asyncio.wait({done}, timeout=_AGAIN)
            done.exception()  # the error of the interruption is not reported a second time
        raise


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(call)


def _awaited(method: Callable[Concatenate[Any, _P], _R]) -> Callable[Concatenate[Any, _P], Coroutine[Any, Any, _R]]:
    """Return a coroutine function that runs a method of the wrapped object in a thread."""

    @wraps(method)
    async def call(self: _Threaded[Any], *args: _P.args, **kwargs: _P.kwargs) -> _R:
        result: _R = await self._run(partial(method, self._object, *args, **kwargs))
        return result

    return call  # type: ignore[return-value]  # `self` is a wrapper


_PARTS: Final = frozenset(("branches", "merge_insert", "optimize", "prepare", "prepare_search", "tags"))
"""Attributes that are, and methods that return, objects whose methods are also awaited."""


class _Threaded(Generic[_S]):
    """Base of the wrappers. Undeclared methods of the object are also awaited. Other attributes are read directly."""

    def __init__(self, wrapped: _S) -> None:
        self._object = wrapped

    @property
    def sync(self) -> _S:
        """The wrapped object, for code in threads."""
        return self._object

    async def _run(self, work: Callable[[], Any]) -> Any:
        """Run a function of the wrapped object in a thread."""
        interrupt = Interrupt(InterruptedError)

        def stoppable() -> Any:
            with interrupt:
                return work()

        return self._wrapped(await _in_thread(stoppable, interrupt.request))

    def _wrapped(self, result: Any) -> Any:
        if result is self._object:
            return self
        return AsyncDataset(result) if isinstance(result, LanceDataset) else result

    async def _each(self, begin: Callable[[], Iterator[_R]]) -> AsyncGenerator[_R, None]:
        """Yield the items of an iterator that a function begins. Each item is made in a thread."""
        items = await self._run(begin)
        try:
            while (item := await self._run(partial(next, items, None))) is not None:
                yield item
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                await self._run(close)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._object, name)
        if name in _PARTS and not inspect.ismethod(value):
            return _ThreadedPart(value, self)
        if name.startswith("_") or not callable(value):
            return value

        @wraps(value)
        async def call(*args: Any, **kwargs: Any) -> Any:
            result = await self._run(partial(value, *args, **kwargs))
            return _ThreadedPart(result, self) if name in _PARTS else result

        return call

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._object)})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._object!r}>"

    async def __aenter__(self) -> Self:
        """Return the object."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Leave the object open: a dataset does not need to be closed."""


class _ThreadedPart(_Threaded[Any]):
    """A part of a wrapped object, such as its tags. Methods that configure a builder are not awaited, to be chained.

    Args:
        wrapped: The part.
        owner: The wrapper of the whole object, which runs the calls.
    """

    def __init__(self, wrapped: Any, owner: _Threaded[Any]) -> None:
        super().__init__(wrapped)
        self._owner = owner

    async def _run(self, work: Callable[[], Any]) -> Any:
        return await self._owner._run(work)

    async def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the part: run a prepared search or statement, or optimize the table."""
        return await self._run(partial(self._object, *args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._object, name)
        if getattr(value, "__annotations__", {}).get("return") != "Self":
            return super().__getattr__(name)

        @wraps(value)
        def call(*args: Any, **kwargs: Any) -> _ThreadedPart:
            value(*args, **kwargs)
            return self

        return call

    async def __aexit__(self, *_: object) -> None:
        """Close a prepared search or statement."""
        if hasattr(self._object, "close"):
            await self.close()


class AsyncDataset(_Threaded[LanceDataset]):
    """A `LanceDataset` whose methods are coroutines. Properties such as `schema` and `version` are read directly.

    Each method runs in a thread of a pool that all asynchronous objects share. If the task that awaits it is cancelled,
    a read stops, and a change stops before it is published, or is published as a whole.

    Args:
        wrapped: The dataset.
    """

    to_table = _awaited(LanceDataset.to_table)
    count_rows = _awaited(LanceDataset.count_rows)
    head = _awaited(LanceDataset.head)
    take = _awaited(LanceDataset.take)
    insert = _awaited(LanceDataset.insert)
    add = insert
    delete = _awaited(LanceDataset.delete)
    update = _awaited(LanceDataset.update)
    checkout_latest = _awaited(LanceDataset.checkout_latest)

    async def search(
        self, q: Any, k: int = 10, column: str | None = None, **options: Unpack[SearchArguments]
    ) -> pa.Table:
        """Search by vector, by words, or both: see `LanceDataset.search`."""
        return await self._run(partial(self._object.search, q, k, column, **options))

    async def to_batches(
        self,
        columns: ColumnsLike | None = None,
        filter: FilterLike | None = None,  # noqa: A002
        **options: Unpack[CountArguments],
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Yield batches of rows: see `LanceDataset.to_batches`. Use it with `async for`."""
        begin = partial(self._object.to_batches, columns, filter, **options)
        async with aclosing(self._each(begin)) as batches:
            async for batch in batches:
                yield batch

    def __aiter__(self) -> AsyncIterator[pa.RecordBatch]:
        """Yield batches of all rows."""
        return self.to_batches()


class _OneAtATime(_Threaded[_S]):
    """A wrapper of an object that runs one call at a time.

    Args:
        wrapped: The object.
        connection: The connection that runs the calls.
        turns: Lock of this connection.
    """

    def __init__(self, wrapped: _S, connection: Connection, turns: asyncio.Lock) -> None:
        super().__init__(wrapped)
        self._connection = connection
        self._turns = turns

    async def _run(self, work: Callable[[], Any]) -> Any:
        return self._wrapped(await _in_thread(work, self._connection.interrupt, self._turns))

    def _wrapped(self, result: Any) -> Any:
        if hasattr(result, "fetchall") and hasattr(result, "project"):
            return AsyncRelation(result, self._connection, self._turns)
        return super()._wrapped(result)


class AsyncConnection(_OneAtATime[Connection]):
    """A `Connection` whose methods are coroutines. Statements run one after another, in the order of their calls.

    If the task that awaits a statement is cancelled, the statement is interrupted, and the connection stays usable. SQL
    does not see Python variables: use `register`.

    Args:
        wrapped: The connection.
    """

    def __init__(self, wrapped: Connection) -> None:
        super().__init__(wrapped, wrapped, asyncio.Lock())

    execute = _awaited(Connection.execute)
    executemany = _awaited(Connection.executemany)
    sql = _awaited(Connection.sql)  # type: ignore[arg-type]  # its options have any name
    register = _awaited(Connection.register)
    begin = _awaited(Connection.begin)
    commit = _awaited(Connection.commit)
    rollback = _awaited(Connection.rollback)
    close = _awaited(Connection.close)
    fetch_arrow_table = _awaited(Connection.fetch_arrow_table)

    def interrupt(self) -> None:
        """Stop the running statement: see `Connection.interrupt`."""
        self._object.interrupt()

    async def cursor(self) -> AsyncConnection:
        """Return another connection to the same tables, whose statements run at the same time."""
        return AsyncConnection(await _in_thread(self._object.cursor, self._object.interrupt, self._turns))

    async def to_batches(
        self, query: Any, parameters: Any = None, rows_per_batch: int = 65_536
    ) -> AsyncGenerator[pa.RecordBatch, None]:
        """Run a query, and yield batches of its rows. Use it with `async for`. Other statements have no batches.

        If you leave the loop early, close it with `contextlib.aclosing`, so that the next statement can run.

        Args:
            query: The query.
            parameters: See `Connection.execute`.
            rows_per_batch: Maximum number of rows of a batch.
        """

        def begin() -> Iterator[pa.RecordBatch]:
            options = {} if parameters is None else {"params": parameters}
            relation = self._object.sql(query, **options)
            return iter(()) if relation is None else relation.to_arrow_reader(rows_per_batch)

        async with aclosing(self._each(begin)) as batches:
            async for batch in batches:
                yield batch

    async def __aexit__(self, *_: object) -> None:
        """Close the connection."""
        await self.close()


class AsyncRelation(_OneAtATime[Any]):
    """A relation of `AsyncConnection.sql`, whose methods are coroutines."""


class AsyncOpening(Generic[_A]):
    """An object that is being opened: `await` returns it, and `async with` also closes it."""

    def __init__(self, make: Callable[[], Awaitable[_A]]) -> None:
        self._make = make
        self._made: _A | None = None

    def __await__(self) -> Generator[Any, None, _A]:
        """Open the object."""
        return self._make().__await__()

    async def __aenter__(self) -> _A:
        """Open the object, and return it."""
        self._made = await self._make()
        return self._made

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the object, if it needs to be closed."""
        if self._made is not None:
            await self._made.__aexit__(kind, error, traceback)


def _opening(open_: Callable[_P, _S], wrap: Callable[[_S], _A]) -> Callable[_P, AsyncOpening[_A]]:
    @wraps(open_)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> AsyncOpening[_A]:
        async def make() -> _A:
            interrupt = Interrupt(InterruptedError)

            def work() -> _S:
                with interrupt:
                    return open_(*args, **kwargs)

            return wrap(await _in_thread(work, interrupt.request))

        return AsyncOpening(make)

    return call


dataset_async = _opening(dataset, AsyncDataset)
connect_async = _opening(connect, AsyncConnection)
