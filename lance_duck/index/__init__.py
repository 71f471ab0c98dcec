"""Index segments: which there are, what they cover, and what each kind of them knows."""
