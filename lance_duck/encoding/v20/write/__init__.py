"""Arrays of 2.0 pages out."""
