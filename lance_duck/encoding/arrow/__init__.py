"""Blocks ↔ Arrow arrays, without a copy where the form allows it; JSONB ↔ text."""
