"""One file per question; each runs all peers interleaved and prints medians of ratios."""
