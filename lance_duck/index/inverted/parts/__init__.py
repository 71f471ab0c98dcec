"""Parts of a segment that several processes write, and their joining to the segment. `layout` has the files.

You hold: rows, or the files of all parts. You get: the files of a part, or of the segment.
Never here: the fragments that a segment covers, entries of the manifest.
"""

from lance_duck.index.inverted.parts.build import PART_SHIFT, build_part
from lance_duck.index.inverted.parts.join import join_parts

__all__ = ["PART_SHIFT", "build_part", "join_parts"]
