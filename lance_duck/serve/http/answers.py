"""Answers of handlers, and their bytes."""

from __future__ import annotations

import io
import json
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

STREAM: Final = "application/vnd.apache.arrow.stream"
FILE: Final = "application/vnd.apache.arrow.file"
JSON: Final = "application/json"


@dataclass(frozen=True)
class HttpAnswer:
    """An answer whose bytes are known.

    Attributes:
        body: The bytes.
        media_type: Value of the header Content-Type.
        status: HTTP status.
        headers: Additional headers.
    """

    body: bytes = b""
    media_type: str = JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class StreamedAnswer:
    """An answer whose bytes are produced while they are sent.

    Attributes:
        pieces: The bytes. `close` releases what the generator holds.
        media_type: Value of the header Content-Type.
        headers: Additional headers.
    """

    pieces: Generator[bytes]
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)


def json_answer(value: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> HttpAnswer:
    """Return a JSON value as an answer."""
    body = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    return HttpAnswer(body, JSON, status, headers or {})


def arrow_answer(
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    media_type: str = STREAM,
    headers: Mapping[str, str] | None = None,
) -> StreamedAnswer:
    """Return Arrow batches as an answer.

    Args:
        schema: Schema of the batches.
        batches: The rows.
        media_type: `STREAM` or `FILE`, the framing of the batches.
        headers: Additional headers.
    """
    return StreamedAnswer(_framed(schema, batches, media_type), media_type, headers or {})


def _framed(schema: pa.Schema, batches: Iterable[pa.RecordBatch], media_type: str) -> Generator[bytes]:
    sink = PieceSink()
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    opened = pa.ipc.new_file if media_type == FILE else pa.ipc.new_stream
    with opened(pa.PythonFile(sink, mode="w"), schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield sink.taken()
    yield sink.taken()


class PieceSink(io.RawIOBase):
    """A file that keeps what is written until it is taken."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Keep bytes, and return their number."""
        piece = bytes(data)
        self._pieces.append(piece)
        return len(piece)

    def taken(self) -> bytes:
        """Return the bytes since the last call."""
        data, self._pieces = b"".join(self._pieces), []
        return data
