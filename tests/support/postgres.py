"""A PostgreSQL server of a test, and an external manifest store in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from lance_duck.errors import AlreadyExistsError, NotFoundError, StoreError

PROGRAMS = ("initdb", "pg_ctl", "psql")
NOBODY = 65534
CLAIMS = "CREATE TABLE claims (base text, version bigint, path text NOT NULL, PRIMARY KEY (base, version))"


def is_installed() -> bool:
    """Whether there are its programs on this machine."""
    return all(map(shutil.which, PROGRAMS))


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server on a local socket; yields the URL of a manifest store in it.

    The server cannot run as root, so root starts it as nobody.
    """
    owner: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    folder = tempfile.mkdtemp(prefix="postgres-")
    if owner:
        os.chown(folder, NOBODY, NOBODY)
    data, quiet = f"{folder}/data", {"check": True, "cwd": folder, "stdout": subprocess.DEVNULL, **owner}
    try:
        subprocess.run(["initdb", "--pgdata", data, "--username", "lance", "--auth", "trust", "--no-sync"], **quiet)
        options = f"-k {folder} -c listen_addresses= -c fsync=off"
        subprocess.run(["pg_ctl", "-D", data, "-l", f"{folder}/log", "-o", options, "-w", "start"], **quiet)
        try:
            PostgresManifestStore(folder).run(CLAIMS)
            yield f"postgres://{folder}"
        finally:
            subprocess.run(["pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"], **quiet)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class PostgresManifestStore:
    """See `ExternalManifestStore`; each call is a separate transaction.

    Args:
        folder: Folder of the server socket.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    @classmethod
    def open(cls, url: str) -> PostgresManifestStore:
        """Open what `postgres://{folder}` names."""
        return cls(urlsplit(url).path)

    def put_if_not_exists(self, base_uri: str, version: int, path: str) -> None:
        insert = "INSERT INTO claims VALUES (:'base', :'version', :'path') ON CONFLICT DO NOTHING RETURNING 1"
        if not self.run(insert, base=base_uri, version=version, path=path):
            raise AlreadyExistsError(f"version {version} is claimed", where=base_uri)

    def put_if_exists(self, base_uri: str, version: int, path: str) -> None:
        update = "UPDATE claims SET path = :'path' WHERE base = :'base' AND version = :'version' RETURNING 1"
        if not self.run(update, base=base_uri, version=version, path=path):
            raise NotFoundError(f"version {version} is not claimed", where=base_uri)

    def get(self, base_uri: str, version: int) -> str | None:
        found = "SELECT path FROM claims WHERE base = :'base' AND version = :'version'"
        return self.run(found, base=base_uri, version=version) or None

    def get_latest(self, base_uri: str) -> tuple[int, str] | None:
        found = "SELECT version, path FROM claims WHERE base = :'base' ORDER BY version DESC LIMIT 1"
        number, _, path = self.run(found, base=base_uri).partition("|")
        return (int(number), path) if path else None

    def delete(self, base_uri: str) -> None:
        self.run("DELETE FROM claims WHERE base = :'base'", base=base_uri)

    def run(self, statement: str, **values: object) -> str:
        """Run a statement and return its output. Raises StoreError."""
        command = ["psql", "-XAtq", "-h", self._folder, "-U", "lance", "-d", "postgres", "-v", "ON_ERROR_STOP=1"]
        for name, value in values.items():
            command += ["-v", f"{name}={value}"]
        done = subprocess.run(command, input=statement, capture_output=True, text=True, check=False, cwd=Path("/"))
        if done.returncode:
            raise StoreError("PostgreSQL refuses a statement", where="manifest store", found=done.stderr.strip())
        return done.stdout.strip()
