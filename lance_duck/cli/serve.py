"""`serve` and `mcp`: servers of the tables of a folder."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Final

from lance_duck import lazy, otel
from lance_duck.arguments import byte_count, number_or_text
from lance_duck.cli.open import cache_options, check_folder
from lance_duck.cli.terminal import write_line
from lance_duck.errors import InvalidInputError
from lance_duck.redact import shown
from lance_duck.serve.gate import process_memory
from lance_duck.serve.gate.settings import LOOPBACK, ServeSettings
from lance_duck.serve.gate.tokens import AccessToken, Role, read_tokens
from lance_duck.store import local_path

if TYPE_CHECKING:
    from lance_duck.serve import run
    from lance_duck.serve.gate import gate
    from lance_duck.serve.mcp import server
else:
    run = lazy.modules(globals(), "lance_duck.serve", "run")
    gate = lazy.modules(globals(), "lance_duck.serve.gate", "gate")
    server = lazy.modules(globals(), "lance_duck.serve.mcp", "server")

_VARIABLE: Final = "LANCE_DUCK_TOKEN"
_LEAST_MEMORY: Final = 1_000_000
"""In bytes. DuckDB opens no database with less than a few blocks."""


def serve(
    place: str,
    host: str = "127.0.0.1",
    port: int = 2333,
    write: bool = False,
    sql: bool = True,
    mcp: bool = False,
    flight: int | None = None,
    web: bool = True,
    token_file: str | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
    allow_host: Sequence[str] | None = (None),
    insecure: bool = False,
    timeout: float = 60.0,
    max_rows: int = 1_000_000,
    max_bytes: str = "256MiB",
    max_body: str = "1GiB",
    max_statements: int | None = None,
    max_waiting: int = 32,
    memory: str | None = None,
    locations: bool | None = None,
    metrics: bool = False,
    cache: str | None = None,
    cache_size: str | None = None,
    log: str = "text",
    log_level: str = "info",
) -> None:
    """Serve tables over HTTP, to programs and to people. Runs until SIGTERM or Ctrl-C."""
    check_folder(place)
    _write_logs(log, log_level)
    otel.instrument_if_configured()
    tokens, made = _tokens(token_file, host, write)
    settings = ServeSettings(
        place,
        host,
        port,
        write,
        sql,
        tokens,
        tuple(allow_host or ()),
        timeout,
        max_rows=max_rows,
        **_sizes(max_bytes=max_bytes, max_body=max_body),
        max_statements=max_statements or os.cpu_count() or 1,
        max_waiting=max_waiting,
        memory=_memory(memory),
        locations=locations if locations is not None else local_path(place) is None or host in LOOPBACK,
        web=web,
        mcp=mcp,
        flight=flight,
        metrics=metrics,
        tls_cert=tls_cert,
        tls_key=tls_key,
        insecure=insecure,
        storage_options=cache_options(cache, cache_size),
    )
    served = run.Server(settings)
    _limit_memory(settings)
    served.run(lambda: _announce(served, shown(place), made, is_writing=write))


def mcp(
    place: str,
    sql: bool = True,
    timeout: float = 60.0,
    memory: str | None = None,
    cache: str | None = None,
    cache_size: str | None = None,
    log_level: str = "warning",
) -> None:
    """Give a model tools that read tables. Answers the Model Context Protocol on stdin and stdout."""
    check_folder(place)
    _write_logs("text", log_level)
    options = cache_options(cache, cache_size)
    settings = ServeSettings(place, sql=sql, timeout=timeout, memory=_memory(memory), storage_options=options)
    with closing(gate.Gate(settings)) as opened:
        _limit_memory(settings)
        # Ctrl-C ends the process at once: Python cannot stop a thread that waits for a line of stdin. Tools only read.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        server.McpApp(opened).run_stdio()


def _sizes(**texts: str) -> dict[str, int]:
    """Return the sizes of options in bytes."""
    return {name: _size(text, f"--{name.replace('_', '-')}") for name, text in texts.items()}


def _size(text: str, option: str) -> int:
    return byte_count(number_or_text(text), option)


def _tokens(token_file: str | None, host: str, write: bool) -> tuple[tuple[AccessToken, ...], str | None]:
    """Return the accepted tokens, and the text of a new one if other machines reach a server without tokens."""
    role = Role.WRITE if write else Role.READ
    given = os.environ.get(_VARIABLE)
    if token_file is not None:
        if given is not None:
            raise InvalidInputError(f"{_VARIABLE} and --token-file exclude each other", expected="one of them")
        return read_tokens(token_file), None
    if given is not None:
        if not given.strip():
            raise InvalidInputError("the token is empty", where=_VARIABLE)
        return (AccessToken.of("environment", role, given.strip()),), None
    if host in LOOPBACK:
        return (), None
    made = secrets.token_urlsafe(32)
    return (AccessToken.of("first", role, made),), made


def _write_logs(form: str, level: str) -> None:
    """Write log lines to stderr. Other libraries write warnings only."""
    handler = logging.StreamHandler()
    is_json = form == "json"
    handler.setFormatter(run.JsonLines() if is_json else logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger("lance_duck").setLevel(level.upper())
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # the gRPC of Flight would write lines of its own


def _memory(text: str | None) -> str:
    """Return a memory limit of DuckDB, by default half of the machine. Raises InvalidInputError."""
    text = text or gate.half_of_memory()
    if _size(text, "--memory") < _LEAST_MEMORY:
        raise InvalidInputError("too little memory", where="--memory", expected="at least 1MB", found=text)
    return text


def _limit_memory(settings: ServeSettings) -> None:
    process_memory.limit_process(_size(_memory(settings.memory), "--memory"))


def _announce(served: run.Server, place: str, made: str | None, *, is_writing: bool) -> None:
    """Write where the server listens, and its token if it was made just now."""
    write_line(f"Serving {place} at {served.url}, {'reading and writing' if is_writing else 'read-only'}")
    if served.flight_url is not None:
        write_line(f"Flight SQL at {served.flight_url}")
    if made is not None:
        write_line(f"Token, shown only now: {made}")
    sys.stdout.flush()
