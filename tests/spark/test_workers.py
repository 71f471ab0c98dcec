"""Spark without a configured Python, in a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def test_workers_run_the_driver_python_unless_the_user_chose_another(tmp_path: Path) -> None:
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.symlink_to(Path(sys._base_executable).resolve())  # type: ignore[attr-defined]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "VIRTUAL_"))}
    environment |= {"PATH": f"{other.parent}:/usr/bin:/bin", "SPARK_LOCAL_IP": "127.0.0.1"}
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("deactivated.py")), str(tmp_path), str(other)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    found = json.loads(run.stdout.splitlines()[-1])
    refusals = found.pop("refusals")
    assert found == {
        "spark's": "python3",
        "before it is registered": 2,
        "read": 25,
        "sql": 25,
        "index": 25,
        "stream": 25,
    }
    assert len(refusals) == 4
    for said in refusals:
        assert said.startswith("Spark's workers run a Python without lance-duck")
        assert str(other) in said
        assert "PYSPARK_PYTHON" in said
    assert "replaced a" not in run.stderr
    assert "FutureWarning" not in run.stderr


def test_the_first_documented_script_runs_without_an_activated_environment(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs/guides/spark.md"
    script = tmp_path / "script.py"
    script.write_text(page.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0], encoding="utf-8")
    hidden = ("PYSPARK_", "VIRTUAL_", "JAVA_HOME")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environment |= {"PATH": "/usr/bin:/bin", "SPARK_LOCAL_IP": "127.0.0.1"}
    run = subprocess.run(
        [sys.executable, str(script)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    assert "[0.5, 1.0]" in run.stdout
