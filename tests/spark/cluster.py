"""A cluster of Spark on the loopback interface: a master, and workers that look like hosts of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark

HOSTS = ("127.0.0.1", "127.0.0.2")
STARTS = 60
_SPARK = Path(pyspark.__file__).parent


@contextmanager
def cluster(folder: Path, hosts: Sequence[str] = HOSTS, cores: int = 1, memory: str = "1g") -> Iterator[str]:
    """Start a cluster; yields the URL of its master. All its processes are ended."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "master.log"
    started: list[subprocess.Popen[bytes]] = []
    try:
        master = "org.apache.spark.deploy.master.Master"
        started.append(_start(log, master, "--host", HOSTS[0], "--port", "0", "--webui-port", "0"))
        url = _said(log, r"(spark://[\d.]+:\d+)", started[0])
        for number, host in enumerate(hosts):
            own = folder / f"worker{number}"
            settings = ("--host", host, "--webui-port", "0", "--cores", str(cores), "--memory", memory, "-d", str(own))
            started.append(
                _start(folder / f"worker{number}.log", "org.apache.spark.deploy.worker.Worker", *settings, url)
            )
        for number, process in enumerate(started[1:]):
            _said(folder / f"worker{number}.log", "(Successfully registered)", process)
        yield url
    finally:
        for process in reversed(started):
            process.terminate()
        for process in reversed(started):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def _start(log: Path, what: str, *arguments: str) -> subprocess.Popen[bytes]:
    small = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    environment = {
        **os.environ,
        "SPARK_HOME": str(_SPARK),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": small,
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [str(_SPARK / "bin" / "spark-class"), what, *arguments]
    with log.open("wb") as out:
        return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=environment)


def _said(log: Path, pattern: str, process: subprocess.Popen[bytes]) -> str:
    until = time.monotonic() + STARTS
    while time.monotonic() < until and process.poll() is None:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found is not None:
            return found[1]
        time.sleep(0.05)
    raise TimeoutError(f"{pattern} was not said in {log}:\n{log.read_text(errors='replace')[-2000:]}")
