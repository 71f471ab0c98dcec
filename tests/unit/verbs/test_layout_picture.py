from __future__ import annotations

import re
from pathlib import Path

import lance_duck as ld
from lance_duck.verbs.indexes.describe import describe_indices
from lance_duck.verbs.markup import layout_svg

BLUE, RED, GREEN, GREY = "#5b8ff9", "#e8684a", "#5ad8a6", "#d9d9d9"


def widths(dataset: ld.LanceDataset, color: str) -> list[float]:
    """Return how wide the boxes of a colour are, in pixels."""
    snapshot = dataset.handle.snapshot
    picture = layout_svg(snapshot, describe_indices(snapshot))
    return [float(width) for width in re.findall(rf'width="([0-9.]+)" height="[0-9.]+" fill="{color}"', picture)]


def test_fragment_widths_follow_rows_and_deletions_are_marked(tmp_path: Path) -> None:
    made = ld.write_dataset({"id": range(400)}, tmp_path / "t.lance")
    made.insert({"id": range(400, 500)})
    assert widths(made, BLUE) == [400, 100]
    made.delete("id < 100")
    assert widths(made, BLUE) == [300, 100]
    assert widths(made, RED) == [99]  # a line between neighbours takes the last one


def test_indexes_without_coverage_are_drawn_empty(tmp_path: Path) -> None:
    made = ld.write_dataset({"id": range(400)}, tmp_path / "t.lance")
    made.create_scalar_index("id", "BTREE", name="<b>")
    made.insert({"id": range(400, 500)})
    assert (widths(made, GREEN), widths(made, GREY)) == ([400], [99])
    assert "&lt;b&gt;" in made._repr_html_()


def test_many_fragments_share_boxes(tmp_path: Path) -> None:
    made = ld.write_dataset({"id": range(500)}, tmp_path / "t.lance", max_rows_per_file=1)
    shown = widths(made, BLUE)
    assert len(shown) == 200
    assert abs(sum(shown) - 500) < 1


def test_an_empty_table_has_no_picture(tmp_path: Path) -> None:
    made = ld.write_dataset({"id": range(0)}, tmp_path / "t.lance")
    assert layout_svg(made.handle.snapshot, []) == ""
