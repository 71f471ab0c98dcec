"""Dataset methods for indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from lance_duck import lazy
from lance_duck.arguments import checked_calls
from lance_duck.errors import IndexNotFoundError, UnsupportedError
from lance_duck.snapshot import Snapshot
from lance_duck.verbs.indexes.vector import VectorIndexChanges, spec_of

if TYPE_CHECKING:
    from lance_duck.index import catalog, registry, search
    from lance_duck.index.inverted import kind as inverted
    from lance_duck.index.inverted import settings
    from lance_duck.verbs import change
    from lance_duck.verbs.indexes import create, describe, kinds, segment_parts
    from lance_duck.verbs.indexes import segments as segment_changes
    from lance_duck.verbs.public import lance_operation
else:
    catalog, registry, search = lazy.modules(globals(), "lance_duck.index", "catalog", "registry", "search")
    inverted, settings = lazy.modules(globals(), "lance_duck.index.inverted", "kind", "settings")
    change = lazy.modules(globals(), "lance_duck.verbs", "change")
    create, describe, kinds, segment_parts, segment_changes = lazy.modules(
        globals(), "lance_duck.verbs.indexes", "create", "describe", "kinds", "segment_parts", "segments"
    )
    lance_operation = lazy.modules(globals(), "lance_duck.verbs.public", "lance_operation")


@checked_calls
class IndexChanges(VectorIndexChanges):
    """Changes to the indexes of a table.

    An index consists of segments, each covering some fragments. Rows of uncovered fragments are scanned. Each change
    moves the handle to the new version. After a lost race, the change is applied on top of the other commit, and only
    fragments that the other commit changed are indexed again.
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
    ) -> lance_operation.Index | None:
        """Build an index over the values of a column.

        Args:
            column: Dotted path of the column.
            index_type: Case-insensitive "BTREE", "BITMAP", "LABEL_LIST", "ZONEMAP", "BLOOMFILTER", "NGRAM", "JSON"
                (with the parameters path and target_index_type), "RTREE" or, for full-text search, "INVERTED" (alias
                "FTS"), or an `IndexConfig`.
            name: Name of the index. Defaults to "{column}_idx". A number is appended if a different index has that
                name.
            replace: Replace an index of this name over this column.
            train: Index all rows. If False, the index covers no rows until `optimize.optimize_indices`.
            fragment_ids: Only for INVERTED. Writes the rows of these fragments as one uncommitted part of a segment.
                Each fragment belongs to one part, and all parts need the same parameters. Any process can write a part.
                `merge_index_metadata` joins all parts in the end. For other kinds, see `create_index_uncommitted`,
                which works without parts.
            index_uuid: UUID of the segment, shared by its parts.
            progress_callback: Called with an `IndexProgress` at each step of the build.
            progress: Called with the number of rows read so far and the total. True prints them to stderr.
            commit_message: Message to store with the transaction.
            transaction_properties: Key-value pairs of strings to store with the transaction.
            parameters: Parameters of the kind, such as rows_per_zone=4096. A full-text index takes the analyser
                parameters (see `AnalyserArguments` in `lance_duck.text.parameters`), with_position (needed for
                phrases), block_size (128 or 256), format_version (1, 2 or 3; defaults to 2, or 3 with blocks of 256),
                memory_limit (in MiB, or a string with a unit, "256MB") and num_workers (number of threads).

        Returns:
            None. With `fragment_ids`, the segment that the part belongs to. Pass its UUID when you write other parts.

        Raises:
            UnknownColumnError: The column does not exist.
            NotIndexableError: The column cannot have this index, or the kind does not exist.
            IndexExistsError: The name belongs to an index over a different column, or to any index if replace=False.
            InvalidInputError: An argument or a parameter is invalid.
            CommitConflictError: A conflicting change was committed first, or all retries lost the race.
        """
        options: kinds.IndexOptions = {"name": name, "replace": replace, "train": train}
        options |= {"uuid": kinds.uuid_of(index_uuid), "progress": kinds.progress_of(progress, progress_callback)}
        spec = kinds.scalar_spec(column, index_type, parameters, **options)
        if fragment_ids is not None:
            return segment_parts.write_part(self.handle.base, spec, fragment_ids)
        properties = change.transaction_properties(commit_message, transaction_properties)
        self.handle.move_to(create.create_index(self.handle.base, spec, properties)[0])
        return None

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
        """Write a segment for some fragments, in any process, without committing it.

        Args:
            column: See `create_scalar_index`, or `create_index` for kinds of vector indexes.
            index_type: See `create_scalar_index` or `create_index`. Compressed vector segments can only be merged if
                they share ivf_centroids (and pq_codebook). Others can still be committed as one index.
            name: See `create_scalar_index`.
            replace: Whether an index of this name may exist.
            train: If False, the segment covers no rows.
            fragment_ids: Ids of the fragments to index, in this version.
            index_uuid: UUID of the segment.
            progress_callback: See `create_scalar_index`.
            progress: See `create_scalar_index`.
            parameters: See `create_scalar_index`.

        Returns:
            The segment, for `merge_existing_index_segments` and `commit_existing_index_segments`. It can be pickled.

        Raises:
            UnknownColumnError, NotIndexableError, IndexExistsError: See `create_scalar_index`.
            InvalidInputError: No fragments are given, or one does not exist.
        """
        base = self.handle.base
        options: kinds.IndexOptions = {"name": name, "replace": replace, "train": train}
        options |= {"uuid": kinds.uuid_of(index_uuid), "progress": kinds.progress_of(progress, progress_callback)}
        spec = spec_of(base, column, index_type, parameters, **options)
        return segment_changes.create_uncommitted(base, spec, fragment_ids)

    def merge_existing_index_segments(self, segments: Sequence[lance_operation.Index]) -> lance_operation.Index:
        """Merge several uncommitted segments into a new, uncommitted segment.

        Raises:
            InvalidInputError: No segments are given, one is given twice, or they belong to different indexes.
            LanceDuckError: A segment is corrupt.
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
        """Commit separately built segments as one index.

        Existing segments of the index are kept, except segments that the new ones cover entirely.

        Args:
            index_name: Name of the index.
            column: Dotted path of the column.
            segments: Results of `create_index_uncommitted` and `merge_existing_index_segments`.
            commit_message: Message to store with the transaction.
            transaction_properties: Key-value pairs of strings to store with the transaction.

        Raises:
            InvalidInputError: No segments are given, a segment is given twice or indexes a different column, or two
                segments cover the same fragment.
            IndexExistsError: The index is over a different column, or an existing segment covers more fragments than
                the new segments.
        """
        properties = change.transaction_properties(commit_message, transaction_properties)
        self.handle.move_to(segment_changes.commit_segments(self.handle.base, index_name, column, segments, properties))
        return self

    def merge_index_metadata(
        self,
        index_uuid: str | UUID,
        index_type: str,
        batch_readhead: int | None = None,
        progress_callback: Callable[[kinds.IndexProgress], Any] | None = None,
    ) -> None:
        """Join the parts of a full-text index into a segment. `create_scalar_index(…, fragment_ids=…)` writes parts.

        The segment is not committed. Commit it with `LanceDataset.commit` and a `LanceOperation.CreateIndex`, or with
        `commit_existing_index_segments`. Calling this again does nothing.

        Args:
            index_uuid: UUID shared by the parts.
            index_type: "INVERTED" (alias "FTS"). Other kinds do not have parts.
            batch_readhead: Without effect.
            progress_callback: Called with an `IndexProgress` before and after the parts are joined.

        Raises:
            UnsupportedError: The index is not a full-text index, or its parts were built with different parameters.
            InvalidInputError: No parts exist, or two of them contain the same row.
            LanceDuckError: A part is damaged.
        """
        if not isinstance(index_type, str) or index_type.upper() not in ("INVERTED", "FTS"):
            raise UnsupportedError(
                f"merge_index_metadata does not support {index_type} indexes",
                remedy="use merge_existing_index_segments and commit_existing_index_segments",
            )
        progress = kinds.progress_of(None, progress_callback)
        segment_parts.join_segment(self.handle.base, kinds.uuid_of(index_uuid), progress)

    def drop_index(
        self,
        name: str,
        *,
        commit_message: str | None = None,
        transaction_properties: Mapping[str, str] | None = None,
    ) -> None:
        """Drop an index of any kind. Its files are kept until older versions are cleaned up.

        Raises:
            IndexNotFoundError: The index does not exist.
        """
        properties = change.transaction_properties(commit_message, transaction_properties)
        self.handle.move_to(create.drop_index(self.handle.base, name, properties))

    def list_indices(self) -> list[describe.IndexInformation]:
        """Describe each segment of each index, ordered by index name."""
        return describe.list_indices(self.handle.snapshot)

    def describe_indices(self) -> list[describe.IndexDescription]:
        """Describe each index, ordered by name. Reads only the manifest."""
        return describe.describe_indices(self.handle.snapshot)

    @property
    def has_index(self) -> bool:
        """Whether the table has any indexes."""
        return bool(self.handle.snapshot.indices)

    def index_statistics(self, index_name: str) -> dict[str, Any]:
        """Return the statistics of an index: see `verbs.indexes.describe.index_statistics`.

        Raises:
            IndexNotFoundError: The index does not exist.
        """
        return describe.index_statistics(self.handle.snapshot, index_name)

    def prewarm_index(
        self, name: str, *, with_position: bool = False, index_segments: Iterable[str | UUID] | None = None
    ) -> None:
        """Read all data that searches of an index need, and cache it in memory up to the cache limit.

        Args:
            name: Name of the index.
            with_position: Without effect for full-text indexes with positions: phrase queries read the positions that
                they need. Rejected for all other indexes.
            index_segments: UUIDs of segments to read. Defaults to all.

        Raises:
            IndexNotFoundError: The index or the segment does not exist.
            LanceDuckError: A segment is corrupt, or of an unsupported kind.
        """
        if with_position and not _has_positions(self.handle.snapshot, name):
            raise UnsupportedError(
                "with_position needs a full-text index with positions",
                where="prewarm_index",
                found=f"index {name!r} without positions",
            )
        uuids = {s.uuid for s in describe.segments_named(self.handle.snapshot, name)}
        if index_segments is not None:
            segment_ids = {kinds.uuid_of(text) for text in index_segments}
            if not segment_ids <= uuids:
                missing = ", ".join(str(uuid) for uuid in segment_ids - uuids)
                raise IndexNotFoundError(
                    f"index {name!r} does not have segment {missing}", where=self.handle.snapshot.uri
                )
            uuids = segment_ids
        for index in catalog.catalog(self.handle.snapshot).named(name):
            for ignored in index.ignored:
                if ignored.metadata.uuid in uuids:
                    raise UnsupportedError(f"index {name!r} cannot be used", found=ignored.reason)
            for segment in index.segments:
                if segment.uuid in uuids and len(segment.fragments):
                    search.open_index(self.handle.snapshot, segment).prewarm()


def _has_positions(snapshot: Snapshot, name: str) -> bool:
    """Return whether an index is a full-text index with positions. Reads only the manifest."""
    segments = describe.segments_named(snapshot, name)
    texts = [s for s in segments if registry.kind_of(s.details_type or "") is inverted.INVERTED]
    return bool(texts) and all(settings.settings_in(s.details).form.with_position for s in texts)
