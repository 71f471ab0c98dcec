"""Transactions: the change that created a version.

A transaction is stored inline in the manifest, and in the file `_transactions/{read version}-{uuid}.txn`. The file
is a bare protobuf message that ends with a seal: see `checksums.sealed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lance_duck.checksums.sealed import unsealed_transaction
from lance_duck.wire.manifest import parse_message
from lance_duck.wire.pb import transaction_pb2

COMMIT_MESSAGE = "__lance_commit_message"
COMMIT_AUTHOR = "author"
CHANGES_ROWS = "lance_duck.changes_rows"
"""Property of a Merge that also changes rows."""
UNKNOWN = "Unknown"


@dataclass(frozen=True)
class Transaction:
    """The change that created a version.

    Attributes:
        read_version: Version on which the change is based.
        uuid: Identifier of the transaction.
        operation: Append, Delete, Overwrite, CreateIndex, Rewrite, Merge, Restore, ReserveFragments, Update, Project,
            UpdateConfig, DataReplacement, UpdateMemWalState, Clone, UpdateBases, DataOverlay; "Unknown" for an
            operation of a newer format.
        transaction_properties: Free-form strings by name, such as `commit_message`.
        proto: The complete message.
    """

    read_version: int
    uuid: str
    operation: str
    transaction_properties: Mapping[str, str]
    proto: transaction_pb2.Transaction = field(repr=False, compare=False)

    @property
    def message(self) -> Message | None:
        """Message of the operation, or None if the operation is unknown."""
        arm = self.proto.WhichOneof("operation")
        return None if arm is None else getattr(self.proto, arm)

    @property
    def changes_rows(self) -> bool:
        """Whether a Merge also inserts, updates or deletes rows."""
        return CHANGES_ROWS in self.transaction_properties

    @property
    def commit_message(self) -> str | None:
        """Commit message from the writer."""
        return self.transaction_properties.get(COMMIT_MESSAGE)

    @property
    def unknown_fields(self) -> tuple[int, ...]:
        """Numbers of the message's unknown top-level fields. An unknown operation is one of them."""
        unknown = UnknownFieldSet(self.proto)
        return tuple(unknown[i].field_number for i in range(len(unknown)))


def transaction_from_proto(proto: transaction_pb2.Transaction) -> Transaction:
    """Build a transaction from its message."""
    arm = proto.WhichOneof("operation")
    name = UNKNOWN if arm is None else "".join(part.capitalize() for part in arm.split("_"))
    return Transaction(
        proto.read_version, proto.uuid, name, MappingProxyType(dict(proto.transaction_properties)), proto
    )


def read_transaction(data: bytes, path: str) -> Transaction:
    """Parse a transaction file.

    Raises:
        CorruptError: The file is not a transaction, or does not match its seal.
    """
    message, _ = unsealed_transaction(data, path)
    return transaction_from_proto(parse_message(message, transaction_pb2.Transaction.FromString, path))
