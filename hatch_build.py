"""Build hook: an installation from a clone gets a pack of kernels compiled for its machine.

    LANCE_DUCK_BUILD_KERNELS=0      build no pack: kernels are compiled on first use
    LANCE_DUCK_BUILD_KERNELS=all    build packs of all levels that this machine supports, for published wheels

If a pack cannot be built, the installation continues, but the build of a published wheel fails.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SETTING = "LANCE_DUCK_BUILD_KERNELS"
PACKS = Path("lance_duck", "kernels", "packs")
OLDEST_LINUX = "manylinux_2_17"  # kernels call only memcpy and memset from the system


class KernelPacks(BuildHookInterface):  # type: ignore[type-arg]
    """Builds packs before a wheel is made, and for editable installations."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return the build requirements of the kernels: the dependencies of the package."""
        return [] if _setting() == "0" else list(self.metadata.core.dependencies)

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the packs, and add them to the wheel unless it is editable."""
        if _setting() == "0":
            return
        self.app.display_info("lance-duck: compiling kernels for this machine, once, about a minute")
        command = [sys.executable, "-m", "lance_duck.precompile", *(["--all"] if _setting() == "all" else [])]
        paths = [self.root, *filter(None, [os.environ.get("PYTHONPATH")])]  # isolated builds find packages there
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        done = subprocess.run(command, cwd=self.root, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode and _setting() == "all":
            self.app.abort(f"lance-duck: no packs of kernels: {done.stderr[-500:]}")
        elif done.returncode:
            self.app.display_warning(f"lance-duck: kernels are compiled at their first use: {done.stderr[-500:]}")
        elif version != "editable":
            build_data["pure_python"] = False
            if _setting() == "all" and sys.platform == "linux":
                python = f"cp{sys.version_info.major}{sys.version_info.minor}"
                build_data["tag"] = f"{python}-{python}-{OLDEST_LINUX}_{platform.machine()}"
            else:
                build_data["infer_tag"] = True
            for path in map(Path, done.stdout.splitlines()):
                build_data["force_include"][str(path)] = str(PACKS / path.name)


def _setting() -> str:
    return os.environ.get(SETTING, "")
