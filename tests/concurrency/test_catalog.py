"""Processes that change the objects and namespaces of one folder at the same time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

import lance_duck as ld

EACH: Final = 15
SCRIPT: Final = f"""
import sys
import lance_duck as ld
from lance_duck.namespaces import ViewDefinition

namespace, who = ld.DirectoryNamespace(sys.argv[1]), sys.argv[2]
namespace.create_namespace("s", exist_ok=True)
for number in range({EACH}):
    namespace.change_catalog(lambda draft: draft.put(ViewDefinition(name=f"s${{who}}{{number}}", query="SELECT 1")))
    namespace.create_namespace(f"{{who}}{{number}}")
"""


def test_processes_lose_no_name(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path), who]) for who in "ab"]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    namespace = ld.DirectoryNamespace(str(tmp_path))
    names = {f"{who}{number}" for who in "ab" for number in range(EACH)}
    assert {key.name[-1] for key in namespace.objects("s")} == names
    assert set(namespace.list_namespaces()) == {"s", *names}
