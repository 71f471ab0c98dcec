"""The parameters of MinHash signatures, as an index stores them in its details."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from lance_duck.errors import CorruptError, UnsupportedError
from lance_duck.index.inverted.settings import settings_in
from lance_duck.text.parameters import AnalyserParameters
from lance_duck.wire.pb import index_pb2

DETAILS: Final = "minhashlshindexdetails"
"""Name of the details message, in lower case."""
MOST_HASHES: Final = 1 << 12
_SEED: Final = 42
_TOP: Final = 2**64 - 1


@dataclass(frozen=True)
class MinHashParameters:
    """How texts are signed.

    Attributes:
        num_hashes: Number of values of a signature.
        num_bands: Number of bands. Texts that agree in all values of a band are compared.
        shingle_size: Number of tokens of a shingle.
        analyser: How texts are divided into tokens.
    """

    num_hashes: int = 128
    num_bands: int = 16
    shingle_size: int = 3
    analyser: AnalyserParameters = field(
        default_factory=lambda: AnalyserParameters(stem=False, remove_stop_words=False)
    )

    @classmethod
    def of(cls, details: bytes, where: str) -> MinHashParameters:
        """Read the details of an index.

        Args:
            details: The details message.
            where: Name of the index, for errors.

        Raises:
            CorruptError: The message is damaged, or numbers contradict each other.
            UnsupportedError: The signatures or the analyser are of an unknown kind.
        """
        try:
            message = index_pb2.MinHashLshIndexDetails.FromString(details)
        except DecodeError as error:
            raise CorruptError("the details of the index cannot be read", where=where, found=error) from error
        hashes, bands, size = message.num_hashes, message.num_bands, message.shingle_size
        if not (0 < hashes <= MOST_HASHES and 0 < bands <= 256 and hashes % bands == 0 and 0 < size <= MOST_HASHES):
            raise CorruptError(
                "wrong numbers of hashes, bands or tokens",
                where=where,
                expected=f"at most {MOST_HASHES} hashes in equal bands",
                found=f"{hashes} hashes, {bands} bands, shingles of {size}",
            )
        if message.signature_version:
            raise UnsupportedError("unknown signatures", where=where, expected=0, found=message.signature_version)
        analyser = settings_in(message.tokenizer.SerializeToString()).parameters
        analyser.require_support(where)
        return cls(hashes, bands, size, analyser)

    @property
    def coefficients(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
        """The coefficients a, b and c of the hash functions: outputs of SplitMix64."""
        state = _SEED

        def draw() -> int:
            nonlocal state
            state = state + 0x9E3779B97F4A7C15 & _TOP
            value = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & _TOP
            value = (value ^ value >> 27) * 0x94D049BB133111EB & _TOP
            return value ^ value >> 31

        pairs = np.array([(draw() | 1, draw()) for _ in range(self.num_hashes)], np.uint64)
        finals = np.array([draw() | 1 for _ in range(self.num_hashes)], np.uint64)
        return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1]), finals
