"""Arguments of `write_dataset`, except data and location."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypedDict, TypeGuard, runtime_checkable

from lance_duck import lazy
from lance_duck.arguments import has_defaults
from lance_duck.errors import InvalidInputError
from lance_duck.snapshot import CommitLock, Location
from lance_duck.store import open_source
from lance_duck.verbs.change import transaction_properties
from lance_duck.wire.fragment import Fragment
from lance_duck.wire.manifest import BasePath
from lance_duck.write.options import Base, WriteOptions, WriteProgress

if TYPE_CHECKING:
    from lance_duck.file.write import blob_options
    from lance_duck.verbs.public import fragment_metadata
    from lance_duck.write import vectors
else:
    blob_options = lazy.modules(globals(), "lance_duck.file.write", "blob_options")
    fragment_metadata = lazy.modules(globals(), "lance_duck.verbs.public", "fragment_metadata")
    vectors = lazy.modules(globals(), "lance_duck.write", "vectors")

_UNITS: Final = {"year": 31_557_600, "month": 2_630_016, "day": 86_400, "h": 3600, "m": 60, "s": 1}


@runtime_checkable
class FragmentProgress(Protocol):
    """A progress observer of writes. See `FragmentWriteProgress`."""

    def begin(self, fragment: fragment_metadata.FragmentMetadata) -> None:
        """Called when a fragment is started."""

    def complete(self, fragment: fragment_metadata.FragmentMetadata) -> None:
        """Called when a fragment is complete."""


@dataclass(frozen=True, kw_only=True)
class WriteSettings:
    """Arguments of `write_dataset`, described there. `fragment_id` is reported to `progress`."""

    max_rows_per_file: int = WriteOptions.max_rows_per_file
    max_rows_per_group: int | None = WriteOptions.max_rows_per_group
    max_bytes_per_file: int = WriteOptions.max_bytes_per_file
    data_cache_bytes: int | None = None
    max_page_bytes: int | None = None
    progress: Callable[[WriteProgress], None] | FragmentProgress | bool | None = None
    fragment_id: int = 0
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    commit_lock: CommitLock | None = field(default=None, repr=False)
    data_storage_version: str | None = None
    enable_v2_manifest_paths: bool = True
    enable_stable_row_ids: bool = False
    auto_cleanup_options: Mapping[str, int] | None = None
    commit_message: str | None = None
    transaction_properties: Mapping[str, str] | None = None
    initial_bases: Sequence[Any] | None = None
    target_bases: Sequence[str] | None = None
    target_all_bases: bool | None = None
    base_store_params: Mapping[str, Mapping[str, str]] | None = None
    external_blob_mode: str = "reference"
    allow_external_blob_outside_bases: bool = False
    blob_pack_file_size_threshold: int | None = None
    vector_columns: vectors.VectorColumns | None = None

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Self:
        """Build the settings from arguments.

        Args:
            arguments: Arguments declared in `WriteArguments`.
        """
        settings = dict(arguments)
        use_legacy_format = settings.pop("use_legacy_format", None)
        if use_legacy_format is not None:
            warnings.warn("use_legacy_format is deprecated; use data_storage_version", DeprecationWarning, stacklevel=4)
            settings["data_storage_version"] = "legacy" if use_legacy_format else "stable"
        return cls(**settings)

    @property
    def properties(self) -> dict[str, str] | None:
        """Transaction properties."""
        return transaction_properties(self.commit_message, self.transaction_properties)

    @property
    def _rows_per_group(self) -> int:
        return WriteOptions.max_rows_per_group if self.max_rows_per_group is None else self.max_rows_per_group

    def blobs(self, location: Location, bases: Mapping[int, BasePath]) -> blob_options.BlobOptions:
        """Return the blob options for a table with these base paths."""
        return blob_options.BlobOptions(
            self.external_blob_mode,
            bool(self.allow_external_blob_outside_bases),
            {i: location.base_uri(base) for i, base in bases.items() if not base.is_dataset_root},
            self.blob_pack_file_size_threshold,
            lambda uri: open_source(uri, location.options_for(uri)),
        )

    def options(
        self, version: str | None, bases: Sequence[Base | None], blobs: blob_options.BlobOptions
    ) -> WriteOptions:
        """Return the write options. `version` is used if the settings do not specify one."""
        return WriteOptions(
            max_rows_per_file=self.max_rows_per_file,
            max_rows_per_group=self._rows_per_group,
            max_bytes_per_file=self.max_bytes_per_file,
            data_storage_version=self.data_storage_version or version,
            bases=bases,
            blobs=blobs,
            data_cache_bytes=self.data_cache_bytes,
            max_page_bytes=self.max_page_bytes,
            progress=_progress(self.progress),
            committed_here=True,
            watch=_Watch(self.progress, self.fragment_id) if _is_observer(self.progress) else None,
        )


@has_defaults(WriteSettings)
class FragmentArguments(TypedDict, total=False):
    """Keyword arguments of `write_fragments`, described in `write_dataset`."""

    max_rows_per_file: int
    max_rows_per_group: int | None
    max_bytes_per_file: int
    data_cache_bytes: int | None
    max_page_bytes: int | None
    progress: Callable[[WriteProgress], None] | FragmentProgress | bool | None
    storage_options: Mapping[str, str] | None
    data_storage_version: str | None
    use_legacy_format: bool | None
    enable_stable_row_ids: bool
    initial_bases: Sequence[Any] | None
    target_bases: Sequence[str] | None
    target_all_bases: bool | None
    base_store_params: Mapping[str, Mapping[str, str]] | None
    external_blob_mode: str
    allow_external_blob_outside_bases: bool


@has_defaults(WriteSettings)
class WriteArguments(FragmentArguments, total=False):
    """Keyword arguments of `write_dataset`, described there."""

    commit_lock: CommitLock | None
    enable_v2_manifest_paths: bool
    auto_cleanup_options: Mapping[str, int] | None
    commit_message: str | None
    transaction_properties: Mapping[str, str] | None
    blob_pack_file_size_threshold: int | None
    vector_columns: vectors.VectorColumns | None


def auto_cleanup_config(settings: WriteSettings) -> dict[str, str]:
    """Return the automatic cleanup config of a new table. Raises InvalidInputError for invalid options."""
    options = settings.auto_cleanup_options
    if options is None:
        return {}
    try:
        interval, seconds = int(options["interval"]), int(options["older_than_seconds"])
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InvalidInputError(
            "auto_cleanup_options", expected="interval and older_than_seconds", found=repr(options)
        ) from error
    return {"lance.auto_cleanup.interval": str(interval), "lance.auto_cleanup.older_than": _duration(seconds)}


def _duration(seconds: int) -> str:
    """Format a time span, such as "2days 1h 1m 1s"."""
    parts = []
    for name, size in _UNITS.items():
        count, seconds = divmod(seconds, size)
        if count:
            plural = "s" if count > 1 and len(name) > 1 else ""
            parts.append(f"{count}{name}{plural}")
    return " ".join(parts) or "0s"


def _is_observer(progress: object) -> TypeGuard[FragmentProgress]:
    return progress is not None and isinstance(progress, FragmentProgress)  # comparing its methods takes long


def _progress(progress: Any) -> Callable[[WriteProgress], None] | None:
    if progress is None or progress is False or _is_observer(progress):
        return None
    if progress is True:
        return _print_progress
    if not callable(progress):
        raise InvalidInputError(
            "progress", expected="True, a function or a FragmentWriteProgress", found=repr(progress)
        )
    callback: Callable[[WriteProgress], None] = progress
    return callback


class _Watch:
    """Adapter that reports fragments to an observer with pylance's interface."""

    def __init__(self, observer: FragmentProgress, fragment_id: int) -> None:
        self._observer = observer
        self._id = fragment_id

    def begin(self, fragment: Fragment) -> None:
        self._observer.begin(replace(fragment_metadata.metadata_of(fragment), id=self._id))

    def complete(self, fragment: Fragment) -> None:
        self._observer.complete(replace(fragment_metadata.metadata_of(fragment), id=self._id))


def _print_progress(progress: WriteProgress) -> None:
    text = f"\r{progress.rows:,} rows, {progress.bytes:,} bytes, {progress.files:,} files "
    print(text, end="", file=sys.stderr, flush=True)
