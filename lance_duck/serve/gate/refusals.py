"""Errors with which a server refuses a request.

    LanceDuckError
    └── RequestError            malformed, or no such path
        ├── UnauthorizedError   the token is missing or unknown
        ├── ForbiddenError      the caller may not do this
        ├── MisdirectedError    the request names another server
        ├── BusyError           too many requests run
        │   └── StoppingError   the server stops
        ├── LimitError          a limit of size
        │   ├── BodyTooLargeError  its body is too large
        │   └── TimeLimitError  a limit of time
        │       └── SlowBodyError  its body arrives too slowly
        └── AbandonedError      the client went away

`problems` gives each one a status.
"""

import duckdb

from lance_duck.errors import LanceDuckError


class RequestError(LanceDuckError):
    """A server does not accept a request.

    Cause:
        The request is malformed, or its path is unknown.

    Remedy:
        Compare the request with the reference of the server.
    """


class UnauthorizedError(RequestError):
    """The token of a request is missing or unknown.

    Cause:
        The server requires a token, and the request does not have a valid one.

    Remedy:
        Send a token as `Authorization: Bearer …` or `x-api-key`.
    """


class ForbiddenError(RequestError, PermissionError):
    """The caller may not do this.

    Cause:
        The server or the token only reads, or a path leads outside the served tables.

    Remedy:
        Start the server with `--write`, or use a token with the role "write".
    """


class MisdirectedError(RequestError):
    """The Host header of a request names another server.

    Cause:
        A page of another site sends the request, or the server has a name that it does not know.

    Remedy:
        Start the server with `--allow-host` and its name.
    """


class BusyError(RequestError):
    """A server runs as many requests as it may.

    Cause:
        More clients send requests than the server has slots.

    Remedy:
        Repeat the request later, or raise `--max-statements`.
    """


class StoppingError(BusyError):
    """A server stops. It takes no new requests, and interrupts those that run after a while.

    Cause:
        The server was asked to stop.

    Remedy:
        Repeat the request when a server has started again.
    """


class LimitError(RequestError):
    """A request exceeds a limit of time, rows or bytes.

    Cause:
        The request exceeds a limit of the server. The message names the limit.

    Remedy:
        Select fewer rows or columns, add a LIMIT, or raise the limit of the server.
    """


class BodyTooLargeError(LimitError):
    """The body of a request is too large.

    Cause:
        An upload or a JSON body exceeds the limit in the message.

    Remedy:
        Send the rows in several requests, or raise `--max-body`.
    """


class TimeLimitError(LimitError):
    """A request takes longer than it may.

    Cause:
        The request exceeds a time limit of the server or of the client. The message names the limit.

    Remedy:
        Read fewer rows, create an index, or raise `--timeout`.
    """


class SlowBodyError(TimeLimitError):
    """A client stops to send the body of its request.

    Cause:
        The next bytes of an upload or a JSON body do not arrive in time. Nothing is changed.

    Remedy:
        Send the rows without long pauses, or raise `--timeout`.
    """


class AbandonedError(RequestError):
    """The client closed the connection before the end of its request.

    Cause:
        The client stopped, or its own timeout expired.

    Remedy:
        Repeat the request if its result is still needed. Uncommitted changes are discarded.
    """


def refusal_of(error: Exception) -> Exception:
    """Return the LimitError of a request for which the memory does not suffice. Other errors are returned unchanged."""
    cause: BaseException | None = error
    while cause is not None:
        if _is_about_memory(cause):
            return LimitError("the request needs too much memory", remedy="select fewer rows or smaller values")
        cause = cause.__cause__
    return error


def _is_about_memory(error: BaseException) -> bool:
    if isinstance(error, RuntimeError):
        return "can't start new thread" in str(error)
    return isinstance(error, (MemoryError, duckdb.OutOfMemoryException))
