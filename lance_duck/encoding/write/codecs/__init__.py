"""Which encoding values get: looks at them, estimates, picks one, runs it once."""
