"""LanceSchema: the columns of a table with the ids of their fields."""

from lance_duck.verbs.public.lance_schema import LanceField, LanceSchema

__all__ = ["LanceField", "LanceSchema"]
