"""One file per question; each runs the peers beside us, interleaved, and prints medians of ratios."""
