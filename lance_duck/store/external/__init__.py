"""External manifest stores, which claim versions for stores without put-if-absent.

An external manifest store is a small key-value table next to the object store, with one operation that the
object store lacks: it maps (base URI, version) to the path of a manifest, and writes a key only if it is new.
The option `storage_options={"manifest_store": url}` selects the store for a table. All writers of the table must use
the same store.

    sqlite:///absolute/path.db    built in: a file that all writers can access
    {scheme}://…                  opened by the function given to `register_manifest_store` for that scheme

You hold: the URL of an external manifest store. You get: an `ExternalManifestStore`, opened once per process.
Never here: manifests themselves, and the order of claiming a version and writing its manifest.
"""

from lance_duck.store.external.stores import (
    OPTION,
    ExternalManifestStore,
    manifest_store,
    register_manifest_store,
)

__all__ = ["OPTION", "ExternalManifestStore", "manifest_store", "register_manifest_store"]
