"""The file of an n-gram index.

ngram_postings.lance
    tokens        uint32, ascending: trigram numbers (see `text.trigrams`); 0 for the rows that are null
    posting_list  binary: the rows of each token, a treemap (see `rows.row_set_bytes`)

The details message is empty, and the version is 0. Version 0 identifies rows by stable row id if the table has stable
row ids. From version 1 on, rows are identified by address.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

FILE: Final = "ngram_postings.lance"
TOKENS: Final = "tokens"
POSTINGS: Final = "posting_list"
NULLS: Final = 0
"""The token of rows that are null."""
SCHEMA: Final = pa.schema(
    [
        pa.field(TOKENS, pa.uint32()),
        pa.field(POSTINGS, pa.binary(), nullable=False, metadata={"lance-encoding:compression": "none"}),
    ]
)
