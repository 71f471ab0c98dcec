"""A table for pyarrow's C++ code: a dataset of Arrow IPC files that exist only while they are read.

Unions of datasets, `Scanner.from_dataset` and pyarrow's execution plans bypass the Python methods of a Dataset. For
them, the table is divided into a few pieces. Each piece is converted to an in-memory IPC file when C++ code opens it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.fs as pafs

from lance_duck.errors import UnsupportedError

MOST_PIECES: Final = 32


def piecewise_dataset(schema: pa.Schema, pieces: int, read: Callable[[int], pa.Table]) -> pads.Dataset:
    """Return a dataset whose i-th piece is read(i). pyarrow calls `read` lazily, possibly from a background thread.

    Args:
        schema: Schema of every piece.
        pieces: Number of pieces.
        read: Function that returns a piece as a table, by its number.
    """
    filesystem = pafs.PyFileSystem(_PieceFiles(read))
    whole = pads.FileSystemFactoryOptions(exclude_invalid_files=False)
    factory = pads.FileSystemDatasetFactory(filesystem, [*map(str, range(pieces))], pads.IpcFileFormat(), whole)
    return factory.finish(schema)


class _PieceFiles(pafs.FileSystemHandler):  # type: ignore[misc]
    """A file system with the files 0, 1, 2 ….

    The last opened file stays in memory, because C++ code opens each file twice, the first time for its schema.
    """

    def __init__(self, read: Callable[[int], pa.Table]) -> None:
        self._read = read
        self._last: tuple[str, pa.Buffer] | None = None

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __hash__(self) -> int:
        return id(self)

    def get_type_name(self) -> str:
        return "lance"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[pafs.FileInfo]:
        return [pafs.FileInfo(path, pafs.FileType.File) for path in paths]

    def get_file_info_selector(self, selector: pafs.FileSelector) -> list[pafs.FileInfo]:
        return []

    def open_input_file(self, path: str) -> pa.NativeFile:
        last, self._last = self._last, None
        if last is not None and last[0] == path:
            return pa.BufferReader(last[1])
        sink = pa.BufferOutputStream()
        table = self._read(int(path))
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        self._last = (path, sink.getvalue())
        return pa.BufferReader(self._last[1])

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.open_input_file(path)

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise UnsupportedError("pyarrow's view of a table cannot be written to")

    create_dir = delete_dir = delete_dir_contents = delete_root_dir_contents = delete_file = _refuse
    move = copy_file = open_output_stream = open_append_stream = _refuse
