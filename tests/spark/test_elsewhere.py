"""The same API on other session types, each in a separate process."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from spark.cluster import cluster
from spark.journey import ROWS, K

JOURNEY = Path(__file__).with_name("journey.py")


def journey(*arguments: str) -> dict[str, Any]:
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, str(JOURNEY), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check(found: dict[str, Any]) -> None:
    assert (found["rows"], found["read"], found["indexed"]) == (ROWS + 10, ROWS, ROWS + 10)
    assert found["fragments"] < 5
    assert (found["near"], found["own"]) == (5 * K, [0, 1, 2, 3, 4])


@pytest.mark.slow
@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("grpc", "grpc_status", "google.rpc")),
    reason="Spark Connect needs the extra lance-duck[connect]",
)
def test_a_session_of_spark_connect(tmp_path: Path) -> None:
    found = journey("connect", str(tmp_path))
    check(found)
    assert found["streamed"] == ROWS + 10


@pytest.mark.slow
def test_a_cluster_of_two_workers(tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster") as url:
        found = journey("cluster", str(tmp_path), url)
    check(found)
    assert len(found["hosts"]) == 2
    assert (found["overtaken"], found["left"]) == (True, 0)
    assert found["attempts"] == 2
    assert found["waited"] < 30
