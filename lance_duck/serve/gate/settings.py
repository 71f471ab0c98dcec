"""Settings of a server, checked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from lance_duck.duck.places import without_folder
from lance_duck.errors import InvalidInputError
from lance_duck.serve.gate.tokens import AccessToken
from lance_duck.store import local_path

MIB: Final = 1 << 20
LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class ServeSettings:
    """Settings of a server.

    Attributes:
        place: Folder or URI with the tables. A local path becomes absolute.
        host: Address to listen on.
        port: Port to listen on. 0 chooses a free one.
        write: Whether callers with the role "write" may change tables.
        sql: Whether callers may send SQL.
        tokens: Accepted tokens. If empty, every caller may do what `write` allows.
        allowed_hosts: Accepted names in the Host header, in addition to loopback names and `host`.
        timeout: Maximum duration of a request, in seconds.
        upload_timeout: Maximum duration of an upload, in seconds.
        max_rows: Maximum number of rows in an Arrow answer.
        max_bytes: Maximum size of the Arrow data of an answer, in bytes.
        max_statements: Maximum number of requests that run at the same time.
        max_waiting: Maximum number of requests that wait to run.
        max_wait: Maximum time that a request waits to run, in seconds.
        max_body: Maximum size of an upload, in bytes.
        max_json: Maximum size of a JSON body, in bytes.
        memory: Memory limit of DuckDB, for example "4GB". None keeps DuckDB's default.
        locations: Whether answers contain the locations of tables.
        web: Whether the server has pages for people.
        mcp: Whether the server answers the Model Context Protocol at /mcp.
        flight: Port of Arrow Flight SQL. 0 chooses a free one, None serves no Flight SQL.
        metrics: Whether the server shows its metrics at /metrics.
        tls_cert: PEM file with the server's certificate. None serves plain HTTP.
        tls_key: PEM file with the key of the certificate. None if `tls_cert` contains it.
        insecure: Whether other machines may send tokens over plain HTTP.
        storage_options: Settings of the object store.
    """

    place: str
    host: str = "127.0.0.1"
    port: int = 2333
    write: bool = False
    sql: bool = True
    tokens: tuple[AccessToken, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    timeout: float = 60.0
    upload_timeout: float = 3600.0
    max_rows: int = 1_000_000
    max_bytes: int = 256 * MIB
    max_statements: int = field(default_factory=lambda: os.cpu_count() or 1)
    max_waiting: int = 32
    max_wait: float = 10.0
    max_body: int = 1024 * MIB
    max_json: int = 4 * MIB
    memory: str | None = None
    locations: bool = True
    web: bool = True
    mcp: bool = False
    flight: int | None = None
    metrics: bool = False
    tls_cert: str | None = None
    tls_key: str | None = None
    insecure: bool = False
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        path = local_path(self.place)
        if path is not None:
            object.__setattr__(self, "place", os.path.abspath(path))
        if self.host not in LOOPBACK and not self.tokens:
            raise InvalidInputError(
                "a server that other machines reach needs a token", where=self.host, remedy="pass --token-file"
            )
        if self.host not in LOOPBACK and self.tls_cert is None and not self.insecure:
            raise InvalidInputError(
                "other machines would send their tokens over plain HTTP",
                where=self.host,
                remedy="pass --tls-cert, or --insecure behind a proxy with TLS",
            )
        if self.tls_key is not None and self.tls_cert is None:
            raise InvalidInputError("a TLS key needs a certificate", where=self.tls_key, remedy="pass --tls-cert")
        for name in ("timeout", "max_rows", "max_bytes", "max_statements", "max_body", "max_json"):
            if not getattr(self, name) > 0:
                raise InvalidInputError(f"{name} must be positive", found=getattr(self, name))
        if self.max_waiting < 0:
            raise InvalidInputError("max_waiting must not be negative", found=self.max_waiting)
        for port in (self.port, self.flight or 0):
            if not 0 <= port < 1 << 16:
                raise InvalidInputError("invalid port", expected="0 to 65535", found=port)

    def without_place(self, text: str) -> str:
        """Return a text in which paths begin below the served folder."""
        return without_folder(text, self.place)
