"""Kernels of JSONB: to text, from text."""
