"""The files of a segment, and their metadata.

metadata.lance            one row: deleted_fragments (binary: 32-bit roaring), missing in old files. Metadata:
                          partitions (JSON, partition numbers), params (JSON: analyser parameters, with_position and
                          block_size), token_set_format ("fst" or "arrow"), format_version ("1" … "3"),
                          posting_block_size, posting_tail_codec; with positions from format 2 on positions_layout,
                          positions_codec
part_{p}_tokens.lance     the terms. fst: one row, _token_fst_bytes (large_binary, see `codecs.fst`), _token_next_id
                          (uint32: terms), _token_total_length (uint64: bytes of all terms); arrow: _token (string,
                          sorted by bytes), _token_id (uint32)
part_{p}_docs.lance       one row per document: _rowid (uint64), _num_tokens (uint32); if documents are list elements,
                          also _doc_index_0, _doc_index_1, … (uint32). Metadata: total_tokens
part_{p}_invert.lance     one row per term, in order of term ids: _posting (list<large_binary>, see `codecs.blocks`),
                          _max_score (float), _length (uint32: documents), _impacts (list<large_binary>, see
                          `codecs.impacts`; missing in old files), positions (see `codecs.positions`). Metadata: like
                          metadata.lance

Several processes may write a segment together. Each process writes a part: partition files in staging/, until the parts
are joined. The partition numbers of a part are (first fragment of the part << 32) + 0, 1, …. Instead of metadata.lance,
a part has

part_{p}_metadata.lance         for each partition: no rows; metadata like metadata.lance, for this partition alone
part_empty_{p}_metadata.lance   for a part without documents; p is the number that its first partition would have

Missing keys mean the oldest file format: terms in Arrow, format 1, blocks of 128 documents, and a last block of u32
numbers rather than varints.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.index.inverted.codecs.blocks import BlockForm

METADATA: Final = "metadata.lance"
STAGING: Final = "staging"
DELETED_FRAGMENTS: Final = "deleted_fragments"

ROW_ID: Final = "_rowid"
NUM_TOKENS: Final = "_num_tokens"
DOC_INDEX: Final = "_doc_index_"
TOTAL_TOKENS: Final = "total_tokens"

FST_BYTES: Final = "_token_fst_bytes"
NEXT_ID: Final = "_token_next_id"
TOTAL_LENGTH: Final = "_token_total_length"
TERM: Final = "_token"
TERM_ID: Final = "_token_id"

POSTING: Final = "_posting"
MAX_SCORE: Final = "_max_score"
LENGTH: Final = "_length"
IMPACTS: Final = "_impacts"
POSITIONS: Final = "_compressed_position"
POSITION_STARTS: Final = "_position_block_offset"
OLD_POSITIONS: Final = "_position"

PARTITIONS: Final = "partitions"
PARAMS: Final = "params"
TERM_FORMAT: Final = "token_set_format"
FORMAT_VERSION: Final = "format_version"
TAIL_CODEC: Final = "posting_tail_codec"
BLOCK_SIZE: Final = "posting_block_size"
POSITIONS_LAYOUT: Final = "positions_layout"
POSITIONS_CODEC: Final = "positions_codec"

WORDS: Final = "fixed32_v1"
VARINTS: Final = "varint_delta_v1"
SHARED_STREAM: Final = "shared_stream_v2"
PACKED_POSITIONS: Final = "packed_delta_v1"
VARINT_POSITIONS: Final = "varint_doc_delta_v2"

FST: Final = "fst"
ARROW: Final = "arrow"
FORMAT_VERSIONS: Final = (1, 2, 3)
MOST_PARTITIONS: Final = 1 << 16

_OF_PART: Final = re.compile(r"part_(?:empty_)?([0-9]{1,20})_(?:metadata|tokens|docs|invert)\.lance")

BLOBS: Final = pa.list_(pa.field("item", pa.large_binary()))


def tokens_file(number: int) -> str:
    """Return the name of a partition's term file."""
    return f"part_{number}_tokens.lance"


def documents_file(number: int) -> str:
    """Return the name of a partition's document file."""
    return f"part_{number}_docs.lance"


def postings_file(number: int) -> str:
    """Return the name of a partition's posting file."""
    return f"part_{number}_invert.lance"


def part_file(number: int, *, is_empty: bool = False) -> str:
    """Return the name of a partition's metadata file in a part, or the file name of an empty part."""
    return f"part_{'empty_' if is_empty else ''}{number}_metadata.lance"


def part_number(name: str) -> int | None:
    """Return the partition number in the name of a part's metadata file. Returns None for other files."""
    match = _OF_PART.fullmatch(name)
    return int(match[1]) if match is not None and int(match[1]) < 1 << 64 else None


@dataclass(frozen=True)
class InvertedParameters:
    """The layout of a segment, and the parameters of its analyser.

    Attributes:
        params: Parameters of the segment and its analyser, by pylance's names. Stored as JSON.
        with_position: Whether term positions are stored.
        block_size: Number of documents in a posting block: 128, or 256 with format 3.
        format_version: 1, 2 or 3.
        posting_tail_codec: Codec of the last block of a term.
        token_set_format: Format of the terms: "fst" or "arrow".
        document_granularity: "row" if each row is a document, "list_element" if each list element is.
    """

    params: Mapping[str, Any] = field(default_factory=dict)
    with_position: bool = False
    block_size: int = 128
    format_version: int = 2
    posting_tail_codec: str = VARINTS
    token_set_format: str = FST
    document_granularity: str = "row"

    def __post_init__(self) -> None:
        if self.format_version not in FORMAT_VERSIONS:
            raise UnsupportedError(
                "unknown format of the full-text index", expected="1, 2 or 3", found=self.format_version, remedy=_NEWER
            )
        if self.block_size not in (128, 256) or (self.block_size == 256 and self.format_version < 3):
            raise UnsupportedError(
                "unknown block size of the full-text index",
                expected="128, or 256 with format 3",
                found=f"{self.block_size} with format {self.format_version}",
            )
        if self.posting_tail_codec not in (WORDS, VARINTS):
            raise UnsupportedError(TAIL_CODEC, expected=f"{WORDS}, {VARINTS}", found=self.posting_tail_codec)
        if self.token_set_format not in (FST, ARROW):
            raise UnsupportedError(TERM_FORMAT, expected=f"{FST}, {ARROW}", found=self.token_set_format)

    @property
    def block_form(self) -> BlockForm:
        """Form of the blocks of postings."""
        return BlockForm(self.block_size, self.posting_tail_codec == VARINTS)

    @property
    def postings_metadata(self) -> dict[str, str]:
        """Metadata of the posting files."""
        metadata = {FORMAT_VERSION: str(self.format_version), BLOCK_SIZE: str(self.block_size)}
        if self.format_version > 1:
            metadata[TAIL_CODEC] = self.posting_tail_codec
            if self.with_position:
                metadata |= {POSITIONS_LAYOUT: SHARED_STREAM, POSITIONS_CODEC: PACKED_POSITIONS}
        return metadata

    def metadata(self, partitions: list[int]) -> dict[str, str]:
        """Return the metadata of metadata.lance for a segment with the given partitions."""
        return self.postings_metadata | {
            TAIL_CODEC: self.posting_tail_codec,
            PARTITIONS: json.dumps(partitions, separators=(",", ":")),
            TERM_FORMAT: self.token_set_format,
            PARAMS: json.dumps(dict(self.params), separators=(",", ":"), ensure_ascii=False),
        }


_NEWER: Final = "a newer version of this package may read it"


def inverted_parameters(metadata: Mapping[str, str], where: str) -> InvertedParameters:
    """Parse the metadata of a segment. The metadata does not store the document granularity.

    Raises:
        CorruptError: The metadata is invalid.
        UnsupportedError: A format, a codec or a block size is not supported.
    """
    params = _json(metadata, PARAMS, dict, where)
    return InvertedParameters(
        params=params,
        with_position=params.get("with_position") is True,
        block_size=_number(metadata, BLOCK_SIZE, 128, where),
        format_version=_number(metadata, FORMAT_VERSION, 1, where),
        posting_tail_codec=metadata.get(TAIL_CODEC, WORDS),
        token_set_format=metadata.get(TERM_FORMAT, ARROW),
    )


def partition_numbers(metadata: Mapping[str, str], where: str) -> list[int]:
    """Return the numbers of the partitions. Raises CorruptError."""
    numbers: list[int] = _json(metadata, PARTITIONS, list, where)
    if not all(type(n) is int and 0 <= n < 1 << 64 for n in numbers) or len(set(numbers)) != len(numbers):
        raise CorruptError(PARTITIONS, where=where, expected="distinct numbers", found=repr(numbers)[:80])
    if len(numbers) > MOST_PARTITIONS:
        raise CorruptError(PARTITIONS, where=where, expected=f"at most {MOST_PARTITIONS}", found=len(numbers))
    return numbers


def _json(metadata: Mapping[str, str], key: str, type_: type, where: str) -> Any:
    if key not in metadata:
        raise CorruptError(f"metadata {key!r} is missing", where=where, found=", ".join(metadata))
    try:
        value = json.loads(metadata[key])
    except (ValueError, RecursionError) as error:
        raise CorruptError(key, where=where, expected="JSON", found=repr(metadata[key][:80])) from error
    if not isinstance(value, type_):
        raise CorruptError(key, where=where, expected=f"JSON of a {type_.__name__}", found=repr(metadata[key][:80]))
    return value


def _number(metadata: Mapping[str, str], key: str, default: int, where: str) -> int:
    text = metadata.get(key, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise CorruptError(key, where=where, expected="a number", found=repr(text[:40]))
    return int(text)
