"""External manifest stores: where a version is claimed on stores that cannot put a file only if it is absent.

An external manifest store is a small table of keys and values beside the object store, with one operation that the
object store lacks: (base URI, version) → path of the manifest, written only if the key is new.
`storage_options={"manifest_store": url}` names one for a table; all writers of the table must name the same.

    sqlite:///absolute/path.db    built in: a file that all writers reach
    {scheme}://…                  whatever `register_manifest_store` was told to open for that scheme

You hold: the URL of an external manifest store. You get: an `ExternalManifestStore`, opened once in a process.
Never here: manifests themselves, and in which order a version is claimed and its manifest put.
"""

from lance_duck.store.external.registry import OPTION, ExternalManifestStore, manifest_store, register_manifest_store

__all__ = ["OPTION", "ExternalManifestStore", "manifest_store", "register_manifest_store"]
