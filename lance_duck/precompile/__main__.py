"""Builds kernel packs for wheels. `python -m lance_duck.precompile [--all]` prints the paths of the packs.

`--compile LEVEL FILE` runs in the process that `build_kernels` starts, with an empty cache.
"""

from __future__ import annotations

import sys
from pathlib import Path

from lance_duck.kernels.pack import machine_levels
from lance_duck.precompile.kernels import build_kernels, compile_pack


def main(arguments: list[str]) -> None:
    """Build the pack for this machine's best level, or the packs for all its levels."""
    if arguments[:1] == ["--compile"]:
        compile_pack(arguments[1], Path(arguments[2]))
    else:
        for level in machine_levels() if "--all" in arguments else machine_levels()[:1]:
            print(build_kernels(level).path)


if __name__ == "__main__":
    main(sys.argv[1:])
