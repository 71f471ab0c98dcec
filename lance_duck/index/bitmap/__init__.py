"""Bitmap and label list indexes: for each distinct value, or item of a list, the set of its rows."""
