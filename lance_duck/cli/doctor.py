"""The `doctor` report on an installation, and commands that compile kernels ahead of use."""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Final

import lance_duck as ld
from lance_duck.cli.message import message_of
from lance_duck.cli.show import report
from lance_duck.kernels.cache import cache_folders, writable_folder
from lance_duck.kernels.notice import first_use
from lance_duck.kernels.pack import installed_pack
from lance_duck.store import open_store

_PACKAGES: Final = ("lance-duck", "duckdb", "pyarrow", "numpy", "numba", "faiss-cpu", "obstore", "sqlglot", "pyspark")
_STORES: Final = ("memory://doctor", "s3://doctor/t", "gs://doctor/t", "az://doctor/t", "https://localhost/t")
_ROWS: Final = 3


def doctor(places: Sequence[str] | None = None, as_json: bool = False) -> None:
    """Report versions and what works, for bug reports."""
    facts = dict([*_versions(), *_kernels(), *_stores(), ("java", _java()), *_tables(places or ())])
    report(facts, as_json)


def warm_up(as_json: bool = False) -> None:
    """Compile kernels before their first use."""
    outcome = ld.warm_up()
    folder = "nowhere: no folder can be written to" if outcome.folder is None else str(outcome.folder)
    report({"compiled": outcome.compiled, "seconds": round(outcome.seconds, 1), "kept": folder}, as_json)


def build_kernels(level: str | None = None, folder: str | None = None, as_json: bool = False) -> None:
    """Compile the usual kernels into a pack. Installations load kernels from it."""
    built = ld.build_kernels(level, folder)
    facts = {"pack": str(built.path), "level": built.level, "kernels": built.kernels}
    report({**facts, "seconds": round(built.seconds, 1)}, as_json)


def _versions() -> Iterator[tuple[str, str]]:
    yield "python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    for name in _PACKAGES:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "not installed"


def _kernels() -> Iterator[tuple[str, str | int]]:
    """Write and read a small table. This shows whether the cached kernels match this version and machine."""
    first_use.silence()
    before = first_use.compiled
    try:
        with tempfile.TemporaryDirectory(prefix="lance_duck-", ignore_cleanup_errors=True) as folder:
            num_rows = ld.write_dataset({"id": list(range(_ROWS))}, f"{folder}/t.lance").to_table().num_rows
        yield "local disk", "writes and reads" if num_rows == _ROWS else f"{num_rows} of {_ROWS} rows are read"
    except Exception as error:  # every error belongs in the report
        yield "local disk", message_of(error)
    compiled = first_use.compiled - before
    yield "kernels of a first write", f"{compiled} had to be compiled: lance-duck warm-up" if compiled else "on disk"
    pack = installed_pack()
    yield "pack of kernels", "none: lance-duck build-kernels" if pack is None else f"{len(pack)} for {pack.level}"
    folder_of_new = writable_folder()
    yield "kernels are kept in", "nowhere: no folder can be written to" if folder_of_new is None else str(folder_of_new)
    for place in cache_folders():
        yield f"kernels in {place}", sum(1 for _ in place.glob("*.nbc"))


def _stores() -> Iterator[tuple[str, str]]:
    """Create a client for each kind of store, without sending requests."""
    for uri in _STORES:
        try:
            open_store(uri)
            outcome = "opens"
        except Exception as error:  # including environment settings that the client rejects
            outcome = message_of(error)
        yield uri.partition(":")[0], outcome


def _java() -> str:
    if find_spec("pyspark") is None:
        return "not looked for: pyspark is not installed"
    try:
        return str(import_module("lance_duck.spark.java").ensure_java())
    except Exception as error:
        return message_of(error)


def _tables(places: Sequence[str]) -> Iterator[tuple[str, str]]:
    for place in places:
        try:
            dataset = ld.dataset(place)
            yield place, f"opens: version {dataset.version}, {dataset.count_rows():,} rows"
        except Exception as error:
            yield place, message_of(error)
