from __future__ import annotations

from dataclasses import replace

import pytest
from unit.commit.samples import OPERATIONS, fragment

from lance_duck.commit import Clone, Operation, Overwrite, RewrittenIndex, Update, operation_from_proto
from lance_duck.commit.committer import new_transaction
from lance_duck.errors import InvalidInputError
from lance_duck.wire.manifest import BasePath
from lance_duck.wire.pb import transaction_pb2

MORE = {
    "Clone": Clone(True, "from", 3, "/other", "to"),
    "Clone of main": Clone(False, None, 3, "/other"),
    "Overwrite": replace(OPERATIONS["Overwrite"], initial_bases=(BasePath(1, None, True, "/b"),)),
    "Rewrite": replace(
        OPERATIONS["Rewrite f0"],
        rewritten_indices=(
            RewrittenIndex(
                OPERATIONS["CreateIndex a"].new_indices[0].uuid,
                OPERATIONS["CreateIndex b"].new_indices[0].uuid,
                "/t",
                b"details",
                1,
                (("f", 3),),
            ),
        ),
    ),
    "Update": Update((3,), (fragment(1),), (), (1,), (2,), "rewrite_columns", None, {1: b"bits"}),
}


def listed(operation: Operation) -> Operation:
    """The same operation with tuples for lists."""
    changes = {name: tuple(value) for name, value in vars(operation).items() if isinstance(value, list)}
    groups = getattr(operation, "groups", ())
    if groups:
        changes["groups"] = tuple(listed(group) for group in groups)
    return replace(operation, **changes)


@pytest.mark.parametrize("operation", [*OPERATIONS.values(), *MORE.values()], ids=[*OPERATIONS, *MORE])
def test_operations_round_trip_through_protobuf(operation: Operation) -> None:
    data = new_transaction(1, operation, {"k": "v"}, "u").SerializeToString()
    transaction = transaction_pb2.Transaction.FromString(data)
    found = operation_from_proto(transaction, "here")
    if isinstance(operation, Overwrite):
        assert isinstance(found, Overwrite)
        assert found.new_schema.arrow == operation.new_schema.arrow
    assert found == listed(operation)
    assert (transaction.read_version, transaction.uuid, transaction.transaction_properties["k"]) == (1, "u", "v")


def test_deprecated_update_config_messages_are_read() -> None:
    config = transaction_pb2.Transaction.UpdateConfig(
        upsert_values={"a": "1"},
        delete_keys=["b"],
        schema_metadata={"s": "m"},
        field_metadata={3: transaction_pb2.Transaction.UpdateConfig.FieldMetadataUpdate(metadata={"f": "m"})},
    )
    found = operation_from_proto(transaction_pb2.Transaction(update_config=config), "here")
    assert found is not None
    assert found.config_updates.updates == {"a": "1", "b": None}
    assert (found.schema_metadata_updates.updates, found.schema_metadata_updates.replace) == ({"s": "m"}, True)
    assert (found.field_metadata_updates[3].updates, found.field_metadata_updates[3].replace) == ({"f": "m"}, True)


def test_an_unknown_operation_is_read_as_none() -> None:
    assert operation_from_proto(transaction_pb2.Transaction(update_mem_wal_state={}), "here") is None
    assert operation_from_proto(transaction_pb2.Transaction(), "here") is None


def test_invalid_operation_parts_are_rejected() -> None:
    with pytest.raises(InvalidInputError, match="invalid part of Update"):
        new_transaction(1, Update(fields_modified=["a"]), None)
    with pytest.raises(InvalidInputError, match="update_mode"):
        new_transaction(1, Update(update_mode="rewrite_all"), None)
    with pytest.raises(InvalidInputError, match="invalid part of ReserveFragments"):
        new_transaction(1, replace(OPERATIONS["ReserveFragments"], num_fragments=-1), None)
