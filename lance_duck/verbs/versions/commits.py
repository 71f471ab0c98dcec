"""Commits of operations built by other processes or users."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Self

from lance_duck import lazy
from lance_duck.arguments import checked_calls, refuse_unsupported
from lance_duck.errors import InvalidInputError, NotFoundError, UnsupportedError
from lance_duck.scan.table_scan import TableScan
from lance_duck.snapshot import CommitLock, Location, Snapshot, open_snapshot
from lance_duck.snapshot.versions import latest_version
from lance_duck.verbs.handle import TableMethods

if TYPE_CHECKING:
    from lance_duck import commit as commits
    from lance_duck.verbs import change
    from lance_duck.verbs.indexes import segment_parts
    from lance_duck.verbs.public import lance_operation, named_tables, operation_convert
else:
    commits = lazy.modules(globals(), "lance_duck", "commit")
    change = lazy.modules(globals(), "lance_duck.verbs", "change")
    segment_parts = lazy.modules(globals(), "lance_duck.verbs.indexes", "segment_parts")
    lance_operation, named_tables, operation_convert = lazy.modules(
        globals(), "lance_duck.verbs.public", "lance_operation", "named_tables", "operation_convert"
    )

RETRIES: Final = 20
TIMEOUT: Final = timedelta(minutes=30)

_REMEDIES: Final = MappingProxyType(
    {
        "namespace_client_managed_versioning": None,
        "base_store_params": None,
    }
)


@checked_calls
class Commits(TableMethods):
    """Class methods of a dataset that commit operations."""

    @classmethod
    def commit(
        cls,
        base_uri: str | os.PathLike[str] | Commits,
        operation: lance_operation.LanceOperation.BaseOperation | lance_operation.Transaction,
        read_version: int | None = None,
        commit_lock: CommitLock | None = None,
        storage_options: Mapping[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = RETRIES,
        *,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
        enable_stable_row_ids: bool | None = None,
        commit_timeout: timedelta | None = TIMEOUT,
        namespace_client: Any = None,
        table_id: Sequence[str] | None = None,
        **unsupported: Any,
    ) -> Self:
        """Commit an operation as the next version of a table, or as the first one.

        Args:
            base_uri: Path or URI of the table, or a handle on it.
            operation: The operation, or a transaction that contains it.
            read_version: Version that the operation is based on. Not needed for Overwrite and Restore.
            commit_lock: See `lance_duck.dataset`. Defaults to the handle's lock.
            storage_options: Object store settings.
            enable_v2_manifest_paths: For a new table, name manifests so that the newest sorts first (default).
            detached: Create a detached version, which is never the latest.
            max_retries: Maximum number of retries after lost races. 0 only allows a commit on top of `read_version`.
            commit_message: Message to store with the transaction. See `read_transaction`.
            transaction_properties: Key-value pairs of strings to store with the transaction.
            enable_stable_row_ids: For a new table, rows keep their `_rowid` when they move.
            commit_timeout: Time limit for retries. None is unlimited.
            namespace_client: Catalog that supplies the table's store settings: see `lance_duck.dataset`.
            table_id: Name of the table in that catalog, as a list of its parts.
            unsupported: pylance arguments that are not supported: namespace_client_managed_versioning,
                base_store_params.

        Raises:
            RetryableError: The operation must be rebuilt from a newer version, or all retries lost the race.
            IncompatibleError: The operation conflicts with a newer version.
            NotFoundError: The table or the version does not exist.
            InvalidInputError: The operation is invalid.
            StoreError: The disk or the object store failed.
        """
        refuse_unsupported(Commits.commit, unsupported, _REMEDIES)
        transaction = _transaction(operation, read_version, commit_message, transaction_properties)
        options = named_tables.lent_options(namespace_client, table_id, storage_options)
        location, uri = _place(base_uri, options, commit_lock)
        read = None if _takes_latest(transaction, read_version) else transaction.read_version
        base = _base(base_uri, location, read)
        operation_ = operation_convert.to_operation(transaction.operation, None if base is None else base.schema)
        properties = transaction.transaction_properties or None
        if base is None:
            v2 = enable_v2_manifest_paths is not False
            snapshot = _create(location, operation_, properties, transaction.uuid, bool(enable_stable_row_ids), v2)
            return cls(uri, table=TableScan(snapshot))
        after = commits.commit(
            base,
            _completed(base, operation_),
            properties=properties,
            retries=max_retries,
            timeout=_seconds(commit_timeout),
            detached=bool(detached),
            transaction_uuid=transaction.uuid,
        )
        return cls(uri, table=TableScan(after))

    @classmethod
    def commit_batch(
        cls,
        dest: str | os.PathLike[str] | Commits,
        transactions: Sequence[lance_operation.Transaction],
        commit_lock: CommitLock | None = None,
        storage_options: Mapping[str, str] | None = None,
        enable_v2_manifest_paths: bool | None = None,
        detached: bool | None = False,
        max_retries: int = RETRIES,
        *,
        commit_timeout: timedelta | None = TIMEOUT,
        **unsupported: Any,
    ) -> dict[str, Any]:
        """Commit several Append transactions as one version. Takes the same arguments as `commit`.

        Returns:
            {"dataset": the table, "merged": the committed transaction}.

        Raises:
            UnsupportedError: A transaction is not an Append.
            InvalidInputError: `transactions` is empty.
        """
        transaction = merge_appends(transactions)
        committed = cls.commit(
            dest,
            transaction,
            None,
            commit_lock,
            storage_options,
            enable_v2_manifest_paths,
            detached,
            max_retries,
            commit_timeout=commit_timeout,
            **unsupported,
        )
        return {"dataset": committed, "merged": transaction}


def merge_appends(transactions: Sequence[lance_operation.Transaction]) -> lance_operation.Transaction:
    """Merge Appends into one transaction, based on the oldest of their versions.

    Raises:
        UnsupportedError: A transaction is not an Append.
        InvalidInputError: `transactions` is empty.
    """
    if not transactions:
        raise InvalidInputError("no transactions", where="commit_batch")
    fragments: list[Any] = []
    properties: dict[str, str] = {}
    for transaction in transactions:
        operation = transaction.operation
        if not isinstance(operation, lance_operation.LanceOperation.Append):
            raise UnsupportedError(
                "only Appends can be committed together", where="commit_batch", found=type(operation).__name__
            )
        fragments.extend(operation.fragments)
        properties |= transaction.transaction_properties or {}
    oldest = min(transaction.read_version for transaction in transactions)
    return lance_operation.Transaction(
        oldest, lance_operation.LanceOperation.Append(fragments), transaction_properties=properties
    )


def _transaction(
    operation: lance_operation.LanceOperation.BaseOperation | lance_operation.Transaction,
    read_version: int | None,
    message: str | None,
    properties: Mapping[str, str] | None,
) -> lance_operation.Transaction:
    if isinstance(operation, lance_operation.Transaction):
        if message is not None or properties is not None:
            raise InvalidInputError(
                "commit_message cannot be combined with a Transaction",
                where="commit",
                remedy="set transaction_properties on the Transaction",
            )
        return operation
    if read_version is None and not isinstance(
        operation, lance_operation.LanceOperation.Overwrite | lance_operation.LanceOperation.Restore
    ):
        raise InvalidInputError("no read_version", where="commit", expected="the version that the change is based on")
    return lance_operation.Transaction(
        read_version or 0, operation, transaction_properties=change.transaction_properties(message, properties)
    )


def _completed(base: Snapshot, operation: commits.Operation) -> commits.Operation:
    """Return an operation with the index details that can be read from the files of its new segments."""
    if not isinstance(operation, commits.CreateIndex):
        return operation
    segments = tuple(segment_parts.completed(base, segment) for segment in operation.new_indices)
    return replace(operation, new_indices=segments)


def _takes_latest(transaction: lance_operation.Transaction, read_version: int | None) -> bool:
    replaces = isinstance(
        transaction.operation, lance_operation.LanceOperation.Overwrite | lance_operation.LanceOperation.Restore
    )
    return replaces and read_version is None and not transaction.read_version


def _place(
    target: str | os.PathLike[str] | Commits, options: Mapping[str, str] | None, lock: CommitLock | None
) -> tuple[Location, str]:
    if isinstance(target, Commits):
        location = target.handle.snapshot.location
        options = {**location.storage_options, **(options or {})}
        return Location.of(location.uri, options, lock or location.commit_lock), location.uri
    if not isinstance(target, str | os.PathLike):
        raise InvalidInputError("base_uri", expected="a path, a URI or a dataset", found=type(target).__name__)
    return Location.of(target, options, lock), os.fspath(target)


def _base(target: str | os.PathLike[str] | Commits, location: Location, read_version: int | None) -> Snapshot | None:
    """Return the version that a change is based on, or None if the table does not exist."""
    if isinstance(target, Commits) and read_version == target.handle.snapshot.version:
        snapshot = target.handle.snapshot
        if snapshot.location.commit_lock is location.commit_lock:
            return snapshot
    try:
        lock = location.commit_lock
        return open_snapshot(
            location.uri, read_version or None, storage_options=location.storage_options, commit_lock=lock
        )
    except NotFoundError:
        if read_version and _is_table(location):
            raise
        return None


def _is_table(location: Location) -> bool:
    try:
        latest_version(location.store())
    except NotFoundError:
        return False
    return True


def _create(
    location: Location,
    operation: commits.Operation,
    properties: Mapping[str, str] | None,
    name: str,
    stable_row_ids: bool,
    v2_manifest_paths: bool,
) -> Snapshot:
    if isinstance(operation, commits.Overwrite):
        return commits.create_table(
            location,
            operation,
            properties=properties,
            stable_row_ids=stable_row_ids,
            v2_manifest_paths=v2_manifest_paths,
            transaction_uuid=name,
        )
    if isinstance(operation, commits.Clone):
        if not operation.is_shallow:
            raise UnsupportedError(
                "a deep clone cannot be committed as an operation", where="commit", remedy="use deep_clone"
            )
        source = open_snapshot(
            operation.ref_path,
            (operation.ref_name, operation.ref_version) if operation.ref_name else operation.ref_version,
            storage_options=location.storage_options,
        )
        return commits.create_clone(location, source, operation, properties=properties)
    raise NotFoundError(
        "Lance table not found",
        where=location.uri,
        remedy=f"{operation.name} needs an existing table; LanceOperation.Overwrite creates one",
    )


def _seconds(timeout: timedelta | None) -> float | None:
    if timeout is None:
        return None
    if timeout <= timedelta(0):
        raise InvalidInputError("commit_timeout", expected="a positive duration", found=timeout)
    return timeout.total_seconds()
