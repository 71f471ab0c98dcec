"""Tables to try things on, made on the spot: trips and zones of taxis, and short texts with vectors.

    from lance_duck import examples

    examples.write("data")                     # data/trips.lance, zones.lance, docs.lance
    con = ld.connect("data")
    ld.dataset("data/docs.lance").search(examples.embed("a harbour in the fog"), k=3)

The same arguments give the same rows. Nothing is downloaded: texts are composed of parts, and a vector is computed from
the letters of its text, so that texts of the same words are near each other.
You hold: a folder, or a number of rows. You get: tables written to the folder, or in memory, and vectors of texts.
Never here: anything that other rooms need.
"""

from lance_duck.examples.tables import docs, trips, write, zones
from lance_duck.examples.vectors import embed

__all__ = ["docs", "embed", "trips", "write", "zones"]
