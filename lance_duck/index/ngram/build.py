"""Builds postings from batches of texts.

A run of texts is grouped by trigram in one step. Its size is limited to `INDEX_BLOCK_BYTES`, and to a share of the
memory limit. A posting takes four bytes. Postings stay in memory up to a quarter of the limit. Postings of further runs
are written to temporary files and memory-mapped.
"""

from __future__ import annotations

import os
import tempfile
from types import TracebackType

import numpy as np
import pyarrow as pa

from lance_duck.errors import StoreError
from lance_duck.file.write.contract import num_bytes
from lance_duck.index.files import INDEX_BLOCK_BYTES
from lance_duck.index.kind import BuildOptions, Rows
from lance_duck.index.ngram.layout import NULLS
from lance_duck.index.ngram.open import Entries
from lance_duck.rows.row_set import RowSet
from lance_duck.store import delete_temporary
from lance_duck.text.trigrams import TextsByTrigram, texts_by_trigram

_SHARES = 16
"""A run's texts take up to 1 / `_SHARES` of the memory limit. Building their postings takes several times as much."""


class PostingRuns:
    """Postings of texts. A context manager that removes its temporary files.

    Args:
        options: The memory limit, and the callback for progress.
    """

    def __init__(self, options: BuildOptions) -> None:
        self._run = max(1, min(options.memory_limit // _SHARES, INDEX_BLOCK_BYTES))
        self._limit = options.memory_limit // 4
        self._progress = options.progress
        self._texts: list[pa.Array] = []
        self._rows: list[Rows] = []
        self._waiting = self._held = self._taken = 0
        self._runs: list[_PostingRun] = []
        self._nulls: list[RowSet] = []
        self._paths: list[str] = []

    def add(self, texts: pa.Array, rows: Rows) -> None:
        """Add texts and their row ids or addresses."""
        self._texts.append(texts)
        self._rows.append(rows)
        self._waiting += num_bytes(texts) + rows.nbytes
        if self._waiting >= self._run:
            self._close()
        self._taken += len(rows)
        if self._progress is not None:
            self._progress(self._taken)

    def sources(self) -> list[Entries]:
        """Return the postings of each run: ascending tokens with their rows."""
        self._close()
        nulls = RowSet.union(self._nulls)
        runs = [run.entries() for run in self._runs]
        return [iter([(NULLS, nulls)]), *runs] if nulls else runs

    def _close(self) -> None:
        if not self._rows:
            return
        texts, rows = (
            pa.concat_arrays([each.cast(pa.large_string()) for each in self._texts]),
            np.concatenate(self._rows),
        )
        self._texts, self._rows, self._waiting = [], [], 0
        if texts.null_count:
            self._nulls.append(RowSet.of(rows[texts.is_null().to_numpy(zero_copy_only=False)]))
        groups = texts_by_trigram(texts)
        size = groups.texts.nbytes + groups.bounds.nbytes + rows.nbytes
        if self._held + size > self._limit:
            groups = self._spilled(groups)
        else:
            self._held += size
        self._runs.append(_PostingRun(groups, rows))

    def _spilled(self, groups: TextsByTrigram) -> TextsByTrigram:
        if not len(groups.texts):
            return groups
        handle, path = tempfile.mkstemp(prefix="lance_duck-ngrams-", suffix=".u32")
        self._paths.append(path)
        try:
            with os.fdopen(handle, "wb") as file:
                groups.texts.tofile(file)
        except OSError as error:
            raise StoreError(
                "postings of an index cannot be written to a temporary file", where=path, found=error
            ) from error
        return TextsByTrigram(groups.trigrams, groups.bounds, np.memmap(path, np.uint32, "r"))

    def __enter__(self) -> PostingRuns:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runs = []
        for path in self._paths:
            delete_temporary(path)


class _PostingRun:
    """Postings of some texts.

    Args:
        groups: For each trigram, the positions of the texts that contain it.
        rows: Row ids or addresses of the texts.
    """

    def __init__(self, groups: TextsByTrigram, rows: Rows) -> None:
        self._groups = groups
        self._rows = rows

    def entries(self) -> Entries:
        """Yield the tokens in ascending order, with their rows."""
        bounds = self._groups.bounds.tolist()
        for place, token in enumerate(self._groups.trigrams.tolist()):
            yield token, RowSet.of(self._rows[self._groups.texts[bounds[place] : bounds[place + 1]]])
