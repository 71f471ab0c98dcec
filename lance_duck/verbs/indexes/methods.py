"""Indexes of a table, as users call them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Self
from uuid import UUID

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.errors import IndexNotFoundError, InvalidInputError, UnsupportedError
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.vector import VectorIndexChanges, spec_of

if TYPE_CHECKING:
    from lance_duck.index import catalog, registry, search
    from lance_duck.index.inverted import kind as inverted
    from lance_duck.index.inverted import settings
    from lance_duck.verbs import change
    from lance_duck.verbs.indexes import create, describe, kinds
    from lance_duck.verbs.indexes import segments as segment_changes
    from lance_duck.verbs.public import lance_operation
else:
    catalog, registry, search = lazy.modules(globals(), "lance_duck.index", "catalog", "registry", "search")
    inverted, settings = lazy.modules(globals(), "lance_duck.index.inverted", "kind", "settings")
    change = lazy.modules(globals(), "lance_duck.verbs", "change")
    create, describe, kinds, segment_changes = lazy.modules(
        globals(), "lance_duck.verbs.indexes", "create", "describe", "kinds", "segments"
    )
    lance_operation = lazy.modules(globals(), "lance_duck.verbs.public", "lance_operation")


@checked_calls
class IndexChanges(VectorIndexChanges):
    """Indexes of a table, for a handle on one of its versions.

    An index is a number of segments, of which each covers some fragments; rows of other fragments are scanned. What
    changes the indexes moves the handle to the version that results. A change that lost a race is put on top of the
    version that came first; what was built is built again only where the rows are other ones by then.
    """

    def create_scalar_index(
        self,
        column: str | Sequence[str],
        index_type: str | kinds.IndexConfig | Any,
        name: str | None = None,
        *,
        replace: bool = True,
        train: bool = True,
        fragment_ids: Iterable[int] | None = None,
        index_uuid: str | UUID | None = None,
        progress_callback: Callable[[kinds.IndexProgress], Any] | None = None,
        progress: kinds.Progress | bool | None = None,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
        **parameters: Any,
    ) -> None:
        """Build an index over the values of a column.

        Args:
            column: Its dotted path.
            index_type: "BTREE", "BITMAP", "LABEL_LIST", "ZONEMAP", "BLOOMFILTER", "NGRAM" or, for full-text searches,
                "INVERTED" (or "FTS"), in any case, or an `IndexConfig`.
            name: None: "{column}_idx", with a number where that is taken by another index.
            replace: Take the place of an index of this name over this column.
            train: Build it of all rows; False: it covers nothing until `optimize.optimize_indices`.
            fragment_ids: Refused: see `create_index_uncommitted`.
            index_uuid: UUID of the segment.
            progress_callback: Called with the steps of the build.
            progress: Called with the rows that are taken in, and all rows; True: they are told on stderr.
            commit_message: Kept with the transaction.
            transaction_properties: Likewise.
            parameters: Of the kind, as in rows_per_zone=4096. Of a full-text index: how texts are analysed, as
                `AnalyserArguments` of `lance_duck.text.parameters` has it; with_position (phrases need it), block_size
                (128, or 256), format_version (1, 2 or 3; None: 2, or 3 with blocks of 256), memory_limit (MiB that the
                build may hold) and num_workers (threads).

        Raises:
            UnknownColumnError: There is no such column.
            NotIndexableError: It cannot have such an index, or there is no such kind.
            IndexExistsError: The name is that of an index over another column, or of any, and replace=False.
            InvalidInputError: An argument or a parameter makes no sense.
            CommitConflictError: Other changes came first, time and again, or one that this change cannot follow.
        """
        if fragment_ids is not None:
            raise InvalidInputError(
                "fragment_ids", where="create_scalar_index", remedy="call create_index_uncommitted(…, fragment_ids=…)"
            )
        options: kinds.IndexOptions = {"name": name, "replace": replace, "train": train}
        options |= {"uuid": kinds.uuid_of(index_uuid), "progress": kinds.progress_of(progress, progress_callback)}
        spec = kinds.scalar_spec(column, index_type, parameters, **options)
        properties = change.transaction_properties(commit_message, transaction_properties)
        self.handle.move_to(create.create_index(self.handle.base, spec, properties)[0])

    def create_index_uncommitted(
        self,
        column: str | Sequence[str],
        index_type: str | kinds.IndexConfig | Any,
        name: str | None = None,
        *,
        replace: bool = False,
        train: bool = True,
        fragment_ids: Iterable[int] | None = None,
        index_uuid: str | UUID | None = None,
        progress_callback: Callable[[kinds.IndexProgress], Any] | None = None,
        progress: kinds.Progress | bool | None = None,
        **parameters: Any,
    ) -> lance_operation.Index:
        """Write a segment over some fragments, in this or any other process, and do not commit it.

        Args:
            column: As for `create_scalar_index`, and for `create_index` where the kind is one of vectors.
            index_type: Likewise. Vector segments are merged without loss where they got the same ivf_centroids (and
                pq_codebook); others, too, can be committed together.
            name: Likewise.
            replace: Whether there may be an index of this name.
            train: False: the segment covers nothing.
            fragment_ids: Fragments of this version that it covers.
            index_uuid: UUID of the segment.
            progress_callback: As for `create_scalar_index`.
            progress: Likewise.
            parameters: Likewise.

        Returns:
            What `merge_existing_index_segments` and `commit_existing_index_segments` take; it pickles.

        Raises:
            UnknownColumnError, NotIndexableError, IndexExistsError: As for `create_scalar_index`.
            InvalidInputError: No fragments are given, or one that is not there.
        """
        base = self.handle.base
        options: kinds.IndexOptions = {"name": name, "replace": replace, "train": train}
        options |= {"uuid": kinds.uuid_of(index_uuid), "progress": kinds.progress_of(progress, progress_callback)}
        spec = spec_of(base, column, index_type, parameters, **options)
        return segment_changes.create_uncommitted(base, spec, fragment_ids)

    def merge_existing_index_segments(self, segments: Sequence[lance_operation.Index]) -> lance_operation.Index:
        """Write one segment with the entries of several that are not committed, and do not commit it.

        Raises:
            InvalidInputError: No segments, one given twice, or segments that do not belong together.
            LanceDuckError: A segment is broken.
        """
        return segment_changes.merge_uncommitted(self.handle.base, segments)

    def commit_existing_index_segments(
        self,
        index_name: str,
        column: str,
        segments: Sequence[lance_operation.Index],
        *,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> Self:
        """Commit segments that were built apart as one index.

        Segments that the index has already stay, but for those that the new ones cover wholly.

        Args:
            index_name: Name of the index.
            column: Its dotted path.
            segments: What `create_index_uncommitted` and `merge_existing_index_segments` returned.
            commit_message: Kept with the transaction.
            transaction_properties: Likewise.

        Raises:
            InvalidInputError: No segments, one given twice, segments over another column, or that cover one fragment.
            IndexExistsError: The index is over another column, or one of its segments covers more than the new ones.
        """
        properties = change.transaction_properties(commit_message, transaction_properties)
        self.handle.move_to(segment_changes.commit_segments(self.handle.base, index_name, column, segments, properties))
        return self

    def merge_index_metadata(self, index_uuid: str, index_type: str, *arguments: Any, **more: Any) -> NoReturn:
        """Refuse, as pylance does for scalar indexes."""
        raise UnsupportedError(
            f"segments of {index_type} indexes are not merged by their metadata",
            remedy="merge_existing_index_segments and commit_existing_index_segments do it",
        )

    def drop_index(
        self,
        name: str,
        *,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> None:
        """Remove an index, of any kind; its files stay for older versions, until these are cleaned up.

        Raises:
            IndexNotFoundError: There is none of this name.
        """
        properties = change.transaction_properties(commit_message, transaction_properties)
        self.handle.move_to(create.drop_index(self.handle.base, name, properties))

    def list_indices(self) -> list[describe.IndexInformation]:
        """Describe each segment of each index, by name."""
        return describe.list_indices(self.handle.snapshot)

    def describe_indices(self) -> list[describe.IndexDescription]:
        """Describe each index, by name; from the manifest alone."""
        return describe.describe_indices(self.handle.snapshot)

    @property
    def has_index(self) -> bool:
        """Whether the table has any index."""
        return bool(self.handle.snapshot.indices)

    def index_statistics(self, index_name: str) -> dict[str, Any]:
        """Return the figures of an index; see `verbs.indexes.describe.index_statistics`.

        Raises:
            IndexNotFoundError: There is none of this name.
        """
        return describe.index_statistics(self.handle.snapshot, index_name)

    def prewarm_index(
        self, name: str, *, with_position: bool = False, index_segments: Iterable[str | UUID] | None = None
    ) -> None:
        """Read all that searches of an index read, and keep it in memory, within limits.

        Args:
            name: Name of the index.
            with_position: Of a full-text index that has positions of terms: without effect, phrases read those that
                they need. Of other indexes refused.
            index_segments: Uuids of some of its segments; None: all.

        Raises:
            IndexNotFoundError: There is no such index, or no such segment of it.
            LanceDuckError: A segment is broken, or of a kind that is not supported.
        """
        if with_position and not _has_positions(self.handle.snapshot, name):
            raise UnsupportedError("with_position", where="prewarm_index", found=f"index {name!r}, which has none")
        uuids = {s.uuid for s in describe.segments_named(self.handle.snapshot, name)}
        if index_segments is not None:
            segment_ids = {kinds.uuid_of(text) for text in index_segments}
            if not segment_ids <= uuids:
                missing = ", ".join(str(uuid) for uuid in segment_ids - uuids)
                raise IndexNotFoundError(f"index {name!r} has no segment {missing}", where=self.handle.snapshot.uri)
            uuids = segment_ids
        for index in catalog.catalog(self.handle.snapshot).named(name):
            for ignored in index.ignored:
                if ignored.metadata.uuid in uuids:
                    raise UnsupportedError(f"index {name!r} cannot be used", found=ignored.reason)
            for segment in index.segments:
                if segment.uuid in uuids and len(segment.fragments):
                    search.open_index(self.handle.snapshot, segment).prewarm()


def _has_positions(snapshot: Snapshot, name: str) -> bool:
    """Return whether an index is one of full texts that keeps positions; by the manifest alone."""
    segments = describe.segments_named(snapshot, name)
    texts = [s for s in segments if registry.kind_of(s.details_type or "") is inverted.INVERTED]
    return bool(texts) and all(settings.settings_in(s.details).form.with_position for s in texts)
