"""Benchmarks, one file for each question. See README.md."""
