"""Generated example tables: taxi trips, their zones, and short texts with vectors.

    from lance_duck import examples

    examples.write("data")                     # data/trips.lance, zones.lance, docs.lance
    con = ld.connect("data")
    ld.dataset("data/docs.lance").search(examples.embed("a harbour in the fog"), k=3)

The same arguments give the same rows. Nothing is downloaded. Texts are combined from phrases. A vector is computed from
the letters of its text. Texts that share words therefore have similar vectors.
You hold: a folder, or a row count. You get: tables in the folder or in memory, and vectors of texts.
Never here: code that other rooms need.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from lance_duck.cache import SizedCache
from lance_duck.dataset import LanceDataset
from lance_duck.errors import InvalidInputError, WrongTypeError
from lance_duck.redact import shown
from lance_duck.store import checked_place, local_path
from lance_duck.write_dataset import write_dataset

__all__ = ["docs", "embed", "trips", "write", "zones"]

_WORDS: Final[SizedCache[NDArray[np.float32]]] = SizedCache(16 << 20, lambda vector: vector.nbytes)
"""Word vectors by (word, dimensions). The vectors of all example texts take 0.1 MB at 128 dimensions."""

CITIES: Final = ("Kyoto", "Lisbon", "Nairobi", "Quito", "Tallinn")
NAMES: Final = ("Harbour", "Old Town", "Station", "University", "Market", "Hill", "Garden", "Airport")
"""Zone names. Each city has one zone with each name."""

NOTES: Final = ("two suitcases", "a dog on the back seat", "paid for a friend", "heavy rain", "wrong address at first")

# Subjects, predicates, and places or manners. All combinations within a topic make sense.
TOPICS: Final[Mapping[str, tuple[str, str, str]]] = MappingProxyType(
    {
        "sailing": (
            "The skipper|A crew of four|The old ketch|The racing yacht|The ferry pilot",
            "reefs the mainsail|drops anchor in the bay|rounds the lighthouse|tacks against the wind|hoists the flag",
            "as the gale picks up|under a full moon|before the harbour closes|in a steady breeze|on the third day",
        ),
        "baking": (
            "The baker|My grandmother|A patient beginner|The pastry cook|Our neighbour",
            "kneads the rye dough|lets the sourdough rise|glazes the plum tart|weighs the flour|scores the crust",
            "before sunrise|on a floured board|for the village market|with a pinch of salt|while the oven heats up",
        ),
        "railways": (
            "The night train|The stationmaster|A freight train|The signal box|The commuter line",
            "leaves from platform nine|stops at every small station|crosses the viaduct|waits for the express|is late",
            "through the mountains|because of snow on the rails|as far as the border|in the rush hour|once a week",
        ),
        "astronomy": (
            "The observatory|A team of astronomers|The space probe|The student on night duty|An orbiting camera",
            "measures a distant galaxy|photographs the rings of Saturn|follows a comet|maps the moon|finds a red star",
            "on a cloudless night|with a long exposure|far from the city|over several months|in the infrared",
        ),
        "databases": (
            "The duck|A curious analyst|The lake house|The query planner|A column store",
            "scans a million rows|joins two tables|builds an index|prunes the fragments|commits a version",
            "in a few milliseconds|without a copy|on a laptop|while others write|before the coffee is ready",
        ),
    }
)


def zones() -> pa.Table:
    """Return the 40 zones in which trips begin.

    Returns:
        zone: int32, from 1; name: string, for example "Kyoto Harbour"; km2: double, area.
    """
    names = [f"{city} {name}" for city in CITIES for name in NAMES]
    area = [round(1.5 + 7 * place % 11 + place % 3 / 4, 2) for place in range(len(names))]
    return pa.table({"zone": pa.array(range(1, len(names) + 1), pa.int32()), "name": names, "km2": area})


def trips(rows: int = 10_000, seed: int = 0) -> pa.Table:
    """Return taxi trips in five cities, ordered by time.

    Args:
        rows: Number of trips.
        seed: Seed of the random values.

    Returns:
        id: int64, from 0; zone: int32; city: string; pickup: timestamp[us], about a minute apart, from 1 January 2026;
        km, fare, tip: double; note: string, mostly null.
    """
    _check(rows)
    chance = np.random.default_rng(seed).random((rows, 6))
    zone = (chance[:, 0] ** 2 * len(CITIES) * len(NAMES)).astype(np.int32)  # low zone numbers are more frequent
    km = np.round(0.4 - 6 * np.log1p(-chance[:, 1]), 1)
    fare = np.round(3.2 + 1.9 * km + 4 * chance[:, 2], 2)
    tip = np.round(np.where(chance[:, 3] < 0.6, fare * 0.25 * chance[:, 3], 0), 2)
    minutes = np.arange(rows) + chance[:, 4]
    pickup = np.datetime64("2026-01-01", "us") + (minutes * 60e6).astype("timedelta64[us]")
    note = (chance[:, 5] * 10 * len(NOTES)).astype(np.int64)
    return pa.table(
        {
            "id": pa.array(np.arange(rows)),
            "zone": pa.array(zone + 1),
            "city": pa.array(CITIES).take(pa.array(zone // len(NAMES))),
            "pickup": pa.array(pickup),
            "km": km,
            "fare": fare,
            "tip": tip,
            "note": pa.array(NOTES).take(pa.array(note, mask=note >= len(NOTES))),
        }
    )


def docs(rows: int = 500, dimensions: int = 128, seed: int = 0) -> pa.Table:
    """Return short texts on five topics, each with a vector.

    Args:
        rows: Number of texts. The first 625 are distinct.
        dimensions: Length of a vector.
        seed: Seed of the text order.

    Returns:
        id: int64, from 0; topic: string; text: string; v: fixed_size_list<float32>[dimensions], the vector that `embed`
        returns for the text.
    """
    _check(rows)
    made = [
        (topic, f"{who} {what} {how}.")
        for topic, parts in TOPICS.items()
        for who, what, how in _combined(*(part.split("|") for part in parts))
    ]
    order = np.random.default_rng(seed).random(len(made)).argsort()
    chosen = [made[order[place % len(made)]] for place in range(rows)]
    vectors = embed([text for _, text in chosen], dimensions)
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "topic": pa.array([topic for topic, _ in chosen], pa.string()),
            "text": pa.array([text for _, text in chosen], pa.string()),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), dimensions),
        }
    )


def write(folder: str | os.PathLike[str], *, rows: int = 10_000, mode: str = "create", **options: Any) -> Path:
    """Write the tables `trips`, `zones` and `docs` to a folder.

    `trips` has a history. Version 1 holds the first three quarters of the rows, in three fragments. Version 2 adds an
    index on `pickup`, version 3 raises fares in Kyoto, and version 4 deletes short trips. Version 5 adds the remaining
    rows, which the index does not cover.

    Args:
        folder: Local folder. It is created if it does not exist.
        rows: Number of trips, at least 8.
        mode: Mode of `write_dataset`. "overwrite" replaces existing tables.
        **options: Other options of `write_dataset`.

    Returns:
        The folder.

    Raises:
        WrongTypeError: The folder is not a path.
        InvalidInputError: The folder is an empty string or an object store URI, or there are too few rows.
        AlreadyExistsError: A table exists and the mode is "create".
    """
    if rows < 8:
        raise InvalidInputError("rows", where="examples.write", expected="8 or more", found=rows)
    place = local_path(checked_place(folder))
    if place is None:
        raise InvalidInputError(
            "folder", where="examples.write", expected="a folder of a local disk", found=shown(folder)
        )
    home = Path(place)
    all_trips = trips(rows)
    early = rows * 3 // 4
    made: LanceDataset = write_dataset(
        all_trips.slice(0, early), home / "trips.lance", mode=mode, **{"max_rows_per_file": -(-early // 3), **options}
    )
    made.create_scalar_index("pickup", "BTREE", replace=True)
    made.update({"fare": "round(fare * 1.1, 2)"}, where="city = 'Kyoto'")
    made.delete("km < 0.6")
    made.insert(all_trips.slice(early))
    write_dataset(zones(), home / "zones.lance", mode=mode, **options)
    write_dataset(docs(), home / "docs.lance", mode=mode, **options)
    return home


def _combined(who: Sequence[str], what: Sequence[str], how: Sequence[str]) -> list[tuple[str, str, str]]:
    return [(first, second, third) for first in who for second in what for third in how]


def _check(rows: int) -> None:
    if rows < 0:
        raise InvalidInputError("rows", where="examples", expected="0 or more", found=rows)


def embed(text: str | Sequence[str], dimensions: int = 128) -> NDArray[np.float32]:
    """Return the vector of a text, computed from its words and trigrams. Texts that share them have similar vectors.

    The vector does not reflect the meaning of words. Use a model for that.

    Args:
        text: One text, or several.
        dimensions: Length of a vector.

    Returns:
        Unit vectors of shape (dimensions,), or (texts, dimensions) for several texts. A text without words of three or
        more letters has a zero vector.

    Raises:
        WrongTypeError: `text` is neither a string nor a list of strings.
        InvalidInputError: `dimensions` is less than 1.
    """
    if not isinstance(text, str) and not (isinstance(text, Sequence) and all(isinstance(each, str) for each in text)):
        raise WrongTypeError("text", where="embed", expected="a string, or a list of strings", found=repr(text))
    if dimensions < 1:
        raise InvalidInputError("dimensions", where="embed", expected="1 or more", found=dimensions)
    if not isinstance(text, str):
        return np.stack([embed(each, dimensions) for each in text]) if len(text) else np.empty((0, dimensions), "f4")
    total: NDArray[np.float32] = np.zeros(dimensions, np.float32)
    for word in re.findall(r"\w+", text.lower()):
        total += _WORDS.get((word, dimensions), partial(_word_vector, word, dimensions))
    length = float(np.linalg.norm(total))
    if length:
        total /= length
    return total


def _word_vector(word: str, dimensions: int) -> NDArray[np.float32]:
    """Return the vector of a word, computed from the word and its trigrams. Words of one or two letters get zeros."""
    marked = f"<{word}>"
    parts = {marked, *(marked[place : place + 3] for place in range(len(marked) - 2))}
    drawn = [np.random.default_rng(zlib.crc32(part.encode())).random(dimensions) - 0.5 for part in sorted(parts)]
    mean: NDArray[np.float64] = np.mean(drawn, axis=0)
    return (mean * max(len(word) - 2, 0)).astype(np.float32)
