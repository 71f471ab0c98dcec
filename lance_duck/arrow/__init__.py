"""Arrow alone: kinds of types, and arrays joined.

You hold: Arrow types and arrays. You get: what kind a type is, and one array of several.
Never here: Lance, and imports of other rooms.
"""
