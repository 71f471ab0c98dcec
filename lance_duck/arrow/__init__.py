"""Arrow alone: kinds of types, and arrays put together. Nothing here knows Lance; imports nothing of the package."""
