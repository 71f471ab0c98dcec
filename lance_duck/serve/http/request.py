"""A request, as handlers see it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import parse_qsl

import pyarrow as pa

from lance_duck.serve.gate.refusals import RequestError
from lance_duck.serve.http.arrow_upload import read_upload


@dataclass(frozen=True)
class HttpRequest:
    """One HTTP request.

    Attributes:
        method: "GET" or "POST".
        path: Path without the query.
        names: Decoded parts of the path that the route names.
        pairs: Fields of the query string, as pairs of a name and a value.
        headers: Headers. Names are in lower case.
        body: The body, unless the route takes an upload.
        upload: Reads the next bytes of an upload, or b"" at its end. None unless the route takes an upload.
    """

    method: str
    path: str
    names: Mapping[str, str] = field(default_factory=dict)
    pairs: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    upload: Callable[[], bytes] | None = None

    @cached_property
    def parameters(self) -> Mapping[str, str]:
        """Fields of the query string. The last one of equal names counts."""
        return dict(self.pairs)

    def listed(self, name: str) -> list[str]:
        """Return all values of a field of the query string."""
        return [value for each, value in self.pairs if each == name]

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
        """Open the Arrow IPC stream of an upload or of the body. An upload is read from the socket when it is needed.

        Raises:
            InvalidInputError: The bytes are not an Arrow IPC stream.
        """
        pieces = iter([self.body])
        return read_upload(self.upload or (lambda: next(pieces, b"")), self.path)
