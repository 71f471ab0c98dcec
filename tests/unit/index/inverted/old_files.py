"""Files of a segment as pylance wrote them before 0.28."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from unit.index.inverted.partitions import contents_of

from lance_duck.index.files import SegmentReader, SegmentWriter
from lance_duck.store import open_store

Columns = dict[str, dict[str, pa.Array]]
Metadata = dict[str, dict[str, str]]
Change = Callable[[Columns, Metadata], None]
TOKENIZER = {"base_tokenizer": "simple", "language": "English", "stem": False, "remove_stop_words": False}


def old_files(
    root: Path, texts: Mapping[int, Sequence[str]], change: Change | None = None, **tokenizer: Any
) -> SegmentReader:
    """Write strings by row address; `change` may modify the columns and metadata of each file first."""
    contents = contents_of(list(texts.values()), list(texts))
    order = np.array(sorted(range(len(contents.terms)), key=contents.terms.to_pylist().__getitem__), np.uint32)
    terms = [word.decode() for word in contents.terms.to_pylist()]
    assert contents.positions is not None
    ends = np.append(0, np.cumsum(contents.frequencies, dtype=np.int64))
    positions = [contents.positions[low:high].tolist() for low, high in itertools.pairwise(ends)]
    rows = contents.documents.row_ids
    columns: Columns = {
        "tokens": {"_token": pa.array([terms[i] for i in order], pa.string()), "_token_id": pa.array(order)},
        "docs": {"_rowid": pa.array(rows[::-1]), "_num_tokens": pa.array(contents.documents.num_tokens[::-1])},
        "invert": {
            "_rowid": pa.array(rows[contents.document_ids]),
            "_frequency": pa.array(contents.frequencies, pa.float32()),
            "_position": pa.array(positions, pa.list_(pa.int32())),
        },
    }
    metadata = {
        "tokens": {"tokenizer": json.dumps(TOKENIZER | tokenizer)},
        "docs": {},
        "invert": {"offsets": json.dumps(contents.bounds[:-1].tolist()), "max_scores": "[]"},
    }
    if change is not None:
        change(columns, metadata)
    with SegmentWriter(open_store(str(root)), "2.0") as writer:
        for name, arrays in columns.items():
            fields = [pa.field(each, array.type, nullable=False) for each, array in arrays.items()]
            schema = pa.schema(fields, metadata[name])
            file = writer.create(f"{name}.lance", schema)
            file.write(pa.record_batch(list(arrays.values()), schema=schema))
            writer.add(f"{name}.lance", file)
    return SegmentReader(open_store(str(root), {"checksums": "false"}), writer.directory)
