"""Named tables in a folder or behind a REST service, compatible with pylance, LanceDB and DuckDB's extension.

You hold: the properties of a namespace, and table names. You get: lists of names, table locations, and open datasets.
`folder_transaction` changes several tables and names of a folder in one commit.
Never here: the contents of a table, except `__manifest`, which lists names.
"""

from lance_duck.namespaces.base import Catalog, Namespace, TableDescription
from lance_duck.namespaces.catalog_objects import (
    CatalogObject,
    MacroDefinition,
    ObjectKey,
    TableMacroDefinition,
    TypeDefinition,
    ViewDefinition,
)
from lance_duck.namespaces.connect import connect_namespace
from lance_duck.namespaces.directory import DirectoryNamespace
from lance_duck.namespaces.draft import CatalogDraft
from lance_duck.namespaces.rest import RestNamespace

__all__ = [
    "Catalog",
    "CatalogDraft",
    "CatalogObject",
    "DirectoryNamespace",
    "MacroDefinition",
    "Namespace",
    "ObjectKey",
    "RestNamespace",
    "TableDescription",
    "TableMacroDefinition",
    "TypeDefinition",
    "ViewDefinition",
    "connect_namespace",
]
