"""Upkeep: compaction, cleanup, validation, and what changed between two versions."""
