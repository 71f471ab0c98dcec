"""LanceSchema, a table schema with field ids, and functions that convert Arrow schemas to JSON.

The module is public, as in pylance.
"""

from lance_duck.verbs.public.lance_schema import LanceField, LanceSchema
from lance_duck.verbs.public.schema_json import json_to_schema, schema_to_json

__all__ = ["LanceField", "LanceSchema", "json_to_schema", "schema_to_json"]
