"""A request, as handlers see it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import pyarrow as pa

from lance_duck.errors import InvalidInputError
from lance_duck.serve.gate.refusals import RequestError


@dataclass(frozen=True)
class HttpRequest:
    """One HTTP request.

    Attributes:
        method: "GET" or "POST".
        path: Path without the query.
        names: Decoded parts of the path that the route names.
        parameters: Fields of the query string.
        headers: Headers. Names are in lower case.
        body: The body, unless the route takes an upload.
        upload: Reads the next bytes of an upload, or b"" at its end. None unless the route takes an upload.
    """

    method: str
    path: str
    names: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    upload: Callable[[], bytes] | None = None

    def json(self) -> dict[str, Any]:
        """Return the JSON object of the body, or {} if the body is empty.

        Raises:
            RequestError: The body is not a JSON object.
        """
        if not self.body.strip():
            return {}
        try:
            value = json.loads(self.body)
            json.dumps(value, ensure_ascii=False).encode()  # raises for half of a surrogate pair
        except (ValueError, RecursionError):
            raise RequestError("malformed body", where=self.path, expected="a JSON object") from None
        if not isinstance(value, dict):
            raise RequestError("malformed body", where=self.path, expected="a JSON object", found=type(value).__name__)
        return value

    def form(self) -> dict[str, str]:
        """Return the fields of an HTML form. The last one of equal names counts.

        Raises:
            RequestError: The body is not a form.
        """
        try:
            text = self.body.decode("ascii")
            return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=1000))
        except (ValueError, UnicodeError):
            raise RequestError("malformed body", where=self.path, expected="percent-encoded UTF-8 fields") from None

    def arrow(self) -> pa.RecordBatchReader:
        """Open the Arrow IPC stream of an upload. Batches are read from the socket as they are needed.

        Raises:
            RequestError: The upload is not an Arrow IPC stream.
        """
        if self.upload is None:
            raise RequestError("the request has no upload", where=self.path)
        try:
            stream = pa.ipc.open_stream(pa.PythonFile(io.BufferedReader(_Upload(self.upload)), mode="r"))
            return pa.RecordBatchReader.from_batches(stream.schema, _checked(stream, self.path))
        except (pa.ArrowException, OSError) as error:
            raise _malformed(self.path, error) from None


def _checked(stream: pa.RecordBatchReader, path: str) -> Any:
    """Yield the batches of an upload, validated. The upload must end with the end of its stream."""
    while True:
        try:
            batch = stream.read_next_batch()
            batch.validate(full=True)
        except StopIteration:
            return
        except (pa.ArrowException, OSError) as error:
            raise _malformed(path, error) from None
        yield batch


def _malformed(path: str, error: BaseException) -> InvalidInputError:
    return InvalidInputError("malformed upload", where=path, expected="an Arrow IPC stream", found=str(error)[:200])


class _Upload(io.RawIOBase):
    """A file over the pieces of an upload."""

    def __init__(self, pieces: Callable[[], bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the bytes that have arrived, at least one. Returns 0 at the end."""
        if not self._rest:
            self._rest = memoryview(self._pieces())
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
