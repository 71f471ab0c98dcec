"""Ahead-of-time kernel compilation, for container images, wheels, and installations from a clone.

You hold: nothing, or a processor level. You get: kernels on disk, or a kernel pack. Never here: kernels, caches.
"""

from lance_duck.precompile.kernels import KernelBuild, WarmUp, build_kernels, warm_up

__all__ = ["KernelBuild", "WarmUp", "build_kernels", "warm_up"]
