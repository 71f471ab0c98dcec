"""Write a table with full-text indexes with an old pylance, in whose environment this runs: `old_texts.py TABLE`."""

from __future__ import annotations

import sys

import lance
import pyarrow as pa

ROWS = 90
WORDS = ("duck", "lake", "goose", "pond", "heron")


def text(i: int) -> str | None:
    if i % 11 == 5:
        return None
    return " ".join(WORDS[(i * i + 3 * j * i + j) % 7 % 5] for j in range(i % 6))


def main(place: str) -> None:
    texts = [text(i) for i in range(ROWS)]
    lists = [None if each is None else each.split() for each in texts]
    table = pa.table({"id": range(ROWS), "body": texts, "plain": texts, "tags": pa.array(lists, pa.list_(pa.string()))})
    dataset = lance.write_dataset(table, place, max_rows_per_file=40)
    dataset.create_scalar_index("body", "INVERTED", with_position=True)
    dataset.create_scalar_index("plain", "INVERTED", with_position=False)
    dataset.create_scalar_index("tags", "INVERTED", with_position=True)


if __name__ == "__main__":
    main(sys.argv[1])
