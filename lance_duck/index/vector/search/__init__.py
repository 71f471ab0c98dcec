"""Searching open segments: lists that are filled when they are probed, graphs, and bits."""
